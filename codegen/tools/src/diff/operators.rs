//! Operators that were added, removed or renamed; the others are compared one by one.

use std::collections::HashMap;

use serde_json::Value;

use super::{Changes, arguments, behaviour};
use crate::export;
use opsmith_codegen::model::{Function, Model, Op};

/// Compares all operators and scalar functions of two specs.
pub(super) fn compare(old: &Model, new: &Model, changes: &mut Changes) {
    let own =
        |model: &'_ Model| -> Vec<Op> { model.ops.iter().filter(|op| !op.is_external()).cloned().collect() };
    let (before, after) = (own(old), own(new));
    let by_name: HashMap<&str, &Op> = after.iter().map(|op| (op.name.as_str(), op)).collect();
    let known: HashMap<&str, &Op> = before.iter().map(|op| (op.name.as_str(), op)).collect();
    let mut added: Vec<&Op> = after.iter().filter(|op| !known.contains_key(op.name.as_str())).collect();
    for op in &before {
        if let Some(now) = by_name.get(op.name.as_str()) {
            pair(Pair { old: op, old_model: old, new: now, new_model: new }, changes);
            continue;
        }
        let renamed = added.iter().position(|candidate| is_renamed(op, old, candidate, new));
        match renamed.map(|index| added.remove(index)) {
            Some(now) => {
                changes.push(
                    "operator-renamed",
                    &op.name,
                    format!("is called `{}` now", now.name),
                    Some(format!(
                        "write `{}` for `{}`, and call(\"{}\", …) by name",
                        now.rust_name, op.rust_name, now.name
                    )),
                );
                pair(Pair { old: op, old_model: old, new: now, new_model: new }, changes);
            }
            None => {
                let instead = op.facts.deprecated.as_ref().and_then(|deprecated| deprecated.instead.as_ref());
                let migration = match instead {
                    Some((name, _)) => format!("call `{name}`, as its deprecation said"),
                    None => "nothing takes its place; keep the version, or compute it from other operators"
                        .to_owned(),
                };
                changes.push(
                    "operator-removed",
                    &op.name,
                    format!("`{}` is gone", op.signature),
                    Some(migration),
                );
            }
        }
    }
    for op in added {
        changes.push("operator-added", &op.name, format!("`{}` is new", op.signature), None);
    }
    functions(old, new, changes);
    foreign_names(old, new, changes);
}

/// The tables of names in other libraries.
fn foreign_names(old: &Model, new: &Model, changes: &mut Changes) {
    let (old, new) = (&old.foreign_names, &new.foreign_names);
    let tables = [
        (&old.namespaces, &new.namespaces, ["namespace-removed", "namespace-added"]),
        (&old.unlike, &new.unlike, ["unlike-removed", "unlike-added"]),
    ];
    for (before, after, [removed, added]) in tables {
        let own = |rows: &'_ [(String, String, bool)]| -> Vec<(String, String)> {
            let own = rows.iter().filter(|(.., external)| !external);
            own.map(|(name, meant, _)| (name.clone(), meant.clone())).collect()
        };
        let (before, after) = (own(before), own(after));
        for (name, meant) in before.iter().filter(|row| !after.contains(row)) {
            changes.push(removed, name, format!("`{name}: {meant:?}` is gone"), None);
        }
        for (name, meant) in after.iter().filter(|row| !before.contains(row)) {
            changes.push(added, name, format!("`{name}: {meant:?}` is new"), None);
        }
    }
}

/// An operator before and after.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub old: &'a Op,
    pub old_model: &'a Model,
    pub new: &'a Op,
    pub new_model: &'a Model,
}

fn pair(pair: Pair<'_>, changes: &mut Changes) {
    arguments::compare(pair, changes);
    let aligned = arguments::aligned(pair.old, pair.new);
    behaviour::compare(Pair { new: &aligned, ..pair }, changes);
    others(pair, changes);
}

/// Whether a removed and an added operator are one: equal except for the name, or with the same signature and a similar
/// name.
fn is_renamed(old: &Op, old_model: &Model, new: &Op, new_model: &Model) -> bool {
    let of = |op: &Op| -> Vec<(String, String)> {
        op.args.iter().map(|arg| (arg.name.clone(), arg.ty.to_string())).collect()
    };
    if of(old) != of(new) || old.result_type() != new.result_type() {
        return false;
    }
    let body = |op: &Op, model: &Model| export::operator(op, model)["body"].clone();
    let same_body = body(old, old_model) == body(new, new_model) && !old.args.is_empty();
    same_body || opsmith_codegen::diagnostics::nearest(&old.name, [new.name.as_str()]).is_some()
}

/// Keys of the exported operator that rules cover, or that need none.
const KNOWN: [&str; 34] = [
    "name",
    "base",
    "signature",
    "declared",
    "doc",
    "rust",
    "arguments",
    "outputs",
    "forms",
    "checks",
    "inference",
    "combinations",
    "flops",
    "body",
    "derivatives",
    "non_differentiable",
    "operators",
    "role",
    "supplied",
    "origin",
    "alias_of",
    "since",
    "deprecated",
    "deterministic",
    "updates",
    "tags",
    "known_as",
    "backward_only",
    "lines",
    "notation",
    "formula",
    "samples",
    "tolerances",
    "forward",
];

/// Reports keys of the model that no rule covers, so that no difference is ignored silently.
fn others(pair: Pair<'_>, changes: &mut Changes) {
    let (old, new) = (export::operator(pair.old, pair.old_model), export::operator(pair.new, pair.new_model));
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return };
    for (key, value) in &new {
        if !KNOWN.contains(&key.as_str()) && old.get(key) != Some(value) {
            changes.push("other", &pair.old.name, format!("`{key}` is different"), None);
        }
    }
}

fn functions(old: &Model, new: &Model, changes: &mut Changes) {
    let own = |model: &'_ Model| -> Vec<Function> {
        model.functions.iter().filter(|function| !function.is_external()).cloned().collect()
    };
    let (before, after) = (own(old), own(new));
    for function in &before {
        match after.iter().find(|other| other.name == function.name) {
            None => changes.push(
                "function-removed",
                &function.name,
                "the scalar function is gone".to_owned(),
                Some("write its expression where it was called, or declare it in your spec".to_owned()),
            ),
            Some(now) if now.params != function.params || now.returns != function.returns => changes.push(
                "function-removed",
                &function.name,
                "the scalar function has other parameters or another result".to_owned(),
                Some("change the expressions that call it".to_owned()),
            ),
            Some(now) => {
                if now.rust != function.rust
                    || now.derivatives != function.derivatives
                    || now.wirtinger != function.wirtinger
                    || now.dtypes != function.dtypes
                {
                    let what = "the scalar function is computed in another way".to_owned();
                    changes.push("function-changed", &function.name, what, None);
                }
            }
        }
    }
    for function in after.iter().filter(|function| before.iter().all(|other| other.name != function.name)) {
        changes.push("function-added", &function.name, "the scalar function is new".to_owned(), None);
    }
}
