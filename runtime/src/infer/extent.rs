//! Extents: sizes of dimensions in the rules for `shape:`, numbers in a call and formulas before it.
//!
//! In: comparisons and arithmetic of extents. Out: for numbers (`Numbers`), the plain result at the cost of an integer
//! operation; formulas are in `symbolic::extent`, where an undecided comparison becomes a guard. Must not know tensors
//! or rules.

use std::ops::DerefMut;

use crate::error::{Result, ShapeText};
use crate::layout::{Dims, checked_numel};

/// Comparisons and arithmetic of extents for a rule.
pub(super) trait Extents {
    /// The size of a dimension.
    type Extent: Clone + From<i64> + PartialEq<i64>;
    /// The sizes of a tensor.
    type Shape: FromIterator<Self::Extent> + Extend<Self::Extent> + DerefMut<Target = [Self::Extent]>;

    /// Whether two shapes are certainly the same.
    fn are_equal(&self, a: &[Self::Extent], b: &[Self::Extent]) -> bool;

    /// The size that two broadcast to; `None` if they certainly do not.
    fn broadcast(&mut self, a: &Self::Extent, b: &Self::Extent) -> Option<Self::Extent>;

    /// Two sizes that must be equal for the reason given: returns the more specific one, or `None` if they certainly
    /// differ.
    fn unify(&mut self, a: &Self::Extent, b: &Self::Extent, reason: &str) -> Option<Self::Extent>;

    /// The sum of two sizes.
    fn add(&self, a: &Self::Extent, b: &Self::Extent) -> Self::Extent;

    /// Rejects a shape of more elements than memory can hold.
    fn check_numel(&self, shape: &[Self::Extent]) -> Result<()>;

    /// As [`Extents::check_numel`], for sizes that are attributes and may be negative.
    fn check_given(&mut self, shape: &[Self::Extent]) -> Result<()>;

    /// The text of a size in errors.
    fn text(&self, extent: &Self::Extent) -> String;

    /// The text of a shape in errors.
    fn shape_text(&self, shape: &[Self::Extent]) -> String;
}

/// Extents that are numbers.
pub(super) struct Numbers;

impl Extents for Numbers {
    type Extent = i64;
    type Shape = Dims;

    #[inline]
    fn are_equal(&self, a: &[i64], b: &[i64]) -> bool {
        a == b
    }

    #[inline]
    fn broadcast(&mut self, a: &i64, b: &i64) -> Option<i64> {
        match (*a, *b) {
            (left, right) if left == right || right == 1 => Some(left),
            (1, right) => Some(right),
            _ => None,
        }
    }

    #[inline]
    fn unify(&mut self, a: &i64, b: &i64, _: &str) -> Option<i64> {
        (a == b).then_some(*a)
    }

    #[inline]
    fn add(&self, a: &i64, b: &i64) -> i64 {
        a.saturating_add(*b)
    }

    #[inline]
    fn check_numel(&self, shape: &[i64]) -> Result<()> {
        checked_numel(shape).map(drop)
    }

    #[inline]
    fn check_given(&mut self, shape: &[i64]) -> Result<()> {
        self.check_numel(shape)
    }

    fn text(&self, extent: &i64) -> String {
        extent.to_string()
    }

    fn shape_text(&self, shape: &[i64]) -> String {
        ShapeText(shape).to_string()
    }
}
