//! Declarations about results: hidden ones, and pairs of results and arguments of an in-place form.
//!
//! In: an entry, its signature and its results. Out: the results marked, and the pairs.

use super::Context;
use crate::analysis::reads::first_read;
use crate::diagnostics::{Span, catalogue};
use crate::expr::check::Mode;
use crate::lower::infer::Expressions;
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Arg, Derivative, Kind, Op, Output, Ty};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};
use crate::spec::schema::Schema;

/// `intermediate: [mean, scale]`: results for gradients, hidden from users.
pub(super) fn hide(context: &mut Context<'_>, raw: &RawOp, schema: &Schema, outputs: &mut [Output]) {
    let texts = raw.texts(KeyName::Intermediate);
    let Some(first) = texts.first() else { return };
    for text in &texts {
        match position(context, schema, outputs, text) {
            Some(index) => {
                outputs[index].hidden = true;
                // Users give it no gradient, but the derivative of a formula that reads it may.
                outputs[index].differentiable &= raw.get(KeyName::OutputDifferentiability).is_some();
            }
            None => continue,
        }
    }
    if outputs.iter().all(|output| output.hidden) {
        context.push(catalogue::intermediate_all(first.span(), &schema.name.to_string()));
    } else if let Some(index) = outputs.iter().rposition(|output| !output.hidden)
        && outputs[..index].iter().any(|output| output.hidden)
    {
        let place = raw.func.span_within(schema.returns[index].range.clone(), context.sources);
        context.push(catalogue::intermediate_order(first.span(), place));
    }
}

/// `inplace: {running_mean: mean_out, running_var: var_out}`: the argument and the result written into it.
pub(super) fn pairs(
    context: &mut Context<'_>,
    raw: &RawOp,
    schema: &Schema,
    args: &[Arg],
    outputs: &[Output],
) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut seen: Vec<(usize, Span)> = Vec::new();
    for (key, text) in raw.text_map(KeyName::Inplace) {
        let argument = args
            .iter()
            .position(|arg| arg.name == key.text && matches!(arg.ty.kind, Kind::Tensor | Kind::Tensors));
        if argument.is_none() {
            context.push(super::args::unknown_argument(&key.text, key.span, schema));
        }
        let Some(output) = position(context, schema, outputs, &text) else { continue };
        if let Some((_, first)) = seen.iter().find(|(known, _)| *known == output) {
            context.push(catalogue::inplace_twice(text.span(), text.as_str(), *first));
            continue;
        }
        seen.push((output, text.span()));
        let result = &outputs[output];
        if result.hidden || !(result.ty.is_tensor() || result.ty.kind == Kind::Tensors) {
            let why = if result.hidden { "hidden from users" } else { "not a single tensor, nor a list" };
            context.push(catalogue::inplace_result(text.span(), text.as_str(), why));
            continue;
        }
        let Some(argument) = argument else { continue };
        match (&args[argument].ty.kind, &result.ty.kind) {
            (Kind::Tensors, Kind::Tensors) | (Kind::Tensor, Kind::Tensor) => pairs.push((argument, output)),
            (_, Kind::Tensors) => {
                context.push(catalogue::inplace_result(
                    text.span(),
                    text.as_str(),
                    "a list; the argument is none",
                ));
            }
            _ => {
                context.push(catalogue::inplace_result(
                    text.span(),
                    text.as_str(),
                    "no list; the argument is one",
                ));
            }
        }
    }
    if let Some(entry) = raw.entry(KeyName::Inplace)
        && !raw.texts(KeyName::Variants).iter().any(|text| text.as_str().contains("inplace"))
    {
        context.push(catalogue::inplace_not_asked_for(entry.key.span));
    }
    pairs
}

