//! The columns of convolutions as operators of their own.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Error, Result, Scratch, View, ViewMut};

use super::columns::Sliding;
use super::widen;
use crate::cpu::rounded::held;
use crate::window::{MOST, Window, spatial_sizes};

/// The elements of a window at each of its positions over the last two dimensions, as a column.
///
/// # Errors
/// If the shapes or parameters do not fit.
pub fn im2col<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let window = Window::new(2, kernel_size, stride, padding, dilation)?;
    let sliding = sliding(window, spatial_sizes(self_.sizes(), 2)?, self_.numel(), out.numel())?;
    let mut columns = Scratch::new();
    let planes = widen(&self_);
    let mut result = Scratch::with_capacity(out.numel());
    for plane in planes.chunks_exact(sliding.plane().max(1)) {
        sliding.gather(plane, 0..sliding.positions() / sliding.row(), &mut columns);
        result.extend_mapped(&columns, |&value| T::from_compute(value));
    }
    out.write(result)
}

/// The sum, at each place, of the columns' elements that [`im2col`] would have taken from it.
///
/// # Errors
/// If the shapes or parameters do not fit.
pub fn col2im<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let window = Window::new(2, kernel_size, stride, padding, dilation)?;
    let sliding = sliding(window, spatial_sizes(out.sizes(), 2)?, out.numel(), self_.numel())?;
    let columns = widen(&self_);
    let mut planes = Scratch::filled(T::Compute::ZERO, out.numel());
    let each = columns.chunks_exact(sliding.elements() * sliding.positions());
    for (columns, plane) in each.zip(planes.chunks_exact_mut(sliding.plane().max(1))) {
        sliding.scatter(columns, 0..sliding.positions() / sliding.row(), plane, &held::<T>);
    }
    out.write(planes.into_iter().map(T::from_compute))
}

/// Checks that the columns of all planes are as many elements as there are.
pub(crate) fn sliding(window: Window, places: [i64; MOST], planes: usize, columns: usize) -> Result<Sliding> {
    let sliding = Sliding { window, input: places, output: window.output_sizes(places, false)? };
    let count = planes / sliding.plane().max(1);
    if count * sliding.elements() * sliding.positions() == columns {
        return Ok(sliding);
    }
    Err(Error::shape(format!(
        "{count} planes have {} positions of {} elements, which are not the columns' {columns} elements",
        sliding.positions(),
        sliding.elements()
    )))
}
