//! Sizes of pieces, repetitions, diagonals and memory that compositions need.
//!
//! In: sizes, strides and numbers of a call. Out: sizes, or an order of dimensions. No tensor is looked at.

use opsmith_runtime::layout::{joined, wrap_dim};
use opsmith_runtime::op::check_list_length;
use opsmith_runtime::{Dims, Error, Result};

/// The numbers with as many ones before them as a rank needs: `[2]` and 3 give `[1, 1, 2]`.
///
/// # Errors
/// None.
pub fn leading_ones(numbers: &[i64], rank: i64) -> Result<Dims> {
    let missing = usize::try_from(rank).unwrap_or(0).saturating_sub(numbers.len());
    Ok(std::iter::repeat_n(1, missing).chain(numbers.iter().copied()).collect())
}

/// A number for each of so many dimensions: those given, or one repeated.
///
/// # Errors
/// If there is another number of them.
pub fn of_rank(numbers: &[i64], rank: i64) -> Result<Dims> {
    let count = usize::try_from(rank).unwrap_or(0);
    match numbers {
        _ if numbers.len() == count => Ok(Dims::from_slice(numbers)),
        [one] => Ok(Dims::from_vec(vec![*one; count])),
        _ => Err(Error::value(format!("{} sizes are given for {count} dimensions", numbers.len()))
            .with_help("give one for each, or one for all")),
    }
}

/// The number of elements of a tensor of these sizes.
///
/// # Errors
/// If a size is negative, or it does not fit in memory.
pub fn count(sizes: &[i64]) -> Result<i64> {
    if sizes.iter().any(|&size| size < 0) {
        return Err(Error::shape("sizes must not be negative"));
    }
    let product = sizes.iter().try_fold(1i64, |product, &size| product.checked_mul(size));
    product.ok_or_else(|| Error::shape("a tensor of these sizes does not fit in memory"))
}

/// The sizes of matrices with the last of the given dimensions on their diagonals, `offset` apart from the main one, in two
/// new dimensions: `[2, 3]` and 1 give `[2, 4, 4]`.
///
/// # Errors
/// If the dimensions are out of range or equal, or the matrices too large.
pub fn embedded(sizes: &[i64], offset: i64, dim1: i64, dim2: i64) -> Result<Dims> {
    let Some((&length, outer)) = sizes.split_last() else {
        return Err(Error::shape("a tensor without dimensions is no diagonal"));
    };
    let (first, second) = (wrap_dim(dim1, sizes.len() + 1)?, wrap_dim(dim2, sizes.len() + 1)?);
    if first == second {
        return Err(Error::value(format!("the dimensions {dim1} and {dim2} of the matrices are one")));
    }
    let side = i64::try_from(offset.unsigned_abs()).ok().and_then(|offset| offset.checked_add(length));
    let Some(side) = side else {
        return Err(Error::shape(format!("a matrix with a diagonal {offset} apart does not fit in memory")));
    };
    let mut result = Dims::from_slice(outer);
    result.insert(first.min(second), side);
    result.insert(first.max(second), side);
    Ok(result)
}

/// The sizes of a number of pieces that differ by at most one, larger ones first: 5 in 3 pieces is `[2, 2, 1]`.
///
/// # Errors
/// If there is no such dimension, or no pieces are wanted.
pub fn even_sizes(sizes: &[i64], sections: i64, dim: i64) -> Result<Dims> {
    let size = size_along(sizes, dim)?;
    if sections <= 0 {
        return Err(Error::value(format!("a tensor cannot be split into {sections} pieces")));
    }
    check_list_length(sections)?;
    Ok((0..sections).map(|piece| size / sections + i64::from(piece < size % sections)).collect())
}

/// The sizes of pieces that end before each of the indices, and of the rest: 5 at `[1, 3]` is `[1, 2, 2]`.
///
/// # Errors
/// If there is no such dimension, or the indices do not ascend.
pub fn sizes_between(sizes: &[i64], indices: &[i64], dim: i64) -> Result<Dims> {
    let size = size_along(sizes, dim)?;
    let mut start = 0;
    let mut pieces = Dims::new();
    for &index in indices {
        let end = if index < 0 { index.saturating_add(size) } else { index }.clamp(0, size);
        if end < start {
            return Err(Error::value(format!("the indices {indices:?} do not ascend"))
                .with_help("pieces follow each other; give the indices in ascending order"));
        }
        pieces.push(end - start);
        start = end;
    }
    pieces.push(size - start);
    Ok(pieces)
}

