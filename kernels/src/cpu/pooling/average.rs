//! The mean of each window, or of each part of a plane.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Error, Result, Scalar, Untyped, View, ViewMut};

use super::{Planes, Range, Ranges};
use crate::cpu::float::Float;
use crate::cpu::rounded::{Rounded, held};
use crate::cpu::strides::expect_sizes;
use crate::window::{MOST, Window, spatial_sizes};

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
    let window = [kernel_size, stride, padding];
    let ranges = window_ranges(2, window, self_.sizes(), ceil_mode, count_include_pad)?;
    avg_pool(&self_, 2, ranges, divisor_override, out)
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
    let window = [kernel_size, stride, padding];
    let ranges = window_ranges(3, window, self_.sizes(), ceil_mode, count_include_pad)?;
    avg_pool(&self_, 3, ranges, divisor_override, out)
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
    let window = [kernel_size, stride, padding];
    let ranges = window_ranges(2, window, self_.sizes(), ceil_mode, count_include_pad)?;
    avg_pool_backward(&grad_output, self_.sizes(), 2, ranges, divisor_override, out)
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
    let window = [kernel_size, stride, padding];
    let ranges = window_ranges(3, window, self_.sizes(), ceil_mode, count_include_pad)?;
    avg_pool_backward(&grad_output, self_.sizes(), 3, ranges, divisor_override, out)
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
    let spatial = output_size.len().clamp(1, MOST);
    let output = spatial_sizes(out.sizes(), spatial)?;
    let ranges = Ranges::adaptive(spatial_sizes(self_.sizes(), spatial)?, output);
    avg_pool(&self_, spatial, ranges, None, out)
}

/// As [`adaptive_avg_pool`], over the last three dimensions; sums are rounded at each step, as PyTorch's are.
///
/// # Errors
/// If the shapes do not fit.
pub fn adaptive_avg_pool3d<T: Element<Compute: Float>>(
    self_: View<'_, T>,
    _output_size: &[i64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let ranges = Ranges::adaptive(spatial_sizes(self_.sizes(), 3)?, spatial_sizes(out.sizes(), 3)?);
    let planes = Planes::new(self_.sizes(), 3, ranges, out.sizes())?;
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
    adaptive_backward(&grad_output, self_.sizes(), 2, out)
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
    adaptive_backward(&grad_output, self_.sizes(), 3, out)
}

fn adaptive_backward<T: Element<Compute: Arithmetic>>(
    grad: &View<'_, T>,
    sizes: &[i64],
    spatial: usize,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let ranges = Ranges::adaptive(spatial_sizes(sizes, spatial)?, spatial_sizes(grad.sizes(), spatial)?);
    avg_pool_backward(grad, sizes, spatial, ranges, None, out)
}

/// The windows of a shape over its last dimensions, given as their sizes, steps and borders.
fn window_ranges(
    spatial: usize,
    [kernel_size, stride, padding]: [&[i64]; 3],
    sizes: &[i64],
    ceil: bool,
    count_border: bool,
) -> Result<Ranges> {
    let window = Window::new(spatial, kernel_size, stride, padding, &[1])?;
    Ranges::of_window(&window, spatial_sizes(sizes, spatial)?, ceil, count_border)
}

fn avg_pool<T: Element<Compute: Arithmetic>>(
    input: &View<'_, T>,
    spatial: usize,
    ranges: Ranges,
    divisor: Option<i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    refuse_zero(divisor)?;
    let planes = Planes::new(input.sizes(), spatial, ranges, out.sizes())?;
    let means = planes.gather(input, |plane, ranges| {
        let mut sum = T::Compute::ZERO;
        planes.ranges.for_each_element(ranges, |at| sum = Arithmetic::add(sum, plane[at].to_compute()));
        T::from_compute(Arithmetic::div(sum, count::<T>(ranges, divisor)))
    });
    out.write(means)
}

fn avg_pool_backward<T: Element<Compute: Arithmetic>>(
    grad: &View<'_, T>,
    input_sizes: &[i64],
    spatial: usize,
    ranges: Ranges,
    divisor: Option<i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    refuse_zero(divisor)?;
    expect_sizes(out.sizes(), input_sizes)?;
    let planes = Planes::new(input_sizes, spatial, ranges, grad.sizes())?;
    let sums = planes.scatter(grad, |grad, ranges, sums| {
        let part = held::<T>(Arithmetic::div(grad, count::<T>(ranges, divisor)));
        planes.ranges.for_each_element(ranges, |at| sums[at] = held::<T>(Arithmetic::add(sums[at], part)));
    });
    out.write(sums)
}

/// What a mean divides by.
fn count<T: Element>(ranges: [Range; MOST], divisor: Option<i64>) -> T::Compute {
    let counted = ranges.iter().map(|range| range.counted).product();
    T::Compute::from_scalar(Scalar::Int(divisor.unwrap_or(counted)))
}

fn refuse_zero(divisor: Option<i64>) -> Result<()> {
    match divisor {
        Some(0) => Err(Error::value("the divisor must not be 0")),
        _ => Ok(()),
    }
}
