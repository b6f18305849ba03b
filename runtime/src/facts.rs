//! What a spec says of an operator besides what it computes: data for documents, graphs and tools.

pub use opsmith_core::{NumberUse, ValueUse};

/// Facts about an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The version that added it.
    pub since: Option<&'static str>,
    /// Why not to use it any more.
    pub deprecated: Option<Deprecated>,
    /// Whether equal inputs always give equal bits. What is not deterministic must run as often as it
    /// is written.
    pub deterministic: bool,
    /// Words to find it by.
    pub tags: &'static [&'static str],
    /// Whether only gradient formulas call it.
    pub backward_only: bool,
}

impl Facts {
    /// Of an operator about which a spec says nothing more.
    pub const NONE: Facts =
        Facts { since: None, deprecated: None, deterministic: true, tags: &[], backward_only: false };
}

/// Why not to use an operator any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deprecated {
    /// The version since which it is deprecated.
    pub since: Option<&'static str>,
    /// The full name of the operator to use instead.
    pub instead: Option<&'static str>,
}