fn size_along(sizes: &[i64], dim: i64) -> Result<i64> {
    match sizes.get(wrap_dim(dim, sizes.len())?) {
        Some(&size) => Ok(size),
        None => Err(Error::index("a tensor without dimensions has none to split")),
    }
}

/// The order of dimensions with two of them exchanged: of three, `[0, 2]` gives `[2, 1, 0]`.
///
/// # Errors
/// If there are not two different dimensions.
pub fn exchanged(rank: i64, dims: &[i64]) -> Result<Dims> {
    let length = usize::try_from(rank).unwrap_or(0);
    let &[first, second] = dims else {
        return Err(Error::value(format!("a plane has two dimensions, not {}", dims.len())));
    };
    let (first, second) = (wrap_dim(first, length)?, wrap_dim(second, length)?);
    if first == second {
        return Err(Error::value(format!("the dimensions {dims:?} of a plane are one")));
    }
    let mut order: Dims = (0..rank).collect();
    order.swap(first, second);
    Ok(order)
}

/// The number of elements of the memory that sizes and strides reach.
///
/// # Errors
/// If a size or stride is negative, or it does not fit in memory.
pub fn extent(size: &[i64], stride: &[i64]) -> Result<i64> {
    if size.iter().chain(stride).any(|&number| number < 0) {
        return Err(Error::shape("sizes and strides must not be negative"));
    }
    if size.contains(&0) {
        return Ok(0);
    }
    let last = size.iter().zip(stride).try_fold(0i64, |last, (&size, &stride)| {
        (size - 1).checked_mul(stride).and_then(|step| last.checked_add(step))
    });
    last.and_then(|last| last.checked_add(1))
        .ok_or_else(|| Error::shape("a tensor of these sizes and strides does not fit in memory"))
}

/// Sizes in another order: `[2, 3, 4]` and `[2, 0, 1]` give `[4, 2, 3]`.
///
/// # Errors
/// If a dimension is out of range.
pub fn picked(sizes: &[i64], order: &[i64]) -> Result<Dims> {
    order.iter().map(|&dim| size_along(sizes, dim)).collect()
}

/// The diagonal in row-major order: the distance of neighbours, of a matrix one more than it has columns, and the number of
/// elements. It starts again below the columns of a matrix if `wrap`.
///
/// # Errors
/// If there are more than two dimensions that differ.
pub fn diagonal_places(sizes: &[i64], wrap: bool) -> Result<Dims> {
    if sizes.len() > 2 && sizes.iter().any(|size| *size != sizes[0]) {
        return Err(Error::shape("more than two dimensions must have one size to have a diagonal"));
    }
    let inner = sizes.get(1..).unwrap_or_default();
    let step = (0..=inner.len()).map(|start| joined(&inner[start..])).fold(0i64, i64::saturating_add);
    let count = match sizes {
        _ if joined(sizes) == 0 => 0,
        [rows, columns] if wrap && rows > columns => (rows * columns - 1) / step + 1,
        _ => sizes.iter().copied().min().unwrap_or(0),
    };
    Ok(Dims::from_slice(&[step, count]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_orders() {
        assert_eq!(leading_ones(&[2], 3).unwrap()[..], [1, 1, 2]);
        assert_eq!(embedded(&[2, 3], -1, 0, 2).unwrap()[..], [4, 2, 4]);
        assert!(embedded(&[2, 3], 0, 0, -3).is_err() && embedded(&[2], i64::MIN, 0, 1).is_err());
        assert_eq!(even_sizes(&[5], 3, 0).unwrap()[..], [2, 2, 1]);
        assert_eq!(sizes_between(&[5], &[1, -2, 9], 0).unwrap()[..], [1, 2, 2, 0]);
        assert!(sizes_between(&[5], &[3, 1], 0).is_err());
        assert_eq!(exchanged(3, &[0, -1]).unwrap()[..], [2, 1, 0]);
        assert_eq!(extent(&[2, 3], &[1, 2]).unwrap(), 6);
        assert!(extent(&[2, 3], &[i64::MAX, 2]).is_err());
        assert_eq!(picked(&[2, 3, 4], &[2, 0, -2]).unwrap()[..], [4, 2, 3]);
    }

    #[test]
    fn diagonals() {
        assert_eq!(diagonal_places(&[2, 3], false).unwrap()[..], [4, 2]);
        assert_eq!(diagonal_places(&[2, 2, 2], true).unwrap()[..], [7, 2]);
        assert_eq!(diagonal_places(&[7, 2], true).unwrap()[1], 5);
        assert_eq!(diagonal_places(&[3, 2], true).unwrap()[1], 2);
        assert!(diagonal_places(&[2, 3, 2], false).is_err());
    }
}
