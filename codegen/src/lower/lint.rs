//! What is allowed and probably not meant. Runs only if nothing is wrong.

use opsmith_core::{Backend, DTypeSet};

use super::{Context, body, names, roles};
use crate::diagnostics::catalogue;
use crate::expr::{Expr, ExprKind, Variable};
use crate::model::{Arg, Kind, Op};
use crate::spec::document::RawOp;

pub(super) fn warn(context: &mut Context<'_>, ops: &[Op], raws: &[&RawOp]) {
    for (op, raw) in ops.iter().zip(raws).filter(|(op, _)| !op.external && op.alias_of.is_none()) {
        if op.doc.is_empty() {
            context.push(catalogue::doc_missing(op.span, &op.name));
        }
        unused_arguments(context, op, raw);
        keys_without_effect(context, op, raw);
    }
    if let Some((place, missing)) = roles::missing(ops, raws) {
        context.push(catalogue::roles_incomplete(place, &missing));
    }
}

/// Arguments that no expression looks at. Hand-written code gets all of them.
fn unused_arguments(context: &mut Context<'_>, op: &Op, raw: &RawOp) {
    let by_hand = op.body.view.is_some() || op.body.host.is_some() || !op.body.kernels.is_empty();
    if by_hand {
        return;
    }
    let mut used = vec![false; op.args.len()];
    let mut look = |expr: &Expr| {
        expr.walk(&mut |part| {
            if let ExprKind::Variable(Variable::Arg(index)) = part.kind {
                used[index] = true;
            }
        });
    };
    expressions(op).for_each(&mut look);
    // Only one layout exists, devices are looked at where memory is allocated, and a memory format is
    // a wish.
    let counts = |arg: &Arg| !matches!(arg.ty.kind, Kind::Device | Kind::MemoryLayout | Kind::MemoryFormat);
    let ignored = raw.texts("ignored");
    for (arg, used) in op.args.iter().zip(used) {
        match ignored.iter().find(|name| name.as_str() == arg.name) {
            Some(name) if used => context.push(catalogue::ignored_used(name.span(), &arg.name)),
            None if !used && counts(arg) => {
                let place = names::argument_place(context, raw, &arg.name).unwrap_or(op.span);
                context.push(catalogue::argument_unused(place, &arg.name));
            }
            _ => {}
        }
    }
}

/// Every expression that runs when the operator is called.
fn expressions(op: &Op) -> impl Iterator<Item = &Expr> {
    let checks = op.checks.iter().map(|check| &check.condition);
    let rules =
        op.infer.iter().flat_map(|infer| infer.shapes.iter().chain(&infer.dtypes).chain([&infer.compute]));
    checks.chain(rules).chain(&op.body.pointwise).chain(&op.body.composite)
}

/// Keys that something else in the entry makes meaningless.
fn keys_without_effect(context: &mut Context<'_>, op: &Op, raw: &RawOp) {
    let body = &op.body;
    let mut unused: Vec<(&str, &str)> = Vec::new();
    let kernels = !body.kernels.is_empty() || body.pointwise.is_some();
    if body.view.is_some() {
        unused.extend(["shape", "dtype", "compute"].map(|key| (key, "the layout function says it")));
    }
    if !kernels {
        let why = "there is no kernel to choose";
        unused.extend([("dtypes", why), ("compute", why), ("contiguous", why)]);
    }
    if body.kernels.is_empty() && kernels {
        unused.push(("contiguous", "a loop made from an expression walks any strides"));
    }
    for (key, why) in unused {
        if let Some(entry) = raw.entry(key) {
            context.push(catalogue::key_unused(entry.key.span, key, why));
        }
    }
    for kernel in &body.kernels {
        if body.dtypes[kernel.backend.index()] == DTypeSet::EMPTY
            && let Some(place) = body::key_in(raw, "dispatch", kernel.backend.key())
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
            && let Some(place) = body::key_in(raw, "dtypes", backend.key())
        {
            context.push(catalogue::key_unused(place, backend.key(), "there is no kernel for this backend"));
        }
    }
}
