//! Numbers that a loop on a device needs beside elements.
//!
//! In: attributes of a call. Out: their bytes, in the type in which the loop computes, packed as the fields of a struct.

use smallvec::SmallVec;

use crate::element::{Element, bounded, rounded};
use crate::scalar::Scalar;
use crate::with_dtype;
use opsmith_core::DType;

/// A field of a loop: its bytes, and their alignment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Constant {
    bytes: [u8; 16],
    size: u8,
    alignment: u8,
}

impl Constant {
    /// A truth value.
    pub fn bool(value: bool) -> Constant {
        Constant::of([u8::from(value)], 1)
    }

    /// An integer of 64 bits.
    pub fn int(value: i64) -> Constant {
        Constant::of(value.to_ne_bytes(), 8)
    }

    /// A binary64.
    pub fn float(value: f64) -> Constant {
        Constant::of(value.to_ne_bytes(), 8)
    }

    /// A number in the type that elements of a dtype are computed in.
    pub fn element(dtype: DType, number: Scalar) -> Constant {
        with_dtype!(dtype, T => computed(<T as Element>::Compute::from_scalar(number)))
    }

    /// A number rounded to a dtype, in the type that its elements are computed in.
    pub fn rounded(dtype: DType, number: Scalar) -> Constant {
        with_dtype!(dtype, T => computed(rounded::<T>(number)))
    }

    /// A bound of elements of a dtype, in the type that they are computed in.
    pub fn bound(dtype: DType, number: Scalar) -> Constant {
        with_dtype!(dtype, T => computed(bounded::<<T as Element>::Compute>(number)))
    }

    /// A number in the type that real parts of elements of a dtype are computed in.
    pub fn real(dtype: DType, number: Scalar) -> Constant {
        with_dtype!(dtype, T => {
            computed(<<<T as Element>::Real as Element>::Compute as Element>::from_scalar(number))
        })
    }

    /// A bound of real parts of elements of a dtype, in the type that they are computed in.
    pub fn real_bound(dtype: DType, number: Scalar) -> Constant {
        with_dtype!(dtype, T => computed(bounded::<<<T as Element>::Real as Element>::Compute>(number)))
    }

    fn of<const N: usize>(from: [u8; N], alignment: u8) -> Constant {
        let mut bytes = [0; 16];
        bytes[..N].copy_from_slice(&from);
        Constant { bytes, size: N as u8, alignment }
    }
}

/// The bytes of an element.
fn computed<C: Element>(value: C) -> Constant {
    let mut constant =
        Constant { bytes: [0; 16], size: size_of::<C>() as u8, alignment: align_of::<C>() as u8 };
    // SAFETY: an element has no padding, and at most as many bytes.
    unsafe {
        std::ptr::from_ref(&value)
            .cast::<u8>()
            .copy_to_nonoverlapping(constant.bytes.as_mut_ptr(), size_of::<C>());
    }
    constant
}

/// Constants as structs in C++, one after the other as the fields of another one, in whole words; a word if there are none. And the
/// number of words that the other one has.
pub(super) fn packed(structs: &[&[Constant]]) -> (SmallVec<[u64; 16]>, usize) {
    let mut end = 0;
    let mut places: SmallVec<[(&Constant, usize); 8]> = SmallVec::new();
    for constants in structs {
        let alignment = constants.iter().map(|constant| usize::from(constant.alignment)).max().unwrap_or(1);
        end = usize::next_multiple_of(end, alignment);
        for constant in *constants {
            let start = usize::next_multiple_of(end, usize::from(constant.alignment));
            places.push((constant, start));
            end = start + usize::from(constant.size);
        }
        // A struct without fields has a byte of its own.
        end = usize::next_multiple_of(if constants.is_empty() { end + 1 } else { end }, alignment);
    }
    let mut words: SmallVec<[u64; 16]> = SmallVec::from_elem(0, end.div_ceil(8) + 2);
    for (constant, place) in places {
        let bytes = &constant.bytes[..usize::from(constant.size)];
        // SAFETY: the words have room for every constant at its place.
        unsafe {
            words.as_mut_ptr().cast::<u8>().add(place).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
    (words, end.div_ceil(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_lie_as_fields_of_another() {
        let (flag, number) = (Constant::bool(true), Constant::int(7));
        // { bool; i64 }, an empty struct, { bool }, { i64 }
        let (words, count) = packed(&[&[flag, number], &[], &[flag], &[number]]);
        assert_eq!((&words[..4], count), (&[1, 7, 1 << 8, 7][..], 4));
        assert_eq!((packed(&[&[]]).0[0], packed(&[&[]]).1), (0, 1));
    }
}
