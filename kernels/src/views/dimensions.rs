//! The same elements with dimensions moved, added, removed or repeated.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::{checked_numel, scaled_stride, wrap_dim};
use opsmith_runtime::{Dims, Error, Layout, Result};

/// The same shape.
pub fn alias(layout: &Layout) -> Result<Layout> {
    Ok(layout.clone())
}

/// Dimensions `dim0` and `dim1` exchanged.
///
/// # Errors
/// If a dimension is out of range.
pub fn transpose(layout: &Layout, dim0: i64, dim1: i64) -> Result<Layout> {
    let (a, b) = (wrap_dim(dim0, layout.dim())?, wrap_dim(dim1, layout.dim())?);
    let mut result = layout.clone();
    if a != b {
        result.sizes.swap(a, b);
        result.strides.swap(a, b);
    }
    Ok(result)
}

/// A matrix with rows and columns exchanged; a vector or scalar stays.
///
/// # Errors
/// If there are more than two dimensions.
pub fn t(layout: &Layout) -> Result<Layout> {
    match layout.dim() {
        0 | 1 => Ok(layout.clone()),
        2 => transpose(layout, 0, 1),
        _ => Err(Error::shape(format!("t() needs a matrix, got the shape {}", ShapeText(&layout.sizes)))
            .with_help("use transpose(dim0, dim1) or permute")),
    }
}

/// The dimensions in the order `dims`.
///
/// Dimension `i` of the result is dimension `dims[i]` of the input.
///
/// # Errors
/// If the list does not name each dimension once.
pub fn permute(layout: &Layout, dims: &[i64]) -> Result<Layout> {
    let mut result = Layout { sizes: Dims::new(), strides: Dims::new(), offset: layout.offset };
    let mut seen = Dims::from_elem(0, layout.dim());
    if dims.len() != layout.dim() {
        return Err(Error::value(format!(
            "{} dimensions are given for a tensor that has {}",
            dims.len(),
            layout.dim()
        )));
    }
    for &dim in dims {
        let wrapped = wrap_dim(dim, layout.dim())?;
        seen[wrapped] += 1;
        if seen[wrapped] > 1 {
            return Err(Error::value(format!("dimension {dim} is given twice")));
        }
        result.sizes.push(layout.sizes[wrapped]);
        result.strides.push(layout.strides[wrapped]);
    }
    Ok(result)
}

/// The sizes `size`, to which dimensions of size 1 are repeated; -1 keeps a size, new dimensions come first.
///
/// # Errors
/// If a size other than 1 would change.
pub fn expand(layout: &Layout, size: &[i64], _implicit: bool) -> Result<Layout> {
    let refuse = |what: &str| {
        Error::shape(format!(
            "the shape {} cannot expand to {}: {what}",
            ShapeText(&layout.sizes),
            ShapeText(size)
        ))
        .with_help("only dimensions of size 1 repeat; -1 keeps a size")
    };
    let new = size.len().checked_sub(layout.dim()).ok_or_else(|| refuse("it has fewer dimensions"))?;
    let mut result =
        Layout { sizes: size.into(), strides: Dims::from_elem(0, size.len()), offset: layout.offset };
    for dim in (0..size.len()).rev() {
        let own = dim.checked_sub(new).map(|own| (layout.sizes[own], layout.strides[own]));
        let (size, stride) = match (own, size[dim]) {
            (Some((size, stride)), -1) => (size, stride),
            (None, -1) => return Err(refuse("a new dimension needs a size")),
            (_, wanted) if wanted < 0 => return Err(refuse("a size is negative")),
            (Some((size, stride)), wanted) if size == wanted => (size, stride),
            // The stride of a single element has no meaning; this is PyTorch's.
            (None, 1) => {
                (1, result.sizes.get(dim + 1).map_or(1, |next| scaled_stride(result.strides[dim + 1], *next)))
            }
            (Some((1, _)) | None, wanted) => (wanted, 0),
            (Some((size, _)), wanted) => {
                return Err(refuse(&format!("dimension {dim} has size {size}, not {wanted}")));
            }
        };
        (result.sizes[dim], result.strides[dim]) = (size, stride);
    }
    checked_numel(&result.sizes)?;
    Ok(result)
}

/// All dimensions of size 1 removed.
pub fn squeeze(layout: &Layout) -> Result<Layout> {
    Ok(keep_dims(layout, |dim| layout.sizes[dim] != 1))
}

/// Dimension `dim` removed if its size is 1.
///
/// # Errors
/// If there is no such dimension.
pub fn squeeze_dim(layout: &Layout, dim: i64) -> Result<Layout> {
    squeeze_dims(layout, &[dim])
}

/// The dimensions `dim` removed where their size is 1.
///
/// # Errors
/// If there is no such dimension, or one is given twice.
pub fn squeeze_dims(layout: &Layout, dim: &[i64]) -> Result<Layout> {
    let mut listed = Dims::from_elem(0, layout.dim());
    for &dim in dim {
        let wrapped = wrap_dim(dim, layout.dim())?;
        if let Some(count) = listed.get_mut(wrapped) {
            *count += 1;
            if *count > 1 {
                return Err(Error::value(format!("dimension {dim} is given twice")));
            }
        }
    }
    Ok(keep_dims(layout, |dim| listed[dim] == 0 || layout.sizes[dim] != 1))
}

/// The layout without the dimensions for which `keep` does not hold.
pub(super) fn keep_dims(layout: &Layout, keep: impl Fn(usize) -> bool) -> Layout {
    let pick = |from: &Dims| (0..from.len()).filter(|&dim| keep(dim)).map(|dim| from[dim]).collect();
    Layout { sizes: pick(&layout.sizes), strides: pick(&layout.strides), offset: layout.offset }
}

/// A new dimension of size 1 before dimension `dim`; -1 adds it at the end.
///
/// # Errors
/// If the dimension is out of range.
pub fn unsqueeze(layout: &Layout, dim: i64) -> Result<Layout> {
    let dim = wrap_dim(dim, layout.dim() + 1)?;
    let mut result = layout.clone();
    let stride = if dim < layout.dim() { scaled_stride(layout.strides[dim], layout.sizes[dim]) } else { 1 };
    result.sizes.insert(dim, 1);
    result.strides.insert(dim, stride);
    Ok(result)
}
