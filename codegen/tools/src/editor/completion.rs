//! Completion: the keys, words and names that may stand at a position.
//!
//! In: a spec and a [`Cursor`]. Out: candidates for the word before the position. Keys and words come from the key tables
//! and the schema, names from the last model; files are listed from the disk.

use std::ops::Range;
use std::path::Path;

use opsmith_codegen::expr::check::Mode;
use opsmith_codegen::model::expr::QUERIES;
use opsmith_codegen::model::{Function, GRAMMAR_WORDS, Op, RANGE_OPERATORS, SIGNS, formula_words};
use opsmith_codegen::spec::document::{KeyName, KeySpec};
use opsmith_codegen::spec::schema::BaseType;
use opsmith_core::rules::{DTYPE_RULES, Rule, SHAPE_RULES};
use opsmith_core::{DType, DTypeSet};

use super::cursor::{Cursor, CursorPart};
use super::naming::{self, Names, TextForm};
use super::{EditedSpec, formula, referent, schema};

/// The kind of a candidate, for the symbol beside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CandidateKind {
    /// A key.
    Key,
    /// A word of a closed set.
    Word,
    /// An argument, result or gradient.
    Value,
    /// An operator.
    Operator,
    /// A scalar function.
    Function,
    /// An inference rule.
    Rule,
    /// A method that needs no elements.
    Query,
    /// A dtype or a set of them.
    DType,
    /// A type of arguments.
    Type,
    /// A file.
    File,
}

/// A text that may stand at the position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The text, which takes the place of the word before the position.
    pub text: String,
    /// The rest of the line that it brings: `: ` after a key.
    pub suffix: &'static str,
    /// Its kind.
    pub kind: CandidateKind,
    /// Its signature or type, in a line; may be empty.
    pub detail: String,
    /// Its documentation, Markdown; may be empty.
    pub doc: String,
}

impl Candidate {
    fn new(text: impl Into<String>, kind: CandidateKind, detail: impl Into<String>) -> Candidate {
        Candidate { text: text.into(), suffix: "", kind, detail: detail.into(), doc: String::new() }
    }

    fn with_doc(self, doc: impl Into<String>) -> Candidate {
        Candidate { doc: doc.into(), ..self }
    }
}

/// The candidates for a position; `file` is the path of the text, for the files beside it.
pub fn complete(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, file: &Path) -> Vec<Candidate> {
    let mut found = match cursor.slot {
        CursorPart::Key => keys(spec, cursor),
        CursorPart::Word => {
            let mut found = keys(spec, cursor);
            found.extend(values(spec, cursor, file));
            found
        }
        CursorPart::Value => values(spec, cursor, file),
    };
    let mut known = std::collections::HashSet::new();
    found.retain(|candidate| known.insert((candidate.text.clone(), candidate.detail.clone())));
    found
}

/// The bytes that a candidate takes the place of: the name before the position, or all of a value that is one name with
/// points or slashes.
pub fn completed(cursor: &Cursor<'_>) -> Range<usize> {
    let keys = cursor.in_entry().map_or(&[][..], |(_, keys)| keys);
    let is_whole = cursor.is_of_file() || matches!(keys, ["alias_of"] | ["op"] | ["deprecated", "use"]);
    match is_whole && cursor.range.start <= cursor.offset {
        true => cursor.range.start..cursor.offset,
        false => cursor.prefix(),
    }
}

/// The keys of the mapping at a position that it does not have yet.
fn keys(spec: &EditedSpec<'_>, cursor: &Cursor<'_>) -> Vec<Candidate> {
    if let Some(table) = schema::table(&cursor.path) {
        let taken: Vec<&str> = match &cursor.entry {
            Some(entry) => entry.keys.clone(),
            None => top_keys(cursor.text),
        };
        let own = &cursor.text[cursor.range.clone()];
        let free =
            |row: &&KeySpec| cursor.slot == CursorPart::Key && own == row.name || !taken.contains(&row.name);
        return table.iter().filter(free).map(|row| key(cursor, row.name, row.doc)).collect();
    }
    let mut found: Vec<Candidate> =
        schema::keys(&cursor.path).iter().map(|name| key(cursor, name, "")).collect();
    let names = match cursor.in_entry() {
        Some((list, [own])) => naming::naming_at(list, &[own]).map_or(Names::None, |naming| naming.keys),
        _ => Names::None,
    };
    let mut name = |(name, ty): (String, String), doc| {
        found.push(Candidate { detail: ty, ..key(cursor, &name, doc) });
    };
    if names.have_arguments() {
        referent::arguments(spec, cursor)
            .into_iter()
            .for_each(|found| name(found, "an argument of the entry"));
    }
    if names.have_results() {
        let results = referent::results(spec, cursor, names == Names::Results);
        results.into_iter().for_each(|found| name(found, "a result of the entry"));
    }
    found
}

