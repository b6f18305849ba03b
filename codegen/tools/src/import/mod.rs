//! PyTorch's `native_functions.yaml` and `derivatives.yaml` to one spec.
//!
//! In: the texts of the two files. Out: the text of a spec without mistakes, and a [`ImportReport`] that accounts for every
//! entry, field and formula. Nothing is dropped: fields without a key in the spec language are kept under `origin`,
//! kernels under `supplied`, and untranslated formulas as `opaque("…")`. A formula counts as translated if the checker
//! resolved every name and type in it.
//!
//! Must not name operators; information that the files leave to C++ headers is in a table, `operators.txt`.

mod cpp;
mod declare;
mod derivatives;
mod fold;
mod native;
mod report;
mod translate;
mod write;

use std::collections::{BTreeMap, HashMap, HashSet};

use opsmith_codegen::diagnostics::{Diagnostic, Diagnostics, SourceMap};
use opsmith_codegen::expr::check::Undeclared;
use opsmith_codegen::model::Note;
use opsmith_codegen::pipeline;
use opsmith_codegen::spec::document::keys;
use opsmith_codegen::spec::schema::Schema;
use opsmith_codegen::spec::yaml;

use declare::Declaration;
use derivatives::{Derivatives, Direction, Formula};
use fold::Folded;
use native::Native;
use translate::{Operators, Translator};

pub use report::{ImportReport, ImportRow, Opaque};

/// The result of an import.
pub struct Import {
    /// The spec.
    pub spec: String,
    /// The account of the files' contents.
    pub report: ImportReport,
}

/// The reason why nothing was imported.
pub struct Refused {
    /// The texts that the mistakes are in.
    pub sources: SourceMap,
    /// The mistakes.
    pub diagnostics: Diagnostics,
}

/// A file: its name for messages, and its text.
#[derive(Clone, Copy)]
pub struct Input<'t> {
    /// Its name in messages.
    pub name: &'t str,
    /// Its text.
    pub text: &'t str,
}

/// Imports the two files.
///
/// # Errors
/// If one of them cannot be parsed, or has entries with malformed signatures.
pub fn import(native: Input<'_>, derivatives: Input<'_>) -> Result<Import, Box<Refused>> {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let mut read = |input: Input<'_>, diagnostics: &mut Diagnostics| {
        let source = sources.add(input.name, input.text);
        yaml::parse(&sources, source, diagnostics)
    };
    let trees = (read(native, &mut diagnostics), read(derivatives, &mut diagnostics));
    let (Some(native), Some(derivatives)) = trees else {
        return Err(Box::new(Refused { sources, diagnostics }));
    };
    let natives = native::read(&native, &sources, &mut diagnostics);
    let derivatives = derivatives::read(&derivatives, &sources, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(Box::new(Refused { sources, diagnostics }));
    }
    let mut work = Work::new(&natives, &derivatives);
    work.translate();
    work.declare();
    let spec = work.settle()?;
    let report = report::of(&work, &derivatives);
    Ok(Import { spec, report })
}

/// The state of an import.
struct Work<'n> {
    natives: &'n [Native],
    entries: Vec<Folded>,
    /// The formulas of an entry, by its position.
    formulas: BTreeMap<usize, Formulas<'n>>,
    declarations: Vec<Declaration>,
    /// The symbols of an operator, by its full name.
    symbols: HashMap<String, Vec<&'static str>>,
}

/// Facts about the entry's derivatives.
#[derive(Default)]
struct Formulas<'n> {
    list: Vec<Stated<'n>>,
    output_differentiability: Vec<String>,
    rest: Vec<(String, Note)>,
}

/// A formula and its translation state.
struct Stated<'n> {
    source: &'n Formula,
    state: State,
}

/// The translation state of a formula.
#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    /// A word that denotes a rule.
    Word(String),
    /// A formula in the spec language.
    Translated(String),
    /// Still C++, with the reason.
    Opaque(String),
    /// Kept under `origin`, with the reason why the language cannot express it.
    Kept(String),
}

