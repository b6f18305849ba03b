//! Sizes of stacks of matrices and of their factors, and labels of products.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::{checked_numel, wrap_dim};
use opsmith_runtime::{Dims, Error, Result};

use super::indexing::broadcast_pair;

/// The dimensions before the last two.
///
/// Of `[2, 3, 4]` that is `[2]`.
///
/// # Errors
/// If there are not two dimensions.
pub fn stacked(sizes: &[i64]) -> Result<Dims> {
    Ok(split(sizes)?.0.into())
}

fn split(sizes: &[i64]) -> Result<(&[i64], [i64; 2])> {
    match sizes {
        [outer @ .., rows, columns] => Ok((outer, [*rows, *columns])),
        _ => Err(Error::shape(format!("expected matrices, got the shape {}", ShapeText(sizes)))),
    }
}

/// The sizes of the left factor of matrices, with as many columns as their shorter side, or square if `full`.
///
/// # Errors
/// As [`stacked`].
pub fn left_factor(sizes: &[i64], full: bool) -> Result<Dims> {
    let [rows, columns] = split(sizes)?.1;
    matrix_of(sizes, rows, if full { rows } else { rows.min(columns) })
}

/// The sizes of the right factor of matrices, with as many rows as their shorter side, or square if `full`.
///
/// # Errors
/// As [`stacked`].
pub fn right_factor(sizes: &[i64], full: bool) -> Result<Dims> {
    let [rows, columns] = split(sizes)?.1;
    matrix_of(sizes, if full { columns } else { rows.min(columns) }, columns)
}

/// A row for each matrix of a stack, with an element for each place of its diagonal.
///
/// # Errors
/// As [`stacked`].
pub fn diagonal_of(sizes: &[i64]) -> Result<Dims> {
    let [rows, columns] = split(sizes)?.1;
    row_of(sizes, rows.min(columns))
}

