//! Conversion of elements between all pairs of dtypes.
//!
//! In: an element. Out: one of another type, as a C cast would give where C defines it; see [`copy`](super::copy).

use num_complex::Complex;

use crate::element::rounded_to_odd;
use crate::halves::Half;

/// Conversion of one element to another type, as a C cast would.
pub trait ConvertFrom<S> {
    /// The converted element.
    fn convert_from(value: S) -> Self;

    /// Converts elements that lie one after the other.
    ///
    /// # Safety
    /// `length` elements are valid for reads at `from`, and for writes at `to`.
    unsafe fn convert_row(from: *const S, to: *mut Self, length: usize)
    where
        Self: Sized,
    {
        for position in 0..length {
            // SAFETY: the caller's promise; nothing is asked of how the addresses are aligned.
            unsafe {
                to.add(position).write_unaligned(Self::convert_from(from.add(position).read_unaligned()))
            }
        }
    }
}

macro_rules! real_to_real {
    ($($from:ty => [$($to:ty),*];)*) => {$($(
        impl ConvertFrom<$from> for $to {
            #[inline(always)]
            fn convert_from(value: $from) -> $to { value as $to }
        }
    )*)*};
}

real_to_real! {
    u8 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    u16 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    u32 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    u64 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    i8 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    i16 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    i32 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    i64 => [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    f32 => [i32, i64, f32, f64];
    f64 => [i32, i64, f32, f64];
}

macro_rules! float_to_u64 {
    ($($from:ty),*) => {$(
        impl ConvertFrom<$from> for u64 {
            #[inline(always)]
            fn convert_from(value: $from) -> u64 {
                if value < 0.0 { value as i64 as u64 } else { value as u64 }
            }
        }
    )*};
}
float_to_u64!(f32, f64);

/// Narrow integers take a float's low bits, by way of a wide integer.
macro_rules! float_to_narrow {
    ($($from:ty => [$($to:ty),*];)*) => {$($(
        impl ConvertFrom<$from> for $to {
            #[inline(always)]
            fn convert_from(value: $from) -> $to { value as i64 as $to }
        }
    )*)*};
}
float_to_narrow! { f32 => [u8, u16, u32, i8, i16]; f64 => [u8, u16, u32, i8, i16]; }

macro_rules! to_and_from_bool {
    ($($ty:ty),*) => {$(
        impl ConvertFrom<bool> for $ty {
            #[inline(always)]
            fn convert_from(value: bool) -> $ty { u8::from(value) as $ty }
        }
        impl ConvertFrom<$ty> for bool {
            #[inline(always)]
            fn convert_from(value: $ty) -> bool { value != (0 as $ty) }
        }
    )*};
}
to_and_from_bool!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);
impl ConvertFrom<bool> for bool {
    #[inline(always)]
    fn convert_from(value: bool) -> bool {
        value
    }
}

/// Floats that compute in `f32` convert by way of it.
macro_rules! halves {
    ($({ $variant:ident: $half:ty, $size:tt })*) => {$(
        halves! { @one $half: [bool, u8, u16, u32, u64, i8, i16, i32, i64, f64] }
    )*};
    (@one $half:ty: [$($other:ty),*]) => {
        $(
            impl ConvertFrom<$other> for $half {
                #[inline(always)]
                fn convert_from(value: $other) -> $half {
                    <$half>::from_f32(rounded_to_odd(<f64 as ConvertFrom<$other>>::convert_from(value)))
                }
            }
            impl ConvertFrom<$half> for $other {
                #[inline(always)]
                fn convert_from(value: $half) -> $other {
                    <$other as ConvertFrom<f32>>::convert_from(value.to_f32())
                }
            }
        )*
        impl ConvertFrom<$half> for $half {
            #[inline(always)]
            fn convert_from(value: $half) -> $half { value }
        }
        impl ConvertFrom<f32> for $half {
            #[inline(always)]
            fn convert_from(value: f32) -> $half { <$half>::from_f32(value) }

            /// As a slice, which is converted with the processor's own instructions where it has them.
            unsafe fn convert_row(from: *const f32, to: *mut $half, length: usize) {
                // SAFETY: the caller's promise; elements lie at multiples of their size, and are initialised.
                unsafe {
                    let to = std::slice::from_raw_parts_mut(to, length);
                    <$half as Half>::narrow(std::slice::from_raw_parts(from, length), to);
                }
            }
        }
        impl ConvertFrom<$half> for f32 {
            #[inline(always)]
            fn convert_from(value: $half) -> f32 { value.to_f32() }

            /// As a slice, which is converted with the processor's own instructions where it has them.
            unsafe fn convert_row(from: *const $half, to: *mut f32, length: usize) {
                // SAFETY: the caller's promise; elements lie at multiples of their size, and are initialised.
                unsafe {
                    let to = std::slice::from_raw_parts_mut(to, length);
                    <$half as Half>::widen(std::slice::from_raw_parts(from, length), to);
                }
            }
        }
        complexes! { f32: [$half]; f64: [$half]; }
    };
}

/// Conversions of each of these floats to each other one.
macro_rules! between_halves {
    () => {};
    ({ $variant:ident: $half:ty, $size:tt } $({ $others:ident: $other:ty, $sizes:tt })*) => {
        $(
            impl ConvertFrom<$half> for $other {
                #[inline(always)]
                fn convert_from(value: $half) -> $other { <$other>::from_f32(value.to_f32()) }
            }
            impl ConvertFrom<$other> for $half {
                #[inline(always)]
                fn convert_from(value: $other) -> $half { <$half>::from_f32(value.to_f32()) }
            }
        )*
        between_halves! { $({ $others: $other, $sizes })* }
    };
}

macro_rules! complexes {
    ($($real:ty: [$($other:ty),*];)*) => {$($(
        impl ConvertFrom<$other> for Complex<$real> {
            #[inline(always)]
            fn convert_from(value: $other) -> Complex<$real> {
                Complex::new(<$real as ConvertFrom<$other>>::convert_from(value), 0.0)
            }
        }
        impl ConvertFrom<Complex<$real>> for $other {
            #[inline(always)]
            fn convert_from(value: Complex<$real>) -> $other {
                <$other as ConvertFrom<$real>>::convert_from(value.re)
            }
        }
    )*)*};
}
complexes! {
    f32: [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
    f64: [u8, u16, u32, u64, i8, i16, i32, i64, f32, f64];
}

opsmith_core::for_each_half!(halves);
opsmith_core::for_each_half!(between_halves);

macro_rules! complex_special {
    ($($real:ty),*) => {$(
        impl ConvertFrom<bool> for Complex<$real> {
            #[inline(always)]
            fn convert_from(value: bool) -> Complex<$real> { Complex::new(u8::from(value) as $real, 0.0) }
        }
        impl ConvertFrom<Complex<$real>> for bool {
            /// A complex number is zero only if both its parts are.
            #[inline(always)]
            fn convert_from(value: Complex<$real>) -> bool { value.re != 0.0 || value.im != 0.0 }
        }
        impl ConvertFrom<Complex<$real>> for Complex<f32> {
            #[inline(always)]
            fn convert_from(value: Complex<$real>) -> Complex<f32> { Complex::new(value.re as f32, value.im as f32) }
        }
        impl ConvertFrom<Complex<$real>> for Complex<f64> {
            #[inline(always)]
            fn convert_from(value: Complex<$real>) -> Complex<f64> { Complex::new(value.re as f64, value.im as f64) }
        }
    )*};
}
complex_special!(f32, f64);
