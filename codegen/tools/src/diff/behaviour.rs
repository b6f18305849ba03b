//! Changes of behaviour and implementation: forms, dtypes, gradients, kernels, documents.

use opsmith_core::{Backend, DType};

use super::operators::Pair;
use super::{Changes, inference};
use crate::export;
use opsmith_codegen::model::expr::{Expr, ExprKind};
use opsmith_codegen::model::{Derivative, Model, Op, Operator};

pub(super) fn compare(pair: Pair<'_>, changes: &mut Changes) {
    forms(pair, changes);
    dtypes(pair, changes);
    inference::compare(pair, changes);
    gradients(pair, changes);
    tangents(pair, changes);
    body(pair, changes);
    facts(pair, changes);
}

fn forms(Pair { old, new, .. }: Pair<'_>, changes: &mut Changes) {
    let kinds =
        [("in-place", &old.forms.inplace, &new.forms.inplace), ("out", &old.forms.out, &new.forms.out)];
    for (kind, before, now) in kinds {
        match (before, now) {
            (Some(_), None) => changes.push(
                "form-removed",
                &old.name,
                format!("there is no {kind} form any more"),
                Some("call the functional form and keep its result".to_owned()),
            ),
            (None, Some(_)) => {
                changes.push("form-added", &old.name, format!("there is an {kind} form"), None)
            }
            (Some(before), Some(now)) if before != now && old.name == new.name => changes.push(
                "form-renamed",
                &old.name,
                format!("the {kind} form `{before}` is called `{now}` now"),
                Some(format!("call(\"{now}\", …)")),
            ),
            _ => {}
        }
    }
    if old.forms.pairs != new.forms.pairs && old.forms.inplace.is_some() && new.forms.inplace.is_some() {
        let migration = Some("look after what the call leaves in its arguments".to_owned());
        changes.push(
            "form-writes",
            &old.name,
            "the in-place form writes other arguments".to_owned(),
            migration,
        );
    }
    method(old, new, changes);
    operators(old, new, changes);
}

/// The receiver argument, and the function's name.
fn method(old: &Op, new: &Op, changes: &mut Changes) {
    let receiver = |op: &Op| op.receiver.map(|index| op.args[index].name.clone());
    match (receiver(old), receiver(new)) {
        (Some(_), None) => {
            let migration = format!("call the function `{}`", new.rust_name);
            changes.push("method-removed", &old.name, "it is no method any more".to_owned(), Some(migration));
        }
        (None, Some(_)) => changes.push("method-added", &old.name, "it is a method too".to_owned(), None),
        (Some(was), Some(name)) if was != name && old.receiver != new.receiver => {
            let what = format!("it is a method of `{name}` now");
            let migration = format!("call it on `{name}`, or call the function `{}`", new.rust_name);
            changes.push("method-moved", &old.name, what, Some(migration));
        }
        _ => {}
    }
    if old.rust_name != new.rust_name && old.name == new.name {
        let what = format!("the Rust function `{}` is called `{}` now", old.rust_name, new.rust_name);
        changes.push("rust-name-changed", &old.name, what, Some(format!("write `{}`", new.rust_name)));
    }
}

/// The Rust operators that call it.
fn operators(old: &Op, new: &Op, changes: &mut Changes) {
    let shown = |operator: &Operator| {
        format!("{}`{}`", if operator.reversed { "reversed " } else { "" }, operator.symbol.spelling())
    };
    for operator in old.operators.iter().filter(|operator| !new.operators.contains(operator)) {
        let migration = format!("call `{}`", new.rust_name);
        let what = format!("the Rust operator {} does not call it any more", shown(operator));
        changes.push("symbol-removed", &old.name, what, Some(migration));
    }
    for operator in new.operators.iter().filter(|operator| !old.operators.contains(operator)) {
        changes.push(
            "symbol-added",
            &old.name,
            format!("the Rust operator {} calls it", shown(operator)),
            None,
        );
    }
}

