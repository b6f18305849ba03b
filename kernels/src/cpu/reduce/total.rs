//! Sums of elements as they are.
//!
//! Complex numbers are added as pairs of reals, so that sums stay in registers.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{DType, Element};

use super::fold::Fold;
use super::{in_registers, sum_row};
use crate::cpu::lanes::{NARROW, SUMS, sum_lanes, sum_terms};

/// Sums of elements.
pub(super) struct Total<End> {
    pub end: End,
}

impl<T, O, End> Fold<T> for Total<End>
where
    T: Element<Compute: Arithmetic>,
    O: Element,
    End: Fn(T::Compute) -> O + Sync,
{
    type Context = ();
    type Partial = T::Compute;
    type Out = O;
    const FOUR: bool = in_registers::<T>();

    #[inline(always)]
    fn context(&self, _number: usize) {}
    #[inline(always)]
    fn start(&self) -> T::Compute {
        T::Compute::ZERO
    }
    #[inline(always)]
    fn take(&self, _context: (), partial: T::Compute, element: T) -> T::Compute {
        Arithmetic::add(partial, element.to_compute())
    }
    #[inline(always)]
    fn take_row(&self, _context: (), row: &[T]) -> T::Compute {
        match const { T::DTYPE } {
            // SAFETY: a dtype has one element type, whose parts are of this one.
            DType::C64 => unsafe { sum_of_parts::<T, f32>(row) },
            // SAFETY: as above.
            DType::C128 => unsafe { sum_of_parts::<T, f64>(row) },
            _ => sum_row(row, T::to_compute),
        }
    }
    #[inline(always)]
    fn take_four(&self, _contexts: [(); 4], rows: [&[T]; 4]) -> [T::Compute; 4] {
        if rows[0].len() < NARROW / 2 {
            return rows.map(|row| self.take_row((), row));
        }
        sum_terms(rows, |elements| elements.map(T::to_compute))
    }
    #[inline(always)]
    fn merge(&self, first: T::Compute, second: T::Compute) -> T::Compute {
        Arithmetic::add(first, second)
    }
    #[inline(always)]
    fn finish(&self, partial: T::Compute) -> O {
        (self.end)(partial)
    }
}

/// The sum of complex numbers.
///
/// # Safety
/// An element is two parts, one after the other, and of its compute type.
#[inline(always)]
unsafe fn sum_of_parts<T: Element, Part: Arithmetic>(row: &[T]) -> T::Compute {
    debug_assert!(size_of::<T>() == 2 * size_of::<Part>());
    // SAFETY: the caller's promise.
    let parts: &[Part] = unsafe { std::slice::from_raw_parts(row.as_ptr().cast(), 2 * row.len()) };
    let [mut totals] = sum_lanes([parts], |[part]| [part]);
    let mut width = SUMS / 2;
    while width > 1 {
        for lane in 0..width {
            totals[lane] = Arithmetic::add(totals[lane], totals[lane + width]);
        }
        width /= 2;
    }
    // SAFETY: the caller's promise; a lane of an even number holds sums of first parts.
    unsafe { std::mem::transmute_copy(&[totals[0], totals[1]]) }
}