/// The same stack of matrices with `rows` rows and `columns` columns.
///
/// # Errors
/// As [`stacked`], or if there are too many elements.
pub fn matrix_of(sizes: &[i64], rows: i64, columns: i64) -> Result<Dims> {
    let mut sizes = stacked(sizes)?;
    sizes.extend_from_slice(&[rows, columns]);
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// A row of `count` elements for each matrix of a stack.
///
/// # Errors
/// As [`stacked`].
pub fn row_of(sizes: &[i64], count: i64) -> Result<Dims> {
    let mut sizes = stacked(sizes)?;
    sizes.push(count);
    Ok(sizes)
}

/// Whether the right side of systems is a vector for each matrix, rather than a matrix.
///
/// # Errors
/// As [`stacked`], of the matrices.
pub fn is_vector_system(matrices: &[i64], right: &[i64]) -> Result<bool> {
    split(matrices)?;
    Ok(right.len() == 1 || right == &matrices[..matrices.len() - 1])
}

/// The sizes of the solution of systems whose right side is a vector for each matrix or matrices, stacks broadcast.
///
/// # Errors
/// As [`system`].
pub fn solution(matrices: &[i64], right: &[i64], left: bool) -> Result<Dims> {
    if !is_vector_system(matrices, right)? {
        return system(matrices, right, left);
    }
    let mut sizes = system(matrices, &[right, &[1]].concat(), true)?;
    sizes.pop();
    Ok(sizes)
}

/// The sizes of the solution of systems with these matrices on the left of the unknowns, or on their right unless `left`, stacks
/// broadcast.
///
/// # Errors
/// If the matrices are not square, or the right sides do not fit them.
pub fn system(matrices: &[i64], right: &[i64], left: bool) -> Result<Dims> {
    let ((outer, [rows, columns]), (right_outer, own)) = (split(matrices)?, split(right)?);
    let inner = if left { own[0] } else { own[1] };
    if rows != columns || rows != inner {
        return Err(Error::shape(format!(
            "matrices {} and right sides {} are no systems",
            ShapeText(matrices),
            ShapeText(right)
        ))
        .with_help(
            "the matrices are square, with as many rows as the right sides, or as columns if `left` is false",
        ));
    }
    let mut sizes = broadcast_pair(outer, right_outer)?;
    sizes.extend_from_slice(&own);
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// The part of the largest singular value up to which others are taken for 0: that given, 0 beside a positive absolute bound,
/// or the distance from 1 to the next number times the longer side.
///
/// # Errors
/// As [`stacked`].
pub fn relative_tolerance(
    sizes: &[i64],
    is_double: bool,
    atol: Option<f64>,
    rtol: Option<f64>,
) -> Result<f64> {
    let [rows, columns] = split(sizes)?.1;
    let epsilon = if is_double { f64::EPSILON } else { f64::from(f32::EPSILON) };
    Ok(match (rtol, atol) {
        (Some(given), _) => given,
        (None, Some(least)) if least > 0.0 => 0.0,
        _ => epsilon * rows.max(columns) as f64,
    })
}

/// The dimension of a cross product that is not given: the first of three elements.
///
/// # Errors
/// If there is none.
pub fn vector_cross(sizes: &[i64]) -> Result<i64> {
    let found = sizes.iter().position(|size| *size == 3).map(|dim| dim as i64);
    found.ok_or_else(|| Error::shape("a cross product needs a dimension of three elements"))
}

/// The sizes of an operand of a Kronecker product, a dimension of size 1 beside each of its own: behind it for the first
/// operand, `[2, 3]` as `[2, 1, 3, 1]`, else before it.
///
/// # Errors
/// If there are too many dimensions.
pub fn kron_parts(own: &[i64], other: &[i64], is_first: bool) -> Result<Dims> {
    let padded = padded(own, other.len());
    Ok(padded.iter().flat_map(|size| if is_first { [*size, 1] } else { [1, *size] }).collect())
}

/// The sizes of a Kronecker product.
///
/// # Errors
/// If there are too many elements.
pub fn kron_sizes(first: &[i64], second: &[i64]) -> Result<Dims> {
    let (first, second) = (padded(first, second.len()), padded(second, first.len()));
    let sizes: Dims = first.iter().zip(&second).map(|(one, other)| one.saturating_mul(*other)).collect();
    checked_numel(&sizes)?;
    Ok(sizes)
}

fn padded(sizes: &[i64], rank: usize) -> Dims {
    let new = rank.saturating_sub(sizes.len());
    std::iter::repeat_n(1, new).chain(sizes.iter().copied()).collect()
}

/// Labels of an operand's dimensions for `_einsum_pair`: those summed are numbered from 1 in the order given, the others on
/// from `first_free`.
///
/// # Errors
/// If a dimension is out of range or given twice.
pub fn contracted_labels(rank: i64, dims: &[i64], first_free: i64) -> Result<Dims> {
    let mut labels = Dims::from_elem(0, usize::try_from(rank).unwrap_or(0));
    for (number, dim) in dims.iter().enumerate() {
        let wrapped = wrap_dim(*dim, labels.len())?;
        match labels.get_mut(wrapped) {
            Some(label) if *label == 0 => *label = number as i64 + 1,
            _ => return Err(Error::value(format!("dimension {dim} is given twice, or there is none"))),
        }
    }
    let mut free = first_free;
    for label in &mut labels {
        if *label == 0 {
            *label = free;
            free += 1;
        }
    }
    Ok(labels)
}

/// The labels of two operands that are not summed, where those are numbered from 1 to `summed`.
///
/// # Errors
/// None; a function of a spec returns a result.
pub fn free_labels(first: &[i64], second: &[i64], summed: i64) -> Result<Dims> {
    Ok(first.iter().chain(second).copied().filter(|label| *label > summed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks() {
        assert_eq!(stacked(&[2, 3, 4]).unwrap()[..], [2]);
        assert!(stacked(&[2]).is_err());
        assert_eq!(left_factor(&[2, 4, 3], false).unwrap()[..], [2, 4, 3]);
        assert_eq!(left_factor(&[2, 4, 3], true).unwrap()[..], [2, 4, 4]);
        assert_eq!(right_factor(&[2, 4], false).unwrap()[..], [2, 4]);
        assert_eq!(diagonal_of(&[2, 3, 4]).unwrap()[..], [2, 3]);
        assert_eq!(matrix_of(&[2, 3, 4], 5, 6).unwrap()[..], [2, 5, 6]);
        assert_eq!(row_of(&[2, 3, 4], 3).unwrap()[..], [2, 3]);
    }

    #[test]
    fn systems_broadcast() {
        assert_eq!(system(&[2, 1, 3, 3], &[5, 3, 4], true).unwrap()[..], [2, 5, 3, 4]);
        assert_eq!(system(&[3, 3], &[4, 3], false).unwrap()[..], [4, 3]);
        assert!(system(&[3, 3], &[4, 3], true).is_err() && system(&[3, 2], &[3, 1], true).is_err());
        assert!(is_vector_system(&[2, 3, 3], &[2, 3]).unwrap());
        assert!(!is_vector_system(&[3, 3], &[3, 3]).unwrap());
    }

    #[test]
    fn products() {
        assert_eq!(kron_parts(&[2, 3], &[4], true).unwrap()[..], [2, 1, 3, 1]);
        assert_eq!(kron_parts(&[4], &[2, 3], false).unwrap()[..], [1, 1, 1, 4]);
        assert_eq!(kron_sizes(&[2, 3], &[4]).unwrap()[..], [2, 12]);
        assert_eq!(contracted_labels(3, &[-1, 0], 3).unwrap()[..], [2, 3, 1]);
        assert!(contracted_labels(2, &[0, -2], 3).is_err());
        assert_eq!(vector_cross(&[2, 3, 3]).unwrap(), 1);
    }
}
