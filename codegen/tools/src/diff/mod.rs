//! What changed between two specs, and what it means for those who call the operators.
//!
//! In: two models. Out: a [`Report`]: each change with its rule, its class and what to do about it, and
//! the version that follows. A change is classified by the caller it hurts more: Rust
//! code calls functions by position and sets options by name; calls by name give positions and keywords. A change without
//! a rule is reported, too.

mod arguments;
mod behaviour;
mod inference;
mod operators;
mod rules;
mod version;

use serde::Serialize;

use opsmith_codegen::model::Model;

pub use rules::{RULES, Rule};
pub use version::{Version, next};

/// How much a change matters to callers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Callers notice nothing but other bits.
    Internal,
    /// There is more to call; what was there works as before.
    Additive,
    /// Calls that worked do not compile, fail, or mean something else.
    Breaking,
}

/// One change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Change {
    /// How much it matters.
    pub class: Class,
    /// The rule that says so.
    pub rule: &'static str,
    /// The operator, or scalar function, by its old name unless it is new.
    pub name: String,
    /// What is different.
    pub what: String,
    /// What users have to write instead.
    pub migration: Option<String>,
}

/// Everything that changed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The changes: breaking ones first, then in the order of the specs.
    pub changes: Vec<Change>,
}

impl Report {
    /// The worst of the changes; `None` if nothing changed.
    pub fn worst(&self) -> Option<Class> {
        self.changes.iter().map(|change| change.class).max()
    }

    /// The changes of a class.
    pub fn of(&self, class: Class) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.class == class)
    }
}

/// Compares two specs.
pub fn diff(old: &Model, new: &Model) -> Report {
    let mut changes = Changes::default();
    operators::compare(old, new, &mut changes);
    let mut changes = changes.0;
    changes.sort_by_key(|change| std::cmp::Reverse(change.class));
    Report { changes }
}

/// Collects changes.
#[derive(Default)]
struct Changes(Vec<Change>);

impl Changes {
    /// Adds a change by its rule.
    fn push(&mut self, rule: &'static str, name: &str, what: String, migration: Option<String>) {
        let class = rules::class_of(rule);
        self.0.push(Change { class, rule, name: name.to_owned(), what, migration });
    }
}
