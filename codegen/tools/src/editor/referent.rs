//! The thing that a position in a spec refers to.
//!
//! In: a [`Cursor`] and the spec. Out: a [`Referent`], from which hover, definitions and references work.

use opsmith_codegen::expr::check::Mode;
use opsmith_codegen::model::expr::{QUERIES, QuerySpec};
use opsmith_codegen::spec::document::keys::{KeyName, KeySpec};
use opsmith_core::rules::{DTYPE_RULES, Rule, SHAPE_RULES};
use opsmith_core::{DType, DTypeSet};

use super::cursor::{Cursor, CursorPart};
use super::formula::braces_around;
use super::naming::{self, Names, TextForm};
use super::{EditedSpec, formula, occurrence, schema};

/// The thing that a name, key or value denotes.
#[derive(Clone, Debug)]
pub enum Referent {
    /// A key of a key table.
    Key(&'static KeySpec),
    /// The signature of the entry.
    Signature,
    /// An argument of the entry's operator, or a name derived from one.
    Argument(String),
    /// The operators of a base name, or the one of a full name.
    Operator(String),
    /// A scalar function.
    Function(String),
    /// A named inference rule.
    Rule(Rule),
    /// A method that needs no elements, such as `size`.
    Query(&'static QuerySpec),
    /// A dtype.
    DType(DType),
    /// A named set of dtypes.
    DTypes(&'static str, DTypeSet),
    /// A result or gradient in a formula.
    Value(String),
    /// A function in Rust, C or C++: the key of `dispatch` that names it, if one does, and its path.
    Code(Option<String>, String),
    /// An included file.
    File(String),
}

/// The referent at a position.
pub fn referent(spec: &EditedSpec<'_>, cursor: &Cursor<'_>) -> Option<Referent> {
    let word = &cursor.text[cursor.word()];
    match cursor.slot {
        CursorPart::Key => key(spec, cursor, word),
        CursorPart::Word => key(spec, cursor, word).or_else(|| value(spec, cursor, word)),
        CursorPart::Value => value(spec, cursor, word),
    }
}

fn value(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, word: &str) -> Option<Referent> {
    let Some((list, keys)) = cursor.in_entry() else { return file(cursor) };
    let value = cursor.text[cursor.range.clone()].trim().trim_matches(['"', '\'']);
    let key = naming::key_at(list, keys)?;
    match key {
        KeyName::Func => return Some(in_signature(spec, cursor, word)),
        KeyName::AliasOf | KeyName::Op => return Some(Referent::Operator(value.to_owned())),
        KeyName::Deprecated if keys.last() == Some(&"use") => {
            return Some(Referent::Operator(value.to_owned()));
        }
        KeyName::Rust | KeyName::Infer => return Some(Referent::Code(None, value.to_owned())),
        _ => {}
    }
    match naming::naming(key).texts {
        TextForm::Expression(mode) => in_expression(spec, cursor, mode, word),
        TextForm::Kernel => in_kernel(spec, cursor, keys, value, word),
        TextForm::Notation => in_braces(spec, cursor, Names::Arguments, word),
        TextForm::Formula => in_braces(spec, cursor, Names::All, word),
        TextForm::Name(names) => name(spec, cursor, names, word).or_else(|| dtypes(word)),
        TextForm::NameOrCall | TextForm::Prose => name(spec, cursor, Names::Arguments, word),
        TextForm::Other => dtypes(word),
    }
}

fn key(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, word: &str) -> Option<Referent> {
    let key = cursor.text[cursor.range.clone()].trim().trim_matches(['"', '\'']);
    if let Some(row) = schema::row(&cursor.path, key) {
        return Some(Referent::Key(row));
    }
    if let Some((list, [own])) = cursor.in_entry()
        && let Some(naming) = naming::naming_at(list, &[own])
        && let Some(found) = name(spec, cursor, naming.keys, word)
    {
        return Some(found);
    }
    file(cursor).or_else(|| dtypes(word))
}

/// An argument or result of the entry.
fn name(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, names: Names, word: &str) -> Option<Referent> {
    if names.have_arguments() && is_argument(spec, cursor, word) {
        return Some(Referent::Argument(word.to_owned()));
    }
    let is_result = || results(spec, cursor, names == Names::Results).iter().any(|(name, _)| name == word);
    (names.have_results() && is_result()).then(|| Referent::Value(word.to_owned()))
}

/// A name in the braces of a formula.
fn in_braces(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, names: Names, word: &str) -> Option<Referent> {
    let around = braces_around(cursor);
    let is_quoted = names.have_results() && around.in_words;
    if !around.open || !around.close || is_quoted {
        return None;
    }
    if is_argument(spec, cursor, word) {
        return Some(Referent::Argument(word.to_owned()));
    }
    let known = names_in_braces(spec, cursor, names);
    known.iter().any(|(name, _)| name == word).then(|| Referent::Value(word.to_owned()))
}

/// The file of an item of `include`, or of a feature.
fn file(cursor: &Cursor<'_>) -> Option<Referent> {
    let text = cursor.text[cursor.range.clone()].trim().trim_matches(['"', '\'']);
    let is_file = cursor.is_of_file() && !text.is_empty();
    is_file.then(|| Referent::File(text.to_owned()))
}

fn in_expression(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, mode: Mode, word: &str) -> Option<Referent> {
    if word.is_empty() {
        return None;
    }
    let name = formula::name(cursor.text, cursor.word());
    if name.in_path {
        return Some(Referent::Code(None, whole_path(cursor)));
    }
    let has_operator = formula::calls_operators(mode) && spec.overloads(word).next().is_some();
    if name.after_point {
        let query = QUERIES.iter().find(|row| row.name == word).map(Referent::Query);
        let is_operator = has_operator && (query.is_none() || calls_operator(spec, cursor, word));
        return if is_operator { Some(Referent::Operator(word.to_owned())) } else { query };
    }
    if name.is_called {
        let rules = match mode {
            Mode::Shape => SHAPE_RULES,
            Mode::DType => DTYPE_RULES,
            _ => &[],
        };
        if let Some(rule) = rules.iter().find(|rule| rule.name() == word) {
            return Some(Referent::Rule(*rule));
        }
        if has_operator {
            return Some(Referent::Operator(word.to_owned()));
        }
        let calls = !matches!(mode, Mode::Shape | Mode::Operations | Mode::DType | Mode::Check);
        return spec
            .function(word)
            .filter(|_| calls)
            .map(|function| Referent::Function(function.name.clone()));
    }
    if is_argument(spec, cursor, word) {
        return Some(Referent::Argument(word.to_owned()));
    }
    let of_tangent = word.strip_suffix("_t").or_else(|| word.strip_suffix("_p"));
    if let Some(argument) = of_tangent.filter(|name| mode == Mode::Forward && is_argument(spec, cursor, name))
    {
        return Some(Referent::Argument(argument.to_owned()));
    }
    let op = spec.operator_of(cursor);
    let known = op.is_some_and(|op| formula::further_names(mode, op).iter().any(|name| name == word));
    if known || word == "grad" || word == "result" {
        return Some(Referent::Value(word.to_owned()));
    }
    DType::from_name(word).map(Referent::DType)
}

/// Whether a method that an operator and a query share calls the operator here.
fn calls_operator(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, word: &str) -> bool {
    let Some(source) = spec.source_of_text(cursor.text) else { return false };
    let at = cursor.word().start;
    let calls = occurrence::operator(spec.known, word, false);
    calls.iter().any(|span| span.source == source && span.range().start == at)
}

fn in_signature(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, word: &str) -> Referent {
    match is_argument(spec, cursor, word) {
        true => Referent::Argument(word.to_owned()),
        false => Referent::Signature,
    }
}

/// `CPU: reduce::sum(self, dim)`: an argument that the kernel takes, or the kernel.
fn in_kernel(
    spec: &EditedSpec<'_>,
    cursor: &Cursor<'_>,
    keys: &[&str],
    value: &str,
    word: &str,
) -> Option<Referent> {
    let opens = cursor.text[cursor.range.clone()].find('(').map(|at| cursor.range.start + at);
    if opens.is_some_and(|opens| cursor.offset > opens) && is_argument(spec, cursor, word) {
        return Some(Referent::Argument(word.to_owned()));
    }
    let backend = keys.last().filter(|_| keys.len() > 1)?;
    Some(Referent::Code(Some((*backend).to_owned()), value.to_owned()))
}

/// The path around a position: `infer::keep_reduced`.
fn whole_path(cursor: &Cursor<'_>) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let word = cursor.word();
    let start = cursor.text[..word.start].trim_end_matches(is_part).len();
    let after = &cursor.text[word.end..];
    let end = word.end + after.len() - after.trim_start_matches(is_part).len();
    cursor.text[start..end].to_owned()
}

/// Whether the entry's signature has an argument of that name; found in its text, which may have mistakes.
fn is_argument(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, name: &str) -> bool {
    !name.is_empty() && arguments(spec, cursor).iter().any(|(known, _)| known == name)
}

/// The arguments of the entry, each with its type: those of the signature as it is written now or, while it has mistakes,
/// as it was last.
pub(super) fn arguments(spec: &EditedSpec<'_>, cursor: &Cursor<'_>) -> Vec<(String, String)> {
    let func = cursor.entry.as_ref().and_then(|entry| entry.func.as_ref());
    let Some((func, _)) = func else { return Vec::new() };
    if let Some((_, inside)) = func.split_once('(').filter(|_| cursor.is_function()) {
        let params = inside.split(')').next().unwrap_or_default().split(',');
        return params.map(|param| (param.trim().to_owned(), "element".to_owned())).collect();
    }
    if let Some(schema) = super::rename::parsed(func) {
        return schema.args.into_iter().map(|arg| (arg.name, arg.ty.to_string())).collect();
    }
    let op = spec.operator_of(cursor);
    op.into_iter().flat_map(|op| &op.args).map(|arg| (arg.name.clone(), arg.ty.to_string())).collect()
}

/// The results of the entry that have a name, each with its type. The only one, without a name in the signature, is `result` if
/// `unnamed` says so.
pub(super) fn results(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, unnamed: bool) -> Vec<(String, String)> {
    let func = cursor.entry.as_ref().and_then(|entry| entry.func.as_ref()).filter(|_| !cursor.is_function());
    let Some((func, _)) = func else { return Vec::new() };
    let results: Vec<(Option<String>, String)> = match super::rename::parsed(func) {
        Some(schema) => {
            schema.returns.into_iter().map(|result| (result.name, result.ty.to_string())).collect()
        }
        None => {
            let outputs = spec.operator_of(cursor).into_iter().flat_map(|op| &op.outputs);
            outputs.map(|output| (output.name.clone(), output.ty.to_string())).collect()
        }
    };
    let only = (unnamed && results.len() == 1).then(|| "result".to_owned());
    results.into_iter().filter_map(|(name, ty)| Some((name.or(only.clone())?, ty))).collect()
}

/// The names of the entry that may stand in the braces of a formula, arguments first. A result without a name is `result` there
/// if an argument is called `y`.
pub(super) fn names_in_braces(
    spec: &EditedSpec<'_>,
    cursor: &Cursor<'_>,
    names: Names,
) -> Vec<(String, String)> {
    let mut found = arguments(spec, cursor);
    if names.have_results() {
        let is_y_taken = found.iter().any(|(name, _)| name == "y");
        found.extend(results(spec, cursor, is_y_taken));
    }
    found
}

fn dtypes(word: &str) -> Option<Referent> {
    let set = DTypeSet::NAMED.iter().find(|(name, _)| *name == word);
    let set = set.map(|(name, set)| Referent::DTypes(name, *set));
    set.or_else(|| DType::from_name(word).map(Referent::DType))
}
