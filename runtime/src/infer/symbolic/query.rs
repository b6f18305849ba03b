//! Queries of rules about values whose sizes may be unknown.

use super::condition::Condition;
use super::evaluate::{Evaluation, Value};
use super::shape::Shape;
use super::size::Size;
use super::tensor_meta::{Meta, Strides};
use crate::arg::Arg;
use crate::checked;
use crate::error::{Error, Result};
use crate::infer::expr::{Expr, Query};
use crate::layout::wrap_dim;

impl<'a> Evaluation<'a, '_> {
    /// The answer to a query about the first part.
    pub(super) fn query(&mut self, query: Query, parts: &'a [Expr<'a>]) -> Result<Value<'a>> {
        let (base, rest) = parts.split_first().expect("a question is about something");
        let value = self.value(base)?;
        Ok(match (query, &value) {
            (Query::IsSome, Value::Unknown) | (Query::IsNone, Value::Unknown) => {
                Value::Truth(Condition::Unknown)
            }
            (Query::IsSome, value) => Value::Truth(Condition::known(!matches!(value, Value::None))),
            (Query::IsNone, value) => Value::Truth(Condition::known(matches!(value, Value::None))),
            (Query::Unwrap, Value::None) => return Err(checked::present::<()>(None).unwrap_err()),
            (Query::Unwrap, value) => value.clone(),
            (Query::UnwrapOr, Value::None) => self.value(&rest[0])?,
            (Query::UnwrapOr, value) => value.clone(),
            (Query::Sizes, Value::Tensor(meta)) => Value::Sizes(meta.shape.clone()),
            (Query::Size, Value::Tensor(meta)) => {
                let dim = self.size(&rest[0])?;
                Value::Size(size_along(&meta.shape, &dim)?)
            }
            (Query::Dim, Value::Tensor(meta)) => Value::Size(rank(&meta.shape)),
            (Query::Numel, Value::Tensor(meta)) => Value::Size(meta.shape.numel()),
            (Query::Strides, Value::Tensor(meta)) => Value::Sizes(strides(meta)),
            (Query::StorageOffset, Value::Tensor(meta)) => Value::Size(match &meta.strides {
                Strides::Contiguous => Size::Const(0),
                Strides::Given { offset, .. } => offset.clone(),
                Strides::Unknown => Size::Unknown,
            }),
            (Query::IsContiguous, Value::Tensor(meta)) => Value::Truth(self.is_contiguous(meta)),
            (Query::DType, Value::Tensor(meta)) => Value::DType(meta.dtype),
            (Query::Device, Value::Tensor(meta)) => Value::Device(meta.device),
            (Query::IsComplex, Value::Tensor(Meta { dtype, .. }) | Value::DType(dtype)) => {
                Value::Truth(Condition::known(dtype.is_complex()))
            }
            (Query::IsComplex, Value::Scalar(value)) => {
                Value::Truth(Condition::known(value.dtype().is_complex()))
            }
            (Query::IsFloat, Value::Tensor(Meta { dtype, .. }) | Value::DType(dtype)) => {
                Value::Truth(Condition::known(dtype.is_float()))
            }
            (Query::IsInt, Value::Tensor(Meta { dtype, .. }) | Value::DType(dtype)) => {
                Value::Truth(Condition::known(dtype.is_int()))
            }
            (Query::Len, value) => Value::Size(length(value)),
            (Query::SizesAlong, Value::Tensors(metas)) => {
                let dim = self.size(&rest[0])?;
                Value::Sizes(
                    metas
                        .iter()
                        .map(|meta| along(&meta.shape, &dim))
                        .collect::<Result<Vec<_>>>()?
                        .into_iter()
                        .collect(),
                )
            }
            (Query::Contains, Value::Sizes(list)) => {
                let wanted = self.size(&rest[0])?;
                Value::Truth(match list.sizes() {
                    Some(sizes) => sizes
                        .iter()
                        .fold(Condition::False, |any, size| any.or(self.context.equal(size, &wanted))),
                    None => Condition::Unknown,
                })
            }
            (Query::Concat, Value::Sizes(list)) => {
                let more = self.sizes(&rest[0])?;
                Value::Sizes(match (list.sizes(), more.sizes()) {
                    (Some(list), Some(more)) => list.iter().chain(more).cloned().collect(),
                    _ => Shape::UnknownRank,
                })
            }
            (Query::IsZero, Value::Size(size)) => Value::Truth(self.context.equal(size, &Size::Const(0))),
            (Query::IsZero, Value::Truth(condition)) => Value::Truth(condition.clone().negated()),
            (Query::IsZero, Value::Float(value)) => Value::Truth(Condition::known(*value == 0.0)),
            (Query::IsZero, Value::Scalar(value)) => Value::Truth(Condition::known(!value.to_bool())),
            (Query::Conj, Value::Scalar(value)) => Value::Scalar(value.conj()),
            (Query::Conj, value) => value.clone(),
            _ => Value::Unknown,
        })
    }

    fn is_contiguous(&self, meta: &Meta) -> Condition {
        match (&meta.strides, meta.shape.contiguous_strides(), meta.shape.sizes()) {
            (Strides::Contiguous, ..) => Condition::True,
            (Strides::Given { strides, .. }, Some(row_major), Some(sizes)) => {
                let dims = strides.iter().zip(&row_major).zip(sizes);
                // The stride of a dimension of size 1 does not matter.
                dims.fold(Condition::True, |all, ((stride, wanted), size)| {
                    let equal = self.context.equal(stride, wanted);
                    all.and(equal.or(self.context.equal(size, &Size::Const(1))))
                })
            }
            _ => Condition::Unknown,
        }
    }
}

/// The number of dimensions.
fn rank(shape: &Shape) -> Size {
    shape.rank().map_or(Size::Unknown, |rank| Size::Const(rank as i64))
}

fn size_along(shape: &Shape, dim: &Size) -> Result<Size> {
    let (Some(sizes), Some(dim)) = (shape.sizes(), dim.known()) else { return Ok(Size::Unknown) };
    let wrapped = wrap_dim(dim, sizes.len())?;
    sizes.get(wrapped).cloned().ok_or_else(|| Error::index("a tensor without dimensions has no sizes"))
}

/// As [`size_along`], where an empty vector joins with shapes of any rank.
fn along(shape: &Shape, dim: &Size) -> Result<Size> {
    match shape.sizes() {
        Some([only]) if *only == 0 => Ok(Size::Const(0)),
        _ => size_along(shape, dim),
    }
}

fn strides(meta: &Meta) -> Shape {
    match &meta.strides {
        Strides::Contiguous => meta.shape.contiguous_strides().map_or(Shape::UnknownRank, Shape::Known),
        Strides::Given { strides, .. } => Shape::Known(strides.clone()),
        Strides::Unknown => Shape::UnknownRank,
    }
}

fn length(value: &Value<'_>) -> Size {
    let length = match value {
        Value::Sizes(sizes) => return rank(sizes),
        Value::Tensors(list) => list.len(),
        Value::OptionalTensors(list) => list.len(),
        Value::Other(Arg::Floats(list)) => list.len(),
        Value::Other(Arg::Bools(list)) => list.len(),
        Value::Other(Arg::Scalars(list)) => list.len(),
        Value::Other(Arg::Strs(list)) => list.len(),
        Value::Other(Arg::DTypes(list)) => list.len(),
        Value::Other(Arg::Lists(lists)) => lists.len(),
        _ => return Size::Unknown,
    };
    Size::Const(length as i64)
}
