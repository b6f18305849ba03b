//! The Rust types of tensor elements and their conversions.

use num_complex::{Complex, Complex32, Complex64};
use opsmith_core::DType;

use crate::scalar::Scalar;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that tensors can hold.
pub trait Element:
    Copy + Default + Send + Sync + PartialEq + std::fmt::Debug + sealed::Sealed + 'static
{
    /// The dtype of tensors of this type.
    const DTYPE: DType;
    /// The type of the real part; the type itself unless complex.
    type Real: Element;
    /// The type of arithmetic, or of conversions where there is none: `f32` for floats of 16 and 8 bits, `i64` for integers of four,
    /// else the type itself.
    type Compute: Element;
    /// A type of the same size, no stricter alignment and the same zero, for which all bytes are valid: code that only
    /// moves elements is compiled for this type instead of for each.
    type Bits: Element;

    /// The scalar as this type: integers wrap, floats truncate toward integers, a complex number
    /// loses its imaginary part in a real type.
    fn from_scalar(scalar: Scalar) -> Self;
    /// The element as a scalar.
    fn to_scalar(self) -> Scalar;
    /// Widened to the compute type.
    fn to_compute(self) -> Self::Compute;
    /// Rounded from the compute type.
    fn from_compute(value: Self::Compute) -> Self;
}

macro_rules! plain_element {
    ($($ty:ty as $bits:ty, $dtype:ident, |$scalar:ident| $from:expr, |$value:ident| $to:expr;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            type Real = $ty;
            type Compute = $ty;
            type Bits = $bits;
            #[inline(always)]
            fn from_scalar($scalar: Scalar) -> Self { $from }
            #[inline(always)]
            fn to_scalar(self) -> Scalar { let $value = self; $to }
            #[inline(always)]
            fn to_compute(self) -> Self { self }
            #[inline(always)]
            fn from_compute(value: Self) -> Self { value }
        }
    )*};
}

plain_element! {
    bool as u8, Bool, |s| s.to_bool(), |v| Scalar::Bool(v);
    u8 as u8, U8, |s| s.to_i64() as u8, |v| Scalar::Int(i64::from(v));
    u16 as u16, U16, |s| s.to_i64() as u16, |v| Scalar::Int(i64::from(v));
    u32 as u32, U32, |s| s.to_i64() as u32, |v| Scalar::Int(i64::from(v));
    // A float may exceed every signed 64-bit integer.
    u64 as u64, U64, |s| match s {
        Scalar::Float(value) if value > 0.0 => value as u64,
        other => other.to_i64() as u64,
    }, |v| Scalar::Int(v as i64);
    i8 as u8, I8, |s| s.to_i64() as i8, |v| Scalar::Int(i64::from(v));
    i16 as u16, I16, |s| s.to_i64() as i16, |v| Scalar::Int(i64::from(v));
    i32 as u32, I32, |s| s.to_i64() as i32, |v| Scalar::Int(i64::from(v));
    i64 as u64, I64, |s| s.to_i64(), |v| Scalar::Int(v);
    f32 as u32, F32, |s| s.to_f64() as f32, |v| Scalar::Float(f64::from(v));
    f64 as u64, F64, |s| s.to_f64(), |v| Scalar::Float(v);
}

/// The unsigned integer with this number of bytes.
macro_rules! bits {
    (1) => {
        u8
    };
    (2) => {
        u16
    };
}

/// The elements of floats that are converted by way of `f32`: that compute in it, or only store.
macro_rules! half_elements {
    ($({ $dtype:ident: $ty:ty, $size:tt })*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            type Real = $ty;
            type Compute = f32;
            type Bits = bits!($size);
            #[inline(always)]
            fn from_scalar(scalar: Scalar) -> Self { <$ty>::from_f32(rounded_to_odd(scalar.to_f64())) }
            #[inline(always)]
            fn to_scalar(self) -> Scalar { Scalar::Float(f64::from(self)) }
            #[inline(always)]
            fn to_compute(self) -> f32 {
                match const { DType::$dtype } {
                    DType::F16 => of_f16_bits(u16::from(self.to_bits())),
                    DType::BF16 => f32::from_bits(u32::from(self.to_bits()) << 16),
                    _ => self.to_f32(),
                }
            }
            #[inline(always)]
            fn from_compute(value: f32) -> Self {
                match const { DType::$dtype } {
                    DType::BF16 => <$ty>::from_bits(to_bf16_bits(value) as bits!($size)),
                    _ => <$ty>::from_f32(value),
                }
            }
        }
    )*};
}

/// The number that the bits of an `f16` stand for. Without a branch, so that loops over it become loops over vectors: conversions of
/// single numbers ask the processor each time whether it has an instruction for them.
#[inline(always)]
fn of_f16_bits(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff);
    // A fraction is 13 bits longer, and the exponent's bias of 15 becomes one of 127.
    let normal = (magnitude << 13) + (112 << 23);
    let subnormal = (magnitude as f32 * f32::from_bits((127 - 24) << 23)).to_bits();
    // NaN becomes quiet.
    let special = (magnitude << 13) | 0x7f80_0000 | if magnitude > 0x7c00 { 0x0040_0000 } else { 0 };
    let finite = if magnitude < 0x0400 { subnormal } else { normal };
    let number = if magnitude >= 0x7c00 { special } else { finite };
    f32::from_bits(number | (u32::from(bits & 0x8000) << 16))
}

/// The bits of the `bfloat16` nearest to a number, ties to even, without a branch; those of NaN are quiet.
#[inline(always)]
fn to_bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    let number = if value.is_nan() { bits | 0x0040_0000 } else { rounded };
    (number >> 16) as u16
}

