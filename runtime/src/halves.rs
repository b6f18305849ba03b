//! Slices of 16-bit floats, and of the `f32` that they compute in, with the widest vectors of the processor.
//!
//! In: slices of one length. Out: each element converted as a single one is. Must know no tensor.

use std::mem::MaybeUninit;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::element::Element;
use crate::simd::{self, widest};

/// A 16-bit float.
pub trait Half: Element<Compute = f32> {
    /// Writes the numbers of a slice into memory, which is as long and need not be initialised.
    fn widen_into(from: &[Self], to: &mut [MaybeUninit<f32>]);

    /// Writes the numbers of a slice, which is as long.
    #[inline]
    fn widen(from: &[Self], to: &mut [f32]) {
        // SAFETY: the same memory, into which only numbers are written.
        Self::widen_into(from, unsafe { &mut *(to as *mut [f32] as *mut [MaybeUninit<f32>]) });
    }

    /// Writes the nearest numbers of a slice, which is as long, ties to even.
    fn narrow(from: &[f32], to: &mut [Self]);
}

/// With the instructions that processors have for it.
impl Half for f16 {
    fn widen_into(from: &[f16], to: &mut [MaybeUninit<f32>]) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if simd::vector_bytes() == 64 {
            // SAFETY: vectors are that wide on a processor with these instructions.
            return unsafe { avx512::widen(from, to) };
        }
        to.fill(MaybeUninit::new(0.0));
        // SAFETY: the memory is initialised.
        from.convert_to_f32_slice(unsafe { &mut *(to as *mut [MaybeUninit<f32>] as *mut [f32]) });
    }

    fn narrow(from: &[f32], to: &mut [f16]) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if simd::vector_bytes() == 64 {
            // SAFETY: vectors are that wide on a processor with these instructions.
            return unsafe { avx512::narrow(from, to) };
        }
        to.convert_from_f32_slice(from);
    }
}

/// Conversions of 16 numbers at once, of which the crate `half` converts eight with a call.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx512 {
    use std::arch::x86_64::{
        _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _mm256_loadu_si256, _mm256_storeu_si256,
        _mm512_cvtph_ps, _mm512_cvtps_ph, _mm512_loadu_ps, _mm512_storeu_ps,
    };
    use std::mem::MaybeUninit;

    use half::f16;

    use crate::element::Element;

    /// # Safety
    /// The processor has AVX-512.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn widen(from: &[f16], to: &mut [MaybeUninit<f32>]) {
        let ((parts, rest), (wide_parts, wide_rest)) = (from.as_chunks::<16>(), to.as_chunks_mut::<16>());
        for (part, wide) in parts.iter().zip(wide_parts) {
            // SAFETY: both have 16 numbers.
            unsafe {
                let numbers = _mm512_cvtph_ps(_mm256_loadu_si256(part.as_ptr().cast()));
                _mm512_storeu_ps(wide.as_mut_ptr().cast(), numbers);
            }
        }
        for (one, wide) in rest.iter().zip(wide_rest) {
            wide.write(one.to_compute());
        }
    }

    /// # Safety
    /// The processor has AVX-512.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn narrow(from: &[f32], to: &mut [f16]) {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        let ((parts, rest), (short_parts, short_rest)) = (from.as_chunks::<16>(), to.as_chunks_mut::<16>());
        for (part, short) in parts.iter().zip(short_parts) {
            // SAFETY: both have 16 numbers.
            unsafe {
                let numbers = _mm512_cvtps_ph::<NEAREST>(_mm512_loadu_ps(part.as_ptr()));
                _mm256_storeu_si256(short.as_mut_ptr().cast(), numbers);
            }
        }
        for (one, short) in rest.iter().zip(short_rest) {
            *short = f16::from_f32(*one);
        }
    }
}

impl Half for bf16 {
    fn widen_into(from: &[bf16], to: &mut [MaybeUninit<f32>]) {
        widest(
            #[inline(always)]
            move || {
                for (from, to) in from.iter().zip(to) {
                    to.write(from.to_compute());
                }
            },
        );
    }

    fn narrow(from: &[f32], to: &mut [bf16]) {
        widest(
            #[inline(always)]
            move || {
                for (from, to) in from.iter().zip(to) {
                    *to = bf16::from_compute(*from);
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_converted_as_single_numbers_are() {
        let singles: Vec<f32> = (0..=u16::MAX)
            .map(|high| f32::from_bits((u32::from(high) << 16) | (u32::from(high) * 3 % 0x10000)))
            .collect();
        // Vectors, and numbers behind them.
        let singles = [&singles[..], &singles[70..79]].concat();
        let (mut narrow, mut wide) = (vec![bf16::ZERO; singles.len()], vec![0.0f32; singles.len()]);
        bf16::narrow(&singles, &mut narrow);
        bf16::widen(&narrow, &mut wide);
        for ((single, narrow), wide) in singles.iter().zip(&narrow).zip(&wide) {
            assert_eq!(narrow.to_bits(), bf16::from_f32(*single).to_bits(), "{single}");
            assert_eq!(wide.to_bits(), narrow.to_f32().to_bits(), "{single}");
            assert_eq!(narrow.to_bits(), bf16::from_compute(*single).to_bits(), "{single}");
        }
        let mut narrow = vec![f16::ZERO; singles.len()];
        f16::narrow(&singles, &mut narrow);
        f16::widen(&narrow, &mut wide);
        for ((single, narrow), wide) in singles.iter().zip(&narrow).zip(&wide) {
            let expected = f16::from_f32(*single);
            assert!(
                narrow.to_bits() == expected.to_bits() || narrow.is_nan() && expected.is_nan(),
                "{single}"
            );
            assert!(*wide == narrow.to_f32() || wide.is_nan() && narrow.is_nan(), "{single}");
        }
    }

    #[test]
    fn every_f16_is_the_number_that_its_bits_stand_for() {
        for bits in 0..=u16::MAX {
            let number = f16::from_bits(bits);
            assert_eq!(number.to_compute().to_bits(), number.to_f32_const().to_bits(), "{bits:#06x}");
        }
    }
}
