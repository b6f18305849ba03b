//! Rules for `shape:`.

use super::{Operand, reduced_dims};
use crate::error::{Error, Result, ShapeText};
use crate::layout::{Dims, checked_numel, wrap_dim};
use crate::tensor::Tensor;

/// The shape of the given input.
pub fn follow(tensor: &Tensor) -> Result<Dims> {
    Ok(tensor.shape().into())
}

/// The shapes of the operands, broadcast together: aligned at the last dimension, sizes must be
/// equal or 1.
///
/// `broadcast` of (2, 1) and (3) is (2, 3). Numbers and absent operands count for nothing; without
/// a tensor the result is ().
///
/// # Errors
/// If two sizes differ and neither is 1, or the result has too many elements.
pub fn broadcast(operands: &[Operand<'_>]) -> Result<Dims> {
    let mut result: Option<Dims> = None;
    let mut add = |tensor: &Tensor| match &mut result {
        None => {
            result = Some(tensor.shape().into());
            Ok(())
        }
        Some(known) if known[..] == *tensor.shape() => Ok(()),
        Some(known) => {
            *known = broadcast_pair(known, tensor.shape())?;
            checked_numel(known).map(drop)
        }
    };
    for operand in operands {
        match operand {
            Operand::Tensor(tensor) => add(tensor)?,
            Operand::Tensors(tensors) => tensors.iter().try_for_each(&mut add)?,
            Operand::Scalar(_) | Operand::Absent => {}
        }
    }
    Ok(result.unwrap_or_default())
}

fn broadcast_pair(a: &[i64], b: &[i64]) -> Result<Dims> {
    let dims = a.len().max(b.len());
    (0..dims)
        .map(|dim| {
            // Sizes are aligned at the end; a missing one counts as 1.
            let size_of = |shape: &[i64]| (dim + shape.len()).checked_sub(dims).map_or(1, |own| shape[own]);
            match (size_of(a), size_of(b)) {
                (left, right) if left == right || right == 1 => Ok(left),
                (1, right) => Ok(right),
                (left, right) => Err(Error::shape(format!(
                    "the shapes {} and {} do not broadcast: dimension {} has the sizes {left} and {right}",
                    ShapeText(a),
                    ShapeText(b),
                    dim as i64 - dims as i64
                ))
                .with_help("sizes must be equal or 1, counted from the last dimension")),
            }
        })
        .collect()
}

/// The input's shape without the given dimensions, or with size 1 there if `keepdim`. No
/// dimensions given means all.
///
/// `reduce` of (2, 3, 4) over dimensions 0 and -1 is (3), or (1, 3, 1) with `keepdim`.
///
/// # Errors
/// If a dimension is out of range or named twice.
pub fn reduce(tensor: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Dims> {
    let reduced = reduced_dims(tensor.dim(), dims)?;
    Ok(tensor
        .shape()
        .iter()
        .enumerate()
        .filter_map(|(dim, &size)| match (reduced[dim], keepdim) {
            (true, true) => Some(1),
            (true, false) => None,
            (false, _) => Some(size),
        })
        .collect())
}

/// The matrix product's shape: the last two dimensions multiply, those before broadcast; a
/// vector counts as a row on the left and a column on the right.
///
/// `matmul` of (5, 1, 4, 3) and (6, 3, 2) is (5, 6, 4, 2); of (3) and (3) it is ().
///
/// # Errors
/// If an operand has no dimensions, the inner sizes differ, the leading ones do not broadcast, or
/// the result has too many elements.
pub fn matmul(left: &Tensor, right: &Tensor) -> Result<Dims> {
    let (a, b) = (left.shape(), right.shape());
    if a.is_empty() || b.is_empty() {
        return Err(Error::shape("a matrix product needs operands with at least one dimension"));
    }
    let inner_left = a[a.len() - 1];
    let inner_right = b[b.len().saturating_sub(2)];
    if inner_left != inner_right {
        return Err(Error::shape(format!(
            "the inner sizes of the product differ: {inner_left} columns on the left, {inner_right} rows on the right"
        )));
    }
    let mut result = broadcast_pair(&a[..a.len().saturating_sub(2)], &b[..b.len().saturating_sub(2)])?;
    if a.len() > 1 {
        result.push(a[a.len() - 2]);
    }
    if b.len() > 1 {
        result.push(b[b.len() - 1]);
    }
    checked_numel(&result)?;
    Ok(result)
}

/// The shapes joined along one dimension; empty vectors are passed over.
///
/// `cat` of (2, 3), (0) and (2, 1) along dimension 1 is (2, 4).
///
/// # Errors
/// If the list is empty, or other dimensions differ, or the result has too many elements.
pub fn cat(tensors: &[Tensor], dim: i64) -> Result<Dims> {
    let is_legacy_empty = |tensor: &&Tensor| tensor.shape() == [0];
    let Some(first) = tensors.iter().find(|tensor| !is_legacy_empty(tensor)).or_else(|| tensors.first())
    else {
        return Err(Error::value("an empty list of tensors cannot be joined"));
    };
    let dim = wrap_dim(dim, first.dim())?;
    if first.dim() == 0 {
        return Err(Error::shape("tensors without dimensions cannot be joined")
            .with_help("give each a dimension first"));
    }
    let mut result: Dims = first.shape().into();
    result[dim] = 0;
    for (index, tensor) in tensors.iter().enumerate() {
        if is_legacy_empty(&tensor) && first.dim() != 1 {
            continue;
        }
        let fits = tensor.dim() == first.dim()
            && (0..first.dim()).all(|other| other == dim || tensor.shape()[other] == first.shape()[other]);
        if !fits {
            return Err(Error::shape(format!(
                "tensor {index} of shape {} does not fit the first of shape {}: all sizes but that of dimension {dim} must be equal",
                ShapeText(tensor.shape()),
                ShapeText(first.shape())
            )));
        }
        result[dim] = result[dim].saturating_add(tensor.shape()[dim]);
    }
    checked_numel(&result)?;
    Ok(result)
}

/// The given sizes.
///
/// # Errors
/// If one is negative, or the product overflows.
pub fn full(sizes: &[i64]) -> Result<Dims> {
    checked_numel(sizes)?;
    Ok(sizes.into())
}
