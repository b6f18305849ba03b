//! Reductions: many elements to one, and running sums.
//!
//! Dimensions may count from the end; no dimension given means all. Outputs keep reduced dimensions
//! with size 1 if `keepdim`. 16-bit floats accumulate in `f32`; sums are pairwise, so their rounding
//! error grows with the logarithm of the number of elements. The dispatcher has converted the input to the
//! `dtype` of the call.

pub(super) mod extreme;
mod fold;
pub(super) mod loops;
mod norm;
pub(super) mod plan;
pub(super) mod position;
mod running;
pub(super) mod scan;
mod total;
mod truth;
pub(super) mod variance;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::{DType, Element, Result, Scalar, View, ViewMut};

use super::lanes::{NARROW, fold_in_registers, fold_lanes, sum_terms};
use fold::{Fold, fold};
use total::Total;

pub(crate) use extreme::refuse_empty;
pub use extreme::{amax, amin, max_full, min_full};
pub(crate) use norm::real_order;
pub use norm::vector_norm;
pub use position::{argmax, argmin, max_dim, min_dim};
pub use running::{cummax, cummin};
pub use scan::{cumprod, cumsum, logcumsumexp};
pub use truth::{all, any};
pub(crate) use variance::real_correction;
pub use variance::var;

/// A fold that needs no facts about its outputs beforehand; with wide loops, if it is worth them.
struct Plain<const WIDE: bool, P, Take, Merge, End> {
    start: P,
    take: Take,
    merge: Merge,
    end: End,
}

impl<const WIDE: bool, T, P, O, Take, Merge, End> Fold<T> for Plain<WIDE, P, Take, Merge, End>
where
    T: Element,
    P: Copy + Send + Sync,
    O: Element,
    Take: Fn(P, T) -> P + Sync,
    Merge: Fn(P, P) -> P + Sync,
    End: Fn(P) -> O + Sync,
{
    type Context = ();
    type Partial = P;
    type Out = O;
    const WIDE: bool = WIDE;

    #[inline(always)]
    fn context(&self, _number: usize) {}
    #[inline(always)]
    fn start(&self) -> P {
        self.start
    }
    #[inline(always)]
    fn take(&self, _context: (), partial: P, element: T) -> P {
        (self.take)(partial, element)
    }
    #[inline(always)]
    fn merge(&self, first: P, second: P) -> P {
        (self.merge)(first, second)
    }
    #[inline(always)]
    fn finish(&self, partial: P) -> O {
        (self.end)(partial)
    }
}

/// Sums of elements, mapped by more than a few operations.
struct Sum<Map, End> {
    map: Map,
    end: End,
}

impl<T, P, O, Map, End> Fold<T> for Sum<Map, End>
where
    T: Element,
    P: Arithmetic,
    O: Element,
    Map: Fn(T) -> P + Sync,
    End: Fn(P) -> O + Sync,
{
    type Context = ();
    type Partial = P;
    type Out = O;
    const FOUR: bool = in_registers::<T>();

    #[inline(always)]
    fn context(&self, _number: usize) {}
    #[inline(always)]
    fn start(&self) -> P {
        P::ZERO
    }
    #[inline(always)]
    fn take(&self, _context: (), partial: P, element: T) -> P {
        Arithmetic::add(partial, (self.map)(element))
    }
    #[inline(always)]
    fn take_row(&self, _context: (), row: &[T]) -> P {
        sum_row(row, |element| (self.map)(element))
    }
    #[inline(always)]
    fn take_four(&self, _contexts: [(); 4], rows: [&[T]; 4]) -> [P; 4] {
        if rows[0].len() < NARROW / 2 {
            return rows.map(|row| self.take_row((), row));
        }
        sum_terms(rows, |elements| elements.map(&self.map))
    }
    #[inline(always)]
    fn merge(&self, first: P, second: P) -> P {
        Arithmetic::add(first, second)
    }
    #[inline(always)]
    fn finish(&self, partial: P) -> O {
        (self.end)(partial)
    }
}

/// Whether sums of elements are kept in registers, which is a longer loop: for the dtypes of most tensors.
const fn in_registers<T: Element>() -> bool {
    matches!(T::DTYPE, DType::F32 | DType::F64 | DType::BF16 | DType::F16)
}

