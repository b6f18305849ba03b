//! Shapes of results that are read at indices.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{Dims, Error, Result, Tensor};

/// `self`'s shape with the number of indices along `dim`.
///
/// # Errors
/// If the index has more than one dimension, or `dim` is out of range.
pub fn index_select(self_: &Tensor, dim: i64, index: &Tensor) -> Result<Dims> {
    let dim = wrap_dim(dim, self_.dim())?;
    if index.dim() > 1 {
        return Err(Error::shape(format!(
            "the index must have one dimension, got the shape {}",
            ShapeText(index.shape())
        ))
        .with_help("use gather for an index of each element, or index for several index tensors"));
    }
    let mut sizes: Dims = self_.shape().into();
    if let Some(size) = sizes.get_mut(dim) {
        *size = index.numel();
    }
    Ok(sizes)
}

/// The shape of `index`.
///
/// # Errors
/// If the index does not have as many dimensions as `self`, or is larger in another than `dim`.
pub fn gather(self_: &Tensor, dim: i64, index: &Tensor) -> Result<Dims> {
    check_index(self_, dim, index)?;
    Ok(index.shape().into())
}

/// `self`'s shape.
///
/// The rule of every scatter operator.
///
/// # Errors
/// If the index does not have as many dimensions as `self`, or is larger in another than `dim`.
pub fn scatter(self_: &Tensor, dim: i64, index: &Tensor) -> Result<Dims> {
    check_index(self_, dim, index)?;
    Ok(self_.shape().into())
}

fn check_index(self_: &Tensor, dim: i64, index: &Tensor) -> Result<()> {
    let dim = wrap_dim(dim, self_.dim())?;
    let rank = |tensor: &Tensor| tensor.dim().max(1);
    let fits = rank(self_) == rank(index)
        && (0..self_.dim().min(index.dim()))
            .all(|other| other == dim || index.shape()[other] <= self_.shape()[other]);
    if fits || index.numel() == 0 {
        return Ok(());
    }
    Err(Error::shape(format!(
        "an index of the shape {} does not fit self of the shape {}",
        ShapeText(index.shape()),
        ShapeText(self_.shape())
    ))
    .with_help(format!("it needs as many dimensions, none larger except dimension {dim}")))
}

/// The indices' shape and the width of a row.
///
/// # Errors
/// If `weight` is not a matrix.
pub fn embedding(weight: &Tensor, indices: &Tensor) -> Result<Dims> {
    let &[_, width] = weight.shape() else {
        return Err(Error::shape(format!(
            "the weight must be a matrix, got the shape {}",
            ShapeText(weight.shape())
        )));
    };
    let mut sizes: Dims = indices.shape().into();
    sizes.push(width);
    Ok(sizes)
}

/// `num_weights` rows as wide as the gradient's last dimension.
///
/// # Errors
/// If the gradient does not have the indices' shape and one dimension more, or `num_weights` is
/// negative.
pub fn embedding_dense_backward(grad_output: &Tensor, indices: &Tensor, num_weights: i64) -> Result<Dims> {
    if num_weights < 0 {
        return Err(Error::value(format!("a table cannot have {num_weights} rows")));
    }
    match grad_output.shape().split_last() {
        Some((&width, outer)) if outer == indices.shape() => Ok(Dims::from_slice(&[num_weights, width])),
        _ => Err(Error::shape(format!(
            "the gradient of shape {} does not belong to indices of shape {}",
            ShapeText(grad_output.shape()),
            ShapeText(indices.shape())
        ))),
    }
}

/// `self`'s shape with `k` elements along `dim`.
///
/// # Errors
/// If there are fewer than `k` elements, or `k` is negative.
pub fn topk(self_: &Tensor, k: i64, dim: i64) -> Result<Dims> {
    let wrapped = wrap_dim(dim, self_.dim())?;
    let mut sizes: Dims = self_.shape().into();
    let available = sizes.get(wrapped).copied().unwrap_or(1);
    if k < 0 || k > available {
        return Err(Error::value(format!(
            "{k} elements cannot be chosen from the {available} along dimension {dim}"
        ))
        .with_help(format!("use 0 to {available}")));
    }
    if let Some(size) = sizes.get_mut(wrapped) {
        *size = k;
    }
    Ok(sizes)
}

pub(super) fn broadcast_pair(a: &[i64], b: &[i64]) -> Result<Dims> {
    let rank = a.len().max(b.len());
    let size = |shape: &[i64], dim: usize| match (dim + shape.len()).checked_sub(rank) {
        Some(own) => shape[own],
        None => 1,
    };
    (0..rank)
        .map(|dim| match (size(a, dim), size(b, dim)) {
            (a, b) if a == b || b == 1 => Ok(a),
            (1, b) => Ok(b),
            _ => Err(Error::shape(format!(
                "the shapes {} and {} do not broadcast",
                ShapeText(a),
                ShapeText(b)
            ))
            .with_help("sizes must be equal or 1, counted from the last dimension")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[i64]) -> Tensor {
        Tensor::from_slice(&vec![0i64; shape.iter().product::<i64>() as usize], shape).unwrap()
    }

    #[test]
    fn shapes_of_selections() {
        let x = tensor(&[3, 4]);
        assert_eq!(index_select(&x, -1, &tensor(&[7])).unwrap()[..], [3, 7]);
        assert!(index_select(&x, 0, &tensor(&[1, 1])).is_err());
        assert_eq!(gather(&x, 0, &tensor(&[9, 4])).unwrap()[..], [9, 4]);
        assert!(gather(&x, 0, &tensor(&[9, 5])).is_err());
        assert!(gather(&x, 0, &tensor(&[9])).is_err());
        assert_eq!(scatter(&tensor(&[]), 0, &tensor(&[1])).unwrap().as_slice(), &[] as &[i64]);
        assert_eq!(embedding(&x, &tensor(&[2, 2])).unwrap()[..], [2, 2, 4]);
        assert_eq!(embedding_dense_backward(&tensor(&[2, 4]), &tensor(&[2]), 9).unwrap()[..], [9, 4]);
        assert_eq!(topk(&x, 2, 1).unwrap()[..], [3, 2]);
        assert_eq!(topk(&tensor(&[]), 1, 0).unwrap().as_slice(), &[] as &[i64]);
        assert_eq!(topk(&x, 5, 1).unwrap_err().help(), Some("use 0 to 4"));
    }
}
