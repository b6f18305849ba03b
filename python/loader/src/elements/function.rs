//! The functions of numbers as loops over blocks, by the groups of types that have them.
//!
//! In: the name of a function in Rust, as `functions:` of the stock spec has it. Out: its loops. Each is compiled as a kernel's
//! are, for several processors.

use opsmith_runtime::Element;
use opsmith_runtime::simd::widest_over;

use super::block::{Block, Row};
use super::lane::Lane;

/// A function with its name.
pub struct Function<C: Lane> {
    /// The name of the function in Rust: `exp` of `math::exp`.
    pub name: &'static str,
    /// Its loop.
    pub apply: Apply<C>,
}

/// A loop over the values of three rows.
type OfThree<C> = fn(&Row<C>, &Row<C>, &Row<C>) -> Row<C>;

/// A loop over the values of as many rows as the function has parameters.
pub enum Apply<C: Lane> {
    One(fn(&Row<C>) -> Row<C>),
    Two(fn(&Row<C>, &Row<C>) -> Row<C>),
    Three(OfThree<C>),
    /// To real parts.
    Part(fn(&Row<C>) -> Row<C::Part>),
    /// To truth values.
    Test(fn(&Row<C>) -> Row<bool>),
    Compare(fn(&Row<C>, &Row<C>) -> Row<bool>),
}

impl<C: Lane> Function<C> {
    /// The function of a name; `None` if the type has none.
    pub fn named(name: &str) -> Option<&'static Function<C>> {
        C::FUNCTIONS.iter().copied().flatten().find(|function| function.name == name)
    }

    /// Its values; `None` for another number of arguments.
    pub fn call(&self, args: &[Row<C>]) -> Option<Block<C>> {
        Some(match (&self.apply, args) {
            (Apply::One(apply), [a]) => Block::Element(apply(a)),
            (Apply::Two(apply), [a, b]) => Block::Element(apply(a, b)),
            (Apply::Three(apply), [a, b, c]) => Block::Element(apply(a, b, c)),
            (Apply::Part(apply), [a]) => Block::Part(apply(a)),
            (Apply::Test(apply), [a]) => Block::Bool(apply(a)),
            (Apply::Compare(apply), [a, b]) => Block::Bool(apply(a, b)),
            _ => return None,
        })
    }
}

/// A function of each value, in a loop for the processor.
#[inline(always)]
pub fn one<V: Element, R>(a: &Row<V>, function: impl Fn(V) -> R) -> Row<R> {
    widest_over::<V, _>(
        #[inline(always)]
        || a.map(function),
    )
}

/// A function of the values of two rows, in a loop for the processor.
#[inline(always)]
pub fn two<V: Element, R>(a: &Row<V>, b: &Row<V>, function: impl Fn(V, V) -> R) -> Row<R> {
    widest_over::<V, _>(
        #[inline(always)]
        || a.zip(b, function),
    )
}

/// A function of the values of three rows.
pub fn three<V: Element, R>(a: &Row<V>, b: &Row<V>, c: &Row<V>, function: impl Fn(V, V, V) -> R) -> Row<R> {
    if let (Row::Same(a), Row::Same(b), Row::Same(c)) = (a, b, c) {
        return Row::Same(function(*a, *b, *c));
    }
    let length = [a, b, c].into_iter().find_map(|row| match row {
        Row::Each(values) => Some(values.len()),
        Row::Same(_) => None,
    });
    let length = length.unwrap_or(1);
    let (a, b, c) = (a.spread(length), b.spread(length), c.spread(length));
    widest_over::<V, _>(
        #[inline(always)]
        || Row::Each((0..length).map(|at| function(a[at], b[at], c[at])).collect()),
    )
}