fn key(cursor: &Cursor<'_>, name: &str, doc: &str) -> Candidate {
    let suffix = if cursor.slot == CursorPart::Key { "" } else { ": " };
    Candidate { suffix, ..Candidate::new(name, CandidateKind::Key, "").with_doc(doc) }
}

/// The keys at the top of a text.
fn top_keys(text: &str) -> Vec<&str> {
    let key = |line: &'_ str| line.find(':').filter(|_| !line.starts_with([' ', '-', '#']));
    text.lines().filter_map(|line| key(line).map(|colon| &line[..colon])).collect()
}

fn values(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, file: &Path) -> Vec<Candidate> {
    if cursor.is_of_file() {
        return files(cursor, file);
    }
    let mut found: Vec<Candidate> = schema::words(&cursor.path)
        .into_iter()
        .map(|word| match DTypeSet::from_name(&word) {
            Some(set) => dtypes(&word, set),
            None => Candidate::new(word, CandidateKind::Word, ""),
        })
        .collect();
    let Some((list, keys)) = cursor.in_entry() else { return found };
    let Some(key) = naming::key_at(list, keys) else { return found };
    match key {
        KeyName::Func => found.extend(types()),
        KeyName::Types => found.extend(DType::ALL.iter().map(|dtype| a_dtype(*dtype))),
        KeyName::AliasOf => found.extend(spec.model().ops.iter().map(|op| operator(&op.name, op))),
        KeyName::Op => found.extend(spec.model().ops.iter().map(|op| operator(&op.base, op))),
        KeyName::Deprecated if keys.last() == Some(&"use") => {
            found.extend(spec.model().ops.iter().map(|op| operator(&op.name, op)));
        }
        KeyName::Method => found.push(Candidate::new("none", CandidateKind::Word, "")),
        _ => {}
    }
    found.extend(names_in_text(spec, cursor, naming::naming(key).texts));
    found
}

/// The names that a text of some form may have at the position.
fn names_in_text(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, form: TextForm) -> Vec<Candidate> {
    match form {
        TextForm::Other | TextForm::Prose => Vec::new(),
        TextForm::Expression(mode) => in_expression(spec, cursor, mode),
        TextForm::Name(names) => {
            let mut found = if names.have_arguments() { arguments(spec, cursor) } else { Vec::new() };
            if names.have_results() {
                found.extend(referent::results(spec, cursor, false).into_iter().map(value));
            }
            found
        }
        TextForm::NameOrCall | TextForm::Kernel => arguments(spec, cursor),
        TextForm::Notation => in_braces(spec, cursor, Names::Arguments),
        TextForm::Formula => in_braces(spec, cursor, Names::All),
    }
}

/// In the braces of a formula the names of the signature; elsewhere the words of its language, which notations do not have. Braces
/// behind `_` and `^` may have either.
fn in_braces(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, names: Names) -> Vec<Candidate> {
    let around = formula::braces_around(cursor);
    let is_formula = names.have_results();
    if is_formula && around.in_words {
        return Vec::new();
    }
    let suffix = if around.close { "" } else { "}" };
    let mut found = Vec::new();
    if around.open {
        let known = referent::names_in_braces(spec, cursor, names).into_iter();
        found.extend(known.map(|name| Candidate { suffix, ..value(name) }));
    }
    if is_formula && (!around.open || around.may_group) {
        found.extend(formula_language().map(|word| Candidate::new(word, CandidateKind::Word, "")));
    }
    found
}

/// The words that mean something in every formula.
fn formula_language() -> impl Iterator<Item = &'static str> {
    let operators = RANGE_OPERATORS.iter().map(|operator| operator.text);
    let signs = SIGNS.iter().map(|sign| sign.text);
    let is_word = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    formula_words().chain(GRAMMAR_WORDS).chain(operators.chain(signs).filter(is_word))
}

fn value((name, ty): (String, String)) -> Candidate {
    Candidate::new(name, CandidateKind::Value, ty)
}

