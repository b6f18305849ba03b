//! Some of the elements.

use opsmith_runtime::layout::{MAX_NUMEL, checked_numel, scaled_stride, wrap_dim};
use opsmith_runtime::op::check_list_length;
use opsmith_runtime::{Error, Layout, Result};

use super::dimensions::keep_dims;

/// Every `step`-th slice along `dim`, from `start` to before `end`. Negative ends count from the back, ends beyond
/// the dimension are cut, absent ones mean all.
///
/// # Errors
/// If the step is not positive or the dimension does not exist.
pub fn slice(layout: &Layout, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Layout> {
    if layout.dim() == 0 {
        return Err(Error::shape("a tensor without dimensions cannot be sliced"));
    }
    if step <= 0 {
        return Err(Error::value(format!("the step is {step}, but must be positive"))
            .with_help("use flip to go backwards"));
    }
    let dim = wrap_dim(dim, layout.dim())?;
    let size = layout.sizes[dim];
    let cut = |end: i64| (if end < 0 { end.saturating_add(size) } else { end }).clamp(0, size);
    let start = cut(start.unwrap_or(0));
    let length = cut(end.unwrap_or(size)).max(start) - start;
    let mut result = layout.clone();
    advance(&mut result, start, layout.strides[dim]);
    result.sizes[dim] = (length - 1).div_euclid(step) + 1;
    result.strides[dim] = scaled_stride(layout.strides[dim], step);
    Ok(result)
}

/// Lets a layout begin so many steps further on. Strides of one slice may be any number; where nothing is left, the
/// offset does not matter.
fn advance(layout: &mut Layout, steps: i64, stride: i64) {
    layout.offset = layout.offset.saturating_add(steps.saturating_mul(stride));
}

/// `length` slices along `dim`, from `start` on.
///
/// # Errors
/// If the range does not lie inside the dimension.
pub fn narrow(layout: &Layout, dim: i64, start: i64, length: i64) -> Result<Layout> {
    if layout.dim() == 0 {
        return Err(Error::shape("a tensor without dimensions cannot be narrowed"));
    }
    let wrapped = wrap_dim(dim, layout.dim())?;
    let size = layout.sizes[wrapped];
    let from = if start < 0 { start.saturating_add(size) } else { start };
    if length < 0 || from < 0 || from > size || length > size - from {
        return Err(Error::index(format!(
            "{length} slices from {start} on do not lie inside dimension {dim} of size {size}"
        ))
        .with_help(format!("start and length together may reach {size}")));
    }
    let mut result = layout.clone();
    advance(&mut result, from, layout.strides[wrapped]);
    result.sizes[wrapped] = length;
    Ok(result)
}

/// Dimension `dim` goes, of which one slice stays.
///
/// # Errors
/// If the index is out of range.
pub fn select(layout: &Layout, dim: i64, index: i64) -> Result<Layout> {
    if layout.dim() == 0 {
        return Err(Error::index("a tensor without dimensions has no slices to select"));
    }
    let wrapped = wrap_dim(dim, layout.dim())?;
    let size = layout.sizes[wrapped];
    if index < -size || index >= size {
        let error =
            Error::index(format!("the index {index} is out of range for dimension {dim} with size {size}"));
        return Err(if size == 0 {
            error.with_help("the dimension has no elements to index")
        } else {
            error.with_help(format!("use {} to {}", -size, size - 1))
        });
    }
    let mut result = layout.clone();
    advance(&mut result, if index < 0 { index + size } else { index }, layout.strides[wrapped]);
    result.sizes.remove(wrapped);
    result.strides.remove(wrapped);
    Ok(result)
}

/// The diagonal of dimensions `dim1` and `dim2`, which go, as a new last dimension; `offset` moves it to the right of the main one.
///
/// # Errors
/// If the dimensions are out of range or the same.
pub fn diagonal(layout: &Layout, offset: i64, dim1: i64, dim2: i64) -> Result<Layout> {
    if layout.dim() == 0 {
        return Err(Error::shape("a diagonal needs two dimensions"));
    }
    let (a, b) = (wrap_dim(dim1, layout.dim())?, wrap_dim(dim2, layout.dim())?);
    if a == b {
        return Err(Error::value(format!("dimensions {dim1} and {dim2} are the same")));
    }
    let (rows, columns) = (layout.sizes[a], layout.sizes[b]);
    let length = if offset >= 0 {
        rows.min(columns.saturating_sub(offset))
    } else {
        rows.saturating_add(offset).min(columns)
    };
    let mut result = keep_dims(layout, |dim| dim != a && dim != b);
    if length > 0 {
        let along = if offset >= 0 { b } else { a };
        advance(&mut result, offset.abs(), layout.strides[along]);
    }
    result.sizes.push(length.max(0));
    result.strides.push(scaled_stride(layout.strides[a].saturating_add(layout.strides[b]), 1));
    Ok(result)
}

/// The sizes `size`, with any strides over the same storage.
///
/// # Errors
/// If the lists differ in length or have a negative number.
pub fn as_strided(
    layout: &Layout,
    size: &[i64],
    stride: &[i64],
    storage_offset: Option<i64>,
) -> Result<Layout> {
    let offset = storage_offset.unwrap_or(layout.offset);
    if size.len() != stride.len() {
        return Err(Error::value(format!("{} sizes but {} strides are given", size.len(), stride.len())));
    }
    if stride.iter().any(|&stride| stride < 0) || offset < 0 {
        return Err(Error::value(format!("strides {stride:?} and offset {offset} must not be negative"))
            .with_help("use flip to go backwards"));
    }
    checked_numel(size)?;
    let reach = size.iter().zip(stride).try_fold(offset, |reach, (&size, &stride)| {
        size.max(1).checked_mul(stride).and_then(|step| reach.checked_add(step))
    });
    // A walk over the elements adds up strides that lead nowhere, too.
    if reach.is_none_or(|reach| reach > MAX_NUMEL) {
        return Err(Error::index("sizes and strides reach beyond any memory"));
    }
    Ok(Layout { sizes: size.into(), strides: stride.into(), offset })
}

/// Consecutive parts of the sizes `split_sizes` along `dim`.
///
/// # Errors
/// If a size is negative or they do not add up to the dimension's.
pub fn split_with_sizes(layout: &Layout, split_sizes: &[i64], dim: i64) -> Result<Vec<Layout>> {
    parts_of_sizes(layout, split_sizes, dim)?.collect()
}

/// The parts of [`split_with_sizes`], one after the other.
pub(crate) fn parts_of_sizes(
    layout: &Layout,
    split_sizes: &[i64],
    dim: i64,
) -> Result<impl ExactSizeIterator<Item = Result<Layout>>> {
    if layout.dim() == 0 {
        return Err(Error::shape("a tensor without dimensions cannot be split"));
    }
    let wrapped = wrap_dim(dim, layout.dim())?;
    let size = layout.sizes[wrapped];
    let total = split_sizes.iter().try_fold(
        0i64,
        |total, &part| {
            if part < 0 { None } else { total.checked_add(part) }
        },
    );
    if total != Some(size) {
        return Err(Error::value(format!(
            "the parts {split_sizes:?} do not add up to {size}, the size of dimension {dim}"
        )));
    }
    check_list_length(split_sizes.len() as i64)?;
    let mut start = 0;
    Ok(split_sizes.iter().map(move |&length| {
        let part = narrow(layout, dim, start, length);
        start += length;
        part
    }))
}

/// Parts of size `split_size` along `dim`; the last may be smaller.
///
/// # Errors
/// If the size is negative, or 0 for a dimension with elements.
pub fn split(layout: &Layout, split_size: i64, dim: i64) -> Result<Vec<Layout>> {
    if layout.dim() == 0 {
        return Err(Error::shape("a tensor without dimensions cannot be split"));
    }
    let size = layout.sizes[wrap_dim(dim, layout.dim())?];
    if split_size < 0 || (split_size == 0 && size > 0) {
        return Err(Error::value(format!("a part cannot have the size {split_size}")));
    }
    if size == 0 {
        return Ok(vec![layout.clone()]);
    }
    check_list_length((size - 1) / split_size + 1)?;
    (0..size)
        .step_by(split_size as usize)
        .map(|start| narrow(layout, dim, start, split_size.min(size - start)))
        .collect()
}

/// Every slice along `dim`, which goes.
///
/// # Errors
/// If there is no such dimension.
pub fn unbind(layout: &Layout, dim: i64) -> Result<Vec<Layout>> {
    slices(layout, dim)?.collect()
}

/// The slices of [`unbind`], one after the other.
pub(crate) fn slices(layout: &Layout, dim: i64) -> Result<impl ExactSizeIterator<Item = Result<Layout>>> {
    if layout.dim() == 0 {
        return Err(Error::shape("a tensor without dimensions has no slices"));
    }
    let size = layout.sizes[wrap_dim(dim, layout.dim())?];
    check_list_length(size)?;
    Ok((0..size as usize).map(move |index| select(layout, dim, index as i64)))
}

/// Windows of `size` elements, `step` apart, along `dimension`, as a new last dimension.
///
/// # Errors
/// If a window is larger than the dimension, or the step not positive.
pub fn unfold(layout: &Layout, dimension: i64, size: i64, step: i64) -> Result<Layout> {
    let dim = wrap_dim(dimension, layout.dim())?;
    let (length, stride) = match layout.sizes.get(dim) {
        Some(&length) => (length, layout.strides[dim]),
        None => (1, 1),
    };
    if size < 0 || size > length {
        return Err(Error::value(format!(
            "a window of {size} elements does not fit dimension {dimension} of size {length}"
        )));
    }
    if step <= 0 {
        return Err(Error::value(format!("the step is {step}, but must be positive")));
    }
    let mut result = layout.clone();
    if layout.dim() > 0 {
        result.sizes[dim] = (length - size) / step + 1;
        result.strides[dim] = scaled_stride(stride, step);
    }
    result.sizes.push(size);
    result.strides.push(stride);
    Ok(result)
}
