//! Warnings: valid declarations that are probably unintended, in entries without mistakes.

use opsmith_core::{Backend, DTypeSet};

use super::{Context, body, names, roles};
use crate::analysis::gradients::unfollowed_results;
use crate::diagnostics::{Span, catalogue};
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Arg, Kernel, KernelSource, Kind, Op};
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;

/// Warns of entries without mistakes: `whole` marks those that were read completely. A key dropped for a mistake could
/// be the one that a warning is about.
pub(super) fn warn(context: &mut Context<'_>, ops: &[Op], raws: &[&RawOp], whole: &[bool]) {
    let wrong: Vec<Span> = context.diagnostics.errors().map(|error| error.primary.span).collect();
    let entry_is_wrong = |op: &Op| {
        let range = op.entry.range();
        wrong.iter().any(|span| span.source == op.entry.source && range.contains(&span.range().start))
    };
    let own = |op: &Op| !op.is_external() && !op.is_supplied() && op.alias_of.is_none();
    for ((op, raw), whole) in ops.iter().zip(raws).zip(whole) {
        if !own(op) || !whole || entry_is_wrong(op) {
            continue;
        }
        if op.doc.is_empty() {
            context.push(catalogue::doc_missing(op.span, &op.name));
        }
        unused_arguments(context, op, raw);
        keys_without_effect(context, op, raw);
        missing_derivatives(context, op);
        reads_without_gradient(context, ops, op, raw);
    }
    if wrong.is_empty()
        && let Some((place, missing)) = roles::missing(ops, raws)
    {
        context.push(catalogue::roles_incomplete(place, &missing));
    }
}

/// Arguments that neither an expression nor a gradient reads and no hand-written function takes. An inference function may
/// read all.
fn unused_arguments(context: &mut Context<'_>, op: &Op, raw: &RawOp) {
    let infers = op.infer.as_ref().is_some_and(|infer| infer.function.is_some());
    let whole = |kernel: &Kernel| match &kernel.source {
        KernelSource::Rust { arguments, .. } => arguments.len() == op.args.len(),
        KernelSource::Foreign { .. } | KernelSource::Aot { .. } => true,
    };
    if infers || op.body.view.is_some() || op.body.host.is_some() || op.body.kernels.iter().any(whole) {
        return;
    }
    let mut used = read_arguments(op, expressions(op));
    for kernel in &op.body.kernels {
        if let KernelSource::Rust { arguments, .. } = &kernel.source {
            arguments.iter().for_each(|&index| used[index] = true);
        }
    }
    let by_formulas = read_arguments(op, op.derivatives.iter().map(|derivative| &derivative.formula));
    // Only one storage layout exists, devices are checked where memory is allocated, and a memory format is only a
    // preference.
    let counts = |arg: &Arg| !matches!(arg.ty.kind, Kind::Device | Kind::MemoryLayout | Kind::MemoryFormat);
    let ignored = raw.texts(KeyName::Ignored);
    for (index, arg) in op.args.iter().enumerate() {
        match ignored.iter().find(|name| name.as_str() == arg.name) {
            Some(name) if used[index] => context.push(catalogue::ignored_used(name.span(), &arg.name)),
            None if !used[index] && !by_formulas[index] && counts(arg) => {
                let place = names::argument_place(context, raw, &arg.name).unwrap_or(op.span);
                context.push(catalogue::argument_unused(place, &arg.name));
            }
            _ => {}
        }
    }
}

/// Which arguments some expressions read.
fn read_arguments<'a>(op: &Op, expressions: impl Iterator<Item = &'a Expr>) -> Vec<bool> {
    let mut read = vec![false; op.args.len()];
    let mut look = |part: &Expr| {
        if let ExprKind::Variable(Variable::Arg(index)) = part.kind {
            read[index] = true;
        }
    };
    expressions.for_each(|expression| expression.walk(&mut look));
    read
}

/// Every expression that is evaluated when the operator is called.
fn expressions(op: &Op) -> impl Iterator<Item = &Expr> {
    let checks = op.checks.iter().map(|check| &check.condition);
    let rules =
        op.infer.iter().flat_map(|infer| infer.shapes.iter().chain(&infer.dtypes).chain([&infer.compute]));
    checks.chain(rules).chain(&op.body.pointwise).chain(&op.body.composite)
}

