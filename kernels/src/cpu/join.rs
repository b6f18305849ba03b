//! Joining tensors, and putting one into a part of another.

use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{Dims, Element, Layout, Result, View, ViewMut};

use super::copy::copy_into_part;
use super::strides::expect_sizes;
use crate::views;

/// Tensors one after the other along a dimension: `[1, 2]` and `[3]` give `[1, 2, 3]`. Empty vectors
/// are passed over whatever the rank, as PyTorch does.
///
/// # Errors
/// If the shapes do not fit together.
pub fn cat<T: Element>(tensors: &[View<'_, T>], dim: i64, mut out: ViewMut<'_, T>) -> Result<()> {
    let dim = wrap_dim(dim, out.dim())?;
    let mut start = 0;
    for tensor in tensors.iter().filter(|tensor| tensor.numel() > 0) {
        let part = part_of_size(&layout_of(&out), tensor.sizes(), dim, start)?;
        start += part.sizes[dim];
        // SAFETY: elements are moved.
        replace_bits(&tensor.bits(), &part, unsafe { out.bits() })?;
    }
    let mut sizes: Dims = out.sizes().into();
    if let Some(size) = sizes.get_mut(dim) {
        *size = start;
    }
    expect_sizes(out.sizes(), &sizes)
}

/// The place of a tensor in the output from an index along a dimension on.
fn part_of_size(out: &Layout, tensor: &[i64], dim: usize, start: i64) -> Result<Layout> {
    let mut sizes = out.sizes.clone();
    if let (Some(size), Some(&own)) = (sizes.get_mut(dim), tensor.get(dim)) {
        *size = own;
    }
    expect_sizes(tensor, &sizes)?;
    views::narrow(out, dim as i64, start, sizes[dim])
}

/// Puts `src` in the place of one slice: `select(dim, index)`.
///
/// # Errors
/// If the index is out of range or `src` does not have the slice's shape.
pub fn select_scatter<T: Element>(
    src: View<'_, T>,
    dim: i64,
    index: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let part = views::select(&layout_of(&out), dim, index)?;
    replace_part(&src, &part, &mut out)
}

/// Puts `src` in the place of `slice(dim, start, end, step)`.
///
/// # Errors
/// If the step is not positive or `src` does not have the slice's shape.
pub fn slice_scatter<T: Element>(
    src: View<'_, T>,
    dim: i64,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let part = views::slice(&layout_of(&out), dim, start, end, step)?;
    replace_part(&src, &part, &mut out)
}

/// Puts `src` in the place of `diagonal(offset, dim1, dim2)`.
///
/// # Errors
/// If the dimensions are out of range or `src` does not have the diagonal's shape.
pub fn diagonal_scatter<T: Element>(
    src: View<'_, T>,
    offset: i64,
    dim1: i64,
    dim2: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let part = views::diagonal(&layout_of(&out), offset, dim1, dim2)?;
    replace_part(&src, &part, &mut out)
}

fn replace_part<T: Element>(src: &View<'_, T>, part: &Layout, out: &mut ViewMut<'_, T>) -> Result<()> {
    // SAFETY: elements are moved.
    replace_bits(&src.bits(), part, unsafe { out.bits() })
}

#[inline(never)]
fn replace_bits<B: Element>(src: &View<'_, B>, part: &Layout, mut out: ViewMut<'_, B>) -> Result<()> {
    if part.numel() == 0 {
        return Ok(());
    }
    let start = out.as_mut_ptr().wrapping_offset(part.offset as isize);
    // SAFETY: the layout comes from a view function, which stays inside its input, the output; that is borrowed uniquely
    // meanwhile.
    let mut part = unsafe { ViewMut::from_raw(start, &part.sizes, &part.strides) };
    copy_into_part(src, &mut part, out.numel())
}

#[inline(always)]
fn layout_of<T: Element>(out: &ViewMut<'_, T>) -> Layout {
    layout(out.sizes(), out.strides())
}

/// A layout from the start of memory on.
pub(super) fn layout(sizes: &[i64], strides: &[i64]) -> Layout {
    Layout { sizes: sizes.into(), strides: strides.into(), offset: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::Array;

    #[test]
    fn parts_of_any_strides_join_along_any_dimension() {
        let a = Array::new(&[2, 2], [1, 2, 3, 4]);
        let b = Array::new(&[1, 2], [5, 6]);
        let none = Array::<i32>::zeros(&[0]);
        let mut out = Array::zeros(&[2, 3]).permuted(&[1, 0]);
        cat(&[a.view(), none.view(), b.view()], 0, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 2, 3, 4, 5, 6]);
        let mut out = Array::zeros(&[2, 3]);
        let column = b.permuted(&[1, 0]);
        cat(&[a.view(), column.view()], -1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 2, 5, 3, 4, 6]);
        assert!(cat(&[a.view(), a.view()], 1, out.view_mut()).is_err());
    }

    #[test]
    fn parts_are_replaced() {
        let base = Array::new(&[2, 3], [1, 2, 3, 4, 5, 6]);
        let mut out = base.clone();
        select_scatter(Array::new(&[2], [8, 9]).view(), 1, -1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 2, 8, 4, 5, 9]);
        let src = Array::new(&[2, 2], [7, 7, 8, 8]);
        let mut out = base.clone();
        slice_scatter(src.view(), 1, None, None, 2, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [7, 2, 7, 8, 5, 8]);
        let mut out = base.clone();
        diagonal_scatter(Array::new(&[2], [8, 9]).view(), 1, 0, 1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 8, 3, 4, 5, 9]);
    }
}
