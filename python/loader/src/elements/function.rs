//! The functions of numbers as loops over blocks, by the groups of types that have them.
//!
//! In: the name of a function in Rust, as `functions:` of the stock spec has it. Out: its loops. Each is compiled as a kernel's
//! are, for several processors.

use opsmith_runtime::Element;
use opsmith_runtime::arith::Arithmetic;
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

/// A function of each value, in a loop for the processor. A loop is all that is compiled for each function and type.
#[inline(always)]
pub fn one<V: Element, R: Arithmetic>(a: &Row<V>, function: impl Fn(V) -> R) -> Row<R> {
    let values = match a {
        Row::Same(value) => return Row::Same(function(*value)),
        Row::Each(values) => values,
    };
    let mut results = vec![R::ZERO; values.len()];
    widest_over::<V, _>(
        #[inline(always)]
        || {
            for (result, value) in std::iter::zip(&mut results, values) {
                *result = function(*value);
            }
        },
    );
    Row::Each(results)
}

/// A function of the values of two rows, in a loop for the processor.
#[inline(always)]
pub fn two<V: Element, R: Arithmetic>(a: &Row<V>, b: &Row<V>, function: impl Fn(V, V) -> R) -> Row<R> {
    if let (Row::Same(a), Row::Same(b)) = (a, b) {
        return Row::Same(function(*a, *b));
    }
    let length = length(&[a, b]);
    let (a, b) = (a.spread(length), b.spread(length));
    let mut results = vec![R::ZERO; length];
    widest_over::<V, _>(
        #[inline(always)]
        || {
            for (result, (a, b)) in std::iter::zip(&mut results, std::iter::zip(&*a, &*b)) {
                *result = function(*a, *b);
            }
        },
    );
    Row::Each(results)
}

/// A function of the values of three rows.
pub fn three<V: Element, R: Arithmetic>(
    a: &Row<V>,
    b: &Row<V>,
    c: &Row<V>,
    function: impl Fn(V, V, V) -> R,
) -> Row<R> {
    if let (Row::Same(a), Row::Same(b), Row::Same(c)) = (a, b, c) {
        return Row::Same(function(*a, *b, *c));
    }
    let length = length(&[a, b, c]);
    let (a, b, c) = (a.spread(length), b.spread(length), c.spread(length));
    let mut results = vec![R::ZERO; length];
    widest_over::<V, _>(
        #[inline(always)]
        || {
            for (result, ((a, b), c)) in std::iter::zip(&mut results, std::iter::zip(&*a, &*b).zip(&*c)) {
                *result = function(*a, *b, *c);
            }
        },
    );
    Row::Each(results)
}

/// The number of elements of rows; one if each has a single value.
fn length<V>(rows: &[&Row<V>]) -> usize {
    let lengths = rows.iter().map(|row| match row {
        Row::Each(values) => values.len(),
        Row::Same(_) => 1,
    });
    lengths.max().unwrap_or(1)
}