fn in_expression(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, mode: Mode) -> Vec<Candidate> {
    let name = formula::name(cursor.text, cursor.prefix());
    let operators = || spec.model().ops.iter().map(|op| operator(&callable(op), op));
    let mut found = Vec::new();
    if name.after_point {
        found.extend(
            QUERIES.iter().map(|row| Candidate::new(row.name, CandidateKind::Query, "").with_doc(row.doc)),
        );
        if formula::calls_operators(mode) {
            let takes_tensor = |op: &&Op| op.args.first().is_some_and(|arg| arg.ty.is_tensor());
            found.extend(spec.model().ops.iter().filter(takes_tensor).map(|op| operator(&callable(op), op)));
        }
        return found;
    }
    found.extend(arguments(spec, cursor));
    if let Some(op) = spec.operator_of(cursor) {
        let further = formula::further_names(mode, op).into_iter();
        found.extend(further.map(|name| Candidate::new(name, CandidateKind::Value, "")));
    } else if mode == Mode::Derivative {
        found.extend(["grad", "result"].map(|name| Candidate::new(name, CandidateKind::Value, "")));
    }
    match mode {
        Mode::Shape => found.extend(SHAPE_RULES.iter().map(|row| rule(*row))),
        Mode::DType => {
            found.extend(DTYPE_RULES.iter().map(|row| rule(*row)));
            found.extend(DType::ALL.iter().map(|dtype| a_dtype(*dtype)));
        }
        _ if formula::calls_functions(mode) => found.extend(spec.model().functions.iter().map(function)),
        _ if formula::calls_operators(mode) => found.extend(operators()),
        _ => {}
    }
    found
}

/// The name by which formulas call an operator: a keyword of Rust gets an underscore.
fn callable(op: &Op) -> String {
    match opsmith_codegen::expr::path::is_identifier(&op.base) {
        true => op.base.clone(),
        false => format!("{}_", op.base),
    }
}

fn arguments(spec: &EditedSpec<'_>, cursor: &Cursor<'_>) -> Vec<Candidate> {
    referent::arguments(spec, cursor).into_iter().map(value).collect()
}

fn operator(name: &str, op: &Op) -> Candidate {
    Candidate::new(name, CandidateKind::Operator, op.signature.clone()).with_doc(op.doc.clone())
}

fn function(function: &Function) -> Candidate {
    let head = format!("{}({})", function.name, function.params.join(", "));
    Candidate::new(function.name.clone(), CandidateKind::Function, head).with_doc(function.doc.clone())
}

fn rule(rule: Rule) -> Candidate {
    Candidate::new(rule.name(), CandidateKind::Rule, rule_head(rule)).with_doc(rule.doc())
}

/// A rule with the types of its parameters: `reduce(Tensor, int[]?, bool)`.
pub(super) fn rule_head(rule: Rule) -> String {
    use opsmith_core::rules::RuleParam;
    let ty = |param: &RuleParam| match param {
        RuleParam::Operands => "Tensor, …",
        RuleParam::Tensor => "Tensor",
        RuleParam::Tensors => "Tensor[]",
        RuleParam::Int => "int",
        RuleParam::Ints => "int[]",
        RuleParam::OptionalInts => "int[]?",
        RuleParam::Bool => "bool",
        RuleParam::OptionalDType => "ScalarType?",
    };
    let types: Vec<&str> = rule.params().iter().map(ty).collect();
    format!("{}({})", rule.name(), types.join(", "))
}

fn types() -> impl Iterator<Item = Candidate> {
    BaseType::ALL.iter().map(|ty| Candidate::new(ty.name(), CandidateKind::Type, "").with_doc(ty.doc()))
}

fn a_dtype(dtype: DType) -> Candidate {
    Candidate::new(dtype.name(), CandidateKind::DType, "a dtype")
}

fn dtypes(name: &str, set: DTypeSet) -> Candidate {
    Candidate::new(name, CandidateKind::DType, members(set))
}

/// The dtypes of a set, with commas.
pub(super) fn members(set: DTypeSet) -> String {
    set.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ")
}

/// The spec files beside a file and in the folders there that it does not include yet.
fn files(cursor: &Cursor<'_>, file: &Path) -> Vec<Candidate> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut found = yaml_files(folder, "");
    for inner in std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_FILES) {
        if inner.path().is_dir() {
            let prefix = format!("{}/", inner.file_name().to_string_lossy());
            found.extend(yaml_files(&inner.path(), &prefix));
        }
    }
    let own = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let taken = |name: &String| {
        *name == own || cursor.text.lines().any(|line| line.trim().trim_start_matches("- ") == name)
    };
    found.retain(|name| !taken(name));
    found.sort();
    found.into_iter().map(|name| Candidate::new(name, CandidateKind::File, "")).collect()
}

/// Larger folders are listed in part.
const MAX_FILES: usize = 1000;

fn yaml_files(folder: &Path, prefix: &str) -> Vec<String> {
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().ok();
    let listed = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_FILES);
    let is_spec = |name: &String| name.ends_with(".yaml") && !name.starts_with('.');
    listed.filter_map(name).filter(is_spec).map(|name| format!("{prefix}{name}")).collect()
}
