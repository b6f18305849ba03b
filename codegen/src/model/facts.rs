//! Facts about the operator, apart from its computation.

pub use opsmith_core::{Lines, NumberUse, ValueUse};

use super::Formula;

/// Facts that documents, the runtime's definitions and tools show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The version that added it.
    pub since: Option<String>,
    /// Why not to use it any more.
    pub deprecated: Option<Deprecated>,
    /// Whether equal inputs always give equal bits.
    pub deterministic: bool,
    /// Whether kernels change a result that starts as a copy of the first argument, which they do not take.
    pub updates: bool,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Names that other libraries have for it, without overload.
    pub known_as: Vec<String>,
    /// Whether only gradient formulas call it, so that users need not see it.
    pub backward_only: bool,
    /// The lines that it computes each alone.
    pub lines: Option<Lines>,
    /// The formula that documents write for a call, in which the arguments that it does not have are defaults; empty for
    /// a function of its name.
    pub notation: Vec<NotationPart>,
    /// The formula of its results that documents show where no expression gives an element.
    pub formula: Option<Formula>,
}

/// A part of the formula that documents write for a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotationPart {
    /// An argument, by position.
    Argument(usize),
    /// An argument at the lower right of the part before it.
    Subscript(usize),
    /// An argument as the exponent of the part before it.
    Exponent(usize),
    /// A mark at the upper right of the part before it: `T`.
    Superscript(String),
    /// A symbol or a word: `Σ`.
    Symbol(String),
}

impl Default for Facts {
    fn default() -> Facts {
        Facts {
            since: None,
            deprecated: None,
            deterministic: true,
            updates: false,
            tags: Vec::new(),
            known_as: Vec::new(),
            backward_only: false,
            lines: None,
            notation: Vec::new(),
            formula: None,
        }
    }
}

/// The key `deprecated`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deprecated {
    /// The version since which it is.
    pub since: Option<String>,
    /// The operator to use instead, by its full name, and its Rust function.
    pub instead: Option<(String, String)>,
}