/// The sum of elements one after the other, mapped. A few need no partial sums.
#[inline(always)]
fn sum_row<T: Element, P: Arithmetic>(row: &[T], map: impl Fn(T) -> P) -> P {
    if row.len() < NARROW / 2 {
        let mut sum = P::ZERO;
        for &element in row {
            sum = Arithmetic::add(sum, map(element));
        }
        return sum;
    }
    if const { in_registers::<T>() } {
        let [sum] = sum_terms([row], |[element]| [map(element)]);
        return sum;
    }
    fold_lanes(row, P::ZERO, |sum, element| Arithmetic::add(sum, map(element)), Arithmetic::add)
}

/// The sum of all elements; 0 without elements.
pub fn sum_full<T>(self_: View<'_, T>, out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Arithmetic>,
{
    sum(self_, None, false, out)
}

/// Sums over dimensions: `[[1, 2], [3, 4]]` over 0 is `[4, 6]`; 0 without elements.
pub fn sum<T>(self_: View<'_, T>, dim: Option<&[i64]>, keepdim: bool, mut out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Arithmetic>,
{
    let reduced = reduced_dims(self_.dim(), dim)?;
    fold(&self_, &reduced, keepdim, &mut out, &adding(None))
}

/// The sum, divided by a number if one is given: one fold for sums and means.
fn adding<T: Element<Compute: Arithmetic>>(divisor: Option<T::Compute>) -> impl Fold<T, Out = T> {
    Total { end: move |sum| T::from_compute(divisor.map_or(sum, |divisor| Arithmetic::div(sum, divisor))) }
}

/// The mean of all elements; NaN without elements.
pub fn mean_full<T>(self_: View<'_, T>, out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Arithmetic>,
{
    mean(self_, None, false, out)
}

/// Means over dimensions: `[[1, 2], [3, 4]]` over 0 is `[2, 3]`; NaN without elements.
pub fn mean<T>(self_: View<'_, T>, dim: Option<&[i64]>, keepdim: bool, mut out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Arithmetic>,
{
    let reduced = reduced_dims(self_.dim(), dim)?;
    let count = reduced_count(self_.sizes(), &reduced);
    let count = T::Compute::from_scalar(Scalar::Float(count as f64));
    fold(&self_, &reduced, keepdim, &mut out, &adding(Some(count)))
}

/// Elements behind each output.
fn reduced_count(sizes: &[i64], reduced: &[bool]) -> i64 {
    sizes.iter().zip(reduced).map(|(&size, &reduced)| if reduced { size } else { 1 }).product()
}

/// The product of all elements; 1 without elements.
pub fn prod_full<T>(self_: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Arithmetic>,
{
    let reduced = reduced_dims(self_.dim(), None)?;
    fold(&self_, &reduced, false, &mut out, &Product)
}

/// Products over one dimension: `[[1, 2], [3, 4]]` over 0 is `[3, 8]`; 1 without elements.
pub fn prod<T>(self_: View<'_, T>, dim: i64, keepdim: bool, mut out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Arithmetic>,
{
    let reduced = reduced_dims(self_.dim(), Some(&[dim]))?;
    fold(&self_, &reduced, keepdim, &mut out, &Product)
}

/// Products of elements.
struct Product;

impl<T: Element<Compute: Arithmetic>> Fold<T> for Product {
    type Context = ();
    type Partial = T::Compute;
    type Out = T;
    const WIDE: bool = in_registers::<T>();

    #[inline(always)]
    fn context(&self, _number: usize) {}
    #[inline(always)]
    fn start(&self) -> T::Compute {
        T::Compute::ONE
    }
    #[inline(always)]
    fn take(&self, _context: (), product: T::Compute, element: T) -> T::Compute {
        Arithmetic::mul(product, element.to_compute())
    }
    #[inline(always)]
    fn take_row(&self, _context: (), row: &[T]) -> T::Compute {
        fold_in_registers(row, T::Compute::ONE, |a, b| self.take((), a, b), Arithmetic::mul)
    }
    #[inline(always)]
    fn merge(&self, first: T::Compute, second: T::Compute) -> T::Compute {
        Arithmetic::mul(first, second)
    }
    #[inline(always)]
    fn finish(&self, partial: T::Compute) -> T {
        T::from_compute(partial)
    }
}

#[cfg(test)]
mod tests;
