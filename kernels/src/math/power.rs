//! Powers.

use num_complex::{Complex32, Complex64};
use opsmith_runtime::arith::Arithmetic;

use super::{complex, vectorised};

/// Types with powers: integers, floats and complex numbers.
pub trait Power: Arithmetic {
    /// The number to the power of the exponent.
    fn pow(self, exponent: Self) -> Self;
}

macro_rules! unsigned {
    ($($ty:ty),*) => {$(
        impl Power for $ty {
            #[inline(always)]
            fn pow(self, exponent: $ty) -> $ty {
                power_by_squaring(self, exponent as u64)
            }
        }
    )*};
}

macro_rules! signed {
    ($($ty:ty),*) => {$(
        impl Power for $ty {
            #[inline(always)]
            fn pow(self, exponent: $ty) -> $ty {
                if exponent >= 0 {
                    return power_by_squaring(self, exponent as u64);
                }
                // 1 / x^n is an integer only for 1 and -1.
                match self {
                    1 => 1,
                    -1 if exponent % 2 == 0 => 1,
                    -1 => -1,
                    _ => 0,
                }
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64);
signed!(i8, i16, i32, i64);

#[inline]
fn power_by_squaring<T: Arithmetic>(mut base: T, mut exponent: u64) -> T {
    let mut result = T::ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = Arithmetic::mul(result, base);
        }
        base = Arithmetic::mul(base, base);
        exponent >>= 1;
    }
    result
}

impl Power for f32 {
    #[inline(always)]
    fn pow(self, exponent: f32) -> f32 {
        vectorised::single::pow(self, exponent)
    }
}

impl Power for f64 {
    #[inline(always)]
    fn pow(self, exponent: f64) -> f64 {
        self.powf(exponent)
    }
}

impl Power for Complex64 {
    #[inline]
    fn pow(self, exponent: Complex64) -> Complex64 {
        complex::pow(self, exponent)
    }
}

impl Power for Complex32 {
    #[inline]
    fn pow(self, exponent: Complex32) -> Complex32 {
        complex::pow_single(self, exponent)
    }
}

/// `base` to the power of `exponent`: `pow(2, 10)` is 1024, `pow(2.0, -1.0)` is 0.5.
///
/// Integers wrap; a negative exponent gives the quotient rounded toward zero, which is 0 unless the
/// base is 1 or -1. Floats follow C's `pow`: `pow(x, 0.0)` is 1 for every x, NaN included.
#[inline(always)]
pub fn pow<T: Power>(base: T, exponent: T) -> T {
    base.pow(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_powers() {
        assert_eq!(pow(2i32, 10), 1024);
        assert_eq!(pow(3u8, 6), 217);
        assert_eq!(pow(-2i64, 3), -8);
        assert_eq!(pow(0i64, 0), 1);
        assert_eq!((pow(2i32, -1), pow(1i32, -5), pow(-1i32, -5), pow(-1i32, -4)), (0, 1, -1, 1));
        assert_eq!((pow(0i32, -1), pow(-1i8, i8::MIN)), (0, 1));
    }

    #[test]
    fn float_powers() {
        assert_eq!(pow(f64::NAN, 0.0), 1.0);
        assert_eq!(pow(2.0f32, -1.0), 0.5);
        assert!(pow(-2.0f32, 0.5).is_nan());
    }
}
