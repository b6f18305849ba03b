//! Occurrences: each span in a spec that refers to an operator or a scalar function; `argument` has those of arguments.
//!
//! In: a checked spec. Out: spans of the names alone, for references and renaming. A name in a formula counts as a call of
//! an operator if the checked expression there calls it; where a formula has mistakes, its words decide.

use std::ops::Range;

use opsmith_codegen::diagnostics::Span;
use opsmith_codegen::model::expr::{Expr, ExprKind, QUERIES};
use opsmith_codegen::model::{Forward, Model, Op, OpId};
use opsmith_codegen::pipeline::Checked;
use opsmith_codegen::spec::document::keys::KeyName;
use opsmith_codegen::spec::document::{Entry, RawOp, Text};
use opsmith_codegen::spec::yaml::{Node, NodeKind};

use super::argument::{argument, parameter};
use super::cursor::Cursor;
use super::formula::{self, Name};
use super::naming::expression_mode;
use super::referent::{Referent, referent};
use super::{EditedSpec, FileRange, place};

/// The ranges that refer to the operator, function or argument at a position.
pub fn references(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, with_declaration: bool) -> Vec<FileRange> {
    let spans = match subject(spec, cursor) {
        Some(Subject::Operator(base)) => operator(spec.known, &base, with_declaration),
        Some(Subject::Function(name)) => function(spec.known, &name, with_declaration),
        Some(Subject::Argument { op, name }) => argument(spec.known, &op, &name, with_declaration),
        Some(Subject::Parameter { function, name }) => {
            parameter(spec.known, &function, &name, with_declaration)
        }
        None => Vec::new(),
    };
    spans.into_iter().filter_map(|span| place(spec.known, span)).collect()
}

/// The thing that has occurrences.
pub(super) enum Subject {
    /// The operators of a base name.
    Operator(String),
    /// A scalar function.
    Function(String),
    /// An argument of an operator, by its full name.
    Argument { op: String, name: String },
    /// A parameter of a scalar function.
    Parameter { function: String, name: String },
}

/// The subject at a position. The signature stands for its operator.
pub(super) fn subject(spec: &EditedSpec<'_>, cursor: &Cursor<'_>) -> Option<Subject> {
    match referent(spec, cursor)? {
        Referent::Operator(name) => {
            let op = spec.model().ops.iter().find(|op| op.name == name);
            let op = op.or_else(|| spec.overloads(&name).next())?;
            Some(Subject::Operator(op.base.clone()))
        }
        Referent::Signature if cursor.is_function() => cursor.function_name().map(Subject::Function),
        Referent::Signature => spec.operator_of(cursor).map(|op| Subject::Operator(op.base.clone())),
        Referent::Function(name) => Some(Subject::Function(name)),
        Referent::Argument(name) if cursor.is_function() => {
            Some(Subject::Parameter { function: cursor.function_name()?, name })
        }
        Referent::Argument(name) => {
            let op = spec.operator_of(cursor)?;
            Some(Subject::Argument { op: op.name.clone(), name })
        }
        _ => None,
    }
}

/// The entries of `ops`, each with its operator in the model.
pub(super) fn entries(checked: &Checked) -> impl Iterator<Item = (&RawOp, Option<&Op>)> {
    let raws = checked.documents.iter().flat_map(|loaded| &loaded.document.ops);
    raws.map(|raw| (raw, checked.model.ops.iter().find(|op| op.entry == raw.span)))
}

/// The names of a base name's operators: declarations, calls, aliases, names of forms.
pub(super) fn operator(checked: &Checked, base: &str, with_declaration: bool) -> Vec<Span> {
    let mut found = Vec::new();
    let is_base = |text: &str| {
        let name = text.split('.').next().unwrap_or_default();
        name == base || name.strip_suffix('_') == Some(base)
    };
    let head = |text: &Text| text.span_within(0..base.len(), &checked.sources);
    for (raw, op) in entries(checked) {
        if with_declaration && op.is_some_and(|op| op.base == base) {
            found.push(head(&raw.func));
        }
        for entry in &raw.entries {
            match entry.spec.key {
                KeyName::AliasOf => found.extend(
                    texts(&entry.value).filter(|text| is_base(text.as_str())).map(|text| head(&text)),
                ),
                KeyName::Names if op.is_some_and(|op| op.base == base) => {
                    found.extend(
                        texts(&entry.value).filter(|text| is_base(text.as_str())).map(|text| head(&text)),
                    );
                }
                KeyName::Deprecated => {
                    let used =
                        raw.text_map(KeyName::Deprecated).into_iter().filter(|(key, _)| key.text == "use");
                    found
                        .extend(used.filter(|(_, text)| is_base(text.as_str())).map(|(_, text)| head(&text)));
                }
                _ => found.extend(calls(checked, entry, op, base)),
            }
        }
    }
    let functions = checked.documents.iter().flat_map(|loaded| &loaded.document.functions);
    let named = functions.filter_map(|function| function.text(KeyName::Op));
    found.extend(named.filter(|text| is_base(text.as_str())).map(|text| head(&text)));
    found.sort();
    found.dedup();
    found
}