fn dtypes(Pair { old, new, .. }: Pair<'_>, changes: &mut Changes) {
    // A composition accepts the dtypes of the operators it calls.
    let composes = |op: &Op| op.body.composite.is_some() || op.body.view.is_some();
    for backend in Backend::ALL {
        let (before, now) = (supported(old, backend), supported(new, backend));
        let names =
            |dtypes: Vec<DType>| dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
        let lost: Vec<DType> = before.iter().copied().filter(|dtype| !now.contains(dtype)).collect();
        let gained: Vec<DType> = now.iter().copied().filter(|dtype| !before.contains(dtype)).collect();
        if !lost.is_empty() && !composes(new) {
            let what = format!("{} does not compute in {} any more", backend.key(), names(lost));
            changes.push("dtypes-narrowed", &old.name, what, Some("convert the operands first".to_owned()));
        }
        if !gained.is_empty() && !composes(old) {
            changes.push(
                "dtypes-widened",
                &old.name,
                format!("{} computes in {} too", backend.key(), names(gained)),
                None,
            );
        }
    }
}

/// The dtypes with kernels on a backend.
fn supported(op: &Op, backend: Backend) -> Vec<DType> {
    op.body.dtypes_of_row(backend).iter().collect()
}

/// Whether two expressions of two specs are equivalent.
pub(super) fn same(a: Option<&Expr>, b: Option<&Expr>, pair: Pair<'_>) -> bool {
    let text = |expr: &Expr, op: &Op, model: &Model| export::expression(expr, op, model);
    a.map(|expr| text(expr, pair.old, pair.old_model)) == b.map(|expr| text(expr, pair.new, pair.new_model))
}

fn gradients(pair: Pair<'_>, changes: &mut Changes) {
    let Pair { old, new, .. } = pair;
    let find = |op: &'_ Op, name: &str| -> Option<Derivative> {
        let index = op.arg_index(name)?;
        op.derivatives.iter().find(|derivative| derivative.arguments.contains(&index)).cloned()
    };
    let works = |derivative: &Option<Derivative>| {
        derivative
            .as_ref()
            .is_some_and(|derivative| !matches!(derivative.formula.kind, ExprKind::NotImplemented(_)))
    };
    let mut names: Vec<&str> = old.args.iter().map(|arg| arg.name.as_str()).collect();
    names.extend(new.args.iter().map(|arg| arg.name.as_str()).filter(|name| old.arg_index(name).is_none()));
    for name in names {
        let (before, now) = (find(old, name), find(new, name));
        match (works(&before), works(&now)) {
            (true, false) if new.body.composite.is_some() => {
                changes.push(
                    "derivative-changed",
                    &old.name,
                    format!("the gradient of `{name}` is that of the composition"),
                    None,
                );
            }
            (true, false) => changes.push(
                "derivative-removed",
                &old.name,
                format!("`{name}` has no gradient any more"),
                Some("write a custom function with its gradient".to_owned()),
            ),
            (false, true) => {
                changes.push("derivative-added", &old.name, format!("`{name}` has a gradient"), None);
            }
            (true, true) => {
                let formula = |derivative: &'_ Option<Derivative>| {
                    derivative.as_ref().map(|derivative| derivative.formula.clone())
                };
                if !same(formula(&before).as_ref(), formula(&now).as_ref(), pair) {
                    let what = format!("the gradient of `{name}` has another formula");
                    changes.push("derivative-changed", &old.name, what, None);
                }
            }
            (false, false) => {}
        }
    }
}

/// Tangents: whether they exist, and details visible to tests only.
fn tangents(Pair { old, new, .. }: Pair<'_>, changes: &mut Changes) {
    let (before, now) = (old.forward.word(), new.forward.word());
    match (before.is_empty(), now.is_empty()) {
        (false, true) => changes.push(
            "forward-removed",
            &old.name,
            "tangents do not flow through it any more".to_owned(),
            Some("use gradients, which go backward".to_owned()),
        ),
        (true, false) => {
            changes.push("forward-added", &old.name, "tangents flow through it".to_owned(), None)
        }
        _ if before != now => {
            changes.push(
                "implementation",
                &old.name,
                format!("tangents came by {before} and come by {now} now"),
                None,
            );
        }
        _ => {}
    }
    let texts = |op: &Op| -> Vec<String> { op.samples.iter().map(|sample| sample.text.clone()).collect() };
    if texts(old) != texts(new) || old.tolerances != new.tolerances {
        changes.push(
            "implementation",
            &old.name,
            "its tests have other samples or tolerances".to_owned(),
            None,
        );
    }
}

