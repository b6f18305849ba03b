//! The facts that documents show of every stock operator: none may be missing.

use opsmith_codegen::emit;
use opsmith_codegen::model::Op;

use super::stock;

/// The operators that users call, each with the one that it is another name of, or itself.
fn public(ops: &[Op]) -> impl Iterator<Item = (&Op, &Op)> {
    let shown = ops.iter().filter(|op| !op.facts.backward_only && !op.is_supplied());
    shown.map(|op| (op, op.alias_of.map_or(op, |id| &ops[id.0])))
}

#[test]
fn every_public_operator_is_documented_with_an_example() {
    let (checked, _) = stock();
    let model = &checked.model;
    let mut wrong = Vec::new();
    for (op, meant) in public(&model.ops) {
        let mut missing = |what: String| wrong.push(format!("{} ({}): {what}", op.name, op.location));
        if op.doc.trim().is_empty() {
            missing("no documentation".to_owned());
        }
        for arg in meant.args.iter().filter(|arg| arg.doc.trim().is_empty()) {
            missing(format!("no meaning of the argument `{}`", arg.name));
        }
        let visible = meant.visible();
        for output in visible.iter().filter(|output| output.doc.trim().is_empty() && output.name.is_some()) {
            missing(format!("no meaning of the result `{}`", output.name.as_deref().unwrap_or_default()));
        }
        let returns_tensors = meant.returns_tensors() && !visible.is_empty();
        if returns_tensors && emit::rules_of_results(meant, model).len() != visible.len() {
            missing("no rules of its results".to_owned());
        }
        if emit::worked(op, meant).is_none() {
            missing("no sample that Rust can write as an example".to_owned());
        }
    }
    assert!(wrong.is_empty(), "{} facts are missing:\n{}", wrong.len(), wrong.join("\n"));
}
