//! The named rules of `infer` on operands whose sizes, or ranks, may be unknown.
//!
//! In: a rule and its arguments as expressions. Out: the rule's result. This file only reads the operands; the rules
//! are those of `infer::shape` and `infer::dtype`, over formulas. An unknown rank of an operand makes that of the
//! result unknown.

use opsmith_core::DType;
use smallvec::SmallVec;

use super::condition::{Condition, Context};
use super::evaluate::{Evaluation, Value};
use super::extent::{BROADCAST, Formulas};
use super::shape::Shape;
use super::size::Size;
use super::tensor_meta::Meta;
use crate::error::Result;
use crate::infer::expr::{DTypeRule, Expr, ShapeRule};
use crate::infer::{Priority, TypedOperand, dtype, shape};
use crate::op::OpDef;
use crate::scalar::Scalar;

/// A rule for sizes.
pub(super) fn shape<'a>(on: &mut Evaluation<'a, '_>, rule: ShapeRule, args: &'a [Expr<'a>]) -> Result<Shape> {
    match rule {
        ShapeRule::Follow => Ok(match on.value(&args[0])? {
            Value::Tensor(meta) => meta.shape.clone(),
            _ => Shape::UnknownRank,
        }),
        ShapeRule::Broadcast => {
            let mut result: Option<Shape> = None;
            for arg in args {
                for meta in metas(&on.value(arg)?) {
                    result = Some(match result {
                        None => meta.shape.clone(),
                        Some(known) => broadcast(&mut on.formulas(), known, &meta.shape)?,
                    });
                }
            }
            Ok(result.unwrap_or_else(|| Shape::concrete(&[])))
        }
        ShapeRule::Reduce => reduce(on, args),
        ShapeRule::Matmul => match (on.value(&args[0])?, on.value(&args[1])?) {
            (Value::Tensor(a), Value::Tensor(b)) => {
                let (Some(a), Some(b)) = (a.shape.sizes(), b.shape.sizes()) else {
                    return Ok(Shape::UnknownRank);
                };
                shape::of::matmul(&mut on.formulas(), a, b).map(Shape::Known)
            }
            _ => Ok(Shape::UnknownRank),
        },
        ShapeRule::Cat => match (on.value(&args[0])?, on.size(&args[1])?.known()) {
            (Value::Tensors(tensors), Some(dim)) => cat(&mut on.formulas(), tensors, dim),
            (Value::Tensors([]), None) => cat(&mut on.formulas(), &[], 0),
            _ => Ok(Shape::UnknownRank),
        },
        ShapeRule::Full => match on.sizes(&args[0])? {
            Shape::Known(sizes) => shape::of::full(&mut on.formulas(), &sizes).map(Shape::Known),
            Shape::UnknownRank => Ok(Shape::UnknownRank),
        },
    }
}

