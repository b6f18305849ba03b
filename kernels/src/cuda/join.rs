//! Joining tensors, and putting one into a part of another.

use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{DeviceView, DeviceViewMut, Dims, Layout, Result};

use super::moves::{Part, copy};
use crate::cpu::{broadcast_strides, expect_sizes};
use crate::views;

/// Tensors one after the other along a dimension: `[1, 2]` and `[3]` give `[1, 2, 3]`. Empty vectors
/// are passed over whatever the rank, as PyTorch does.
///
/// # Errors
/// If the shapes do not fit together, or errors of the device.
pub fn cat(tensors: &[DeviceView<'_>], dim: i64, out: DeviceViewMut<'_>) -> Result<()> {
    let dim = wrap_dim(dim, out.sizes().len())?;
    let mut start = 0;
    for tensor in tensors.iter().filter(|tensor| tensor.numel() > 0) {
        let mut sizes: Dims = out.sizes().into();
        if let (Some(size), Some(&own)) = (sizes.get_mut(dim), tensor.sizes().get(dim)) {
            *size = own;
        }
        expect_sizes(tensor.sizes(), &sizes)?;
        let part = views::narrow(&layout_of(&out), dim as i64, start, sizes[dim])?;
        start += sizes[dim];
        put(tensor, &part, &out)?;
    }
    let mut sizes: Dims = out.sizes().into();
    if let Some(size) = sizes.get_mut(dim) {
        *size = start;
    }
    expect_sizes(out.sizes(), &sizes)
}

/// Puts `src` in the place of one slice: `select(dim, index)`.
///
/// # Errors
/// If the index is out of range or `src` does not have the slice's shape, or errors of the device.
pub fn select_scatter(src: DeviceView<'_>, dim: i64, index: i64, out: DeviceViewMut<'_>) -> Result<()> {
    put(&src, &views::select(&layout_of(&out), dim, index)?, &out)
}

/// Puts `src` in the place of `slice(dim, start, end, step)`.
///
/// # Errors
/// If the step is not positive or `src` does not have the slice's shape, or errors of the device.
pub fn slice_scatter(
    src: DeviceView<'_>,
    dim: i64,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    put(&src, &views::slice(&layout_of(&out), dim, start, end, step)?, &out)
}

/// Puts `src` in the place of `diagonal(offset, dim1, dim2)`.
///
/// # Errors
/// If the dimensions are out of range or `src` does not have the diagonal's shape, or errors of the device.
pub fn diagonal_scatter(
    src: DeviceView<'_>,
    offset: i64,
    dim1: i64,
    dim2: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    put(&src, &views::diagonal(&layout_of(&out), offset, dim1, dim2)?, &out)
}

fn put(src: &DeviceView<'_>, part: &Layout, out: &DeviceViewMut<'_>) -> Result<()> {
    if part.numel() == 0 {
        return Ok(());
    }
    let strides = broadcast_strides(src.sizes(), src.strides(), &part.sizes)?;
    let to = Part { sizes: &part.sizes, strides: &part.strides, offset: part.offset };
    let from = Part { sizes: &part.sizes, strides: &strides, offset: 0 };
    // SAFETY: the layout comes from a view function, which stays inside its input.
    unsafe { copy(out, to, src, from) }
}

fn layout_of(out: &DeviceViewMut<'_>) -> Layout {
    Layout { sizes: out.sizes().into(), strides: out.strides().into(), offset: 0 }
}
