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

/// The constants as the fields of a struct in C++, in whole words; one word if there are none.
pub(super) fn packed(constants: &[Constant]) -> SmallVec<[u64; 16]> {
    let mut end = 0;
    let places: SmallVec<[usize; 8]> = constants
        .iter()
        .map(|constant| {
            let start = usize::next_multiple_of(end, usize::from(constant.alignment));
            end = start + usize::from(constant.size);
            start
        })
        .collect();
    let mut words: SmallVec<[u64; 16]> = SmallVec::from_elem(0, end.div_ceil(8) + 2);
    for (constant, place) in constants.iter().zip(places) {
        let bytes = &constant.bytes[..usize::from(constant.size)];
        // SAFETY: the words have room for every constant at its place.
        unsafe {
            words.as_mut_ptr().cast::<u8>().add(place).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
    words
}
