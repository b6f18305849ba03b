//! Facts about the operator besides what it computes.

pub use opsmith_core::ValueUse;

/// Facts that documents, the runtime's definitions and tools show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The version that added it.
    pub since: Option<String>,
    /// Why not to use it any more.
    pub deprecated: Option<Deprecated>,
    /// Whether equal inputs always give equal bits.
    pub deterministic: bool,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Names that other libraries have for it, without overload.
    pub known_as: Vec<String>,
    /// Whether only gradient formulas call it, so that users need not see it.
    pub backward_only: bool,
}

impl Default for Facts {
    fn default() -> Facts {
        Facts {
            since: None,
            deprecated: None,
            deterministic: true,
            tags: Vec::new(),
            known_as: Vec::new(),
            backward_only: false,
        }
    }
}

/// What `deprecated` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deprecated {
    /// The version since which it is.
    pub since: Option<String>,
    /// The operator to use instead, by its full name, and its Rust function.
    pub instead: Option<(String, String)>,
}

/// The relation of a number that is an argument to the elements that are computed with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NumberUse {
    /// None: it takes part in the promotion of dtypes, or is no element.
    Free,
    /// It is converted to the type that elements are computed in, which must hold it.
    Computed,
    /// It is converted to the elements' dtype, which must hold it.
    Held,
    /// As `Held`, and it must not be of a higher category than the elements.
    Alike,
    /// A lower bound of elements. One below all that the dtype holds does not bind; one above all is refused.
    Lower,
    /// An upper bound of elements. One above all that the dtype holds does not bind; one below all is refused.
    Upper,
}

impl NumberUse {
    /// The words of the key `numbers`.
    pub const WORDS: [(&'static str, NumberUse); 6] = [
        ("free", NumberUse::Free),
        ("computed", NumberUse::Computed),
        ("held", NumberUse::Held),
        ("alike", NumberUse::Alike),
        ("lower", NumberUse::Lower),
        ("upper", NumberUse::Upper),
    ];

    /// The word of the key `numbers`.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}
