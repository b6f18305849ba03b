//! Bitwise functions of integers; on `bool` they are the logical ones.

use opsmith_runtime::Element;

/// Types with bits to combine: `bool` and the integers.
pub trait Bits: Element {
    /// Bits set in both.
    fn and(self, other: Self) -> Self;
    /// Bits set in either.
    fn or(self, other: Self) -> Self;
    /// Bits set in one but not the other.
    fn xor(self, other: Self) -> Self;
    /// Bits not set.
    fn not(self) -> Self;
    /// Bits moved up.
    fn shift_left(self, by: Self) -> Self;
    /// Bits moved down.
    fn shift_right(self, by: Self) -> Self;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Bits for $ty {
            #[inline(always)]
            fn and(self, other: $ty) -> $ty {
                self & other
            }
            #[inline(always)]
            fn or(self, other: $ty) -> $ty {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: $ty) -> $ty {
                self ^ other
            }
            #[inline(always)]
            fn not(self) -> $ty {
                !self
            }
            #[inline(always)]
            fn shift_left(self, by: $ty) -> $ty {
                // A negative count is huge as an unsigned one, so one comparison refuses both.
                if (by as u64) < u64::from(<$ty>::BITS) { self << by } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, by: $ty) -> $ty {
                let last = <$ty>::BITS - 1;
                let in_range = (by as u64) <= u64::from(last);
                // Past the last bit only copies of the sign are left; unsigned types have none.
                if in_range {
                    self >> by
                } else if <$ty>::MIN == 0 {
                    0
                } else {
                    self >> last
                }
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, i8, i16, i32, i64);

impl Bits for bool {
    #[inline(always)]
    fn and(self, other: bool) -> bool {
        self & other
    }
    #[inline(always)]
    fn or(self, other: bool) -> bool {
        self | other
    }
    #[inline(always)]
    fn xor(self, other: bool) -> bool {
        self ^ other
    }
    #[inline(always)]
    fn not(self) -> bool {
        !self
    }
    #[inline(always)]
    fn shift_left(self, by: bool) -> bool {
        self & !by
    }
    #[inline(always)]
    fn shift_right(self, by: bool) -> bool {
        self & !by
    }
}

/// Bits set in both: `bitwise_and(6, 3)` is 2.
#[inline(always)]
pub fn bitwise_and<T: Bits>(a: T, b: T) -> T {
    a.and(b)
}

/// Bits set in either: `bitwise_or(6, 3)` is 7.
#[inline(always)]
pub fn bitwise_or<T: Bits>(a: T, b: T) -> T {
    a.or(b)
}

/// Bits set in exactly one: `bitwise_xor(6, 3)` is 5.
#[inline(always)]
pub fn bitwise_xor<T: Bits>(a: T, b: T) -> T {
    a.xor(b)
}

/// Bits not set: `bitwise_not(0i8)` is -1; of a `bool`, its opposite.
#[inline(always)]
pub fn bitwise_not<T: Bits>(x: T) -> T {
    x.not()
}

/// Bits moved up: `shift_left(3, 2)` is 12. A count that is negative or not less than the width
/// gives 0.
#[inline(always)]
pub fn shift_left<T: Bits>(x: T, by: T) -> T {
    x.shift_left(by)
}

/// Bits moved down, the sign repeated: `shift_right(-8, 2)` is -2. A count that is negative or not
/// less than the width leaves only the sign: 0 or -1.
#[inline(always)]
pub fn shift_right<T: Bits>(x: T, by: T) -> T {
    x.shift_right(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_never_overflow() {
        assert_eq!(shift_left(1u8, 7), 128);
        assert_eq!(shift_left(1u8, 8), 0);
        assert_eq!(shift_left(1i32, -1), 0);
        assert_eq!(shift_right(-8i64, 2), -2);
        assert_eq!(shift_right(-8i64, 64), -1);
        assert_eq!(shift_right(-8i64, -1), -1);
        assert_eq!(shift_right(200u8, 9), 0);
    }
}
