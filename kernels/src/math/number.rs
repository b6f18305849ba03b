//! Size, sign, parts and rounding of numbers.

use num_complex::{Complex, Complex32, Complex64};
use opsmith_runtime::arith::Arithmetic;

/// Operations of every number; on types that make one idle it has the obvious result (the imaginary part of a real number
/// is 0, an integer rounds to itself).
pub trait Number: Arithmetic {
    /// Distance from zero.
    fn abs(self) -> Self::Real;
    /// The number scaled to size 1, or 0.
    fn sgn(self) -> Self;
    /// Complex conjugate.
    fn conj(self) -> Self;
    /// Real part.
    fn real(self) -> Self::Real;
    /// Imaginary part.
    fn imag(self) -> Self::Real;
    /// Whether a part is NaN.
    fn is_nan(self) -> bool;
    /// Whether a part is infinite.
    fn is_inf(self) -> bool;
    /// Whether no part is infinite or NaN.
    fn is_finite(self) -> bool;
    /// Rounded toward minus infinity.
    fn floor(self) -> Self;
    /// Rounded toward plus infinity.
    fn ceil(self) -> Self;
    /// Rounded to the nearest integer, halves to the even one.
    fn round(self) -> Self;
    /// Rounded toward zero.
    fn trunc(self) -> Self;
}

