//! Facts of an operator's spec beyond its computation: data for documents, graphs and tools.

pub use opsmith_core::{Lines, NumberUse, ValueUse};

/// Facts about an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The version that added it.
    pub since: Option<&'static str>,
    /// The reason not to use it any more.
    pub deprecated: Option<Deprecated>,
    /// Whether equal inputs always give equal bits. An operator that is not deterministic must run as often as it is
    /// written.
    pub deterministic: bool,
    /// Keywords to find it by.
    pub tags: &'static [&'static str],
    /// Whether only gradient formulas call it.
    pub backward_only: bool,
    /// The lines that it computes each alone, so that it may run for some of them after the other.
    pub lines: Option<Lines>,
}

impl Facts {
    /// The facts of an operator without declared ones.
    pub const NONE: Facts = Facts {
        since: None,
        deprecated: None,
        deterministic: true,
        tags: &[],
        backward_only: false,
        lines: None,
    };
}

/// The deprecation of an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deprecated {
    /// The version since which it is deprecated.
    pub since: Option<&'static str>,
    /// The full name of the operator to use instead.
    pub instead: Option<&'static str>,
}
