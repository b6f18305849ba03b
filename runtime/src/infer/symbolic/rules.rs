//! The named rules of `infer` on sizes that may be unknown.
//!
//! Each says what the rule of its name says of numbers. Where two sizes must be equal and nobody knows
//! whether they are, that becomes a guard.

use opsmith_core::DType;
use smallvec::SmallVec;

use super::condition::{Condition, Context};
use super::evaluate::{Evaluation, Value};
use super::shape::{Shape, Sizes};
use super::size::Size;
use super::tensor_meta::Meta;
use crate::error::{Error, Result};
use crate::infer::expr::{DTypeRule, Expr, ShapeRule};
use crate::infer::{self, Operand, reduced_dims};
use crate::layout::{Layout, wrap_dim};
use crate::op::OpDef;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// A rule for sizes.
pub(super) fn shape(on: &mut Evaluation<'_, '_>, rule: ShapeRule, args: &'static [Expr]) -> Result<Shape> {
    match rule {
        ShapeRule::Follow => Ok(match on.value(&args[0])? {
            Value::Tensor(meta) => meta.shape.clone(),
            _ => Shape::UnknownRank,
        }),
        ShapeRule::Broadcast => {
            let mut result: Option<Shape> = None;
            for arg in args {
                let value = on.value(arg)?;
                let mut failed = None;
                each_meta(&value, |meta| {
                    if failed.is_none() {
                        let next = match result.take() {
                            None => Ok(meta.shape.clone()),
                            Some(known) => broadcast(on, &known, &meta.shape),
                        };
                        match next {
                            Ok(shape) => result = Some(shape),
                            Err(error) => failed = Some(error),
                        }
                    }
                });
                if let Some(error) = failed {
                    return Err(error);
                }
            }
            Ok(result.unwrap_or_else(|| Shape::concrete(&[])))
        }
        ShapeRule::Reduce => reduce(on, args),
        ShapeRule::Matmul => match (on.value(&args[0])?, on.value(&args[1])?) {
            (Value::Tensor(a), Value::Tensor(b)) => matmul(on, &a.shape, &b.shape),
            _ => Ok(Shape::UnknownRank),
        },
        ShapeRule::Cat => match (on.value(&args[0])?, on.size(&args[1])?) {
            (Value::Tensors(tensors), dim) => cat(on, tensors, &dim),
            _ => Ok(Shape::UnknownRank),
        },
        ShapeRule::Full => {
            let sizes = on.sizes(&args[0])?;
            for size in sizes.sizes().unwrap_or_default() {
                let negative = on.context.less(size, &Size::Const(0));
                if negative == Condition::False {
                    continue;
                }
                if negative == Condition::True {
                    return Err(Error::shape(format!("the shape {sizes} has a negative size")));
                }
                on.guard(negative.negated(), "a size cannot be negative");
            }
            Ok(sizes)
        }
    }
}

/// A rule for a dtype; `None` if it depends on what is not known.
pub(super) fn dtype(
    on: &mut Evaluation<'_, '_>,
    rule: DTypeRule,
    args: &'static [Expr],
) -> Result<Option<DType>> {
    let values: SmallVec<[Value<'_>; 4]> = args.iter().map(|arg| on.value(arg)).collect::<Result<_>>()?;
    let wanted = |at: usize| match values.get(at) {
        Some(Value::DType(dtype)) => Some(Some(*dtype)),
        Some(Value::None) => Some(None),
        _ => None,
    };
    let tensor = match values.first() {
        Some(Value::Tensor(meta)) => Some(*meta),
        _ => None,
    };
    match rule {
        DTypeRule::Follow => Ok(tensor.map(|meta| meta.dtype)),
        DTypeRule::Real => Ok(tensor.map(|meta| meta.dtype.to_real())),
        DTypeRule::Complex => Ok(tensor.map(|meta| meta.dtype.to_complex())),
        DTypeRule::Accumulate => {
            let (Some(meta), Some(wanted)) = (tensor, wanted(1)) else { return Ok(None) };
            infer::dtype::accumulate(&stand_in(meta, 1), wanted).map(Some)
        }
        DTypeRule::OrDefault => {
            let Some(wanted) = wanted(0) else { return Ok(None) };
            infer::dtype::or_default(wanted).map(Some)
        }
        DTypeRule::Same => with_operands(&values, 1, infer::dtype::same).map(Some),
        DTypeRule::Promote => promoted(&values, infer::dtype::promote),
        DTypeRule::PromoteFloat => promoted(&values, infer::dtype::promote_float),
    }
}

/// A promoted dtype, unless an unknown rank decides it: tensors without dimensions count for less.
fn promoted(values: &[Value<'_>], rule: fn(&[Operand<'_>]) -> Result<DType>) -> Result<Option<DType>> {
    let most = with_operands(values, 1, rule)?;
    let open = values.iter().any(has_unknown_rank);
    Ok(if open && with_operands(values, 0, rule)? != most { None } else { Some(most) })
}

