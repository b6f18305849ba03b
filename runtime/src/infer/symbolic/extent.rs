//! Extents that are formulas: comparisons of a rule on sizes that may be unknown.
//!
//! In: two sizes. Out: the answer, if it is certain; else an assumed answer, with a guard that keeps the result
//! correct.

use super::condition::{Condition, Context, Guard};
use super::shape::{Shape, Sizes};
use super::size::Size;
use crate::error::{Error, Result};
use crate::infer::extent::Extents;
use crate::layout::{Dims, checked_numel};

/// Extents that are formulas, with the operator that the guards name.
pub(super) struct Formulas<'c> {
    pub op: &'static str,
    pub context: &'c mut Context,
}

/// The reason of guards on sizes that broadcast.
pub(super) const BROADCAST: &str = "sizes broadcast only if they are equal or 1";

impl Formulas<'_> {
    /// Assumes a condition, and keeps it as a guard unless it is known to hold.
    pub fn guard(&mut self, condition: Condition, reason: &str) {
        self.context.assume(Guard { condition, op: self.op, reason: reason.to_owned() });
    }
}

impl Extents for Formulas<'_> {
    type Extent = Size;
    type Shape = Sizes;

    fn are_equal(&self, a: &[Size], b: &[Size]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.context.equal(a, b) == Condition::True)
    }

    fn broadcast(&mut self, a: &Size, b: &Size) -> Option<Size> {
        let (one, equal) = (Size::Const(1), self.context.equal(a, b));
        match (a.known(), b.known()) {
            _ if equal == Condition::True => return Some(a.clone()),
            (Some(1), _) => return Some(b.clone()),
            (_, Some(1)) => return Some(a.clone()),
            _ => {}
        }
        let a_is_one = self.context.equal(a, &one);
        let b_is_one = self.context.equal(b, &one);
        let never = |condition: &Condition| *condition == Condition::False;
        if never(&equal) && never(&a_is_one) && never(&b_is_one) {
            return None;
        }
        // One of them decides: the other equals it or is 1.
        if never(&a_is_one) || a.known().is_some() {
            self.guard(equal.or(b_is_one), BROADCAST);
            return Some(a.clone());
        }
        if never(&b_is_one) || b.known().is_some() {
            self.guard(equal.or(a_is_one), BROADCAST);
            return Some(b.clone());
        }
        if a.is_unknown() || b.is_unknown() {
            self.guard(Condition::Unknown, BROADCAST);
            return Some(Size::Unknown);
        }
        // Of two symbols, one whose example is 1 is assumed to be 1; otherwise they are assumed equal.
        let symbols = &self.context.symbols;
        let example = |size: &Size| size.evaluate(|symbol| symbols.example(symbol));
        let (taken, condition) = match (example(a), example(b)) {
            (Some(1), Some(other)) if other != 1 => (b, a_is_one),
            (Some(other), Some(1)) if other != 1 => (a, b_is_one),
            _ => (a, equal),
        };
        self.guard(condition, BROADCAST);
        Some(taken.clone())
    }

    fn unify(&mut self, a: &Size, b: &Size, reason: &str) -> Option<Size> {
        let equal = self.context.equal(a, b);
        if equal == Condition::False {
            return None;
        }
        self.guard(equal, reason);
        Some(if b.known().is_some() || a.is_unknown() { b.clone() } else { a.clone() })
    }

    fn add(&self, a: &Size, b: &Size) -> Size {
        a + b
    }

    fn check_numel(&self, shape: &[Size]) -> Result<()> {
        match shape.iter().map(Size::known).collect::<Option<Dims>>() {
            Some(numbers) => checked_numel(&numbers).map(drop),
            // The operator checks them at run time.
            None => Ok(()),
        }
    }

    fn check_given(&mut self, shape: &[Size]) -> Result<()> {
        for size in shape {
            match self.context.less(size, &Size::Const(0)) {
                Condition::False => {}
                Condition::True => {
                    let text = self.shape_text(shape);
                    return Err(Error::shape(format!("the shape {text} has a negative size")));
                }
                open => self.guard(open.negated(), "a size cannot be negative"),
            }
        }
        self.check_numel(shape)
    }

    fn text(&self, extent: &Size) -> String {
        extent.named(&self.context.symbols).to_string()
    }

    fn shape_text(&self, shape: &[Size]) -> String {
        Shape::Known(shape.into()).named(&self.context.symbols).to_string()
    }
}
