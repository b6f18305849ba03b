//! The rules of results: shape and dtype of each, as the entry has them, or as those of the operators that a composition calls, told in
//! the composition's own arguments.
//!
//! In: an operator. Out: a sentence for each rule; Markdown.

use opsmith_core::Query;
use opsmith_core::rules::{DTypeRule, Rule};

use super::functions::{given_by, given_by_own};
use super::{FOR_CALLS, argument_of, code, rule};
use crate::analysis::composed::{Fact, Told, told};
use crate::model::expr::{Expr, ExprKind};
use crate::model::{Model, Op};

/// The rule of a result, in words; Markdown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultWords {
    /// The rule of its shape.
    pub shape: String,
    /// The rule of its dtype.
    pub dtype: String,
}

/// The rules of the results that callers get; empty if the operator returns no tensors.
pub fn rules_of_results(op: &Op, model: &Model) -> Vec<ResultWords> {
    let found = || found_rules(op, model).into_iter().map(|rules| [rules.shape, rules.dtype]).collect();
    let kept = model.kept_results.get(model.number_of(op), found);
    kept.into_iter().map(|[shape, dtype]| ResultWords { shape, dtype }).collect()
}

fn found_rules(op: &Op, model: &Model) -> Vec<ResultWords> {
    let visible = op.visible().len();
    let Some(infer) = &op.infer else {
        return match (&op.body.view, &op.body.composite) {
            (Some(path), _) => {
                let unknown = || format!("as the layout function `{path}` says");
                let shape = given_by_own(path, op, model).unwrap_or_else(unknown);
                vec![ResultWords { shape, dtype: "that of the tensor it is a view of".to_owned() }; visible]
            }
            (None, Some(_)) => {
                let of = |fact, position| match told(model, op, position, fact) {
                    Some(told) => text(&told, op, model),
                    None => "as the composition gives it".to_owned(),
                };
                let words = |position| ResultWords {
                    shape: of(Fact::Sizes, position),
                    dtype: of(Fact::DType, position),
                };
                (0..visible).map(words).collect()
            }
            (None, None) => Vec::new(),
        };
    };
    let written = |expr| rule(expr, op, model);
    let dtypes = infer.dtypes.iter().take(visible).map(written);
    if let Some(path) = &infer.function {
        let unknown = || format!("as the Rust function `{path}` says");
        let shape = given_by_own(path, op, model).unwrap_or_else(unknown);
        return dtypes.map(|dtype| ResultWords { shape: shape.clone(), dtype }).collect();
    }
    let shapes = if infer.run_shapes.is_empty() { &infer.shapes } else { &infer.run_shapes };
    shapes.iter().map(written).zip(dtypes).map(|(shape, dtype)| ResultWords { shape, dtype }).collect()
}

/// The longest rule of called operators that explains anything.
const LONGEST: usize = 320;

/// The longest condition that explains anything.
const LONGEST_CONDITION: usize = 90;

/// The rule of a composition's result.
fn text(told: &Told<'_>, op: &Op, model: &Model) -> String {
    let by = |called: &Op| format!("as `{}` gives it for {FOR_CALLS}", called.name);
    match told {
        Told::By(called) => by(called),
        Told::Rule(rule, called) => {
            let is_told = !called.is_some_and(|called| calls_private(rule, model) && !called.is_private());
            let words = of_rule(rule, op, model).filter(|words| is_told && words.len() <= LONGEST);
            words.unwrap_or_else(|| called.map_or("as the composition gives it".to_owned(), by))
        }
        Told::Either { condition, told: both } => {
            let [yes, no] = [&both[0], &both[1]].map(|told| text(told, op, model));
            either(yes, condition, no, op, model).unwrap_or_else(|| by_all(told))
        }
    }
}

/// One rule if a condition holds, another if not; `None` if the condition is long.
fn either(yes: String, condition: &Expr, no: String, op: &Op, model: &Model) -> Option<String> {
    if yes == no {
        return Some(yes);
    }
    let condition = code(condition, op, model);
    if condition.len() > LONGEST_CONDITION {
        return None;
    }
    Some(match no.strip_prefix(&format!("{yes} if ")) {
        Some(rest) => format!("{yes} if {condition} or {rest}"),
        // A sentence of a function's documentation may have an `if` of its own.
        None if yes.contains("gives it: ") => format!("if {condition}, {yes}; else {no}"),
        None => format!("{yes} if {condition}, else {no}"),
    })
}

/// That operators give a result, whichever of them is called.
fn by_all(told: &Told<'_>) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut open = vec![told];
    while let Some(told) = open.pop() {
        match told {
            Told::By(called) | Told::Rule(_, Some(called)) => {
                let name = format!("`{}`", called.name);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            Told::Rule(_, None) => {}
            Told::Either { told, .. } => open.extend(told.iter().rev()),
        }
    }
    let Some(last) = names.pop() else { return "as the composition gives it".to_owned() };
    let names = if names.is_empty() { last } else { format!("{} or {last}", names.join(", ")) };
    format!("as {names} gives it for {FOR_CALLS}")
}

/// Whether a rule has a call of an operator that readers do not know.
fn calls_private(rule: &Expr, model: &Model) -> bool {
    let mut calls = false;
    rule.walk(&mut |part| {
        if let ExprKind::Op(id, _) = part.kind {
            calls |= model.ops.get(id.0).is_some_and(Op::is_private);
        }
    });
    calls
}

/// A rule in the composition's arguments; `None` if the result of a function in it is not documented.
fn of_rule(expr: &Expr, op: &Op, model: &Model) -> Option<String> {
    Some(match &expr.kind {
        ExprKind::Convert(inner) => return of_rule(inner, op, model),
        ExprKind::Native(path, args) => return given_by(path, args, op, model),
        ExprKind::Query(Query::Sizes | Query::DType, of, _) if let Some(name) = argument_of(of, op) => {
            format!("that of `{name}`")
        }
        ExprKind::Query(Query::Unwrap, given, _) if let Some(name) = argument_of(given, op) => {
            format!("`{name}`")
        }
        ExprKind::Query(Query::UnwrapOr, given, other)
            if let (Some(name), [other]) = (argument_of(given, op), &other[..]) =>
        {
            format!("`{name}` if it is given, else {}", of_rule(other, op, model)?)
        }
        ExprKind::Rule(Rule::DType(DTypeRule::OrDefault), args) if matches!(&args[..], [arg] if is_absent(arg)) => {
            "the default float".to_owned()
        }
        ExprKind::Rule(Rule::DType(DTypeRule::Accumulate), args)
            if let [of, given] = &args[..]
                && let Some(name) = argument_of(of, op)
                && is_absent(given) =>
        {
            format!("`int64` for integers and `bool`, else that of `{name}`")
        }
        ExprKind::If(condition, yes, no) => {
            let (yes, no) = (of_rule(yes, op, model)?, of_rule(no, op, model)?);
            return either(yes, condition, no, op, model);
        }
        _ => rule(expr, op, model),
    })
}

fn is_absent(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Convert(inner) => is_absent(inner),
        kind => matches!(kind, ExprKind::None),
    }
}
