//! Shapes of results that are read at indices.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{Dims, Error, Result, Scratch, Tensor};

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

/// The index's shape.
///
/// # Errors
/// If the index does not have as many dimensions as `self`, or is larger in another than `dim`.
pub fn gather(self_: &Tensor, dim: i64, index: &Tensor) -> Result<Dims> {
    check_index(self_, dim, index)?;
    Ok(index.shape().into())
}

/// `self`'s shape, for every scatter operator.
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

/// The shape of [`crate::cpu::index::index`]'s result.
///
/// # Errors
/// As [`indexed`].
pub fn index(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<Dims> {
    let shapes: Vec<_> = indices.iter().map(|index| index.as_ref().map(Tensor::shape)).collect();
    Ok(indexed(self_.shape(), &shapes)?.sizes)
}

/// `self`'s shape.
///
/// # Errors
/// As [`indexed`].
pub fn index_put(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<Dims> {
    index(self_, indices)?;
    Ok(self_.shape().into())
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

/// The shape of a tensor indexed by tensors, and where its dimensions come from.
#[derive(Clone, Debug)]
pub struct Indexed {
    /// Sizes of the result.
    pub sizes: Dims,
    /// The shape all indices broadcast to.
    pub broadcast: Dims,
    /// The dimension of the result at which the broadcast shape starts.
    pub start: usize,
    /// The dimensions of the indexed tensor that the result keeps.
    pub kept: Scratch<usize>,
}

/// The shape of a tensor of the given sizes indexed by tensors of the given sizes, one a dimension,
/// `None` where a dimension is kept whole.
///
/// # Errors
/// If there are more indices than dimensions, or the indices do not broadcast.
pub fn indexed(sizes: &[i64], indices: &[Option<&[i64]>]) -> Result<Indexed> {
    if indices.len() > sizes.len() {
        return Err(Error::index(format!(
            "{} indices are too many for the shape {}",
            indices.len(),
            ShapeText(sizes)
        )));
    }
    let mut broadcast = Dims::new();
    for index in indices.iter().copied().flatten() {
        broadcast = broadcast_pair(&broadcast, index)?;
    }
    let is_indexed = |dim: usize| indices.get(dim).is_some_and(Option::is_some);
    let first = (0..sizes.len()).find(|&dim| is_indexed(dim)).unwrap_or(0);
    let count = indices.iter().flatten().count();
    let neighbours = (first..first + count).all(is_indexed);
    let start = if neighbours { first } else { 0 };
    let kept: Scratch<usize> = (0..sizes.len()).filter(|&dim| !is_indexed(dim)).collect();
    let mut result: Dims = kept.iter().map(|&dim| sizes[dim]).collect();
    result.insert_from_slice(start, &broadcast);
    Ok(Indexed { sizes: result, broadcast, start, kept })
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

    #[test]
    fn indexed_dimensions_stay_in_place_only_if_they_are_neighbours() {
        let x = tensor(&[2, 3, 4]);
        let (row, column) = (Some(tensor(&[5, 1])), Some(tensor(&[6])));
        assert_eq!(index(&x, &[None, row.clone(), column.clone()]).unwrap()[..], [2, 5, 6]);
        assert_eq!(index(&x, &[row.clone(), None, column.clone()]).unwrap()[..], [5, 6, 3]);
        assert_eq!(index(&x, &[None, column.clone()]).unwrap()[..], [2, 6, 4]);
        assert_eq!(index(&x, &[]).unwrap()[..], [2, 3, 4]);
        assert_eq!(index_put(&x, &[row, None]).unwrap()[..], [2, 3, 4]);
        assert!(index(&x, &[None, None, None, column]).is_err());
        assert!(index(&x, &[Some(tensor(&[2])), Some(tensor(&[3]))]).is_err());
    }
}
