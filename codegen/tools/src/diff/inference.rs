//! Changes of inference: shapes, dtypes, conditions, presence of results.

use super::Changes;
use super::behaviour::same;
use super::operators::Pair;
use opsmith_codegen::expr::print::print;
use opsmith_codegen::model::expr::Expr;
use opsmith_codegen::model::{Combination, Infer, Model, Op};

pub(super) fn compare(pair: Pair<'_>, changes: &mut Changes) {
    checks(pair, changes);
    inference(pair, changes);
    presence(pair, changes);
    combinations(pair, changes);
}

/// Conditions that arguments have to meet.
fn checks(pair: Pair<'_>, changes: &mut Changes) {
    let Pair { old, new, old_model, new_model } = pair;
    let texts = |op: &Op, model: &Model| -> Vec<String> {
        op.checks.iter().map(|check| print(&check.condition, op, model)).collect()
    };
    let (before, now) = (texts(old, old_model), texts(new, new_model));
    for check in now.iter().filter(|check| !before.contains(check)) {
        let migration = Some("see to it that the condition holds".to_owned());
        changes.push("check-added", &old.name, format!("it requires `{check}`"), migration);
    }
    for check in before.iter().filter(|check| !now.contains(check)) {
        changes.push("check-removed", &old.name, format!("it does not require `{check}` any more"), None);
    }
}

/// Rules for the results' shapes, dtypes and number.
fn inference(pair: Pair<'_>, changes: &mut Changes) {
    let Pair { old, new, old_model, new_model } = pair;
    let (Some(before), Some(now)) = (&old.infer, &new.infer) else {
        if old.infer.is_some() != new.infer.is_some() {
            let what = "results get their shape and dtype in another way".to_owned();
            changes.push(
                "shape-changed",
                &old.name,
                what,
                Some("check what you do with the result's shape and dtype".to_owned()),
            );
        }
        return;
    };
    let mut rule = |name: &'static str, kind: &str, before: &Expr, now: &Expr, migration: Option<&str>| {
        if !same(Some(before), Some(now), pair) {
            let (before, now) = (print(before, old, old_model), print(now, new, new_model));
            changes.push(
                name,
                &old.name,
                format!("the {kind} was `{before}` and is `{now}` now"),
                migration.map(str::to_owned),
            );
        }
    };
    for (before, now) in before.shapes.iter().zip(&now.shapes) {
        rule("shape-changed", "shape", before, now, Some("check what you do with the result's shape"));
    }
    for (before, now) in before.dtypes.iter().zip(&now.dtypes) {
        rule("dtype-changed", "dtype", before, now, Some("convert the result, or what you compute with it"));
    }
    if !same(before.length.as_ref(), now.length.as_ref(), pair) {
        let migration = Some("check how many tensors the result has".to_owned());
        changes.push(
            "shape-changed",
            &old.name,
            "the length of the result has another rule".to_owned(),
            migration,
        );
    }
    if before.function != now.function {
        let name = |function: &Option<String>| match function {
            Some(path) => format!("`{path}` says them"),
            None => "rules say them".to_owned(),
        };
        let what =
            format!("of shapes and dtypes, {} and {} now", name(&before.function), name(&now.function));
        let migration = Some("check what you do with the results' shapes and dtypes".to_owned());
        changes.push("inference-changed", &old.name, what, migration);
    }
    run_shapes(pair, (before, now), changes);
    let mut rule = |name: &'static str, kind: &str, before: &Expr, now: &Expr| {
        if !same(Some(before), Some(now), pair) {
            let (before, now) = (print(before, old, old_model), print(now, new, new_model));
            changes.push(name, &old.name, format!("the {kind} was `{before}` and is `{now}` now"), None);
        }
    };
    rule("compute-changed", "dtype of the computation", &before.compute, &now.compute);
}

/// The known part of data-dependent shapes in graphs.
fn run_shapes(pair: Pair<'_>, (before, now): (&Infer, &Infer), changes: &mut Changes) {
    let name = &pair.old.name;
    let names =
        |infer: &Infer| infer.run_sizes.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ");
    match (before.run_sizes.is_empty(), now.run_sizes.is_empty()) {
        (true, true) => {}
        (true, false) => {
            let what = format!("before a run, its shape is known but for {}", names(now));
            changes.push("run-shape-added", name, what, None);
        }
        (false, true) => {
            let migration = Some("keep the operator out of graphs, or give it constants".to_owned());
            let what = "nothing is known of its shape before a run any more".to_owned();
            changes.push("run-shape-removed", name, what, migration);
        }
        (false, false) => {
            let all = |a: &[Expr], b: &[Expr]| {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b), pair))
            };
            let bounds =
                |infer: &Infer| infer.run_sizes.iter().map(|(_, bound)| bound.clone()).collect::<Vec<_>>();
            if !all(&bounds(before), &bounds(now)) || !all(&before.run_shapes, &now.run_shapes) {
                let migration = Some("trace graphs with it again".to_owned());
                let what = "other sizes or bounds are known of its shape before a run".to_owned();
                changes.push("run-shape-changed", name, what, migration);
            }
        }
    }
}

/// Conditions for the presence of optional results.
fn presence(pair: Pair<'_>, changes: &mut Changes) {
    let Pair { old, new, .. } = pair;
    for (index, (before, now)) in old.outputs.iter().zip(&new.outputs).enumerate() {
        if same(before.present.as_ref(), now.present.as_ref(), pair) {
            continue;
        }
        let result =
            before.name.clone().map_or_else(|| format!("result {index}"), |name| format!("`{name}`"));
        match &now.present {
            None => changes.push("presence-removed", &old.name, format!("{result} is always there"), None),
            Some(_) => {
                let migration = Some(format!("look whether {result} is there before you use it"));
                let what = format!("whether {result} is there has another condition");
                changes.push("presence-changed", &old.name, what, migration);
            }
        }
    }
}

/// Allowed combinations of dtypes, by rows.
fn combinations(Pair { old, new, .. }: Pair<'_>, changes: &mut Changes) {
    let row = |op: &Op, row: &Combination| {
        let inputs =
            row.inputs.iter().map(|(argument, dtype)| format!("{}: {dtype}", op.args[*argument].name));
        let outputs = row.outputs.iter().map(|dtype| format!("result: {dtype}"));
        inputs.chain(outputs).collect::<Vec<_>>().join(", ")
    };
    let rows = |op: &Op| -> Vec<String> { op.combinations.iter().map(|known| row(op, known)).collect() };
    let (before, now) = (rows(old), rows(new));
    match (before.is_empty(), now.is_empty()) {
        (true, false) => {
            let migration = Some("convert the operands to dtypes of one row".to_owned());
            let what = "it takes dtypes that go together only".to_owned();
            return changes.push("combination-removed", &old.name, what, migration);
        }
        (false, true) => {
            let what = "its dtypes need not go together any more".to_owned();
            return changes.push("combination-added", &old.name, what, None);
        }
        _ => {}
    }
    for row in before.iter().filter(|row| !now.contains(row)) {
        let migration = Some("convert the operands to dtypes of another row".to_owned());
        changes.push(
            "combination-removed",
            &old.name,
            format!("it does not take {{{row}}} any more"),
            migration,
        );
    }
    for row in now.iter().filter(|row| !before.contains(row)) {
        changes.push("combination-added", &old.name, format!("it takes {{{row}}}"), None);
    }
}
