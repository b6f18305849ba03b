//! `pointwise`: an expression for one element of the output, from which loops are generated.

use opsmith_core::rules::{Rule, ShapeRule};
use opsmith_core::{DType, DTypeSet, MAX_POINTWISE_TENSORS};

use super::infer::{self, Expressions};
use super::{Context, names};
use crate::diagnostics::catalogue;
use crate::expr::check::Mode;
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Body, Element, Infer, Kind, Op, Operation, Ty};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};

pub(super) fn lower(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
    text: &Text,
    infer: Option<&Infer>,
    body: &Body,
) -> Option<Expr> {
    let op = expressions.op;
    if !matches!(op.outputs.as_slice(), [only] if only.ty.is_tensor()) {
        context.push(catalogue::pointwise_results(text.span(), &op.name));
        return None;
    }
    let arguments = check_arguments(context, op, raw, text);
    let want = match infer {
        Some(infer) => output_type(context, op, raw, text, infer, body),
        // Mistakes of inference were reported.
        None => Some(Kind::Element),
    };
    let expr = expressions.check(context, text, Mode::Pointwise, &Ty::new(want?))?;
    arguments?;
    let infer = infer?;
    let mut fine = reads_elements(context, op, text, infer, &expr);
    fine &= defined_for_dtypes(context, expressions, text, body, &expr);
    fine.then_some(expr)
}

/// Every argument is a required tensor or an attribute.
fn check_arguments(context: &mut Context<'_>, op: &Op, raw: &RawOp, text: &Text) -> Option<()> {
    let mut fine = Some(());
    for arg in op.args.iter().filter(|arg| arg.ty.holds_tensors() && !arg.ty.is_tensor()) {
        let place = names::argument_place(context, raw, &arg.name).unwrap_or(op.span);
        context.push(catalogue::pointwise_argument(text.span(), place, &arg.name, &arg.ty.to_string()));
        fine = None;
    }
    fine
}

/// The type of the expression, from the dtype of the output.
fn output_type(
    context: &mut Context<'_>,
    op: &Op,
    raw: &RawOp,
    text: &Text,
    infer: &Infer,
    body: &Body,
) -> Option<Kind> {
    match infer::output_element(&infer.dtypes[0], &infer.compute) {
        Some(Element::Fixed { kernel: DType::Bool, .. }) => Some(Kind::Bool),
        Some(Element::Real) => Some(Kind::RealElement),
        // A kernel computes in one dtype; of several, at most one is the output's.
        Some(Element::Fixed { kernel: dtype, accepted: only })
            if body.dtypes.iter().any(|set| *set != only) =>
        {
            let place = raw.get(KeyName::Dtype).map_or(text.span(), |node| node.span);
            context.push(catalogue::pointwise_output(place, dtype.name()));
            None
        }
        Some(_) => Some(Kind::Element),
        None => {
            let place = raw.get(KeyName::Dtype).map_or(text.span(), |node| node.span);
            context.push(catalogue::output_element_unknown(place, &op.name, 0));
            None
        }
    }
}

/// Whether the loop has an element of every tensor that it reads: the number of tensors is within the limit, each
/// broadcasts to the output's shape, and has the element type of the loop.
fn reads_elements(context: &mut Context<'_>, op: &Op, text: &Text, infer: &Infer, expr: &Expr) -> bool {
    let read = op.read_tensors(expr);
    if read.len() > MAX_POINTWISE_TENSORS {
        context.push(catalogue::pointwise_too_many(text.span(), read.len(), MAX_POINTWISE_TENSORS));
        return false;
    }
    let in_shape = |index: usize| match &infer.shapes[0].kind {
        ExprKind::Rule(Rule::Shape(ShapeRule::Broadcast | ShapeRule::Follow), operands) => operands
            .iter()
            .any(|operand| matches!(operand.kind, ExprKind::Variable(Variable::Arg(arg)) if arg == index)),
        _ => false,
    };
    if let Some(&outside) = read.iter().find(|&&index| !in_shape(index)) {
        let names: Vec<&str> = read.iter().map(|&index| op.args[index].name.as_str()).collect();
        context.push(catalogue::pointwise_shape(text.span(), &op.args[outside].name, &op.name, &names));
        return false;
    }
    // A plain copy works for every dtype.
    let is_copy = matches!(expr.kind, ExprKind::Variable(_));
    for &index in &read {
        let what = match op.args[index].element {
            Element::Any if is_copy => continue,
            Element::Any => "of any dtype",
            Element::Fixed { kernel, .. } if kernel != DType::Bool => "of a dtype of its own",
            _ => continue,
        };
        context.push(catalogue::pointwise_element(text.span(), &op.args[index].name, what));
        return false;
    }
    true
}

/// Whether every scalar function and symbol is defined for every dtype of the kernels.
fn defined_for_dtypes(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    text: &Text,
    body: &Body,
    expr: &Expr,
) -> bool {
    let op = expressions.op;
    let used = body.dtypes.iter().fold(DTypeSet::EMPTY, |union, set| union.union(*set));
    let mut problems = Vec::new();
    expr.walk(&mut |part| {
        let (what, used, defined, declared) = match &part.kind {
            ExprKind::Function(id, args) => {
                let function = &expressions.table.functions()[id.0];
                let on_masks = !args.is_empty() && args.iter().all(|arg| arg.ty.kind == Kind::Bool);
                // On masks it is called for `bool` only; on real parts, for real numbers only.
                let on_reals = !args.is_empty() && args.iter().all(|arg| arg.ty.kind == Kind::RealElement);
                let used = match (on_masks, on_reals) {
                    (true, _) => DTypeSet::of(DType::Bool),
                    (_, true) => used
                        .iter()
                        .fold(DTypeSet::EMPTY, |reals, dtype| reals.union(DTypeSet::of(dtype.to_real()))),
                    _ => used,
                };
                (function.name.as_str(), used, function.dtypes, Some(function.span))
            }
            ExprKind::Binary(symbol, a, _) if a.ty.kind == Kind::Element => {
                (symbol.spelling(), used, defined_for(*symbol), None)
            }
            ExprKind::Unary(Operation::Not, operand) if operand.ty.kind == Kind::Element => {
                (Operation::Not.spelling(), used, defined_for(Operation::BitAnd), None)
            }
            _ => return,
        };
        let missing: Vec<&str> =
            used.iter().filter(|dtype| !defined.contains(*dtype)).map(DType::name).collect();
        if !missing.is_empty() {
            let place = text.span_within(part.range.clone(), context.sources);
            problems.push(catalogue::not_for_every_dtype(place, what, &op.name, &missing, declared));
        }
    });
    let fine = problems.is_empty();
    problems.into_iter().for_each(|problem| context.push(problem));
    fine
}

/// The dtypes whose elements a symbol is defined for.
fn defined_for(symbol: Operation) -> DTypeSet {
    match symbol {
        Operation::BitAnd | Operation::BitOr | Operation::BitXor | Operation::Not => DTypeSet::INTEGRAL,
        Operation::Lt | Operation::Le | Operation::Gt | Operation::Ge => DTypeSet::REAL,
        _ => DTypeSet::ALL,
    }
}
