//! Occurrences: every place in a spec that refers to an operator or to an argument.
//!
//! In: a checked spec. Out: spans of the names alone, for references and renaming. A name in a formula counts as a call of
//! an operator if the checked expression there calls it; where a formula has mistakes, its words decide.

use std::ops::Range;

use opsmith_codegen::diagnostics::{Diagnostics, Span};
use opsmith_codegen::expr::check::Mode;
use opsmith_codegen::model::expr::{Expr, ExprKind, QUERIES};
use opsmith_codegen::model::{Forward, Model, Op, OpId};
use opsmith_codegen::pipeline::Checked;
use opsmith_codegen::spec::document::keys::KeyName;
use opsmith_codegen::spec::document::{Entry, RawOp, Text};
use opsmith_codegen::spec::yaml::{Key, Node, NodeKind};

use super::cursor::Cursor;
use super::formula::{self, Name};
use super::referent::{Referent, referent};
use super::{EditedSpec, FileRange, place};

/// The places that refer to the operator, function or argument at a position.
pub fn references(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, with_declaration: bool) -> Vec<FileRange> {
    let spans = match subject(spec, cursor) {
        Some(Subject::Operator(base)) => operator(spec.known, &base, with_declaration),
        Some(Subject::Function(name)) => function(spec.known, &name, with_declaration),
        Some(Subject::Argument { op, name }) => argument(spec.known, &op, &name, with_declaration),
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
}

/// The subject at a position. The signature stands for its operator.
pub(super) fn subject(spec: &EditedSpec<'_>, cursor: &Cursor<'_>) -> Option<Subject> {
    match referent(spec, cursor)? {
        Referent::Operator(name) => {
            let op = spec.model().ops.iter().find(|op| op.name == name);
            let op = op.or_else(|| spec.overloads(&name).next())?;
            Some(Subject::Operator(op.base.clone()))
        }
        Referent::Signature if cursor.path.first() == Some(&"functions") => {
            let (func, _) = cursor.entry.as_ref()?.func.as_ref()?;
            Some(Subject::Function(func.split('(').next()?.trim().to_owned()))
        }
        Referent::Signature => spec.operator_of(cursor).map(|op| Subject::Operator(op.base.clone())),
        Referent::Function(name) => Some(Subject::Function(name)),
        Referent::Argument(name) => {
            let op = spec.operator_of(cursor)?;
            Some(Subject::Argument { op: op.name.clone(), name })
        }
        _ => None,
    }
}

/// The entries of `ops`, each with its operator in the model.
fn entries(checked: &Checked) -> impl Iterator<Item = (&RawOp, Option<&Op>)> {
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
    let Some(mode) = formula::mode("ops", &[entry.spec.name]) else { return Vec::new() };
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
fn expressions<'a>(op: &'a Op, text: &str) -> Vec<&'a Expr> {
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
fn innermost<'a>(exprs: &[&'a Expr], range: &Range<usize>) -> Option<&'a ExprKind> {
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
    let of_list = |list: &str, entry: &Entry, found: &mut Vec<Span>| {
        let mode = formula::mode(list, &[entry.spec.name]);
        if mode.is_some_and(formula::calls_functions) {
            for text in texts(&entry.value) {
                let spans = called(text.as_str(), name).into_iter();
                found.extend(spans.map(|name| text.span_within(name.range, &checked.sources)));
            }
        }
    };
    for document in checked.documents.iter().map(|loaded| &loaded.document) {
        document.ops.iter().flat_map(|raw| &raw.entries).for_each(|entry| of_list("ops", entry, &mut found));
        for raw in &document.functions {
            raw.entries.iter().for_each(|entry| of_list("functions", entry, &mut found));
            if with_declaration && raw.func.as_str().split('(').next().map(str::trim) == Some(name) {
                found.push(raw.func.span_within(0..name.len(), &checked.sources));
            }
        }
    }
    found.sort();
    found
}

