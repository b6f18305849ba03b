//! A number that is not a tensor.

use std::fmt;

use num_complex::Complex64;
use opsmith_core::DType;

use crate::error::{Error, Result};

/// A bool, integer, float or complex number given as an attribute.
///
/// In type promotion a scalar only decides the category: an `int32` tensor plus `1.5` becomes the
/// default float, plus `1` stays `int32`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A complex number.
    Complex(Complex64),
}

impl Scalar {
    /// The dtype of a tensor made from this scalar alone.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F32,
            Scalar::Complex(_) => DType::C64,
        }
    }

    /// The value as a float; the imaginary part is dropped.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(value) => f64::from(u8::from(value)),
            Scalar::Int(value) => value as f64,
            Scalar::Float(value) => value,
            Scalar::Complex(value) => value.re,
        }
    }

    /// The value as a complex number.
    pub fn to_complex(self) -> Complex64 {
        match self {
            Scalar::Complex(value) => value,
            other => Complex64::new(other.to_f64(), 0.0),
        }
    }

    /// The value as an integer, truncated toward zero.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(value) => i64::from(value),
            Scalar::Int(value) => value,
            Scalar::Float(value) => value as i64,
            Scalar::Complex(value) => value.re as i64,
        }
    }

    /// Whether the value is not zero.
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(value) => value,
            Scalar::Int(value) => value != 0,
            Scalar::Float(value) => value != 0.0,
            Scalar::Complex(value) => value != Complex64::new(0.0, 0.0),
        }
    }

    /// Whether both are of one kind and have the same bits: NaN is itself, and 0 is not -0. `==` compares numbers.
    pub fn same_bits(self, other: Scalar) -> bool {
        match (self, other) {
            (Scalar::Bool(a), Scalar::Bool(b)) => a == b,
            (Scalar::Int(a), Scalar::Int(b)) => a == b,
            (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
            (Scalar::Complex(a), Scalar::Complex(b)) => {
                (a.re.to_bits(), a.im.to_bits()) == (b.re.to_bits(), b.im.to_bits())
            }
            _ => false,
        }
    }

    /// Whether a dtype can hold the value, rounded: an imaginary part needs a complex dtype; an integer dtype holds the
    /// numbers of its range, an unsigned one also their negatives, which wrap; a float dtype holds all numbers that do
    /// not round to infinity.
    pub fn is_held_by(self, dtype: DType) -> bool {
        match (self, dtype) {
            (_, DType::Bool) | (Scalar::Bool(_), _) => true,
            (Scalar::Complex(value), DType::C64 | DType::C128) => {
                let part = |part: f64| Scalar::Float(part).is_held_by(dtype.to_real());
                part(value.re) && part(value.im)
            }
            (Scalar::Complex(value), _) => value.im == 0.0 && Scalar::Float(value.re).is_held_by(dtype),
            (Scalar::Int(value), _) => match int_range(dtype) {
                Some((0, high)) => i128::from(value).abs() <= high,
                Some((low, high)) => (low..=high).contains(&value.into()),
                None => Scalar::Float(value as f64).is_held_by(dtype),
            },
            (Scalar::Float(value), _) => match int_range(dtype) {
                Some((low, high)) => low as f64 <= value && value <= high as f64,
                None => !value.is_finite() || value.abs() <= largest(dtype),
            },
        }
    }

    /// The value clamped to an integer dtype's range.
    pub fn clamped_to(self, dtype: DType) -> Scalar {
        match (self, int_range(dtype)) {
            (Scalar::Int(value), Some((low, high))) => {
                // An integer clamped to a range that contains 64-bit values is a 64-bit integer.
                Scalar::Int(i128::from(value).clamp(low, high) as i64)
            }
            (Scalar::Float(value), Some((low, high))) => Scalar::Float(value.clamp(low as f64, high as f64)),
            _ => self,
        }
    }

    /// The value as an integer; an error if it is not one.
    pub fn as_integer(self) -> Result<i64> {
        match self {
            Scalar::Bool(value) => Ok(i64::from(value)),
            Scalar::Int(value) => Ok(value),
            other => Err(Error::value(format!("expected an integer, got {other}"))),
        }
    }

    /// Complex conjugate; a real number is unchanged.
    #[must_use]
    pub fn conj(self) -> Scalar {
        match self {
            Scalar::Complex(value) => Scalar::Complex(value.conj()),
            other => other,
        }
    }
}

