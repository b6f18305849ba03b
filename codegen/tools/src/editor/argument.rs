//! Occurrences of an argument: in its entry, and in calls that give it by name.
//!
//! In: a checked spec and the names of operator and argument. Out: spans of the names alone. The places of names are those
//! of [`naming`].

use std::ops::Range;

use opsmith_codegen::diagnostics::{Diagnostics, Span};
use opsmith_codegen::expr::check::Mode;
use opsmith_codegen::model::Op;
use opsmith_codegen::model::expr::ExprKind;
use opsmith_codegen::pipeline::Checked;
use opsmith_codegen::spec::braces;
use opsmith_codegen::spec::document::{Entry, KeyName, RawOp, Text};
use opsmith_codegen::spec::yaml::Key;

use super::formula::{self, Name};
use super::naming::{TextForm, expression_mode, naming, naming_keys};
use super::occurrence::{entries, expressions, innermost, texts};

/// The names of an operator's argument.
pub(super) fn argument(checked: &Checked, full: &str, name: &str, with_declaration: bool) -> Vec<Span> {
    let mut found = Vec::new();
    for (raw, op) in entries(checked) {
        if op.is_some_and(|op| op.name == full) {
            let schema = raw.parse_schema(&checked.sources, &mut Diagnostics::new());
            if let Some(arg) =
                schema.as_ref().and_then(|schema| schema.arg(name)).filter(|_| with_declaration)
            {
                found.push(raw.func.span_within(arg.name_range.clone(), &checked.sources));
            }
            in_entries(checked, &raw.entries, name, &mut found);
        }
        found.extend(by_name(checked, raw, op, full, name));
    }
    found.sort();
    found.dedup();
    found
}

/// The names of a scalar function's parameter.
pub(super) fn parameter(checked: &Checked, function: &str, name: &str, with_declaration: bool) -> Vec<Span> {
    let mut found = Vec::new();
    for raw in checked.documents.iter().flat_map(|loaded| &loaded.document.functions) {
        let head = raw.func.as_str();
        let Some((own, inside)) = head.split_once('(').filter(|(own, _)| own.trim() == function) else {
            continue;
        };
        let inside = own.len() + 1..own.len() + 1 + inside.find(')').unwrap_or(inside.len());
        let declared = formula::names(head).into_iter().map(|found| found.range);
        let is_it = |range: &Range<usize>| inside.contains(&range.start) && &head[range.clone()] == name;
        let declared = declared.filter(|range| with_declaration && is_it(range));
        found.extend(declared.map(|range| raw.func.span_within(range, &checked.sources)));
        in_entries(checked, &raw.entries, name, &mut found);
    }
    found.sort();
    found
}

/// The occurrences of a name in the keys of its own entry.
fn in_entries(checked: &Checked, entries: &[Entry], name: &str, found: &mut Vec<Span>) {
    for entry in entries {
        let naming = naming(entry.spec.key);
        if naming.keys.have_arguments() {
            naming_keys(&entry.value).into_iter().for_each(|key| in_key(checked, key, name, found));
        }
        for text in texts(&entry.value) {
            let ranges = in_text(text.as_str(), naming.texts, name);
            found.extend(ranges.into_iter().map(|range| text.span_within(range, &checked.sources)));
        }
    }
}

/// A name among those of a key: `x, y`.
fn in_key(checked: &Checked, key: &Key, name: &str, found: &mut Vec<Span>) {
    let written = checked.sources.slice(key.span);
    let quote = usize::from(written.starts_with(['"', '\'']));
    let start = key.span.range().start + quote;
    let inside = written.trim_matches(['"', '\'']);
    for range in formula::names(inside).into_iter().map(|found| found.range) {
        if &inside[range.clone()] == name {
            found.push(Span::new(key.span.source, start + range.start..start + range.end));
        }
    }
}

/// The bytes of an argument's name in a text of some form.
fn in_text(text: &str, form: TextForm, name: &str) -> Vec<Range<usize>> {
    let is_it = |range: &Range<usize>| &text[range.clone()] == name;
    let names = || formula::names(text).into_iter();
    match form {
        TextForm::Other | TextForm::Prose => Vec::new(),
        TextForm::Name(of) => {
            let is_name = of.have_arguments() && text == name;
            is_name.then_some(0..name.len()).into_iter().collect()
        }
        TextForm::NameOrCall => {
            names().filter(|found| !found.is_called).map(|found| found.range).filter(is_it).collect()
        }
        TextForm::Kernel => {
            let open = text.find('(').unwrap_or(text.len());
            names().map(|found| found.range).filter(|range| range.start > open && is_it(range)).collect()
        }
        TextForm::Expression(mode) => in_expression(text, mode, name),
        TextForm::Notation => braces::names(text, false).into_iter().filter(is_it).collect(),
        TextForm::Formula => braces::names(text, true).into_iter().filter(is_it).collect(),
    }
}

fn in_expression(text: &str, mode: Mode, name: &str) -> Vec<Range<usize>> {
    let stands_for_it = |found: &Name| {
        let word = &text[found.range.clone()];
        let of_tangent = word.strip_suffix("_t").or_else(|| word.strip_suffix("_p"));
        let is_it = word == name || mode == Mode::Forward && of_tangent == Some(name);
        is_it && !found.after_point && !found.in_path && !found.is_called && !found.names_argument
    };
    let names = formula::names(text).into_iter().filter(stands_for_it);
    names.map(|found| found.range.start..found.range.start + name.len()).collect()
}

/// Calls of an operator that give its argument by name: `f(x, name = 1)`.
fn by_name(checked: &Checked, raw: &RawOp, op: Option<&Op>, full: &str, name: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let formulas = raw
        .entries
        .iter()
        .filter(|entry| expression_mode(entry.spec.key).is_some_and(formula::calls_operators));
    for text in formulas.flat_map(|entry| texts(&entry.value)).filter(|text| text.as_str().contains(name)) {
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

/// Whether an expression of an entry binds a name with `let`.
pub(super) fn binds(entries: &[Entry], name: &str) -> bool {
    entries.iter().filter(|entry| expression_mode(entry.spec.key).is_some()).any(|entry| {
        texts(&entry.value).any(|text| {
            let names = formula::names(text.as_str());
            names.iter().any(|found| found.is_bound && &text.as_str()[found.range.clone()] == name)
        })
    })
}

/// Whether the formula of an entry has a name alone between braces: as a group there, it would become an argument of that name.
pub(super) fn groups(raw: &RawOp, name: &str) -> bool {
    let has = |text: Text| {
        let text = text.as_str();
        braces::names(text, true).into_iter().any(|range| &text[range] == name)
    };
    raw.text(KeyName::Formula).is_some_and(has)
}
