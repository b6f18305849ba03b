//! Sizes and orders of dimensions that compositions of views need.
//!
//! In: sizes and dimensions. Out: the argument of a view operator. No memory is looked at, except by
//! [`can_view`], which asks for strides.

use opsmith_runtime::layout::{self, wrap_dim};
use opsmith_runtime::op::check_list_length;
use opsmith_runtime::{Dims, Error, Result, Tensor};

/// Whether a shape can be had without moving elements; one size may be -1.
///
/// # Errors
/// If the number of elements differs.
pub fn can_view(self_: &Tensor, size: &[i64]) -> Result<bool> {
    let sizes = super::infer_size(size, self_.numel())?;
    Ok(super::view(self_.layout(), &sizes).is_ok())
}

/// The order that reverses dimensions.
///
/// # Errors
/// None.
pub fn reversed_order(rank: i64) -> Result<Dims> {
    Ok((0..rank).rev().collect())
}

/// The order of dimensions that undoes another: `[2, 0, 1]` is undone by `[1, 2, 0]`.
///
/// # Errors
/// If a dimension is out of range.
pub fn inverse_order(dims: &[i64]) -> Result<Dims> {
    let mut inverse = Dims::from_elem(0, dims.len());
    for (place, &dim) in dims.iter().enumerate() {
        inverse[wrap_dim(dim, dims.len())?] = place as i64;
    }
    Ok(inverse)
}

/// The order that puts dimensions at other places, the rest staying in order: of three dimensions, 0
/// moved to 2 gives `[1, 2, 0]`.
///
/// # Errors
/// If the lists differ in length, or a dimension is out of range or named twice.
pub fn moved_order(rank: i64, source: &[i64], destination: &[i64]) -> Result<Dims> {
    if source.len() != destination.len() {
        return Err(Error::value(format!(
            "{} dimensions cannot be moved to {} places",
            source.len(),
            destination.len()
        )));
    }
    let source = distinct(source, rank)?;
    let destination = distinct(destination, rank)?;
    if rank == 0 {
        // Its dimension 0 may be named, although there is none.
        return Ok(Dims::new());
    }
    let mut order = Dims::from_elem(-1, rank as usize);
    for (&from, &to) in source.iter().zip(&destination) {
        order[to as usize] = from;
    }
    let mut rest = (0..rank).filter(|dim| !source.contains(dim));
    for place in &mut order {
        if *place == -1 {
            *place = rest.next().unwrap_or(0);
        }
    }
    Ok(order)
}

fn distinct(dims: &[i64], rank: i64) -> Result<Dims> {
    let mut found = Dims::new();
    for &dim in dims {
        let wrapped = wrap_dim(dim, rank as usize)? as i64;
        if found.contains(&wrapped) {
            return Err(Error::value(format!("dimension {dim} is given twice")));
        }
        found.push(wrapped);
    }
    Ok(found)
}

/// The sizes with a range of dimensions joined into one: `[2, 3, 4]` from 1 to 2 is `[2, 12]`.
///
/// # Errors
/// If a dimension is out of range, or the range ends before it starts.
pub fn flattened(sizes: &[i64], start_dim: i64, end_dim: i64) -> Result<Dims> {
    let (start, end) = (wrap_dim(start_dim, sizes.len())?, wrap_dim(end_dim, sizes.len())?);
    if start > end {
        return Err(Error::value(format!("the dimensions {start_dim} to {end_dim} are no range")));
    }
    if sizes.is_empty() {
        return Ok(Dims::from_slice(&[1]));
    }
    let mut joined = Dims::from_slice(&sizes[..start]);
    joined.push(layout::joined(&sizes[start..=end]));
    joined.extend_from_slice(&sizes[end + 1..]);
    Ok(joined)
}

/// The sizes with one dimension split into several, of which one may be -1: `[2, 12]` with 1 split into
/// `[3, -1]` is `[2, 3, 4]`.
///
/// # Errors
/// If there is no such dimension, or the sizes do not multiply to its size.
pub fn unflattened(sizes: &[i64], dim: i64, parts: &[i64]) -> Result<Dims> {
    let dim = wrap_dim(dim, sizes.len())?;
    let Some(&size) = sizes.get(dim) else {
        return Err(Error::index("a tensor without dimensions has none to split"));
    };
    let parts = super::infer_size(parts, size)?;
    let mut split = Dims::from_slice(&sizes[..dim]);
    split.extend_from_slice(&parts);
    split.extend_from_slice(&sizes[dim + 1..]);
    Ok(split)
}

/// The sizes of pieces of at most `ceil(size / chunks)` elements: 5 in 2 pieces is `[3, 2]`.
///
/// # Errors
/// If there is no such dimension, or no pieces are wanted.
pub fn chunk_sizes(sizes: &[i64], chunks: i64, dim: i64) -> Result<Dims> {
    let dim = wrap_dim(dim, sizes.len())?;
    let Some(&size) = sizes.get(dim) else {
        return Err(Error::index("a tensor without dimensions has none to split"));
    };
    if chunks <= 0 {
        return Err(Error::value(format!("a tensor cannot be split into {chunks} pieces")));
    }
    if size == 0 {
        check_list_length(chunks)?;
        return Ok(Dims::from_elem(0, chunks as usize));
    }
    split_sizes(sizes, (size - 1) / chunks + 1, dim as i64)
}

/// The sizes of pieces of the given size, the last one perhaps smaller: 5 in pieces of 2 is `[2, 2, 1]`.
///
/// # Errors
/// If there is no such dimension, or the pieces have no size although there are elements.
pub fn split_sizes(sizes: &[i64], split_size: i64, dim: i64) -> Result<Dims> {
    let dim = wrap_dim(dim, sizes.len())?;
    let Some(&size) = sizes.get(dim) else {
        return Err(Error::index("a tensor without dimensions has none to split"));
    };
    if size == 0 && split_size >= 0 {
        return Ok(Dims::from_slice(&[0]));
    }
    if split_size <= 0 {
        return Err(Error::value(format!("a dimension of size {size} cannot be split by {split_size}")));
    }
    check_list_length((size - 1) / split_size + 1)?;
    Ok((0..size).step_by(split_size as usize).map(|start| split_size.min(size - start)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders() {
        assert_eq!(inverse_order(&[2, 0, -2]).unwrap()[..], [1, 2, 0]);
        assert_eq!(moved_order(3, &[0], &[2]).unwrap()[..], [1, 2, 0]);
        assert_eq!(moved_order(4, &[-1, 0], &[0, 1]).unwrap()[..], [3, 0, 1, 2]);
        assert!(moved_order(3, &[0, -3], &[1, 2]).is_err());
    }

    #[test]
    fn sizes() {
        assert_eq!(flattened(&[2, 3, 4], 1, -1).unwrap()[..], [2, 12]);
        assert_eq!(flattened(&[], 0, -1).unwrap()[..], [1]);
        assert_eq!(unflattened(&[2, 12], -1, &[3, -1]).unwrap()[..], [2, 3, 4]);
        assert_eq!(chunk_sizes(&[5], 2, 0).unwrap()[..], [3, 2]);
        assert_eq!(chunk_sizes(&[0], 2, 0).unwrap()[..], [0, 0]);
        assert_eq!(split_sizes(&[5], 2, 0).unwrap()[..], [2, 2, 1]);
        assert!(split_sizes(&[5], 0, 0).is_err());
    }
}
