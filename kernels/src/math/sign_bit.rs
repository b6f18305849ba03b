//! Signs as bits, and neighbours among the numbers of a floating type.

use opsmith_runtime::arith::Arithmetic;

/// Floating types, whose bits are a sign and a size.
pub trait Signed: Arithmetic {
    /// The size of `self` with the sign of `other`, that of a zero or NaN too.
    fn copysign(self, other: Self) -> Self;
    /// The next number after `self` on the way to `other`, which is given back if both are equal.
    fn next_after(self, other: Self) -> Self;
}

/// Real types.
pub trait SignBit: Copy {
    /// Whether there is a minus sign.
    fn sign_bit(self) -> bool;
}

macro_rules! floats {
    ($($ty:ty),*) => {$(
        impl Signed for $ty {
            #[inline(always)]
            fn copysign(self, other: $ty) -> $ty {
                <$ty>::copysign(self, other)
            }
            #[inline(always)]
            fn next_after(self, other: $ty) -> $ty {
                if self.is_nan() || other.is_nan() {
                    self + other
                } else if self == other {
                    other
                } else if self < other {
                    self.next_up()
                } else {
                    self.next_down()
                }
            }
        }

        impl SignBit for $ty {
            #[inline(always)]
            fn sign_bit(self) -> bool {
                self.is_sign_negative()
            }
        }
    )*};
}

macro_rules! signed {
    ($($ty:ty),*) => {$(
        impl SignBit for $ty {
            #[inline(always)]
            fn sign_bit(self) -> bool {
                self < 0
            }
        }
    )*};
}

macro_rules! unsigned {
    ($($ty:ty),*) => {$(
        impl SignBit for $ty {
            #[inline(always)]
            fn sign_bit(self) -> bool {
                false
            }
        }
    )*};
}

floats!(f32, f64);
signed!(i8, i16, i32, i64);
unsigned!(bool, u8, u16, u32, u64);

/// The size of `a` with the sign of `b`: `copysign(2, -0.0)` is -2.
#[inline(always)]
pub fn copysign<T: Signed>(a: T, b: T) -> T {
    a.copysign(b)
}

/// The next number after `a` on the way to `b`.
#[inline(always)]
pub fn next_after<T: Signed>(a: T, b: T) -> T {
    a.next_after(b)
}

/// Whether the number has a minus sign, as -0 has.
#[inline(always)]
pub fn sign_bit<T: SignBit>(x: T) -> bool {
    x.sign_bit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_neighbours() {
        assert_eq!(copysign(2.0f32, -0.0), -2.0);
        assert!(sign_bit(-0.0f64) && !sign_bit(0.0f64) && sign_bit(-3i8) && !sign_bit(3u8));
        assert_eq!(next_after(0.0f32, 1.0), f32::from_bits(1));
        assert_eq!(next_after(1.0f64, 0.0), 1.0 - f64::EPSILON / 2.0);
        assert!(next_after(f64::NAN, 1.0).is_nan() && next_after(1.0, f64::NAN).is_nan());
        assert!(sign_bit(next_after(0.0f32, -0.0)));
    }
}
