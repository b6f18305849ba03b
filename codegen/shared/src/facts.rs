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