/// Formulas that are words, alike in both files.
const WORDS: [&str; 3] = ["non_differentiable", "auto_linear", "auto_element_wise"];

/// The head of the spec.
const HEAD: &str =
    "Imported from PyTorch's native_functions.yaml and derivatives.yaml by `opsmith import-torch`.
`supplied` names the kernels of PyTorch, `origin` holds what no key of this language says, and
`opaque(…)` a formula that is C++ still.";

/// Maximal number of rounds, enough to find every failing formula; each round removes at least one.
const MAX_ROUNDS: usize = 64;

impl<'n> Work<'n> {
    fn new(natives: &'n [Native], derivatives: &'n [Derivatives]) -> Work<'n> {
        // A form with a derivative of its own is a separate entry.
        let known: HashSet<&str> = natives.iter().map(|native| native.func.as_str()).collect();
        let apart = derivatives.iter().map(|entry| entry.func.as_str()).filter(|func| known.contains(func));
        // A signature that only PyTorch's generator makes is known from its derivative.
        let generated = derivatives.iter().filter(|entry| !known.contains(entry.func.as_str()));
        let generated: Vec<&Schema> = generated.map(|entry| &entry.schema).collect();
        let entries = fold::fold(natives, &apart.collect(), &generated);
        let mut owner: HashMap<&str, usize> = HashMap::new();
        for (position, entry) in entries.iter().enumerate() {
            owner.extend(entry.members().map(|member| (natives[member].func.as_str(), position)));
        }
        let made = |func: &str| entries.iter().position(|entry| entry.schema.to_string() == func);
        let mut formulas: BTreeMap<usize, Formulas<'n>> = BTreeMap::new();
        for entry in derivatives {
            let Some(position) = owner.get(entry.func.as_str()).copied().or_else(|| made(&entry.func)) else {
                continue;
            };
            let found = formulas.entry(position).or_default();
            found.output_differentiability = entry.flags();
            found.rest.extend(entry.rest.iter().cloned());
            found.list.extend(
                entry.formulas.iter().map(|source| Stated { source, state: State::Opaque(String::new()) }),
            );
        }
        let mut work = Work { natives, entries, formulas, declarations: Vec::new(), symbols: HashMap::new() };
        work.read_symbols();
        work
    }

    /// The table of symbols.
    fn read_symbols(&mut self) {
        for line in include_str!("operators.txt").lines().filter(|line| !line.starts_with('#')) {
            if let Some((func, symbol)) =
                line.strip_prefix("declare ").and_then(|rest| rest.split_once(" : "))
            {
                let (func, operator) = (func.to_owned(), Some(symbol.to_owned()));
                self.declarations.push(Declaration { func, operator });
            } else if let Some((name, symbols)) = line.split_once(' ') {
                self.symbols.insert(name.to_owned(), symbols.split(" | ").collect());
            }
        }
    }

    /// Translates the text of each formula.
    fn translate(&mut self) {
        let operators = Operators::new(self.entries.iter().map(|entry| &entry.schema));
        for (position, formulas) in &mut self.formulas {
            let translator = Translator { operators: &operators, schema: &self.entries[*position].schema };
            for formula in &mut formulas.list {
                formula.state = translated(&translator, formula.source);
            }
        }
    }

    /// Declares the functions in translated formulas, by a draft in which any call is allowed.
    fn declare(&mut self) {
        let (text, _) = write::spec(self, HEAD);
        let draft = pipeline::check_draft("draft", &text, Undeclared::Allowed);
        self.declarations.extend(declare::declarations(&draft.model.ops));
    }

    /// Removes rejected formulas until the checker accepts all.
    fn settle(&mut self) -> Result<String, Box<Refused>> {
        let mut rounds = 0;
        loop {
            let (text, places) = write::spec(self, HEAD);
            let checked = pipeline::check_text("imported.yaml", &text);
            if !checked.diagnostics.has_errors() {
                return Ok(text);
            }
            rounds += 1;
            let mut progress = false;
            let mut unusable = Vec::new();
            for error in checked.diagnostics.errors() {
                let start = error.primary.span.start as usize;
                // Formulas come before their entry.
                let place = places.iter().find(|(range, _)| range.contains(&start)).map(|(_, place)| *place);
                match place {
                    Some(Place::Formula { entry, index }) => progress |= self.refuse(entry, index, error),
                    Some(Place::Entry(entry)) => {
                        let count = self.formulas.get(&entry).map_or(0, |found| found.list.len());
                        (0..count).for_each(|index| progress |= self.keep(entry, index, error));
                    }
                    Some(Place::Declaration(index)) => unusable.push(index),
                    None => {}
                }
            }
            unusable.sort_unstable();
            unusable.dedup();
            progress |= !unusable.is_empty();
            unusable.into_iter().rev().for_each(|index| _ = self.declarations.remove(index));
            if !progress || rounds == MAX_ROUNDS {
                let (sources, diagnostics) = (checked.sources, checked.diagnostics);
                return Err(Box::new(Refused { sources, diagnostics }));
            }
        }
    }

    /// Reverts a formula to C++; if it already was, the language cannot express it.
    fn refuse(&mut self, entry: usize, index: usize, error: &Diagnostic) -> bool {
        let found = self.formulas.get_mut(&entry).and_then(|found| found.list.get_mut(index));
        match found {
            Some(formula) if matches!(formula.state, State::Translated(_)) => {
                formula.state = State::Opaque(reason(error));
                true
            }
            _ => self.keep(entry, index, error),
        }
    }

    fn keep(&mut self, entry: usize, index: usize, error: &Diagnostic) -> bool {
        match self.formulas.get_mut(&entry).and_then(|found| found.list.get_mut(index)) {
            Some(formula) if !matches!(formula.state, State::Kept(_)) => {
                formula.state = State::Kept(reason(error));
                true
            }
            _ => false,
        }
    }
}

