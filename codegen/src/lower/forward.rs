//! `forward`: the rule of an operator in forward mode.
//!
//! In: the key, and the operator's derivatives. Out: a rule for each operator that has derivatives. Without the key, a
//! simple rule is derived if one is valid; otherwise the rule is the transpose of the backward formulas, which is
//! always valid.

use super::Context;
use super::derivatives::Derivatives;
use super::infer::Expressions;
use crate::diagnostics::catalogue;
use crate::expr::check::Mode;
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Forward, ForwardFormula, GradientSource, Kind, Op, Ty};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};
use crate::spec::yaml::{Key, Node};

const LINEAR: &str = "auto_linear";
const ELEMENT_WISE: &str = "auto_element_wise";

pub(super) fn lower(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
    derivatives: &Derivatives,
) -> Forward {
    let Some(entry) = raw.entry(KeyName::Forward) else { return Forward::None };
    let op = expressions.op;
    if derivatives.formulas.is_empty() {
        if raw.complete && raw.get(KeyName::Derivatives).is_none() {
            context.push(catalogue::forward_without_derivatives(entry.key.span, &op.name));
        }
        return Forward::None;
    }
    let node = &entry.value;
    match (node.as_text().map(str::trim), node.as_map()) {
        (Some(LINEAR), _) => Forward::Linear,
        (Some(ELEMENT_WISE), _) => element_wise(context, op, node, derivatives),
        (_, Some(entries)) => formulas(context, expressions, entries),
        _ => {
            context.push(catalogue::forward_malformed(node.span, node.as_text(), &[LINEAR, ELEMENT_WISE]));
            Forward::None
        }
    }
}

/// `auto_element_wise`: each formula gives the derivative of an element with respect to the element of one argument.
fn element_wise(context: &mut Context<'_>, op: &Op, node: &Node, derivatives: &Derivatives) -> Forward {
    let why = if op.outputs.len() != 1 || !op.outputs[0].ty.is_tensor() {
        "it does not return one tensor"
    } else if derivatives.formulas.iter().any(|formula| formula.arguments.len() != 1) {
        "a formula gives several gradients"
    } else if op.args.iter().any(|arg| arg.ty.holds_tensors() && arg.ty.kind != Kind::Tensor) {
        "it takes a list of tensors"
    } else {
        return Forward::ElementWise { declared: true };
    };
    context.push(catalogue::element_wise_impossible(node.span, &op.name, why));
    Forward::None
}

fn formulas(context: &mut Context<'_>, expressions: &Expressions<'_>, entries: &[(Key, Node)]) -> Forward {
    let op = expressions.op;
    let mut found: Vec<ForwardFormula> = Vec::new();
    for (key, value) in entries {
        let names: Vec<String> = (0..op.outputs.len()).map(|index| op.result_name(index)).collect();
        let Some(output) = names.iter().position(|name| *name == key.text) else {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            context.push(catalogue::tangent_unknown(key.span, &op.name, &key.text, &known));
            continue;
        };
        if !op.outputs[output].ty.is_tensor() || !op.outputs[output].differentiable {
            context.push(catalogue::tangent_impossible(key.span, &key.text));
            continue;
        }
        if value.as_text().is_none() {
            context.push(catalogue::formula_not_text(if value.is_null() { key.span } else { value.span }));
            continue;
        }
        let text = Text { node: value.clone() };
        let want = Ty::new(Kind::Tensor);
        let Some(formula) = expressions.check(context, &text, Mode::Forward, &want) else { continue };
        let terms = terms(formula, text.as_str());
        if let Some(constant) = terms.iter().find(|term| !reads_tangent(term)) {
            let place = text.span_within(constant.range.clone(), context.sources);
            context.push(catalogue::term_without_tangent(place));
            continue;
        }
        found.push(ForwardFormula { output, terms, text: text.as_str().to_owned() });
    }
    for (index, output) in op.outputs.iter().enumerate() {
        let wanted = output.differentiable && output.ty.holds_tensors();
        let given = entries.iter().any(|(key, _)| key.text == op.result_name(index));
        if wanted && !given {
            let place = entries.first().map_or(op.span, |(key, _)| key.span);
            context.push(catalogue::tangent_missing(place, &op.name, &op.result_name(index)));
        }
    }
    Forward::Formulas(found)
}

/// The terms of a sum, so that those without tangents can be skipped.
fn terms(formula: Expr, text: &str) -> Vec<Expr> {
    let is_sum = match &formula.kind {
        ExprKind::Op(_, args) if args.len() >= 2 => {
            let between = args[0].range.end..args[1].range.start;
            let symbol = text.get(between).unwrap_or_default();
            symbol.trim_matches(|c: char| c.is_whitespace() || c == '(' || c == ')') == "+"
        }
        _ => false,
    };
    let both = matches!(&formula.kind, ExprKind::Op(_, args)
        if args.len() >= 2 && reads_tangent(&args[0]) && reads_tangent(&args[1]));
    match formula.kind {
        ExprKind::Op(_, args) if is_sum && both => {
            args.into_iter().take(2).flat_map(|part| terms(part, text)).collect()
        }
        kind => vec![Expr { kind, ..formula }],
    }
}

fn reads_tangent(expr: &Expr) -> bool {
    let mut reads = false;
    expr.walk(&mut |part| {
        reads |= matches!(
            part.kind,
            ExprKind::Variable(Variable::Tangent(_)) | ExprKind::NotImplemented(_) | ExprKind::Opaque(_)
        );
    });
    reads
}

/// Derives a rule for every operator without the key.
pub(super) fn choose(ops: &mut [Op]) {
    let chosen: Vec<Option<Forward>> = ops.iter().map(|op| found_out(op, ops)).collect();
    for (op, forward) in ops.iter_mut().zip(chosen) {
        if let Some(forward) = forward {
            op.forward = forward;
        }
    }
}

fn found_out(op: &Op, ops: &[Op]) -> Option<Forward> {
    if !matches!(op.forward, Forward::None) {
        return None;
    }
    if op.body.view.is_some() && !op.refuses_gradients() {
        return Some(Forward::View);
    }
    Some(match op.gradient_source() {
        GradientSource::None => Forward::None,
        GradientSource::Composition => Forward::Composition,
        GradientSource::View => Forward::View,
        GradientSource::Written | GradientSource::Derived if is_element_wise(op, ops) => {
            Forward::ElementWise { declared: false }
        }
        GradientSource::Written | GradientSource::Derived => Forward::Transposed,
    })
}

/// Whether the gradient of each element depends on that of the same element alone: the operator is a pointwise
/// expression, and so is every operator that its formulas call.
fn is_element_wise(op: &Op, ops: &[Op]) -> bool {
    op.body.pointwise.is_some()
        && op.args.iter().all(|arg| arg.ty.is_tensor() || !arg.ty.holds_tensors())
        && op.derivatives.iter().all(|derivative| {
            let mut fits = derivative.arguments.len() == 1;
            derivative.formula.walk(&mut |part| match &part.kind {
                ExprKind::Op(id, _) => fits &= ops[id.0].body.pointwise.is_some(),
                ExprKind::NotImplemented(_) | ExprKind::None => fits = false,
                _ => {}
            });
            fits
        })
}