/// Tensors without a declared gradient, and the error for a request of it.
fn missing_derivatives(context: &mut Context<'_>, op: &Op) {
    let mut refusals: Vec<(usize, String)> = Vec::new();
    for derivative in op.derivatives.iter().filter(|derivative| derivative.derived) {
        // Also if only complex numbers have none.
        let mut refusal = None;
        derivative.formula.walk(&mut |part| {
            if let ExprKind::NotImplemented(reason) = &part.kind {
                refusal.get_or_insert_with(|| reason.clone());
            }
        });
        refusals.extend(refusal.map(|reason| (derivative.arguments[0], reason)));
    }
    if let Some((_, reason)) = refusals.first() {
        let missing: Vec<&str> = refusals.iter().map(|(index, _)| op.args[*index].name.as_str()).collect();
        context.push(catalogue::derivative_missing(op.span, &op.name, &missing, reason));
    }
}

/// Formulas that read a result without a gradient: their derivatives would be wrong.
fn reads_without_gradient(context: &mut Context<'_>, ops: &[Op], op: &Op, raw: &RawOp) {
    let texts = raw.text_map(KeyName::Derivatives);
    for derivative in op.derivatives.iter().filter(|derivative| !derivative.derived) {
        let Some(output) = unfollowed_results(ops, op, &derivative.formula) else { continue };
        let place = texts.iter().find(|(_, text)| text.as_str() == derivative.text);
        let place = place.map_or(op.span, |(_, text)| text.span());
        context.push(catalogue::result_without_gradient_read(place, &op.name, &op.result_name(output)));
    }
}

/// Rules beside an inference function. Fixed dtypes are those that kernels write, and stay.
fn rules_beside_function(context: &mut Context<'_>, op: &Op, raw: &RawOp) {
    let Some(infer) = op.infer.as_ref().filter(|infer| infer.function.is_some()) else { return };
    let fixed = infer.dtypes.iter().any(|rule| matches!(rule.kind, ExprKind::DType(_)));
    for key in [KeyName::Shape, KeyName::Dtype, KeyName::RunSizes, KeyName::RunShape] {
        if let Some(entry) = raw.entry(key).filter(|_| key != KeyName::Dtype || !fixed) {
            context.push(catalogue::inference_function_wins(entry.key.span, key.name()));
        }
    }
}

/// Keys that other keys of the entry make ineffective.
fn keys_without_effect(context: &mut Context<'_>, op: &Op, raw: &RawOp) {
    rules_beside_function(context, op, raw);
    let body = &op.body;
    let mut unused: Vec<(KeyName, &str)> = Vec::new();
    let kernels = !body.kernels.is_empty() || body.pointwise.is_some();
    if body.view.is_some() {
        unused.extend(
            [KeyName::Shape, KeyName::Dtype, KeyName::Compute]
                .map(|key| (key, "the layout function says it")),
        );
    }
    if !kernels {
        let why = "there is no kernel to choose";
        unused.extend([(KeyName::Dtypes, why), (KeyName::Compute, why), (KeyName::Contiguous, why)]);
    }
    if body.kernels.is_empty() && kernels {
        unused.push((KeyName::Contiguous, "a loop made from an expression walks any strides"));
    }
    if body.pointwise.is_none() {
        unused.push((KeyName::Rounded, "only a loop made from an expression rounds numbers"));
    }
    for (key, why) in unused {
        if let Some(entry) = raw.entry(key) {
            context.push(catalogue::key_unused(entry.key.span, key.name(), why));
        }
    }
    for kernel in &body.kernels {
        if let Some(place) = body::key_in(raw, KeyName::Dispatch, kernel.backend.key())
            && !body.refers_to(kernel)
        {
            let key = kernel.backend.key();
            context.push(match &kernel.source {
                KernelSource::Foreign { file, symbol } => {
                    catalogue::device_file(place, key, &file.display().to_string(), symbol)
                }
                _ => catalogue::backend_not_built(place, key),
            });
        } else if body.dtypes[kernel.backend.index()] == DTypeSet::EMPTY
            && let Some(place) = body::key_in(raw, KeyName::Dispatch, kernel.backend.key())
        {
            context.push(catalogue::key_unused(
                place,
                kernel.backend.key(),
                "`dtypes` has none for this backend",
            ));
        }
    }
    for backend in Backend::ALL {
        let computed =
            body.pointwise.is_some() || body.kernels.iter().any(|kernel| kernel.backend == backend);
        if kernels
            && !computed
            && let Some(place) = body::key_in(raw, KeyName::Dtypes, backend.key())
        {
            context.push(catalogue::key_unused(place, backend.key(), "there is no kernel for this backend"));
        }
    }
}
