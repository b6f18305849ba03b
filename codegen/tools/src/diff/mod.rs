//! Comparison of two specs: the changes and their effect on callers.
//!
//! In: two models. Out: a [`Report`]: each change with its rule, its class and a migration, and the resulting version.
//! A change is classified by the caller it hurts more: Rust code calls functions by position and sets options by name;
//! calls by name use positions and keywords. A change without a rule is reported, too.

mod arguments;
mod behaviour;
mod inference;
mod operators;
mod rules;
mod version;

use serde::Serialize;

use opsmith_codegen::model::Model;

pub use rules::{DiffRule, RULES};
pub use version::{Version, next};

/// The effect of a change on callers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Callers notice no difference except in low-order bits.
    Internal,
    /// There is more to call; existing calls are unaffected.
    Additive,
    /// Existing calls do not compile, fail, or change their meaning.
    Breaking,
}

/// One change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Change {
    /// Its effect.
    pub class: Class,
    /// The rule that applies.
    pub rule: &'static str,
    /// The operator, or scalar function, by its old name unless it is new.
    pub name: String,
    /// The difference.
    pub what: String,
    /// The replacement in users' code.
    pub migration: Option<String>,
}

/// All changes.
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