/// The calls of a base name in the formulas of a key.
fn calls(checked: &Checked, entry: &Entry, op: Option<&Op>, base: &str) -> Vec<Span> {
    let Some(mode) = expression_mode(entry.spec.key) else { return Vec::new() };
    if !formula::calls_operators(mode) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for text in texts(&entry.value) {
        let exprs = op.map(|op| expressions(op, text.as_str())).unwrap_or_default();
        for name in called(text.as_str(), base) {
            let calls_it = match innermost(&exprs, &name.range) {
                Some(ExprKind::Op(id, _)) => base_of(&checked.model, *id) == Some(base),
                Some(_) => false,
                None => exprs.is_empty() && !(name.after_point && is_query(base)),
            };
            if calls_it {
                let range = name.range.start..name.range.start + base.len();
                found.push(text.span_within(range, &checked.sources));
            }
        }
    }
    found
}

/// The names that are called like a base name, keywords of Rust with their underscore.
fn called(text: &str, base: &str) -> Vec<Name> {
    let is_it = |name: &Name| {
        let word = &text[name.range.clone()];
        name.is_called && !name.in_path && (word == base || word.strip_suffix('_') == Some(base))
    };
    formula::names(text).into_iter().filter(is_it).collect()
}

fn is_query(name: &str) -> bool {
    QUERIES.iter().any(|row| row.name == name)
}

fn base_of(model: &Model, id: OpId) -> Option<&str> {
    model.ops.get(id.0).map(|op| op.base.as_str())
}

/// The checked expressions of an operator that were written as this text.
pub(super) fn expressions<'a>(op: &'a Op, text: &str) -> Vec<&'a Expr> {
    let same = |written: &str| written.trim() == text.trim();
    let mut found: Vec<&Expr> = Vec::new();
    let written = op.derivatives.iter().filter(|derivative| !derivative.derived && same(&derivative.text));
    found.extend(written.map(|derivative| &derivative.formula));
    if let Forward::Formulas(formulas) = &op.forward {
        found
            .extend(formulas.iter().filter(|formula| same(&formula.text)).flat_map(|formula| &formula.terms));
    }
    if found.is_empty() {
        found.extend(op.body.composite.iter());
    }
    found
}

/// The kind of the smallest call around some bytes: the one whose name they are.
pub(super) fn innermost<'a>(exprs: &[&'a Expr], range: &Range<usize>) -> Option<&'a ExprKind> {
    let mut best: Option<&Expr> = None;
    let mut open: Vec<&Expr> = exprs.to_vec();
    while let Some(part) = open.pop() {
        let is_call = matches!(
            part.kind,
            ExprKind::Op(..) | ExprKind::Query(..) | ExprKind::Function(..) | ExprKind::Rule(..)
        );
        let around = part.range.start <= range.start && range.end <= part.range.end;
        if is_call && around && best.is_none_or(|best| part.range.len() <= best.range.len()) {
            best = Some(part);
        }
        open.extend(part.children());
    }
    best.map(|part| &part.kind)
}

/// The calls of a scalar function, and its entry.
fn function(checked: &Checked, name: &str, with_declaration: bool) -> Vec<Span> {
    let mut found = Vec::new();
    let of_entry = |entry: &Entry, found: &mut Vec<Span>| {
        if expression_mode(entry.spec.key).is_some_and(formula::calls_functions) {
            for text in texts(&entry.value) {
                let spans = called(text.as_str(), name).into_iter();
                found.extend(spans.map(|name| text.span_within(name.range, &checked.sources)));
            }
        }
    };
    for document in checked.documents.iter().map(|loaded| &loaded.document) {
        document.ops.iter().flat_map(|raw| &raw.entries).for_each(|entry| of_entry(entry, &mut found));
        for raw in &document.functions {
            raw.entries.iter().for_each(|entry| of_entry(entry, &mut found));
            if with_declaration && raw.func.as_str().split('(').next().map(str::trim) == Some(name) {
                found.push(raw.func.span_within(0..name.len(), &checked.sources));
            }
        }
    }
    found.sort();
    found
}

/// Every text of a value.
pub(super) fn texts(node: &Node) -> impl Iterator<Item = Text> {
    let mut found = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        match &node.kind {
            NodeKind::Scalar(_) => found.push(Text { node: node.clone() }),
            NodeKind::Seq(items) => open.extend(items),
            NodeKind::Map(entries) => open.extend(entries.iter().map(|(_, value)| value)),
            NodeKind::Null | NodeKind::Broken => {}
        }
    }
    found.into_iter()
}
