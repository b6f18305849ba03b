//! The largest element of each window.

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::{Element, Error, Result, Scratch, Untyped, View, ViewMut};

use super::Planes;
use crate::cpu::strides::expect_sizes;
use crate::window::{Window, spatial_sizes};

/// The largest elements of windows over the last two dimensions, and their positions in their planes,
/// counted row by row. NaN is larger than everything.
///
/// # Errors
/// If the shapes or parameters do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn max_pool2d_with_indices<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
    out: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    max_pool(&self_, &Window::new(2, kernel_size, stride, padding, dilation)?, ceil_mode, out, indices)
}

/// As [`max_pool2d_with_indices`], over the last three dimensions.
///
/// # Errors
/// If the shapes or parameters do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn max_pool3d_with_indices<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
    out: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    max_pool(&self_, &Window::new(3, kernel_size, stride, padding, dilation)?, ceil_mode, out, indices)
}

fn max_pool<T: Element<Compute: Ordered>>(
    input: &View<'_, T>,
    window: &Window,
    ceil: bool,
    mut out: ViewMut<'_, T>,
    mut indices: ViewMut<'_, i64>,
) -> Result<()> {
    let planes = Planes::of_window(window, ceil, false, input.sizes(), out.sizes())?;
    expect_sizes(indices.sizes(), out.sizes())?;
    let best = planes.gather(input, |plane, ranges| {
        let mut best: Option<(T::Compute, usize)> = None;
        planes.ranges.for_each_element(ranges, |at| {
            let value = plane[at].to_compute();
            if best.is_none_or(|(old, _)| value.gt(old) || !value.equal(value)) {
                best = Some((value, at));
            }
        });
        best.unwrap_or((T::Compute::LOWEST, 0))
    });
    out.write(best.iter().map(|&(value, _)| T::from_compute(value)))?;
    indices.write(best.iter().map(|&(_, at)| at as i64))
}

/// The gradient of [`max_pool2d_with_indices`]: each output's goes to the element it came from.
///
/// # Errors
/// If the shapes or parameters do not fit, or an index is outside its plane.
pub fn max_pool2d_with_indices_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    indices: View<'_, i64>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    max_pool_backward(&grad_output, self_.sizes(), 2, &indices, out)
}

/// The gradient of [`max_pool3d_with_indices`].
///
/// # Errors
/// If the shapes or parameters do not fit, or an index is outside its plane.
pub fn max_pool3d_with_indices_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    indices: View<'_, i64>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    max_pool_backward(&grad_output, self_.sizes(), 3, &indices, out)
}

fn max_pool_backward<T: Element<Compute: Arithmetic>>(
    grad: &View<'_, T>,
    input_sizes: &[i64],
    spatial: usize,
    indices: &View<'_, i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_sizes(out.sizes(), input_sizes)?;
    expect_sizes(indices.sizes(), grad.sizes())?;
    let plane = spatial_sizes(input_sizes, spatial)?.iter().product::<i64>();
    let positions = spatial_sizes(grad.sizes(), spatial)?.iter().product::<i64>().max(1);
    let mut sums = Scratch::filled(T::Compute::ZERO, out.numel());
    for (number, (grad, index)) in (0..).zip(grad.iter().zip(indices.iter())) {
        let place = (number / positions).checked_mul(plane).and_then(|start| start.checked_add(index));
        let inside = index >= 0 && index < plane;
        match place.and_then(|place| sums.get_mut(place as usize)).filter(|_| inside) {
            Some(sum) => *sum = Arithmetic::add(*sum, grad.to_compute()),
            None => {
                return Err(Error::index(format!(
                    "the index {index} lies outside a plane of {plane} elements"
                ))
                .with_help("pass the indices that the pooling returned"));
            }
        }
    }
    out.write(sums.into_iter().map(T::from_compute))
}