/// The checker's message, in one line.
fn reason(error: &Diagnostic) -> String {
    match error.primary.text.as_str() {
        "" => error.message.clone(),
        label => format!("{}: {label}", error.message),
    }
}

/// The part of the written spec at a position.
#[derive(Clone, Copy)]
enum Place {
    Formula { entry: usize, index: usize },
    Entry(usize),
    Declaration(usize),
}

fn translated(translator: &Translator<'_>, formula: &Formula) -> State {
    if formula.direction == Direction::Forward && keys::find(keys::OP_KEYS, "forward").is_none() {
        return State::Kept("the language has no key for tangents".to_owned());
    }
    if WORDS.contains(&formula.text.as_str()) {
        return State::Word(formula.text.clone());
    }
    if let Some(key) = &formula.dispatch_key {
        return State::Kept(format!("it holds for the dispatch key {key} only"));
    }
    match cpp::parse(&formula.text).and_then(|tree| translator.translate(&tree)) {
        Ok(text) => State::Translated(text),
        Err(reason) => State::Opaque(reason),
    }
}

impl Formulas<'_> {
    /// Whether a key of the spec can express the flags.
    fn flags_are_plain(&self) -> bool {
        are_plain(&self.output_differentiability)
    }

    /// The fields that no key of the spec expresses.
    fn kept(&self) -> Vec<(String, Note)> {
        let mut kept = self.rest.clone();
        if !self.flags_are_plain() {
            let flags = self.output_differentiability.iter().cloned().map(Note::Text).collect();
            kept.push(("output_differentiability".to_owned(), Note::List(flags)));
        }
        for formula in self.list.iter().filter(|formula| matches!(formula.state, State::Kept(_))) {
            let direction = match formula.source.direction {
                Direction::Backward => "backward",
                Direction::Forward => "forward",
            };
            let key = formula.source.dispatch_key.as_deref().unwrap_or("Default");
            let name = format!("{key} {direction} {}", formula.source.key);
            kept.push((name, Note::Text(formula.source.text.clone())));
        }
        kept
    }
}

/// Whether flags are truth values rather than conditions in C++.
fn are_plain(flags: &[String]) -> bool {
    flags.iter().all(|flag| matches!(flag.as_str(), "True" | "False"))
}
