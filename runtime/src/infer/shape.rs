//! Rules for `shape:`, one body each for numbers and for formulas.
//!
//! In: shapes of operands. Out: the shape of a result. The public functions take a call's tensors; those of `of` are
//! the rules themselves, over any `Extents`, shared with `symbolic::rules`.

use super::Operand;
use super::extent::Numbers;
use crate::error::Result;
use crate::layout::{Dims, copied};
use crate::tensor::Tensor;

/// The shape of the given input.
pub fn follow(tensor: &Tensor) -> Result<Dims> {
    Ok(copied(&tensor.layout().sizes))
}

/// The shapes of the operands, broadcast together: aligned at the last dimension, sizes must be
/// equal or 1.
///
/// `broadcast` of (2, 1) and (3) is (2, 3). Numbers and absent operands are ignored; without a tensor the result is ().
///
/// # Errors
/// If two sizes differ and neither is 1, or the result has too many elements.
pub fn broadcast(operands: &[Operand<'_>]) -> Result<Dims> {
    let mut shapes = operands.iter().flat_map(Operand::tensors).map(Tensor::shape);
    let mut result = shapes.next().map(Dims::from_slice).unwrap_or_default();
    for shape in shapes {
        of::broadcast(&mut Numbers, &mut result, shape)?;
    }
    Ok(result)
}

/// The input's shape without the given dimensions, or with size 1 there if `keepdim`. No
/// dimensions given means all.
///
/// `reduce` of (2, 3, 4) over dimensions 0 and -1 is (3), or (1, 3, 1) with `keepdim`.
///
/// # Errors
/// If a dimension is out of range or named twice.
pub fn reduce(tensor: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Dims> {
    of::reduce::<Numbers>(tensor.shape(), dims, keepdim)
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
    of::matmul(&mut Numbers, left.shape(), right.shape())
}

/// The shapes joined along one dimension; empty vectors are ignored.
///
/// `cat` of (2, 3), (0) and (2, 1) along dimension 1 is (2, 4).
///
/// # Errors
/// If the list is empty, or other dimensions differ, or the result has too many elements.
pub fn cat(tensors: &[Tensor], dim: i64) -> Result<Dims> {
    of::cat(&mut Numbers, tensors.iter().map(Tensor::shape).enumerate(), dim)
}

/// The given sizes.
///
/// # Errors
/// If one is negative, or the product overflows.
pub fn full(sizes: &[i64]) -> Result<Dims> {
    of::full(&mut Numbers, sizes)
}

/// The rules over any extents.
pub(super) mod of {
    use crate::error::{Error, Result};
    use crate::infer::extent::Extents;
    use crate::infer::reduced_dims;
    use crate::layout::wrap_dim;

    /// Broadcasts one more shape into the result so far.
    pub fn broadcast<E: Extents>(on: &mut E, result: &mut E::Shape, next: &[E::Extent]) -> Result<()> {
        if !on.are_equal(result, next) {
            *result = broadcast_two(on, result, next)?;
            on.check_numel(result)?;
        }
        Ok(())
    }

    fn broadcast_two<E: Extents>(on: &mut E, a: &[E::Extent], b: &[E::Extent]) -> Result<E::Shape> {
        let (dims, one) = (a.len().max(b.len()), E::Extent::from(1));
        let sizes = (0..dims).map(|dim| {
            // Sizes are aligned at the end; a missing one counts as 1.
            let [left, right] =
                [a, b].map(|shape| (dim + shape.len()).checked_sub(dims).map_or(&one, |own| &shape[own]));
            on.broadcast(left, right).ok_or_else(|| {
                Error::shape(format!(
                    "the shapes {} and {} do not broadcast: dimension {} has the sizes {} and {}",
                    on.shape_text(a),
                    on.shape_text(b),
                    dim as i64 - dims as i64,
                    on.text(left),
                    on.text(right)
                ))
                .with_help("sizes must be equal or 1, counted from the last dimension")
            })
        });
        sizes.collect()
    }

    pub fn reduce<E: Extents>(shape: &[E::Extent], dims: Option<&[i64]>, keepdim: bool) -> Result<E::Shape> {
        let reduced = reduced_dims(shape.len(), dims)?;
        let sizes = shape.iter().zip(reduced).filter_map(|(size, reduced)| match (reduced, keepdim) {
            (true, true) => Some(E::Extent::from(1)),
            (true, false) => None,
            (false, _) => Some(size.clone()),
        });
        Ok(sizes.collect())
    }

    pub fn matmul<E: Extents>(on: &mut E, a: &[E::Extent], b: &[E::Extent]) -> Result<E::Shape> {
        let ([.., columns], [.., _]) = (a, b) else {
            return Err(Error::shape("a matrix product needs operands with at least one dimension"));
        };
        let rows = &b[b.len().saturating_sub(2)];
        if on.unify(columns, rows, "the inner sizes of a matrix product are equal").is_none() {
            return Err(Error::shape(format!(
                "the inner sizes of the product differ: {} columns on the left, {} rows on the right",
                on.text(columns),
                on.text(rows)
            )));
        }
        let [before_a, before_b] = [a, b].map(|shape| &shape[..shape.len().saturating_sub(2)]);
        let mut result = broadcast_two(on, before_a, before_b)?;
        if let [.., rows, _] = a {
            result.extend([rows.clone()]);
        }
        if let [.., _, columns] = b {
            result.extend([columns.clone()]);
        }
        on.check_numel(&result)?;
        Ok(result)
    }

    /// Whether a shape is that of an empty vector, which joins with shapes of any number of dimensions.
    pub fn is_empty_vector<E: PartialEq<i64>>(shape: &[E]) -> bool {
        matches!(shape, [only] if *only == 0)
    }

    /// Joins shapes, each given with its position in the list.
    pub fn cat<'a, E: Extents>(
        on: &mut E,
        shapes: impl Iterator<Item = (usize, &'a [E::Extent])> + Clone,
        dim: i64,
    ) -> Result<E::Shape>
    where
        E::Extent: 'a,
    {
        let mut rest = shapes.clone().map(|(_, shape)| shape);
        let Some(first) = rest.clone().find(|shape| !is_empty_vector(shape)).or_else(|| rest.next()) else {
            return Err(Error::value("an empty list of tensors cannot be joined"));
        };
        let dim = wrap_dim(dim, first.len())?;
        if first.is_empty() {
            return Err(Error::shape("tensors without dimensions cannot be joined")
                .with_help("give each a dimension first"));
        }
        let mut result: E::Shape = first.iter().cloned().collect();
        result[dim] = E::Extent::from(0);
        for (index, shape) in shapes {
            if is_empty_vector(shape) && first.len() != 1 {
                continue;
            }
            let fits = shape.len() == first.len()
                && (0..first.len()).filter(|other| *other != dim).all(|other| {
                    let reason = "tensors that are joined have equal sizes in the other dimensions";
                    let size = on.unify(&result[other], &shape[other], reason);
                    size.map(|size| result[other] = size).is_some()
                });
            if !fits {
                return Err(Error::shape(format!(
                    "tensor {index} of shape {} does not fit the first of shape {}: all sizes but that of dimension {dim} must be equal",
                    on.shape_text(shape),
                    on.shape_text(first)
                )));
            }
            result[dim] = on.add(&result[dim], &shape[dim]);
        }
        on.check_numel(&result)?;
        Ok(result)
    }

    pub fn full<E: Extents>(on: &mut E, sizes: &[E::Extent]) -> Result<E::Shape> {
        on.check_given(sizes)?;
        Ok(sizes.iter().cloned().collect())
    }
}
