//! The same elements in another shape.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::{checked_numel, contiguous_strides, has_contiguous_strides, scaled_stride};
use opsmith_runtime::{Dims, Error, Layout, Result};

/// The sizes `size`, of which one may be -1 and the rest decides it.
///
/// Another shape of the same elements in the same order.
///
/// # Errors
/// If the number of elements differs, or no strides give that shape without moving elements.
pub fn view(layout: &Layout, size: &[i64]) -> Result<Layout> {
    if is_row_of(layout, size) {
        return row(size, layout.offset);
    }
    let sizes = infer_size(size, layout.numel())?;
    match regrouped_strides(layout, &sizes) {
        Some(strides) => Ok(Layout { sizes, strides, offset: layout.offset }),
        None => Err(Error::shape(format!(
            "the shape {} with strides {:?} cannot be seen as {} without moving elements",
            ShapeText(&layout.sizes),
            &layout.strides[..],
            ShapeText(&sizes)
        ))
        .with_help("use reshape, which copies where it must")),
    }
}

/// Elements one after the other from an offset on. Written where the caller wants it: a copy of bytes just written waits for the
/// memory.
///
/// # Errors
/// None.
#[inline(never)]
fn row(sizes: &[i64], offset: i64) -> Result<Layout> {
    let mut row = Ok(Layout { sizes: Dims::new(), strides: Dims::new(), offset });
    if let Ok(row) = &mut row {
        row.set_contiguous(sizes);
    }
    row
}

/// Whether the elements lie one after the other, and the shape has just as many: the most frequent case, whose strides are those
/// of a new tensor.
fn is_row_of(layout: &Layout, size: &[i64]) -> bool {
    let numel = layout.numel();
    let known =
        size.iter().try_fold(1i64, |known, &size| if size > 0 { known.checked_mul(size) } else { None });
    known == Some(numel) && has_contiguous_strides(&layout.sizes, &layout.strides)
}

/// Sizes with a -1 replaced by the size that the number of elements needs.
///
/// # Errors
/// If two sizes are unknown, or the product is not the number of elements.
pub fn infer_size(size: &[i64], numel: i64) -> Result<Dims> {
    let mut sizes: Dims = size.into();
    let mismatch = || {
        Error::shape(format!("{numel} elements cannot have the shape {}", ShapeText(size)))
            .with_help("the product of the sizes must be the number of elements")
    };
    let mut unknown = (0..size.len()).filter(|&dim| size[dim] == -1);
    if let Some(dim) = unknown.next() {
        if unknown.next().is_some() {
            return Err(Error::shape(format!("the shape {} has two unknown sizes", ShapeText(size)))
                .with_help("only one size can be -1"));
        }
        sizes[dim] = 1;
        let known = checked_numel(&sizes)?;
        if known == 0 {
            return Err(Error::shape(format!(
                "the size -1 in {} could be anything, because another is 0",
                ShapeText(size)
            )));
        }
        if numel % known != 0 {
            return Err(mismatch());
        }
        sizes[dim] = numel / known;
    }
    if checked_numel(&sizes)? != numel {
        return Err(mismatch());
    }
    Ok(sizes)
}

/// The strides that show the layout's elements in another shape, if any do.
///
/// Source: PyTorch's `computeStride`: groups of input dimensions that are contiguous among
/// themselves are split anew, from the last to the first.
fn regrouped_strides(layout: &Layout, sizes: &[i64]) -> Option<Dims> {
    if layout.numel() == 0 {
        return Some(if layout.sizes[..] == *sizes {
            layout.strides.clone()
        } else {
            contiguous_strides(sizes)
        });
    }
    let mut strides = Dims::from_elem(0, sizes.len());
    let mut dim = sizes.len();
    let mut group_stride = layout.strides.last().copied().unwrap_or(1);
    let (mut group, mut split) = (1, 1);
    for source in (0..layout.dim()).rev() {
        group *= layout.sizes[source];
        let ends = source == 0
            || (layout.sizes[source - 1] != 1
                && layout.strides[source - 1] != scaled_stride(group_stride, group));
        if !ends {
            continue;
        }
        while dim > 0 && (split < group || sizes[dim - 1] == 1) {
            dim -= 1;
            strides[dim] = scaled_stride(group_stride, split);
            split *= sizes[dim];
        }
        if split != group {
            return None;
        }
        if source > 0 {
            group_stride = layout.strides[source - 1];
            (group, split) = (1, 1);
        }
    }
    if layout.dim() == 0 {
        strides.fill(1);
        dim = 0;
    }
    (dim == 0).then_some(strides)
}