/// A rule for a dtype; `None` if it depends on unknown values.
pub(super) fn dtype<'a>(
    on: &mut Evaluation<'a, '_>,
    rule: DTypeRule,
    args: &'a [Expr<'a>],
) -> Result<Option<DType>> {
    let values: SmallVec<[Value<'_>; 4]> = args.iter().map(|arg| on.value(arg)).collect::<Result<_>>()?;
    let wanted = |at: usize| match values.get(at) {
        Some(Value::DType(dtype)) => Some(Some(*dtype)),
        Some(Value::None) => Some(None),
        _ => None,
    };
    let of_tensor = match values.first() {
        Some(Value::Tensor(meta)) => Some(meta.dtype),
        _ => None,
    };
    Ok(match rule {
        DTypeRule::Follow => of_tensor,
        DTypeRule::Real => of_tensor.map(DType::to_real),
        DTypeRule::Opmath => of_tensor.map(DType::to_compute),
        DTypeRule::Complex => of_tensor.map(DType::to_complex),
        DTypeRule::Accumulate => {
            of_tensor.zip(wanted(1)).map(|(dtype, wanted)| dtype::of::accumulate(dtype, wanted))
        }
        DTypeRule::OrDefault => wanted(0).map(dtype::or_default).transpose()?,
        DTypeRule::Same => Some(dtype::of::same(types(&values, Priority::Dimensioned))?),
        DTypeRule::Promote => promote(&values)?,
        DTypeRule::PromoteFloat => promote(&values)?.map(dtype::of::floating),
    })
}

/// The rule `broadcast` of two shapes, for hand-written inference.
pub(crate) fn broadcast_shapes(
    op: &'static OpDef,
    context: &mut Context,
    a: &Shape,
    b: &Shape,
) -> Result<Shape> {
    broadcast(&mut Formulas { op: op.name, context }, a.clone(), b)
}

fn broadcast(on: &mut Formulas<'_>, known: Shape, next: &Shape) -> Result<Shape> {
    match (known, next) {
        (Shape::Known(mut known), Shape::Known(next)) => {
            shape::of::broadcast(on, &mut known, next)?;
            Ok(Shape::Known(known))
        }
        (known, next) => {
            let fits_all =
                |shape: &Shape| shape.sizes().is_some_and(|sizes| sizes.iter().all(|size| *size == 1));
            if !fits_all(&known) && !fits_all(next) {
                on.guard(Condition::Unknown, BROADCAST);
            }
            Ok(Shape::UnknownRank)
        }
    }
}

fn reduce<'a>(on: &mut Evaluation<'a, '_>, args: &'a [Expr<'a>]) -> Result<Shape> {
    let Value::Tensor(meta) = on.value(&args[0])? else { return Ok(Shape::UnknownRank) };
    let dims = match on.value(&args[1])? {
        Value::None => Some(SmallVec::new()),
        Value::Sizes(Shape::Known(dims)) => {
            dims.iter().map(Size::known).collect::<Option<SmallVec<[i64; 6]>>>()
        }
        _ => None,
    };
    let keepdim = match on.truth(&args[2])? {
        Condition::True => true,
        Condition::False => false,
        _ => return Ok(Shape::UnknownRank),
    };
    match (meta.shape.sizes(), dims) {
        (Some(sizes), Some(dims)) => {
            shape::of::reduce::<Formulas<'_>>(sizes, Some(&dims), keepdim).map(Shape::Known)
        }
        // A reduction of all dimensions has rank 0 for every rank of its input.
        (None, Some(dims)) if dims.is_empty() && !keepdim => Ok(Shape::concrete(&[])),
        _ => Ok(Shape::UnknownRank),
    }
}

fn cat(on: &mut Formulas<'_>, tensors: &[Meta], dim: i64) -> Result<Shape> {
    let ranked = tensors.iter().enumerate().filter_map(|(index, meta)| Some((index, meta.shape.sizes()?)));
    let all_known = tensors.iter().all(|meta| meta.shape.rank().is_some());
    // An empty vector does not determine the rank of the others.
    if !all_known && ranked.clone().all(|(_, sizes)| shape::of::is_empty_vector(sizes)) {
        return Ok(Shape::UnknownRank);
    }
    let mut joined = shape::of::cat(on, ranked, dim)?;
    if !all_known {
        let dim = crate::layout::wrap_dim(dim, joined.len())?;
        joined[dim] = Size::Unknown;
    }
    Ok(Shape::Known(joined))
}

/// A promoted dtype, unless an unknown rank decides it: tensors without dimensions have lower priority.
fn promote(values: &[Value<'_>]) -> Result<Option<DType>> {
    let most = dtype::of::promote(types(values, Priority::Dimensioned))?;
    let open = values.iter().flat_map(metas).any(|meta| meta.shape.rank().is_none());
    let least = if open { dtype::of::promote(types(values, Priority::ZeroDim))? } else { most };
    Ok((most == least).then_some(most))
}

/// The dtypes of operands, with the priority given for those of unknown rank.
fn types(values: &[Value<'_>], unknown_rank: Priority) -> impl Iterator<Item = TypedOperand> {
    let tensors = values.iter().flat_map(metas).map(move |meta| TypedOperand {
        dtype: meta.dtype,
        priority: meta.shape.rank().map_or(unknown_rank, Priority::of_rank),
    });
    let numbers = values.iter().filter_map(|value| {
        let scalar = match value {
            Value::Size(_) => Scalar::Int(0),
            Value::Float(value) => Scalar::Float(*value),
            Value::Scalar(value) => *value,
            Value::Truth(_) => Scalar::Bool(true),
            _ => return None,
        };
        Some(TypedOperand { dtype: scalar.dtype(), priority: Priority::Number })
    });
    tensors.chain(numbers)
}

/// The tensors of an operand.
fn metas<'a>(value: &Value<'a>) -> impl Iterator<Item = &'a Meta> + use<'a> {
    let (plain, optional): (&[Meta], &[Option<Meta>]) = match *value {
        Value::Tensor(meta) => (std::slice::from_ref(meta), &[]),
        Value::Tensors(metas) => (metas, &[]),
        Value::OptionalTensors(metas) => (&[], metas),
        _ => (&[], &[]),
    };
    plain.iter().chain(optional.iter().flatten())
}
