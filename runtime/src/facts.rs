//! What a spec says of an operator besides what it computes: data for documents, graphs and tools.

pub use opsmith_core::ValueUse;

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

/// The relation of a number that is an argument to the elements that are computed with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NumberUse {
    /// It is converted to the type that elements are computed in, which must hold it.
    Computed,
    /// It is converted to the elements' dtype, which must hold it.
    Held,
    /// It stands beside real parts or absolute values of elements, so that it has to be real.
    Real,
    /// As `Held`, and it must not be of a higher category than the elements.
    Alike,
    /// A lower bound of elements. One below all that the dtype holds does not bind; one above all is refused.
    Lower,
    /// An upper bound of elements. One above all that the dtype holds does not bind; one below all is refused.
    Upper,
}