opsmith_core::for_each_half!(half_elements);
opsmith_core::for_each_stored_float!(half_elements);

/// The elements of integers that only store, which are converted by way of `i64`.
macro_rules! stored_integers {
    ($({ $dtype:ident: $ty:ty, $size:tt })*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            type Real = $ty;
            type Compute = i64;
            type Bits = bits!($size);
            #[inline(always)]
            fn from_scalar(scalar: Scalar) -> Self { <$ty>::from_i64(scalar.to_i64()) }
            #[inline(always)]
            fn to_scalar(self) -> Scalar { Scalar::Int(self.to_i64()) }
            #[inline(always)]
            fn to_compute(self) -> i64 { self.to_i64() }
            #[inline(always)]
            fn from_compute(value: i64) -> Self { <$ty>::from_i64(value) }
        }
    )*};
}

opsmith_core::for_each_stored_int!(stored_integers);

macro_rules! complex_element {
    ($($ty:ty, $real:ty, $dtype:ident;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            type Real = $real;
            type Compute = $ty;
            type Bits = $ty;
            #[inline(always)]
            fn from_scalar(scalar: Scalar) -> Self {
                let value = scalar.to_complex();
                Complex::new(value.re as $real, value.im as $real)
            }
            #[inline(always)]
            fn to_scalar(self) -> Scalar {
                Scalar::Complex(Complex64::new(self.re as f64, self.im as f64))
            }
            #[inline(always)]
            fn to_compute(self) -> Self { self }
            #[inline(always)]
            fn from_compute(value: Self) -> Self { value }
        }
    )*};
}

complex_element! { Complex32, f32, C64; Complex64, f64, C128; }

macro_rules! named_types {
    ($({ $variant:ident: $rust:ty, $($columns:tt)* })*) => {
        /// The Rust types of elements under the names of their dtypes.
        #[doc(hidden)]
        pub mod named {
            $(pub type $variant = $rust;)*
        }
    };
}

opsmith_core::for_each_dtype!(named_types);

/// The nearest single-precision number, or, unless it is exact, its neighbour on the other side whose last bit is 1: this one
/// rounds to fewer bits as the number itself does. The conversion of `half` sees the upper bits of a number in double
/// precision alone, so numbers just above the middle of two halves go to the even one.
#[inline]
pub(crate) fn rounded_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let (back, bits) = (f64::from(nearest), nearest.to_bits());
    if back == value || value.is_nan() || bits & 1 == 1 {
        return nearest;
    }
    f32::from_bits(if back.abs() > value.abs() { bits - 1 } else { bits + 1 })
}

/// A number rounded to an element type, in its compute type: 0.1 as a `float16` is 0.09998.
#[inline(always)]
pub fn rounded<T: Element>(number: Scalar) -> T::Compute {
    T::from_scalar(number).to_compute()
}

/// A bound of elements in their compute type; a bound outside an integer type's range becomes the end of that range.
#[inline(always)]
pub fn bounded<C: Element>(bound: Scalar) -> C {
    C::from_scalar(bound.clamped_to(C::DTYPE))
}

/// Runs an expression with a type alias bound to the Rust type of a dtype.
///
/// `with_dtype!(dtype, T => size_of::<T>())`
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::for_each_dtype! { [$dtype, $T, $body] $crate::match_dtype }
    };
}

/// The match of [`with_dtype!`].
#[doc(hidden)]
#[macro_export]
macro_rules! match_dtype {
    ([$dtype:expr, $T:ident, $body:expr] $({ $variant:ident: $($columns:tt)* })*) => {
        match $dtype {
            $($crate::DType::$variant => {
                type $T = $crate::element::named::$variant;
                $body
            })*
        }
    };
}

/// As [`with_dtype!`]; a dtype that only stores has the type that its elements are converted by, `f32` or `i64`.
macro_rules! with_computing_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        opsmith_core::for_each_computing! { [$dtype, $T, $body] $crate::element::match_computing_dtype }
    };
}

/// The match of [`with_computing_dtype!`].
macro_rules! match_computing_dtype {
    ([$dtype:expr, $T:ident, $body:expr] $({ $variant:ident: $rust:ty })*) => {
        match $dtype {
            $($crate::DType::$variant => {
                type $T = $crate::element::named::$variant;
                $body
            })*
            dtype if dtype.is_int() => {
                type $T = i64;
                $body
            }
            _ => {
                type $T = f32;
                $body
            }
        }
    };
}

pub(crate) use match_computing_dtype;
pub(crate) use with_computing_dtype;

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn numbers_above_the_middle_of_two_halves_round_up() {
        let (tie, above) = (1.0 + 2f64.powi(-11), 1.0 + 2f64.powi(-11) + 2f64.powi(-45));
        assert_eq!(f16::from_scalar(Scalar::Float(tie)).to_f64(), 1.0);
        assert_eq!(f16::from_scalar(Scalar::Float(above)).to_f64(), 1.0 + 2f64.powi(-10));
        assert_eq!(bf16::from_scalar(Scalar::Int(2_524_972_677)).to_f64(), 2_533_359_616.0);
        assert_eq!(bf16::from_scalar(Scalar::Float(f64::MAX)), bf16::INFINITY);
        assert_eq!(f16::from_scalar(Scalar::Float(-1e-300)).to_bits(), 0x8000);
        assert!(f16::from_scalar(Scalar::Float(f64::NAN)).is_nan());
    }
}