/// The names of an operator's argument: in its entry, and in calls that give it by name.
pub(super) fn argument(checked: &Checked, full: &str, name: &str, with_declaration: bool) -> Vec<Span> {
    let mut found = Vec::new();
    for (raw, op) in entries(checked) {
        if let Some(op) = op.filter(|op| op.name == full) {
            in_entry(checked, raw, name, with_declaration, &mut found);
            found.extend(by_name(checked, raw, Some(op), full, name));
        } else {
            found.extend(by_name(checked, raw, op, full, name));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The occurrences of an argument in its own entry.
fn in_entry(checked: &Checked, raw: &RawOp, name: &str, with_declaration: bool, found: &mut Vec<Span>) {
    let schema = raw.parse_schema(&checked.sources, &mut Diagnostics::new());
    if let Some(arg) = schema.as_ref().and_then(|schema| schema.arg(name)).filter(|_| with_declaration) {
        found.push(raw.func.span_within(arg.name_range.clone(), &checked.sources));
    }
    for entry in raw.entries.iter().filter(|entry| entry.spec.key != KeyName::Func) {
        let mode = formula::mode("ops", &[entry.spec.name]);
        keys(&entry.value, &mut |key| names_in_key(checked, key, name, found));
        for text in texts(&entry.value) {
            match (mode, entry.spec.key) {
                (Some(mode), _) => found.extend(in_formula(checked, &text, mode, name)),
                (None, KeyName::Dispatch) => found.extend(in_kernel(checked, &text, name)),
                (
                    None,
                    KeyName::Contiguous
                    | KeyName::Rounded
                    | KeyName::Ignored
                    | KeyName::NoBuffer
                    | KeyName::Method,
                ) if text.as_str() == name => {
                    found.push(text.span_within(0..name.len(), &checked.sources));
                }
                _ => {}
            }
        }
    }
}

/// A name among those of a key: `x, y`.
fn names_in_key(checked: &Checked, key: &Key, name: &str, found: &mut Vec<Span>) {
    let written = checked.sources.slice(key.span);
    for part in formula::names(written.trim_matches(['"', '\''])) {
        let quote = usize::from(written.starts_with(['"', '\'']));
        let range = part.range.start + quote..part.range.end + quote;
        if written.get(range.clone()) == Some(name) {
            let start = key.span.range().start;
            found.push(Span::new(key.span.source, start + range.start..start + range.end));
        }
    }
}

fn in_formula(checked: &Checked, text: &Text, mode: Mode, name: &str) -> Vec<Span> {
    let written = text.as_str();
    let stands_for_it = |found: &Name| {
        let word = &written[found.range.clone()];
        let of_tangent = word.strip_suffix("_t").or_else(|| word.strip_suffix("_p"));
        let is_it = word == name || mode == Mode::Forward && of_tangent == Some(name);
        is_it && !found.after_point && !found.in_path && !found.is_called && !found.names_argument
    };
    let names = formula::names(written).into_iter().filter(stands_for_it);
    let span =
        |found: Name| text.span_within(found.range.start..found.range.start + name.len(), &checked.sources);
    names.map(span).collect()
}

/// `reduce::sum(self, dim)`
fn in_kernel(checked: &Checked, text: &Text, name: &str) -> Vec<Span> {
    let Some(open) = text.as_str().find('(') else { return Vec::new() };
    let names = formula::names(text.as_str()).into_iter();
    let inside =
        names.filter(|found| found.range.start > open && &text.as_str()[found.range.clone()] == name);
    inside.map(|found| text.span_within(found.range, &checked.sources)).collect()
}

/// Calls of an operator that give its argument by name: `f(x, name = 1)`.
fn by_name(checked: &Checked, raw: &RawOp, op: Option<&Op>, full: &str, name: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let formulas = raw
        .entries
        .iter()
        .filter(|entry| formula::mode("ops", &[entry.spec.name]).is_some_and(formula::calls_operators));
    for text in formulas.flat_map(|entry| texts(&entry.value)) {
        let exprs = op.map(|op| expressions(op, text.as_str())).unwrap_or_default();
        for part in formula::names(text.as_str()) {
            if !part.names_argument || &text.as_str()[part.range.clone()] != name {
                continue;
            }
            if let Some(ExprKind::Op(id, _)) = innermost(&exprs, &part.range)
                && checked.model.ops.get(id.0).is_some_and(|op| op.name == full)
            {
                found.push(text.span_within(part.range, &checked.sources));
            }
        }
    }
    found
}

/// Whether a formula of the entry binds a name with `let`.
pub(super) fn binds(raw: &RawOp, name: &str) -> bool {
    raw.entries.iter().filter(|entry| formula::mode("ops", &[entry.spec.name]).is_some()).any(|entry| {
        texts(&entry.value).any(|text| {
            let names = formula::names(text.as_str());
            names.iter().any(|found| found.is_bound && &text.as_str()[found.range.clone()] == name)
        })
    })
}

/// Every text of a value.
fn texts(node: &Node) -> impl Iterator<Item = Text> {
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

/// Calls `visit` with every key of a value.
fn keys(node: &Node, visit: &mut dyn FnMut(&Key)) {
    match &node.kind {
        NodeKind::Seq(items) => items.iter().for_each(|item| keys(item, visit)),
        NodeKind::Map(entries) => entries.iter().for_each(|(key, value)| {
            visit(key);
            keys(value, visit);
        }),
        _ => {}
    }
}