/// The result with a name, or at a position if results have no names.
fn position(context: &mut Context<'_>, schema: &Schema, outputs: &[Output], text: &Text) -> Option<usize> {
    let by_name = outputs.iter().position(|output| output.name.as_deref() == Some(text.as_str()));
    let by_position = || text.as_str().parse().ok().filter(|index| *index < outputs.len());
    let found = by_name.or_else(by_position);
    if found.is_none() {
        let known: Vec<&str> = outputs.iter().filter_map(|output| output.name.as_deref()).collect();
        let op = schema.name.to_string();
        context.push(catalogue::result_unknown(text.span(), &op, text.as_str(), &known, outputs.len()));
    }
    found
}

/// `no_buffer: [x]`: arguments whose elements no formula may read.
pub(super) fn check_unread(context: &mut Context<'_>, op: &Op, raw: &RawOp, formulas: &[Derivative]) {
    for text in raw.texts(KeyName::NoBuffer) {
        let found = op.arg_index(text.as_str()).filter(|&index| op.args[index].ty.holds_tensors());
        let Some(index) = found else {
            let tensors: Vec<&str> =
                op.args.iter().filter(|arg| arg.ty.holds_tensors()).map(|arg| arg.name.as_str()).collect();
            let ty = op.arg_index(text.as_str()).map(|index| op.args[index].ty.to_string());
            let (place, name) = (text.span(), text.as_str());
            context.push(catalogue::tensor_argument_unknown(place, &op.name, name, ty, &tensors));
            continue;
        };
        let written = raw.text_map(KeyName::Derivatives);
        for formula in formulas {
            let Some(range) = first_read(&formula.formula, index) else { continue };
            let place = written
                .iter()
                .find(|(_, known)| known.as_str() == formula.text)
                .map_or(text.span(), |(_, known)| known.span_within(range, context.sources));
            context.push(catalogue::buffer_read(place, text.as_str(), text.span(), &formula.text));
        }
    }
}

/// `present: {mask: train}`: the condition for the presence of each `Tensor?` result.
pub(super) fn present(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
) -> Vec<Option<Expr>> {
    let op = expressions.op;
    let mut found: Vec<Option<Expr>> = vec![None; op.outputs.len()];
    let mut said = vec![false; op.outputs.len()];
    for (key, text) in raw.text_map(KeyName::Present) {
        let Some(index) = op.outputs.iter().position(|output| output.name.as_deref() == Some(&*key.text))
        else {
            let known: Vec<&str> = op.outputs.iter().filter_map(|output| output.name.as_deref()).collect();
            let count = op.outputs.len();
            context.push(catalogue::result_unknown(key.span, &op.name, &key.text, &known, count));
            continue;
        };
        if !op.outputs[index].ty.optional {
            context.push(catalogue::present_always(key.span, &key.text));
            continue;
        }
        said[index] = true;
        found[index] = expressions.check(context, &text, Mode::Check, &Ty::new(Kind::Bool));
    }
    for (output, _) in op.outputs.iter().zip(said).filter(|(output, said)| output.ty.optional && !said) {
        if let Some(entry) = raw.entry(KeyName::Present) {
            let name = output.name.as_deref().unwrap_or("a result without a name");
            context.push(catalogue::present_missing(entry.key.span, name));
        }
    }
    found
}

/// Reports formulas that read results which may be absent.
pub(super) fn refuse_absent(context: &mut Context<'_>, op: &Op, raw: &RawOp, formulas: &[Derivative]) {
    let written = raw.text_map(KeyName::Derivatives);
    for formula in formulas {
        formula.formula.walk(&mut |part| {
            let ExprKind::Variable(Variable::Result(index)) = part.kind else { return };
            if op.outputs[index].ty.optional {
                let text = written.iter().find(|(_, known)| known.as_str() == formula.text);
                let place =
                    text.map_or(op.span, |(_, text)| text.span_within(part.range.clone(), context.sources));
                context.push(catalogue::present_read(
                    place,
                    op.outputs[index].name.as_deref().unwrap_or_default(),
                ));
            }
        });
    }
}
