//! Facts about arguments of an operator, which the generator checks and the runtime acts on.
//!
//! In: nothing. Out: plain data. Nothing here knows tensors or a spec.

use std::borrow::Cow;

use crate::DType;

/// Dtypes that go together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Combination {
    /// The tensor arguments, by position.
    pub inputs: Cow<'static, [(usize, DType)]>,
    /// The results in order.
    pub outputs: Cow<'static, [DType]>,
}

impl Combination {
    /// A row of static data.
    pub const fn of(inputs: &'static [(usize, DType)], outputs: &'static [DType]) -> Combination {
        Combination { inputs: Cow::Borrowed(inputs), outputs: Cow::Borrowed(outputs) }
    }
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
    /// It stands beside real parts or absolute values of elements, so that it has to be real. No entry says it.
    Real,
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

/// The dimensions of the lines that an operator computes each alone, by the argument that says them, by position: a line of
/// a result follows from the same line of each tensor that has the lines, and from tensors of fewer dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lines {
    /// From the first dimension that the argument numbers, an integer or several, to the last.
    Along(u8),
    /// As many last dimensions as the argument, a list of sizes, has.
    Last(u8),
}

/// Whether the elements of a tensor argument decide the shape or dtype of a result, so that it cannot
/// be told from shapes and dtypes alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ValueUse {
    /// They do not.
    #[default]
    None,
    /// They do where they are known; without them less is known of the result.
    Optional,
    /// Those of a mask, a tensor of `bool` or `uint8`, do where they are known; integers do not.
    Masks,
    /// They do: without them nothing can be said of the result.
    Required,
}

impl ValueUse {
    /// The words of the key `value_depends`.
    pub const WORDS: [(&'static str, ValueUse); 3] =
        [("required", ValueUse::Required), ("optional", ValueUse::Optional), ("masks", ValueUse::Masks)];

    /// Whether the elements of a tensor of this dtype decide.
    pub fn counts(self, dtype: DType) -> bool {
        match self {
            ValueUse::None => false,
            ValueUse::Optional | ValueUse::Required => true,
            ValueUse::Masks => matches!(dtype, DType::Bool | DType::U8),
        }
    }
}
