//! The mean of each window, or of each part of a plane.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Error, Result, Scalar, Untyped, View, ViewMut};

use super::means::write_means;
use super::{Planes, Range};
use crate::cpu::copy::with_slice;
use crate::cpu::float::Float;
use crate::cpu::rounded::{Rounded, held};
use crate::cpu::strides::expect_sizes;
use crate::window::{MOST, Window};

/// The means of windows over the last two dimensions. Elements of the border count as zeros if
/// `count_include_pad`; `divisor_override` divides instead of the number of elements.
///
/// # Errors
/// If the shapes or parameters do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn avg_pool2d<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Option<i64>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let window = Window::new(2, kernel_size, stride, padding, &[1])?;
    let planes = Planes::of_window(&window, ceil_mode, count_include_pad, self_.sizes(), out.sizes())?;
    means(&planes, &self_, divisor_override, out)
}

/// As [`avg_pool2d`], over the last three dimensions.
///
/// # Errors
/// If the shapes or parameters do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn avg_pool3d<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Option<i64>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let window = Window::new(3, kernel_size, stride, padding, &[1])?;
    let planes = Planes::of_window(&window, ceil_mode, count_include_pad, self_.sizes(), out.sizes())?;
    means(&planes, &self_, divisor_override, out)
}

/// The gradient of [`avg_pool2d`].
///
/// # Errors
/// If the shapes or parameters do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn avg_pool2d_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Option<i64>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let (window, sizes) = (Window::new(2, kernel_size, stride, padding, &[1])?, self_.sizes());
    let planes = Planes::of_window(&window, ceil_mode, count_include_pad, sizes, grad_output.sizes())?;
    means_backward(&planes, &grad_output, sizes, divisor_override, out)
}

/// The gradient of [`avg_pool3d`].
///
/// # Errors
/// If the shapes or parameters do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn avg_pool3d_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Option<i64>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let (window, sizes) = (Window::new(3, kernel_size, stride, padding, &[1])?, self_.sizes());
    let planes = Planes::of_window(&window, ceil_mode, count_include_pad, sizes, grad_output.sizes())?;
    means_backward(&planes, &grad_output, sizes, divisor_override, out)
}

/// Means of parts that together make up the last dimensions, as many as `output_size` says.
///
/// # Errors
/// If the shapes do not fit.
pub fn adaptive_avg_pool<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    output_size: &[i64],
    out: ViewMut<'_, T>,
) -> Result<()> {
    let planes = Planes::adaptive(output_size.len().clamp(1, MOST), self_.sizes(), out.sizes())?;
    means(&planes, &self_, None, out)
}

/// As [`adaptive_avg_pool`], over the last three dimensions; sums are rounded at each step, as PyTorch's are.
///
/// # Errors
/// If the shapes do not fit.
pub fn adaptive_avg_pool3d<T: Element<Compute: Float>>(
    self_: View<'_, T>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let planes = Planes::adaptive(3, self_.sizes(), out.sizes())?;
    let means = planes.gather(&self_, |plane, ranges| {
        let mut sum = Rounded::of(0.0);
        planes.ranges.for_each_element(ranges, |at| sum = sum + Rounded::from_element(plane[at]));
        let count: i64 = ranges.iter().map(|range| range.counted).product();
        (sum / Rounded::of(count as f64)).to_element()
    });
    out.write(means)
}

/// The gradient of [`adaptive_avg_pool`] over the last two dimensions.
///
/// # Errors
/// If the shapes do not fit.
pub fn adaptive_avg_pool2d_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let planes = Planes::adaptive(2, self_.sizes(), grad_output.sizes())?;
    means_backward(&planes, &grad_output, self_.sizes(), None, out)
}

/// The gradient of [`adaptive_avg_pool`] over the last three dimensions.
///
/// # Errors
/// If the shapes do not fit.
pub fn adaptive_avg_pool3d_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let planes = Planes::adaptive(3, self_.sizes(), grad_output.sizes())?;
    means_backward(&planes, &grad_output, self_.sizes(), None, out)
}

fn means<T: Element<Compute: Arithmetic>>(
    planes: &Planes,
    input: &View<'_, T>,
    divisor: Option<i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    refuse_zero(divisor)?;
    let elements = input.to_contiguous();
    with_slice(&mut out, |out| write_means(planes, &elements, divisor, out))
}

/// The gradient of [`means`] for an input of these sizes.
fn means_backward<T: Element<Compute: Arithmetic>>(
    planes: &Planes,
    grad: &View<'_, T>,
    sizes: &[i64],
    divisor: Option<i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    refuse_zero(divisor)?;
    expect_sizes(out.sizes(), sizes)?;
    let sums = planes.scatter(grad, |grad, ranges, sums| {
        let part = held::<T>(Arithmetic::div(grad, count::<T>(ranges, divisor)));
        planes.ranges.for_each_element(ranges, |at| sums[at] = held::<T>(Arithmetic::add(sums[at], part)));
    });
    out.write(sums)
}

/// The divisor of a mean.
fn count<T: Element>(ranges: [Range; MOST], divisor: Option<i64>) -> T::Compute {
    let counted = ranges.iter().map(|range| range.counted).product();
    T::Compute::from_scalar(Scalar::Int(divisor.unwrap_or(counted)))
}

pub(crate) fn refuse_zero(divisor: Option<i64>) -> Result<()> {
    match divisor {
        Some(0) => Err(Error::value("the divisor must not be 0")),
        _ => Ok(()),
    }
}
