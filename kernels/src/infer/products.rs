//! Sizes of the steps that a product of batches of matrices is made of.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::joined;
use opsmith_runtime::{Dims, Error, Result};

/// All but the last dimension joined: `[2, 3, 4]` as `[6, 4]`.
///
/// # Errors
/// If there are no dimensions.
pub fn as_rows(sizes: &[i64]) -> Result<Dims> {
    match sizes {
        [outer @ .., last] => Ok(Dims::from_slice(&[joined(outer), *last])),
        [] => Err(Error::shape("a tensor without dimensions has no rows")),
    }
}

/// The sizes of a matrix product, the leading dimensions broadcast: `[2, 3, 4]` and `[4, 5]` give
/// `[2, 3, 5]`.
///
/// # Errors
/// If the leading dimensions do not broadcast, or an operand is not a matrix.
pub fn product(left: &[i64], right: &[i64]) -> Result<Dims> {
    let ([left @ .., rows, _], [right @ .., _, columns]) = (left, right) else { return Err(no_matrix()) };
    let mut sizes = broadcast(left, right)?;
    sizes.extend_from_slice(&[*rows, *columns]);
    Ok(sizes)
}

/// The sizes of one operand with its leading dimensions broadcast against the other's.
///
/// # Errors
/// As [`product`].
pub fn batched(own: &[i64], other: &[i64]) -> Result<Dims> {
    let ([own @ .., rows, columns], [other @ .., _, _]) = (own, other) else { return Err(no_matrix()) };
    let mut sizes = broadcast(own, other)?;
    sizes.extend_from_slice(&[*rows, *columns]);
    Ok(sizes)
}

/// The sizes of queries whose heads are grouped by those of keys: `[2, 6, 5, 4]` and `[2, 3, 7, 4]` give
/// `[2, 3, 2, 5, 4]`.
///
/// # Errors
/// If there are not three dimensions, or the heads of queries are not a multiple of those of keys.
pub fn grouped(queries: &[i64], keys: &[i64]) -> Result<Dims> {
    let ([leading @ .., heads, rows, columns], [.., key_heads, _, _]) = (queries, keys) else {
        return Err(Error::shape("heads that share keys need a dimension before the last two"));
    };
    if *key_heads < 1 || heads % key_heads != 0 {
        return Err(Error::shape(format!("{heads} heads of queries cannot share {key_heads} heads of keys"))
            .with_help("give a multiple of the heads of keys"));
    }
    let mut sizes = Dims::from_slice(leading);
    sizes.extend_from_slice(&[*key_heads, heads / key_heads, *rows, *columns]);
    Ok(sizes)
}

/// As [`batched`], with the leading dimensions joined into one.
///
/// # Errors
/// As [`product`].
pub fn as_batch(own: &[i64], other: &[i64]) -> Result<Dims> {
    let sizes = batched(own, other)?;
    let (batch, matrix) = sizes.split_at(sizes.len() - 2);
    Ok(Dims::from_slice(&[joined(batch), matrix[0], matrix[1]]))
}

fn no_matrix() -> Error {
    Error::shape("a product of batches needs operands with at least two dimensions")
}

fn broadcast(left: &[i64], right: &[i64]) -> Result<Dims> {
    let rank = left.len().max(right.len());
    let size = |sizes: &[i64], dim: usize| match (dim + sizes.len()).checked_sub(rank) {
        Some(own) => sizes[own],
        None => 1,
    };
    (0..rank)
        .map(|dim| match (size(left, dim), size(right, dim)) {
            (a, b) if a == b || b == 1 => Ok(a),
            (1, b) => Ok(b),
            (a, b) => Err(Error::shape(format!(
                "the batches of shape {} and {} do not broadcast: {a} and {b} differ",
                ShapeText(left),
                ShapeText(right)
            ))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_dimensions_broadcast() {
        assert_eq!(product(&[2, 1, 3, 4], &[5, 4, 6]).unwrap()[..], [2, 5, 3, 6]);
        assert_eq!(batched(&[5, 4, 6], &[2, 1, 3, 4]).unwrap()[..], [2, 5, 4, 6]);
        assert_eq!(as_batch(&[2, 1, 3, 4], &[5, 4, 6]).unwrap()[..], [10, 3, 4]);
        assert_eq!(as_rows(&[2, 3, 4]).unwrap()[..], [6, 4]);
        assert!(product(&[2, 3, 4], &[3, 4, 5]).is_err());
        assert!(product(&[4], &[4, 5]).is_err());
    }
}
