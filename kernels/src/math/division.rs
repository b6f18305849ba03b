//! Quotients rounded to integers, and their remainders.

use opsmith_runtime::arith::{Arithmetic, Ordered};

use super::vectorised::single;

/// Types with division that rounds: integers and floats.
///
/// An integer divided by zero gives 0, where PyTorch raises an error: an expression cannot fail.
pub trait Division: Ordered {
    /// The quotient rounded toward minus infinity.
    fn floor_div(self, other: Self) -> Self;
    /// The quotient rounded toward zero.
    fn trunc_div(self, other: Self) -> Self;
    /// Remainder of `floor_div`; has the divisor's sign.
    fn remainder(self, other: Self) -> Self;
    /// Remainder of `trunc_div`; has the dividend's sign.
    fn fmod(self, other: Self) -> Self;
}

macro_rules! integers {
    ($signs_differ:ident: $($ty:ty),*) => {$(
        impl Division for $ty {
            #[inline(always)]
            fn floor_div(self, other: $ty) -> $ty {
                let quotient = Arithmetic::div(self, other);
                let rest = Arithmetic::rem(self, other);
                if $signs_differ(rest, other) { quotient.wrapping_sub(1) } else { quotient }
            }
            #[inline(always)]
            fn trunc_div(self, other: $ty) -> $ty {
                Arithmetic::div(self, other)
            }
            #[inline(always)]
            fn remainder(self, other: $ty) -> $ty {
                let rest = Arithmetic::rem(self, other);
                if $signs_differ(rest, other) { rest.wrapping_add(other) } else { rest }
            }
            #[inline(always)]
            fn fmod(self, other: $ty) -> $ty {
                Arithmetic::rem(self, other)
            }
        }
    )*};
}

integers!(never: u8, u16, u32, u64);
integers!(signs_differ: i8, i16, i32, i64);

/// Whether truncation rounded up: there is a rest, and its sign is not the divisor's.
#[inline(always)]
fn signs_differ<T: Ordered>(rest: T, divisor: T) -> bool {
    !rest.equal(T::ZERO) && rest.lt(T::ZERO) != divisor.lt(T::ZERO)
}

/// Unsigned numbers have no other sign.
#[inline(always)]
fn never<T>(_rest: T, _divisor: T) -> bool {
    false
}

macro_rules! floats {
    ($($ty:ty: $rest:path),*) => {$(
        impl Division for $ty {
            // Python's float floor division: exact even where the quotient rounds up to an integer.
            #[inline(always)]
            fn floor_div(self, other: $ty) -> $ty {
                if other == 0.0 {
                    return self / other;
                }
                let rest = $rest(self, other);
                let mut quotient = (self - rest) / other;
                if rest != 0.0 && (other < 0.0) != (rest < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return (0.0 as $ty).copysign(self / other);
                }
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }
            #[inline(always)]
            fn trunc_div(self, other: $ty) -> $ty {
                (self / other).trunc()
            }
            #[inline(always)]
            fn remainder(self, other: $ty) -> $ty {
                let rest = $rest(self, other);
                if rest != 0.0 && (other < 0.0) != (rest < 0.0) { rest + other } else { rest }
            }
            #[inline(always)]
            fn fmod(self, other: $ty) -> $ty {
                $rest(self, other)
            }
        }
    )*};
}

floats!(f32: single::fmod, f64: rest);

/// The remainder of the quotient rounded toward zero, exactly.
///
/// A quotient below 2^52 whose fraction is cut off is the integer below the exact one, or, where it was rounded up to an integer, the
/// one above it. Either leaves a rest that is no larger than the divisor and a multiple of its last digit, so that it is exact.
#[inline(always)]
fn rest(a: f64, b: f64) -> f64 {
    /// Quotients from here on have no fraction.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let (number, size) = (a.abs(), b.abs());
    let quotient = number / size;
    if !(quotient < WHOLE && size < f64::INFINITY) {
        return rest_by_digits(a, b);
    }
    let rest = (-quotient.trunc()).mul_add(size, number);
    let rest = if rest < 0.0 { rest + size } else { rest };
    rest.copysign(a)
}

