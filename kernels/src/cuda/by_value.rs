//! Kernels whose results have a shape that elements decide: reshaped, repeated, sliced and counted by tensors, and elements
//! that differ.

use opsmith_runtime::backend::Elements;
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::{DeviceView, DeviceViewMut, Dims, Error, Layout, Result};

use super::moves::{Part, copy};
use super::scratch::{Dense, convert, is_dense, read, write_dense};
use crate::cpu::expect_sizes;
use crate::views;

pub use super::compact::repeated_positions;
pub use super::fill::arange_of as arange;
pub use super::sort::unique;

/// The elements in the same order in the output's shape.
///
/// # Errors
/// If the output has not as many, or errors of the device.
pub fn reshape(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = self_.dtype();
    expect_sizes(&[out.numel() as i64], &[self_.numel() as i64])?;
    if out.numel() == 0 {
        return Ok(());
    }
    let device = out.device();
    let elements = if is_dense(out.sizes(), out.strides()) { None } else { Some(Dense::of(&self_)?) };
    write_dense(out, |first| {
        let own = contiguous_strides(self_.sizes());
        let to = Elements { start: first.cast(), dtype, sizes: self_.sizes(), strides: &own };
        let (start, strides) = match &elements {
            Some(elements) => (elements.address, &own[..]),
            None => (self_.address(), self_.strides()),
        };
        let start = start.cast_mut().cast();
        let from = Elements { start, dtype, sizes: self_.sizes(), strides };
        // SAFETY: both have as many elements, and the output is none of the inputs.
        unsafe { convert(device, to, from) }
    })
}

/// A tensor repeated along each dimension.
///
/// # Errors
/// If the output's shape is not that of repetitions, or errors of the device.
pub fn repeat(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    // The numbers of repetitions made the output's shape, so they need not be read again.
    let new = out.sizes().len().saturating_sub(self_.sizes().len());
    let count = |(dim, &size): (usize, &i64)| match dim.checked_sub(new).map(|own| self_.sizes()[own]) {
        None => size,
        Some(0) => 0,
        Some(own) => size / own,
    };
    let repeats: Dims = out.sizes().iter().enumerate().map(count).collect();
    super::pick::repeat(self_, &repeats, out)
}

/// Every `step`-th slice from the element of `start` to before that of `end`.
///
/// # Errors
/// If there is no such dimension, the output is not that large, or errors of the device.
pub fn slice(
    self_: DeviceView<'_>,
    start: DeviceView<'_>,
    end: DeviceView<'_>,
    dim: i64,
    step: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let layout = Layout { sizes: self_.sizes().into(), strides: self_.strides().into(), offset: 0 };
    let part = views::slice(&layout, dim, first(&start)?, first(&end)?, step)?;
    expect_sizes(out.sizes(), &part.sizes)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let to = Part { sizes: out.sizes(), strides: out.strides(), offset: 0 };
    let from = Part { sizes: &part.sizes, strides: &part.strides, offset: part.offset };
    // SAFETY: a slice reaches only elements of its source.
    unsafe { copy(&out, to, &self_, from) }
}

/// The first element, if there is one, read back.
fn first(view: &DeviceView<'_>) -> Result<Option<i64>> {
    if view.numel() == 0 {
        return Ok(None);
    }
    // SAFETY: the operand has an element.
    unsafe { read(view.device(), view.address().cast::<i64>()) }.map(Some)
}

/// Refuses a sequence without a first number or a step.
///
/// # Errors
/// As it says.
pub(super) fn check_sequence(start: &DeviceView<'_>, step: &DeviceView<'_>) -> Result<()> {
    match start.numel() > 0 && step.numel() > 0 {
        true => Ok(()),
        false => Err(Error::shape("a sequence needs a first number and a step")),
    }
}