/// The range of an integer dtype.
pub(crate) fn int_range(dtype: DType) -> Option<(i128, i128)> {
    let bits = dtype.bits();
    dtype.is_int().then(|| match dtype.is_unsigned() {
        true => (0, (1 << bits) - 1),
        false => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    })
}

macro_rules! largest {
    ($({ $variant:ident: $rust:ty, $name:literal, $kind:ident, $($columns:tt)* })*) => {
        /// The largest finite number of the dtype's real part, if that is a float.
        pub(crate) fn largest(dtype: DType) -> f64 {
            match dtype.to_real() { $(DType::$variant => largest!(@$kind $rust),)* }
        }
    };
    (@Half $rust:ty) => { f64::from(<$rust>::MAX) };
    (@Float $rust:ty) => { f64::from(<$rust>::MAX) };
    (@Stored $rust:ty) => { f64::from(<$rust>::MAX) };
    (@$other:ident $rust:ty) => { f64::MAX };
}

opsmith_core::for_each_dtype!(largest);

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Int(value) => write!(f, "{value}"),
            Scalar::Float(value) => write!(f, "{value:?}"),
            Scalar::Complex(value) => write!(f, "{}{:+}j", value.re, value.im),
        }
    }
}

macro_rules! from_number {
    ($($ty:ty => $variant:ident as $wide:ty),* $(,)?) => {$(
        impl From<$ty> for Scalar {
            fn from(value: $ty) -> Scalar {
                Scalar::$variant(value as $wide)
            }
        }
    )*};
}

from_number! {
    bool => Bool as bool,
    u8 => Int as i64, u16 => Int as i64, u32 => Int as i64, i8 => Int as i64, i16 => Int as i64,
    i32 => Int as i64, i64 => Int as i64, usize => Int as i64,
    f32 => Float as f64, f64 => Float as f64,
    Complex64 => Complex as Complex64,
}
impl From<num_complex::Complex32> for Scalar {
    fn from(value: num_complex::Complex32) -> Scalar {
        Scalar::Complex(Complex64::new(f64::from(value.re), f64::from(value.im)))
    }
}

/// Arithmetic in derivative formulas, with the promotion of scalars.
macro_rules! arithmetic {
    ($($trait:ident $method:ident $checked:ident $op:tt),* $(,)?) => {$(
        impl std::ops::$trait for Scalar {
            type Output = Scalar;
            fn $method(self, other: Scalar) -> Scalar {
                match (self, other) {
                    (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => {
                        Scalar::Complex(self.to_complex() $op other.to_complex())
                    }
                    (Scalar::Float(_), _) | (_, Scalar::Float(_)) => {
                        Scalar::Float(self.to_f64() $op other.to_f64())
                    }
                    _ => Scalar::Int(self.to_i64().$checked(other.to_i64())),
                }
            }
        }
    )*};
}

arithmetic! { Add add wrapping_add +, Sub sub wrapping_sub -, Mul mul wrapping_mul * }

impl std::ops::Div for Scalar {
    type Output = Scalar;
    /// True division: two integers give a float.
    fn div(self, other: Scalar) -> Scalar {
        match (self, other) {
            (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => {
                Scalar::Complex(self.to_complex() / other.to_complex())
            }
            _ => Scalar::Float(self.to_f64() / other.to_f64()),
        }
    }
}

impl std::ops::Neg for Scalar {
    type Output = Scalar;
    fn neg(self) -> Scalar {
        match self {
            Scalar::Bool(value) => Scalar::Int(-i64::from(value)),
            Scalar::Int(value) => Scalar::Int(value.wrapping_neg()),
            Scalar::Float(value) => Scalar::Float(-value),
            Scalar::Complex(value) => Scalar::Complex(-value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_tell_zeros_and_kinds_apart_and_nan_is_itself() {
        let nan = Scalar::Float(f64::NAN);
        assert!(nan.same_bits(nan) && nan != nan);
        assert!(!Scalar::Float(0.0).same_bits(Scalar::Float(-0.0)));
        assert!(!Scalar::Int(1).same_bits(Scalar::Float(1.0)));
        let complex = |im| Scalar::Complex(Complex64::new(1.0, im));
        assert!(complex(f64::NAN).same_bits(complex(f64::NAN)) && !complex(0.0).same_bits(complex(-0.0)));
    }
}