/// As [`rest`], of any quotient. A call: compilers take the operator for one that costs nothing, and compute it each time.
#[cold]
#[inline(never)]
fn rest_by_digits(a: f64, b: f64) -> f64 {
    a % b
}

/// The quotient rounded toward minus infinity: `floor_div(-7, 2)` is -4.
///
/// Integers give 0 for a zero divisor, floats an infinity or NaN. Source: Python's `//`.
#[inline(always)]
pub fn floor_div<T: Division>(a: T, b: T) -> T {
    a.floor_div(b)
}

/// The quotient rounded toward zero: `trunc_div(-7, 2)` is -3.
///
/// Integers give 0 for a zero divisor, floats an infinity or NaN. Source: C's `/`.
#[inline(always)]
pub fn trunc_div<T: Division>(a: T, b: T) -> T {
    a.trunc_div(b)
}

/// Remainder of the floor quotient: `remainder(-7, 2)` is 1, `remainder(7, -2)` is -1.
///
/// Integers give 0 for a zero divisor, floats NaN. Source: Python's `%`.
#[inline(always)]
pub fn remainder<T: Division>(a: T, b: T) -> T {
    a.remainder(b)
}

/// Remainder of the truncated quotient: `fmod(-7, 2)` is -1, `fmod(7, -2)` is 1.
///
/// Integers give 0 for a zero divisor, floats NaN. Source: C's `fmod`.
#[inline(always)]
pub fn fmod<T: Division>(a: T, b: T) -> T {
    a.fmod(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_follow_python_and_c() {
        for (a, b) in [(7i32, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5)] {
            let exact = f64::from(a) / f64::from(b);
            assert_eq!(floor_div(a, b), exact.floor() as i32, "{a} // {b}");
            assert_eq!(trunc_div(a, b), exact.trunc() as i32, "{a} / {b}");
            assert_eq!(remainder(a, b), a - b * exact.floor() as i32, "{a} % {b}");
            assert_eq!(fmod(a, b), a - b * exact.trunc() as i32, "fmod({a}, {b})");
            assert_eq!(floor_div(f64::from(a), f64::from(b)), exact.floor());
            assert_eq!(remainder(f64::from(a), f64::from(b)), f64::from(remainder(a, b)));
        }
    }

    #[test]
    fn rests_of_double_precision_are_exact() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        let odd = [
            0.0,
            -0.0,
            1.0,
            f64::INFINITY,
            f64::NAN,
            f64::MIN_POSITIVE,
            5e-324,
            f64::MAX,
            4_503_599_627_370_495.5,
        ];
        for round in 0..200_000 {
            let of_bits = f64::from_bits(next());
            // Divisors whose exponents are the dividend's or up to 60 below it, quotients that are about integers, and any.
            let below = f64::from_bits(next() & ((1 << 52) - 1) | of_bits.to_bits() >> 52 << 52);
            let below = below * 2.0f64.powi(-((next() % 61) as i32));
            let whole = (next() % 10_000_000) as f64 * below;
            let a = [of_bits, whole, whole.next_up(), whole.next_down(), odd[round % odd.len()]];
            let b = [below, f64::from_bits(next()), odd[round / odd.len() % odd.len()]];
            for a in a {
                for b in b {
                    let (got, expected) = (fmod(a, b), a % b);
                    let is_same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
                    assert!(is_same, "fmod({a:e}, {b:e}): {got:e} instead of {expected:e}");
                }
            }
        }
    }

    #[test]
    fn extremes_do_not_panic() {
        assert_eq!(floor_div(i8::MIN, -1), i8::MIN);
        assert_eq!(remainder(i8::MIN, -1), 0);
        assert_eq!(floor_div(5u8, 0), 0);
        assert_eq!(remainder(250u8, 7), 5);
        assert_eq!(floor_div(1.0, 0.0), f64::INFINITY);
        assert!(remainder(1.0f64, 0.0).is_nan());
        // 1 / 0.1 rounds to 10, but 0.1 is a little more than a tenth.
        assert_eq!(floor_div(1.0, 0.1), 9.0);
        assert!(floor_div(-0.0f64, 3.0).is_sign_negative());
    }
}
