//! The largest and the smallest element.

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::{Element, Error, Result, View, ViewMut};

use super::fold::{Fold, fold};
use super::reduced_count;
use crate::cpu::lanes::{NARROW, SUMS, together};
use crate::math::{maximum, minimum, select};

/// The order in which one of two numbers is better.
pub(super) trait Choice: Copy + Sync {
    /// The number that is no better than any.
    fn worst<C: Ordered>(self) -> C;
    /// Whether `new` is strictly better; false if either is NaN.
    fn better<C: Ordered>(self, new: C, old: C) -> bool;
    /// Whether `new` is worse or equal; false if either is NaN.
    fn no_better<C: Ordered>(self, new: C, old: C) -> bool;
    /// The better number, NaN if one is.
    fn choose<C: Ordered>(self, a: C, b: C) -> C;

    /// Whether `new` takes the place of `old`, NaN being better than everything.
    #[inline(always)]
    fn replaces<C: Ordered>(self, new: C, old: C) -> bool {
        !self.no_better(new, old) & old.equal(old)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Largest;

impl Choice for Largest {
    #[inline(always)]
    fn worst<C: Ordered>(self) -> C {
        C::LOWEST
    }
    #[inline(always)]
    fn better<C: Ordered>(self, new: C, old: C) -> bool {
        new.gt(old)
    }
    #[inline(always)]
    fn no_better<C: Ordered>(self, new: C, old: C) -> bool {
        new.le(old)
    }
    #[inline(always)]
    fn choose<C: Ordered>(self, a: C, b: C) -> C {
        maximum(a, b)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Smallest;

impl Choice for Smallest {
    #[inline(always)]
    fn worst<C: Ordered>(self) -> C {
        C::HIGHEST
    }
    #[inline(always)]
    fn better<C: Ordered>(self, new: C, old: C) -> bool {
        new.lt(old)
    }
    #[inline(always)]
    fn no_better<C: Ordered>(self, new: C, old: C) -> bool {
        new.ge(old)
    }
    #[inline(always)]
    fn choose<C: Ordered>(self, a: C, b: C) -> C {
        minimum(a, b)
    }
}

/// The best of some elements, NaN if there is one.
#[inline(always)]
pub(super) fn best_of<T: Element<Compute: Ordered>>(elements: &[T], choice: impl Choice) -> T::Compute {
    match elements.len() {
        0..FEW => one_by_one(elements, choice),
        FEW..SHORT => {
            let (blocks, rest) = elements.as_chunks::<NARROW>();
            joined(side_by_side(blocks, choice), rest, choice)
                .unwrap_or_else(|| best_or_nan(elements, choice))
        }
        _ => {
            let (blocks, rest) = elements.as_chunks::<SUMS>();
            joined(together(side_by_side(blocks, choice)), rest, choice)
                .unwrap_or_else(|| best_or_nan(elements, choice))
        }
    }
}

/// Elements that are compared one by one.
pub(in crate::cpu) const FEW: usize = NARROW / 2;
/// Elements for which many partial results take longer than they save.
pub(in crate::cpu) const SHORT: usize = 4 * SUMS;

/// The best elements and sums of elements in each place of some blocks. Comparisons pass over NaN; the sum of the elements is NaN if one of
/// them is, and seldom otherwise.
#[inline(always)]
fn side_by_side<const LANES: usize, T: Element<Compute: Ordered>>(
    blocks: &[[T; LANES]],
    choice: impl Choice,
) -> ([T::Compute; LANES], [T::Compute; LANES]) {
    let mut best = [choice.worst::<T::Compute>(); LANES];
    let mut sums = [T::Compute::ZERO; LANES];
    for block in blocks {
        for lane in 0..LANES {
            let element = block[lane].to_compute();
            best[lane] = select(choice.better(element, best[lane]), element, best[lane]);
            sums[lane] = Arithmetic::add(sums[lane], element);
        }
    }
    (best, sums)
}

/// The best of the elements that [`side_by_side`] has seen and of fewer others, unless there may be a NaN.
#[inline(always)]
fn joined<const LANES: usize, T: Element<Compute: Ordered>>(
    (mut best, mut sums): ([T::Compute; LANES], [T::Compute; LANES]),
    rest: &[T],
    choice: impl Choice,
) -> Option<T::Compute> {
    for lane in 0..rest.len() {
        let element = rest[lane].to_compute();
        best[lane] = select(choice.better(element, best[lane]), element, best[lane]);
        sums[lane] = Arithmetic::add(sums[lane], element);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            let other = best[lane + width];
            best[lane] = select(choice.better(other, best[lane]), other, best[lane]);
            sums[lane] = Arithmetic::add(sums[lane], sums[lane + width]);
        }
        width /= 2;
    }
    sums[0].equal(sums[0]).then_some(best[0])
}

/// As [`best_of`], of elements one of which may be NaN: seldom, so out of line.
#[cold]
#[inline(never)]
fn best_or_nan<T: Element<Compute: Ordered>>(elements: &[T], choice: impl Choice) -> T::Compute {
    one_by_one(elements, choice)
}

/// The first NaN, else the best number.
#[inline(always)]
fn one_by_one<T: Element<Compute: Ordered>>(elements: &[T], choice: impl Choice) -> T::Compute {
    let choose = |best, element: &T| choice.choose(best, element.to_compute());
    elements.iter().fold(choice.worst(), choose)
}

struct Extreme<K>(K);

impl<T: Element<Compute: Ordered>, K: Choice> Fold<T> for Extreme<K> {
    type Context = ();
    type Partial = T::Compute;
    type Out = T;

    #[inline(always)]
    fn context(&self, _number: usize) {}
    #[inline(always)]
    fn start(&self) -> T::Compute {
        self.0.worst()
    }
    #[inline(always)]
    fn take(&self, _context: (), partial: T::Compute, element: T) -> T::Compute {
        self.0.choose(partial, element.to_compute())
    }
    #[inline(always)]
    fn take_row(&self, _context: (), row: &[T]) -> T::Compute {
        best_of(row, self.0)
    }
    #[inline(always)]
    fn merge(&self, first: T::Compute, second: T::Compute) -> T::Compute {
        self.0.choose(first, second)
    }
    #[inline(always)]
    fn finish(&self, partial: T::Compute) -> T {
        T::from_compute(partial)
    }
}

/// The largest elements over dimensions; NaN if there is one.
///
/// # Errors
/// If there are outputs but no elements to choose from.
pub fn amax<T>(self_: View<'_, T>, dim: &[i64], keepdim: bool, out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Ordered>,
{
    extreme(&self_, dim, keepdim, out, Largest)
}

/// The smallest elements over dimensions; NaN if there is one.
///
/// # Errors
/// If there are outputs but no elements to choose from.
pub fn amin<T>(self_: View<'_, T>, dim: &[i64], keepdim: bool, out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Ordered>,
{
    extreme(&self_, dim, keepdim, out, Smallest)
}

fn extreme<T: Element<Compute: Ordered>>(
    input: &View<'_, T>,
    dim: &[i64],
    keepdim: bool,
    mut out: ViewMut<'_, T>,
    choice: impl Choice,
) -> Result<()> {
    let reduced = reduced_dims(input.dim(), Some(dim))?;
    refuse_empty(input.sizes(), &reduced)?;
    fold(input, &reduced, keepdim, &mut out, &Extreme(choice))
}

/// The largest element; NaN if there is one.
///
/// # Errors
/// If there is no element.
pub fn max_full<T: Element<Compute: Ordered>>(self_: View<'_, T>, out: ViewMut<'_, T>) -> Result<()> {
    amax(self_, &[], false, out)
}

/// The smallest element; NaN if there is one.
///
/// # Errors
/// If there is no element.
pub fn min_full<T: Element<Compute: Ordered>>(self_: View<'_, T>, out: ViewMut<'_, T>) -> Result<()> {
    amin(self_, &[], false, out)
}

/// The outputs exist (the dispatcher skips kernels without output elements), so the elements must.
pub(crate) fn refuse_empty(sizes: &[i64], reduced: &[bool]) -> Result<()> {
    if reduced_count(sizes, reduced) > 0 {
        return Ok(());
    }
    Err(Error::shape(format!(
        "no element to choose from: a reduced dimension of the shape {} has size 0",
        ShapeText(sizes)
    ))
    .with_help("reduce dimensions that have elements, or check numel() first"))
}
