//! The sentences about operators that the generator wrote, as Python's documentation shows them.
//!
//! In: the documentation of libraries. Out: lines about an operator, in which arguments have the names that they have in Python.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use opsmith_runtime::library::{Documentation, Words};
use opsmith_runtime::op::OpDef;

use super::argument_name;

/// The sentences about each operator, by the address of its definition.
static KNOWN: RwLock<Option<HashMap<usize, &'static Words>>> = RwLock::new(None);

/// Remembers the sentences about a library's operators, and of those that it builds on.
pub fn learn(documentation: &'static Documentation) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let mut libraries = vec![documentation];
    while let Some(one) = libraries.pop() {
        let addresses = one.library.ops.iter().map(|op| std::ptr::from_ref(*op).addr());
        known.extend(addresses.zip(one.words.iter().copied()));
        libraries.extend(one.parents);
    }
}

/// The sentences about an operator.
pub struct OfOperator {
    words: Option<&'static Words>,
    /// Names of the spec, each with that in Python.
    renamed: Vec<(&'static str, String)>,
}

impl OfOperator {
    /// Those of an operator; none if no generator wrote any.
    pub fn of(op: &OpDef) -> OfOperator {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        let words = known.as_ref().and_then(|known| known.get(&std::ptr::from_ref(op).addr()).copied());
        let names = op.schema.args.iter().map(|def| (def.name, argument_name(def)));
        OfOperator { words, renamed: names.filter(|(name, python)| name != python).collect() }
    }

    /// The lines of a part.
    fn lines(&self, part: impl Fn(&'static Words) -> &'static str) -> Vec<String> {
        self.words.map(part).unwrap_or_default().split('\n').map(|line| self.in_python(line)).collect()
    }

    /// The formula, and other facts of the computation.
    pub fn definition(&self) -> Vec<String> {
        let text = self.words.map(|words| &*words.definition).unwrap_or_default();
        let is_formula = |line: &str| line.starts_with("formula: ") || line.starts_with(Words::PART);
        text.split('\n').map(|line| self.with_names(line, is_formula(line))).collect()
    }

    /// The meaning of an argument, by its position.
    pub fn argument(&self, position: usize) -> String {
        self.lines(|words| &words.arguments).into_iter().nth(position).unwrap_or_default()
    }

    /// Meaning and rules of all results.
    pub fn results(&self) -> Vec<String> {
        self.lines(|words| &words.results)
    }

    /// Those of a result, by its position, without its name.
    pub fn result(&self, position: usize, name: Option<&str>) -> String {
        let line = self.results().into_iter().nth(position).unwrap_or_default();
        let named = name.map(|name| format!("`{name}`: ")).unwrap_or_default();
        line.strip_prefix(&named).map_or(line.clone(), str::to_owned)
    }

    /// Gradient formulas, or the source of gradients.
    pub fn gradients(&self) -> Vec<String> {
        self.lines(|words| &words.gradients)
    }

    /// Refused calls.
    pub fn errors(&self) -> Vec<String> {
        self.lines(|words| &words.errors)
    }

    /// A text whose formulas, which stand between backticks, have the names of arguments in Python.
    pub fn in_python(&self, text: &str) -> String {
        self.with_names(text, false)
    }

    /// The same; in formulas of entries, names may have subscripts: `self_i`.
    fn with_names(&self, text: &str, has_subscripts: bool) -> String {
        if self.renamed.is_empty() {
            return text.to_owned();
        }
        let parts = text.split('`').enumerate();
        parts
            .map(
                |(number, part)| {
                    if number % 2 == 1 { self.renamed_in(part, has_subscripts) } else { part.to_owned() }
                },
            )
            .collect::<Vec<_>>()
            .join("`")
    }

    /// A formula with other names of arguments.
    fn renamed_in(&self, formula: &str, has_subscripts: bool) -> String {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let (mut text, mut rest) = (String::with_capacity(formula.len()), formula);
        while let Some(start) = rest.find(is_part) {
            let word = &rest[start..];
            let end = word.find(|letter| !is_part(letter)).unwrap_or(word.len());
            let is_member = rest[..start].ends_with(['.', '"', ':']);
            let behind = |name: &str| {
                let behind = word[..end].strip_prefix(name).filter(|_| !is_member)?;
                (behind.is_empty() || has_subscripts && behind.starts_with('_')).then_some(behind)
            };
            let renamed = self.renamed.iter().find_map(|(name, python)| Some((python, behind(name)?)));
            text.push_str(&rest[..start]);
            match renamed {
                Some((python, behind)) => text.extend([python, behind]),
                None => text.push_str(&word[..end]),
            }
            rest = &word[end..];
        }
        text.push_str(rest);
        text
    }
}

/// The rest of a sentence as a sentence.
pub fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).chain(['.']).collect(),
        None => String::new(),
    }
}
