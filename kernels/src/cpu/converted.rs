//! Slices of elements in the compute type, and back: those of 16-bit floats with wide vectors.
//!
//! In: slices of one length. Out: each element converted as a single one is. Loops over elements that convert one by one
//! are no faster than scalar code; a block that stays in the first cache is converted first, and then visited.

use std::mem::MaybeUninit;

use opsmith_runtime::halves::Half;
use opsmith_runtime::simd::{widest, widest_over};
use opsmith_runtime::{DType, Element, Scratch, bf16, f16};

/// Whether elements are 16-bit floats, which [`widen`] and [`narrow`] convert with wide vectors.
pub(crate) const fn is_half<T: Element>() -> bool {
    matches!(T::DTYPE, DType::BF16 | DType::F16)
}

/// As [`widest_over`], for loops over elements that are converted one by one: those of 16-bit floats, which compute in `f32`, are
/// compiled in as many versions as those of `f32`, and those of complex numbers for AVX2.
#[inline(always)]
pub(crate) fn widest_of<T: Element, R>(body: impl FnOnce() -> R) -> R {
    match const { T::DTYPE } {
        DType::F16 | DType::BF16 => widest(body),
        DType::C64 | DType::C128 => widest_over::<bf16, R>(body),
        _ => widest_over::<T, R>(body),
    }
}

/// The elements in the compute type, in memory for at least as many.
#[inline(always)]
pub(crate) fn widened<'a, T: Element>(
    from: &[T],
    memory: &'a mut [MaybeUninit<T::Compute>],
) -> &'a mut [T::Compute] {
    let memory = &mut memory[..from.len()];
    memory.fill(MaybeUninit::new(T::Compute::default()));
    // SAFETY: each number was written.
    let to = unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), from.len()) };
    widen(from, to);
    to
}

/// Writes the elements of a slice, which is as long, in the compute type.
#[inline(always)]
pub(crate) fn widen<T: Element>(from: &[T], to: &mut [T::Compute]) {
    match const { T::DTYPE } {
        // SAFETY: a dtype has one element type, and its compute type is `f32`.
        DType::BF16 => unsafe { bf16::widen(same(from), same_mut(to)) },
        // SAFETY: as above.
        DType::F16 => unsafe { f16::widen(same(from), same_mut(to)) },
        _ => {
            for index in 0..from.len() {
                to[index] = from[index].to_compute();
            }
        }
    }
}

/// Writes the nearest elements of numbers of the compute type, as many.
#[inline(always)]
pub(crate) fn narrow<T: Element>(from: &[T::Compute], to: &mut [T]) {
    match const { T::DTYPE } {
        // SAFETY: a dtype has one element type, and its compute type is `f32`.
        DType::BF16 => unsafe { bf16::narrow(same(from), same_mut(to)) },
        // SAFETY: as above.
        DType::F16 => unsafe { f16::narrow(same(from), same_mut(to)) },
        _ => {
            for index in 0..from.len() {
                to[index] = T::from_compute(from[index]);
            }
        }
    }
}

/// Replaces the numbers in a buffer by the elements of a slice.
#[inline(always)]
pub(crate) fn widen_into<T: Element>(from: &[T], buffer: &mut Scratch<T::Compute>) {
    buffer.resize(from.len(), T::Compute::default());
    widen(from, buffer);
}

/// The slice as one of another type.
///
/// # Safety
/// Both types are the same.
unsafe fn same<A, B>(slice: &[A]) -> &[B] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), slice.len()) }
}

/// As [`same`], for writing.
///
/// # Safety
/// Both types are the same.
unsafe fn same_mut<A, B>(slice: &mut [A]) -> &mut [B] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(slice.as_mut_ptr().cast(), slice.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::scattered;

    fn check<T: Element>() {
        for length in [0, 1, 7, 8, 15, 16, 33, 1000] {
            let numbers: Vec<T::Compute> = scattered(length)
                .map(|x| T::Compute::from_scalar(opsmith_runtime::Scalar::Float(100.0 * x)))
                .collect();
            let mut elements = vec![T::default(); length];
            narrow(&numbers, &mut elements);
            assert!(elements.iter().zip(&numbers).all(|(&a, &b)| a == T::from_compute(b)));
            let mut wide = Scratch::filled(T::Compute::default(), 3);
            widen_into(&elements, &mut wide);
            assert!(wide.iter().zip(&elements).all(|(&a, &b)| a == b.to_compute()) && wide.len() == length);
        }
    }

    #[test]
    fn slices_are_converted_as_single_elements_are() {
        check::<bf16>();
        check::<f16>();
        check::<f32>();
        check::<i64>();
    }
}