fn body(pair: Pair<'_>, changes: &mut Changes) {
    let Pair { old, new, .. } = pair;
    let (before, now) = (&old.body, &new.body);
    if before.view.is_some() != now.view.is_some() {
        let migration = if now.view.is_some() {
            "copy the result if you write into it"
        } else {
            "do not expect writes to reach the input"
        };
        changes.push(
            "view-changed",
            &old.name,
            "whether the result is a view is different".to_owned(),
            Some(migration.to_owned()),
        );
    } else if before.view != now.view || before.host != now.host {
        changes.push("kernel-changed", &old.name, "another function computes it".to_owned(), None);
    }
    let kernels = |op: &Op| -> Vec<(Backend, String)> {
        op.body.kernels.iter().map(|kernel| (kernel.backend, kernel.text.clone())).collect()
    };
    if kernels(old) != kernels(new) {
        changes.push("kernel-changed", &old.name, "it has other kernels".to_owned(), None);
    }
    if !same(before.pointwise.as_ref(), now.pointwise.as_ref(), pair) {
        changes.push("expression-changed", &old.name, "`pointwise` is different".to_owned(), None);
    }
    if !same(before.composite.as_ref(), now.composite.as_ref(), pair) {
        changes.push("expression-changed", &old.name, "`decompose` is different".to_owned(), None);
    }
    if !same(old.flops.as_ref(), new.flops.as_ref(), pair) {
        let what = "its arithmetic operations are counted otherwise".to_owned();
        changes.push("operations-changed", &old.name, what, None);
    }
}

fn facts(Pair { old, new, old_model, new_model }: Pair<'_>, changes: &mut Changes) {
    let mut push =
        |rule, what: String, migration: Option<String>| changes.push(rule, &old.name, what, migration);
    match (&old.facts.deprecated, &new.facts.deprecated) {
        (None, Some(deprecated)) => {
            let instead = deprecated.instead.as_ref().map(|(name, _)| format!("call `{name}`"));
            push("deprecated", "it is deprecated".to_owned(), instead);
        }
        (Some(_), None) => push("not-deprecated", "it is not deprecated any more".to_owned(), None),
        _ => {}
    }
    match (old.facts.deterministic, new.facts.deterministic) {
        (true, false) => push("determinism-lost", "equal inputs may give other bits".to_owned(), None),
        (false, true) => push("determinism-gained", "equal inputs give equal bits".to_owned(), None),
        _ => {}
    }
    let target =
        |op: &Op, model: &Model| op.alias_of.and_then(|id| model.ops.get(id.0)).map(|op| op.name.clone());
    if target(old, old_model) != target(new, new_model) {
        push("alias-changed", "it stands for another operator".to_owned(), None);
    }
    for name in old.facts.known_as.iter().filter(|name| !new.facts.known_as.contains(name)) {
        let migration = Some(format!("write `{}`", new.base));
        push("known-name-removed", format!("it is not found as `{name}` any more"), migration);
    }
    for name in new.facts.known_as.iter().filter(|name| !old.facts.known_as.contains(name)) {
        push("known-name-added", format!("it is found as `{name}` too"), None);
    }
    let described = |op: &Op| {
        let args = op.args.iter().map(|arg| arg.doc.clone());
        args.chain(op.outputs.iter().map(|output| output.doc.clone())).collect::<Vec<_>>()
    };
    if old.doc != new.doc
        || old.facts.since != new.facts.since
        || old.facts.tags != new.facts.tags
        || old.facts.notation != new.facts.notation
        || old.facts.formula != new.facts.formula
        || described(old) != described(new)
    {
        push("documentation", "its documentation is different".to_owned(), None);
    }
    if old.role != new.role
        || old.supplied != new.supplied
        || old.origin != new.origin
        || old.facts.backward_only != new.facts.backward_only
        || old.facts.updates != new.facts.updates
        || old.facts.lines != new.facts.lines
    {
        push("implementation", "what the runtime or tools know of it is different".to_owned(), None);
    }
}