/// Runs a rule of the eager mode on tensors that have the dtypes and ranks of the operands.
fn with_operands(
    values: &[Value<'_>],
    unknown_rank: usize,
    rule: fn(&[Operand<'_>]) -> Result<DType>,
) -> Result<DType> {
    let mut tensors: SmallVec<[Tensor; 4]> = SmallVec::new();
    for value in values {
        each_meta(value, |meta| tensors.push(stand_in(meta, unknown_rank)));
    }
    let mut operands: SmallVec<[Operand<'_>; 4]> = tensors.iter().map(Operand::Tensor).collect();
    operands.extend(values.iter().filter_map(|value| match value {
        Value::Size(size) => Some(Operand::Scalar(Scalar::Int(size.known().unwrap_or(0)))),
        Value::Float(value) => Some(Operand::Scalar(Scalar::Float(*value))),
        Value::Scalar(value) => Some(Operand::Scalar(*value)),
        Value::Truth(_) => Some(Operand::Scalar(Scalar::Bool(true))),
        _ => None,
    }));
    rule(&operands)
}

/// A tensor of the same dtype, with dimensions if the other has some.
fn stand_in(meta: &Meta, unknown_rank: usize) -> Tensor {
    let sizes: &[i64] = if meta.shape.rank().unwrap_or(unknown_rank) > 0 { &[1] } else { &[] };
    Tensor::described(Layout::contiguous(sizes), meta.dtype, meta.device)
}

fn has_unknown_rank(value: &Value<'_>) -> bool {
    let mut found = false;
    each_meta(value, |meta| found |= meta.shape.rank().is_none());
    found
}

fn each_meta<'a>(value: &Value<'a>, visit: impl FnMut(&'a Meta)) {
    match *value {
        Value::Tensor(meta) => std::iter::once(meta).for_each(visit),
        Value::Tensors(metas) => metas.iter().for_each(visit),
        Value::OptionalTensors(metas) => metas.iter().flatten().for_each(visit),
        _ => {}
    }
}

/// Why there are guards.
const BROADCAST: &str = "sizes broadcast only if they are equal or 1";

/// The rule `broadcast` of two shapes, for functions that infer by hand.
pub(crate) fn broadcast_shapes(
    op: &'static OpDef,
    context: &mut Context,
    a: &Shape,
    b: &Shape,
) -> Result<Shape> {
    let mut on = Evaluation { op, args: &[], context, locals: Vec::new(), constants: &[] };
    broadcast(&mut on, a, b)
}

fn broadcast(on: &mut Evaluation<'_, '_>, a: &Shape, b: &Shape) -> Result<Shape> {
    let (Some(left), Some(right)) = (a.sizes(), b.sizes()) else {
        let fits_all = |shape: &Shape| shape.sizes().is_some_and(|sizes| sizes.iter().all(|size| *size == 1));
        if !fits_all(a) && !fits_all(b) {
            on.guard(Condition::Unknown, BROADCAST);
        }
        return Ok(Shape::UnknownRank);
    };
    let sizes = broadcast_sizes(on, left, right)?;
    Ok(Shape::Known(sizes))
}

fn broadcast_sizes(on: &mut Evaluation<'_, '_>, a: &[Size], b: &[Size]) -> Result<Sizes> {
    let dims = a.len().max(b.len());
    let one = Size::Const(1);
    (0..dims)
        .map(|dim| {
            // Sizes are aligned at the end; a missing one counts as 1.
            let size_of = |shape: &[Size]| {
                (dim + shape.len()).checked_sub(dims).map_or(one.clone(), |own| shape[own].clone())
            };
            broadcast_pair(on, &size_of(a), &size_of(b)).map_err(|error| {
                let (a, b) = (Shape::Known(a.into()), Shape::Known(b.into()));
                let symbols = &on.context.symbols;
                error.with_note(format!(
                    "the shapes are {} and {}, the dimension {}",
                    a.named(symbols),
                    b.named(symbols),
                    dim as i64 - dims as i64
                ))
            })
        })
        .collect()
}

/// The size that two broadcast to.
fn broadcast_pair(on: &mut Evaluation<'_, '_>, a: &Size, b: &Size) -> Result<Size> {
    let (one, equal) = (Size::Const(1), on.context.equal(a, b));
    match (a.known(), b.known()) {
        _ if equal == Condition::True => return Ok(a.clone()),
        (Some(1), _) => return Ok(b.clone()),
        (_, Some(1)) => return Ok(a.clone()),
        _ => {}
    }
    let a_is_one = on.context.equal(a, &one);
    let b_is_one = on.context.equal(b, &one);
    let never = |condition: &Condition| *condition == Condition::False;
    if never(&equal) && never(&a_is_one) && never(&b_is_one) {
        let symbols = &on.context.symbols;
        return Err(Error::shape(format!(
            "the sizes {} and {} do not broadcast",
            a.named(symbols),
            b.named(symbols)
        ))
        .with_help("sizes must be equal or 1, counted from the last dimension"));
    }
    // One of them decides: whatever the other is, it is that or 1.
    if never(&a_is_one) || a.known().is_some() {
        on.guard(equal.or(b_is_one), BROADCAST);
        return Ok(a.clone());
    }
    if never(&b_is_one) || b.known().is_some() {
        on.guard(equal.or(a_is_one), BROADCAST);
        return Ok(b.clone());
    }
    if a.is_unknown() || b.is_unknown() {
        on.guard(Condition::Unknown, BROADCAST);
        return Ok(Size::Unknown);
    }
    // Of two symbols, the one that was 1 in the example is taken to be 1 always; else they are equal.
    let symbols = &on.context.symbols;
    let example = |size: &Size| size.evaluate(|symbol| symbols.example(symbol));
    match (example(a), example(b)) {
        (Some(1), Some(other)) if other != 1 => {
            on.guard(a_is_one, BROADCAST);
            Ok(b.clone())
        }
        (Some(other), Some(1)) if other != 1 => {
            on.guard(b_is_one, BROADCAST);
            Ok(a.clone())
        }
        _ => {
            on.guard(equal, BROADCAST);
            Ok(a.clone())
        }
    }
}

/// Two sizes that must be equal; gives the one of which more is known.
fn same(on: &mut Evaluation<'_, '_>, a: &Size, b: &Size, why: &str) -> Result<Size> {
    let equal = on.context.equal(a, b);
    if equal == Condition::False {
        let symbols = &on.context.symbols;
        return Err(Error::shape(format!("{why}: {} and {}", a.named(symbols), b.named(symbols))));
    }
    on.guard(equal, why);
    Ok(if b.known().is_some() || a.is_unknown() { b.clone() } else { a.clone() })
}

fn reduce(on: &mut Evaluation<'_, '_>, args: &'static [Expr]) -> Result<Shape> {
    let Value::Tensor(meta) = on.value(&args[0])? else { return Ok(Shape::UnknownRank) };
    let dims = match on.value(&args[1])? {
        Value::None => Some(SmallVec::new()),
        Value::Sizes(Shape::Known(dims)) => {
            dims.iter().map(Size::known).collect::<Option<SmallVec<[i64; 6]>>>()
        }
        _ => None,
    };
    let keepdim = on.truth(&args[2])?;
    let keepdim = match keepdim {
        Condition::True => true,
        Condition::False => false,
        _ => return Ok(Shape::UnknownRank),
    };
    let (Some(sizes), Some(dims)) = (meta.shape.sizes(), &dims) else {
        // All dimensions of any number of them leave none.
        let all = dims.is_some_and(|dims| dims.is_empty());
        return Ok(if all && !keepdim { Shape::concrete(&[]) } else { Shape::UnknownRank });
    };
    let reduced = reduced_dims(sizes.len(), Some(dims))?;
    Ok(sizes
        .iter()
        .zip(reduced)
        .filter_map(|(size, reduced)| match (reduced, keepdim) {
            (true, true) => Some(Size::Const(1)),
            (true, false) => None,
            (false, _) => Some(size.clone()),
        })
        .collect())
}

fn matmul(on: &mut Evaluation<'_, '_>, left: &Shape, right: &Shape) -> Result<Shape> {
    let (Some(a), Some(b)) = (left.sizes(), right.sizes()) else { return Ok(Shape::UnknownRank) };
    if a.is_empty() || b.is_empty() {
        return Err(Error::shape("a matrix product needs operands with at least one dimension"));
    }
    let why = "the inner sizes of a matrix product are equal";
    same(on, &a[a.len() - 1], &b[b.len().saturating_sub(2)], why)?;
    let mut result = broadcast_sizes(on, &a[..a.len().saturating_sub(2)], &b[..b.len().saturating_sub(2)])?;
    if a.len() > 1 {
        result.push(a[a.len() - 2].clone());
    }
    if b.len() > 1 {
        result.push(b[b.len() - 1].clone());
    }
    Ok(Shape::Known(result))
}

fn cat(on: &mut Evaluation<'_, '_>, tensors: &[Meta], dim: &Size) -> Result<Shape> {
    // An empty vector joins with anything.
    let is_legacy_empty = |meta: &&Meta| matches!(meta.shape.sizes(), Some([only]) if *only == 0);
    let Some(first) = tensors.iter().find(|meta| !is_legacy_empty(meta)).or_else(|| tensors.first()) else {
        return Err(Error::value("an empty list of tensors cannot be joined"));
    };
    let ranked =
        tensors.iter().find(|meta| !is_legacy_empty(meta) && meta.shape.rank().is_some()).unwrap_or(first);
    let (Some(sizes), Some(dim)) = (ranked.shape.sizes(), dim.known()) else { return Ok(Shape::UnknownRank) };
    let dim = wrap_dim(dim, sizes.len())?;
    if sizes.is_empty() {
        return Err(Error::shape("tensors without dimensions cannot be joined")
            .with_help("give each a dimension first"));
    }
    let mut result: Sizes = sizes.into();
    result[dim] = Size::Const(0);
    for (index, tensor) in tensors.iter().enumerate() {
        if is_legacy_empty(&tensor) && sizes.len() != 1 {
            continue;
        }
        let Some(own) = tensor.shape.sizes() else {
            result[dim] = Size::Unknown;
            continue;
        };
        if own.len() != sizes.len() {
            return Err(Error::shape(format!(
                "tensor {index} has {} dimensions, another {}: all that are joined have the same",
                own.len(),
                sizes.len()
            )));
        }
        for other in (0..sizes.len()).filter(|other| *other != dim) {
            let why = "tensors that are joined have equal sizes in the other dimensions";
            result[other] = same(on, &result[other].clone(), &own[other], why)?;
        }
        result[dim] = &result[dim] + &own[dim];
    }
    Ok(Shape::Known(result))
}