macro_rules! whole_numbers {
    ($($ty:ty: |$x:ident| $abs:expr, $sgn:expr;)*) => {$(
        impl Number for $ty {
            #[inline(always)]
            fn abs(self) -> $ty {
                let $x = self;
                $abs
            }
            #[inline(always)]
            fn sgn(self) -> $ty {
                let $x = self;
                $sgn
            }
            #[inline(always)]
            fn conj(self) -> $ty {
                self
            }
            #[inline(always)]
            fn real(self) -> $ty {
                self
            }
            #[inline(always)]
            fn imag(self) -> $ty {
                Arithmetic::ZERO
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            #[inline(always)]
            fn is_inf(self) -> bool {
                false
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                true
            }
            #[inline(always)]
            fn floor(self) -> $ty {
                self
            }
            #[inline(always)]
            fn ceil(self) -> $ty {
                self
            }
            #[inline(always)]
            fn round(self) -> $ty {
                self
            }
            #[inline(always)]
            fn trunc(self) -> $ty {
                self
            }
        }
    )*};
}

whole_numbers! {
    bool: |x| x, x;
    u8: |x| x, x.min(1);
    u16: |x| x, x.min(1);
    u32: |x| x, x.min(1);
    u64: |x| x, x.min(1);
    i8: |x| x.wrapping_abs(), x.signum();
    i16: |x| x.wrapping_abs(), x.signum();
    i32: |x| x.wrapping_abs(), x.signum();
    i64: |x| x.wrapping_abs(), x.signum();
}

macro_rules! floats {
    ($($ty:ty),*) => {$(
        impl Number for $ty {
            #[inline(always)]
            fn abs(self) -> $ty {
                <$ty>::abs(self)
            }
            #[inline(always)]
            fn sgn(self) -> $ty {
                // NaN is neither above nor below zero, so its sign is 0.
                <$ty>::from(i8::from(self > 0.0) - i8::from(self < 0.0))
            }
            #[inline(always)]
            fn conj(self) -> $ty {
                self
            }
            #[inline(always)]
            fn real(self) -> $ty {
                self
            }
            #[inline(always)]
            fn imag(self) -> $ty {
                0.0
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$ty>::is_nan(self)
            }
            #[inline(always)]
            fn is_inf(self) -> bool {
                <$ty>::is_infinite(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                <$ty>::is_finite(self)
            }
            #[inline(always)]
            fn floor(self) -> $ty {
                <$ty>::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> $ty {
                <$ty>::ceil(self)
            }
            #[inline(always)]
            fn round(self) -> $ty {
                <$ty>::round_ties_even(self)
            }
            #[inline(always)]
            fn trunc(self) -> $ty {
                <$ty>::trunc(self)
            }
        }
    )*};
}

floats!(f32, f64);

macro_rules! complexes {
    ($($ty:ty, $real:ty;)*) => {$(
        impl Number for $ty {
            #[inline(always)]
            fn abs(self) -> $real {
                self.re.hypot(self.im)
            }
            #[inline(always)]
            fn sgn(self) -> $ty {
                let size = Number::abs(self);
                if size == 0.0 {
                    Complex::new(0.0, 0.0)
                } else {
                    Complex::new(self.re / size, self.im / size)
                }
            }
            #[inline(always)]
            fn conj(self) -> $ty {
                Complex::new(self.re, -self.im)
            }
            #[inline(always)]
            fn real(self) -> $real {
                self.re
            }
            #[inline(always)]
            fn imag(self) -> $real {
                self.im
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.re.is_nan() || self.im.is_nan()
            }
            #[inline(always)]
            fn is_inf(self) -> bool {
                self.re.is_infinite() || self.im.is_infinite()
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
            #[inline(always)]
            fn floor(self) -> $ty {
                Complex::new(self.re.floor(), self.im.floor())
            }
            #[inline(always)]
            fn ceil(self) -> $ty {
                Complex::new(self.re.ceil(), self.im.ceil())
            }
            #[inline(always)]
            fn round(self) -> $ty {
                Complex::new(self.re.round_ties_even(), self.im.round_ties_even())
            }
            #[inline(always)]
            fn trunc(self) -> $ty {
                Complex::new(self.re.trunc(), self.im.trunc())
            }
        }
    )*};
}

complexes! { Complex32, f32; Complex64, f64; }

/// Distance from zero: `abs(-3)` is 3, `abs(3+4i)` the real number 5.
///
/// The lowest signed integer has no positive counterpart and stays.
#[inline(always)]
pub fn abs<T: Number>(x: T) -> T::Real {
    x.abs()
}

/// The number scaled to size 1, or 0: `sgn(-3.5)` is -1, `sgn(3+4i)` is 0.6+0.8i. The sign of NaN
/// is 0.
#[inline(always)]
pub fn sgn<T: Number>(x: T) -> T {
    x.sgn()
}

/// -1, 0 or 1: `sign(-3.5)` is -1. The sign of NaN is 0.
#[inline(always)]
pub fn sign<T: Number>(x: T) -> T {
    x.sgn()
}

/// Complex conjugate; a real number is its own.
#[inline(always)]
pub fn conj<T: Number>(x: T) -> T {
    x.conj()
}

/// The real part: `real(3+4i)` is 3.
#[inline(always)]
pub fn real<T: Number>(x: T) -> T::Real {
    x.real()
}

/// The imaginary part: `imag(3+4i)` is 4; of a real number, 0.
#[inline(always)]
pub fn imag<T: Number>(x: T) -> T::Real {
    x.imag()
}

/// Whether the number, or a part of it, is NaN.
#[inline(always)]
pub fn is_nan<T: Number>(x: T) -> bool {
    x.is_nan()
}

/// Whether the number, or a part of it, is infinite.
#[inline(always)]
pub fn is_inf<T: Number>(x: T) -> bool {
    x.is_inf()
}

/// Whether the number is neither infinite nor NaN, in no part.
#[inline(always)]
pub fn is_finite<T: Number>(x: T) -> bool {
    x.is_finite()
}

/// Rounded toward minus infinity: `floor(-1.5)` is -2.
#[inline(always)]
pub fn floor<T: Number>(x: T) -> T {
    x.floor()
}

/// Rounded toward plus infinity: `ceil(-1.5)` is -1.
#[inline(always)]
pub fn ceil<T: Number>(x: T) -> T {
    x.ceil()
}

/// Rounded to the nearest integer, halves to the even one: `round(2.5)` is 2, `round(3.5)` is 4.
#[inline(always)]
pub fn round<T: Number>(x: T) -> T {
    x.round()
}

/// Rounded toward zero: `trunc(-1.5)` is -1.
#[inline(always)]
pub fn trunc<T: Number>(x: T) -> T {
    x.trunc()
}

/// The part that [`trunc`] takes away: `frac(-1.5)` is -0.5.
#[inline(always)]
pub fn frac<T: Number>(x: T) -> T {
    Arithmetic::sub(x, x.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs() {
        assert_eq!(sgn(-3.5f32), -1.0);
        assert_eq!(sgn(f64::NAN), 0.0);
        assert_eq!(sgn(Complex64::new(3.0, 4.0)), Complex64::new(0.6, 0.8));
        assert_eq!(sgn(Complex64::ZERO), Complex64::ZERO);
        assert_eq!((sgn(-7i8), sgn(9u8), sgn(true)), (-1, 1, true));
        assert_eq!(abs(i8::MIN), i8::MIN);
    }

    #[test]
    fn rounding() {
        assert_eq!([round(0.5), round(1.5), round(-2.5)], [0.0, 2.0, -2.0]);
        assert_eq!(frac(-1.5f32), -0.5);
        assert_eq!(floor(7i32), 7);
    }
}
