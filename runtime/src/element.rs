//! The Rust types of tensor elements and how they convert.

use half::{bf16, f16};
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
    /// The type arithmetic happens in: `f32` for the 16-bit floats, else the type itself.
    type Compute: Element;

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
    ($($ty:ty, $dtype:ident, |$scalar:ident| $from:expr, |$value:ident| $to:expr;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            type Real = $ty;
            type Compute = $ty;
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
    bool, Bool, |s| s.to_bool(), |v| Scalar::Bool(v);
    u8, U8, |s| s.to_i64() as u8, |v| Scalar::Int(i64::from(v));
    u16, U16, |s| s.to_i64() as u16, |v| Scalar::Int(i64::from(v));
    u32, U32, |s| s.to_i64() as u32, |v| Scalar::Int(i64::from(v));
    // A float may be larger than any integer of 64 bits with a sign.
    u64, U64, |s| match s {
        Scalar::Float(value) if value > 0.0 => value as u64,
        other => other.to_i64() as u64,
    }, |v| Scalar::Int(v as i64);
    i8, I8, |s| s.to_i64() as i8, |v| Scalar::Int(i64::from(v));
    i16, I16, |s| s.to_i64() as i16, |v| Scalar::Int(i64::from(v));
    i32, I32, |s| s.to_i64() as i32, |v| Scalar::Int(i64::from(v));
    i64, I64, |s| s.to_i64(), |v| Scalar::Int(v);
    f32, F32, |s| s.to_f64() as f32, |v| Scalar::Float(f64::from(v));
    f64, F64, |s| s.to_f64(), |v| Scalar::Float(v);
}

macro_rules! half_element {
    ($($ty:ty, $dtype:ident;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            type Real = $ty;
            type Compute = f32;
            #[inline(always)]
            fn from_scalar(scalar: Scalar) -> Self { <$ty>::from_f64(scalar.to_f64()) }
            #[inline(always)]
            fn to_scalar(self) -> Scalar { Scalar::Float(self.to_f64()) }
            #[inline(always)]
            fn to_compute(self) -> f32 { self.to_f32() }
            #[inline(always)]
            fn from_compute(value: f32) -> Self { <$ty>::from_f32(value) }
        }
    )*};
}

half_element! { f16, F16; bf16, BF16; }

macro_rules! complex_element {
    ($($ty:ty, $real:ty, $dtype:ident;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            type Real = $real;
            type Compute = $ty;
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

/// The Rust types of elements by the names of their dtypes.
#[doc(hidden)]
pub mod named {
    use super::{Complex32, Complex64, bf16, f16};

    pub type Bool = bool;
    pub type U8 = u8;
    pub type U16 = u16;
    pub type U32 = u32;
    pub type U64 = u64;
    pub type I8 = i8;
    pub type I16 = i16;
    pub type I32 = i32;
    pub type I64 = i64;
    pub type F16 = f16;
    pub type BF16 = bf16;
    pub type F32 = f32;
    pub type F64 = f64;
    pub type C64 = Complex32;
    pub type C128 = Complex64;
}

/// A number rounded to an element, in the type that elements compute in: 0.1 as a `float16` is 0.09998.
#[inline(always)]
pub fn rounded<T: Element>(number: Scalar) -> T::Compute {
    T::from_scalar(number).to_compute()
}

/// A bound of elements in the type that they compute in: one that no integer of it reaches becomes the last that does.
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
        match $dtype {
            $crate::DType::Bool => {
                type $T = bool;
                $body
            }
            $crate::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::DType::F16 => {
                type $T = $crate::f16;
                $body
            }
            $crate::DType::BF16 => {
                type $T = $crate::bf16;
                $body
            }
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::DType::C64 => {
                type $T = $crate::Complex32;
                $body
            }
            $crate::DType::C128 => {
                type $T = $crate::Complex64;
                $body
            }
        }
    };
}
