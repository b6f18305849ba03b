//! Slices of 16-bit floats, and of the `f32` that they compute in, with the widest vectors of the processor.
//!
//! In: slices of one length. Out: each element converted as a single one is. Must know no tensor.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::element::Element;
use crate::simd::widest;

/// A 16-bit float.
pub trait Half: Element<Compute = f32> {
    /// Writes the numbers of a slice, which is as long.
    fn widen(from: &[Self], to: &mut [f32]);

    /// Writes the nearest numbers of a slice, which is as long, ties to even.
    fn narrow(from: &[f32], to: &mut [Self]);
}

/// With the instructions that processors have for it.
impl Half for f16 {
    fn widen(from: &[f16], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }

    fn narrow(from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }
}

impl Half for bf16 {
    fn widen(from: &[bf16], to: &mut [f32]) {
        widest(
            #[inline(always)]
            move || {
                for (from, to) in from.iter().zip(to) {
                    *to = from.to_f32();
                }
            },
        );
    }

    fn narrow(from: &[f32], to: &mut [bf16]) {
        widest(
            #[inline(always)]
            move || {
                for (from, to) in from.iter().zip(to) {
                    *to = bf16::from_f32(*from);
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
        let (mut narrow, mut wide) = (vec![bf16::ZERO; singles.len()], vec![0.0f32; singles.len()]);
        bf16::narrow(&singles, &mut narrow);
        bf16::widen(&narrow, &mut wide);
        for ((single, narrow), wide) in singles.iter().zip(&narrow).zip(&wide) {
            assert_eq!(narrow.to_bits(), bf16::from_f32(*single).to_bits(), "{single}");
            assert_eq!(wide.to_bits(), narrow.to_f32().to_bits(), "{single}");
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
}
