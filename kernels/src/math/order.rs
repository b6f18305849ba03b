//! Larger, smaller, true, false: choosing between numbers.

use opsmith_runtime::arith::{Arithmetic, Ordered};

/// Whether the number is not zero; NaN is.
#[inline(always)]
pub fn truth<T: Arithmetic>(x: T) -> bool {
    !x.equal(T::ZERO)
}

/// Whether both numbers are not zero.
#[inline(always)]
pub fn logical_and<T: Arithmetic>(a: T, b: T) -> bool {
    truth(a) & truth(b)
}

/// Whether one or both numbers are not zero.
#[inline(always)]
pub fn logical_or<T: Arithmetic>(a: T, b: T) -> bool {
    truth(a) | truth(b)
}

/// Whether exactly one number is not zero.
#[inline(always)]
pub fn logical_xor<T: Arithmetic>(a: T, b: T) -> bool {
    truth(a) ^ truth(b)
}

/// Whether the number is zero.
#[inline(always)]
pub fn logical_not<T: Arithmetic>(x: T) -> bool {
    !truth(x)
}

/// `a` if the condition holds, else `b`.
#[inline(always)]
pub fn select<T>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}

/// Only NaN differs from itself.
#[inline(always)]
fn is_nan<T: Arithmetic>(x: T) -> bool {
    !x.equal(x)
}

/// The larger number, or NaN if one is: `maximum(NaN, 1.0)` is NaN.
#[inline(always)]
pub fn maximum<T: Ordered>(a: T, b: T) -> T {
    select(a.gt(b) | is_nan(a), a, b)
}

/// The smaller number, or NaN if one is: `minimum(NaN, 1.0)` is NaN.
#[inline(always)]
pub fn minimum<T: Ordered>(a: T, b: T) -> T {
    select(a.lt(b) | is_nan(a), a, b)
}

/// The larger number; NaN only if both are: `fmax(NaN, 1.0)` is 1.
#[inline(always)]
pub fn fmax<T: Ordered>(a: T, b: T) -> T {
    select(a.ge(b) | is_nan(b), a, b)
}

/// The smaller number; NaN only if both are: `fmin(NaN, 1.0)` is 1.
#[inline(always)]
pub fn fmin<T: Ordered>(a: T, b: T) -> T {
    select(a.le(b) | is_nan(b), a, b)
}

/// At least `low`: `clamp_min(-2, 0)` is 0. NaN in either gives NaN.
#[inline(always)]
pub fn clamp_min<T: Ordered>(x: T, low: T) -> T {
    maximum(x, low)
}

/// At most `high`: `clamp_max(7, 5)` is 5. NaN in either gives NaN.
#[inline(always)]
pub fn clamp_max<T: Ordered>(x: T, high: T) -> T {
    minimum(x, high)
}

/// At least `low` and at most `high`; `high` if they are the wrong way round. NaN in any gives NaN.
#[inline(always)]
pub fn clamp<T: Ordered>(x: T, low: T, high: T) -> T {
    minimum(maximum(x, low), high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_propagates_or_yields() {
        let nan = f32::NAN;
        assert!(maximum(nan, 1.0).is_nan() && maximum(1.0, nan).is_nan());
        assert!(minimum(nan, 1.0).is_nan() && minimum(1.0, nan).is_nan());
        assert_eq!((fmax(nan, 1.0), fmax(1.0, nan)), (1.0, 1.0));
        assert_eq!((fmin(nan, 1.0), fmin(1.0, nan)), (1.0, 1.0));
        assert!(fmax(nan, nan).is_nan());
        assert!(clamp(nan, 0.0, 1.0).is_nan() && clamp(0.5, nan, 1.0).is_nan());
        assert_eq!(clamp(5, 3, 1), 1);
        assert!(truth(nan) && !truth(-0.0));
    }
}
