//! Special functions of real floats, and functions of two of them.

use opsmith_runtime::arith::Ordered;

use super::polygamma::{polygamma_f32, polygamma_f64};
use super::vectorised;

/// The types special functions exist for: `f32` and `f64`.
pub trait Special: Ordered {
    /// The error function.
    fn erf(self) -> Self;
    /// One minus the error function.
    fn erfc(self) -> Self;
    /// The inverse of the error function.
    fn erfinv(self) -> Self;
    /// The logarithm of the absolute value of the gamma function.
    fn lgamma(self) -> Self;
    /// The derivative of `lgamma`.
    fn digamma(self) -> Self;
    /// The `order`-th derivative of `digamma`.
    fn polygamma(self, order: Self) -> Self;
    /// The angle of the point (`other`, `self`).
    fn atan2(self, other: Self) -> Self;
    /// The length of the vector (`self`, `other`).
    fn hypot(self, other: Self) -> Self;
}

impl Special for f64 {
    #[inline]
    fn erf(self) -> f64 {
        libm::erf(self)
    }
    #[inline]
    fn erfc(self) -> f64 {
        libm::erfc(self)
    }
    #[inline]
    fn erfinv(self) -> f64 {
        erfinv_f64(self)
    }
    #[inline]
    fn lgamma(self) -> f64 {
        libm::lgamma(self)
    }
    #[inline]
    fn digamma(self) -> f64 {
        digamma_f64(self)
    }
    #[inline]
    fn polygamma(self, order: f64) -> f64 {
        polygamma_f64(order, self)
    }
    #[inline]
    fn atan2(self, other: f64) -> f64 {
        f64::atan2(self, other)
    }
    #[inline]
    fn hypot(self, other: f64) -> f64 {
        f64::hypot(self, other)
    }
}

impl Special for f32 {
    #[inline]
    fn erf(self) -> f32 {
        vectorised::single::erf(self)
    }
    #[inline]
    fn erfc(self) -> f32 {
        vectorised::single::erfc(self)
    }
    #[inline]
    fn erfinv(self) -> f32 {
        vectorised::single::erfinv(self)
    }
    #[inline]
    fn lgamma(self) -> f32 {
        vectorised::gamma::lgamma(self)
    }
    #[inline]
    fn digamma(self) -> f32 {
        digamma_f64(f64::from(self)) as f32
    }
    #[inline]
    fn polygamma(self, order: f32) -> f32 {
        polygamma_f32(order, self)
    }
    #[inline]
    fn atan2(self, other: f32) -> f32 {
        vectorised::angles::atan2(self, other)
    }
    #[inline]
    fn hypot(self, other: f32) -> f32 {
        vectorised::angles::hypot(self, other)
    }
}

/// The value of a polynomial; coefficients from the highest power down.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    coefficients.into_iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// A rational first guess, then Newton's method; near one by the complement, which has digits there, and in one step more.
///
/// Source: the coefficients are those of PyTorch's `calc_erfinv`.
pub(super) fn erfinv_f64(y: f64) -> f64 {
    use std::f64::consts::FRAC_2_SQRT_PI;
    let size = y.abs();
    if size > 1.0 {
        return f64::NAN;
    }
    if size == 1.0 {
        return f64::INFINITY.copysign(y);
    }
    if size <= 0.7 {
        let z = y * y;
        let mut x = y * polynomial(z, [-0.140543331, 0.914624893, -1.645349621, 0.886226899])
            / polynomial(z, [0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0]);
        for _ in 0..2 {
            x -= (libm::erf(x) - y) / (FRAC_2_SQRT_PI * (-x * x).exp());
        }
        return x;
    }
    let above = 1.0 - size;
    let z = (-(above / 2.0).ln()).sqrt();
    let mut x = polynomial(z, [1.641345311, 3.429567803, -1.624906493, -1.970840454])
        / polynomial(z, [1.637067800, 3.543889200, 1.0]);
    for _ in 0..3 {
        x += (libm::erfc(x) - above) / (FRAC_2_SQRT_PI * (-x * x).exp());
    }
    x.copysign(y)
}

/// Recurrence up to 10, then the asymptotic series; reflection for negative numbers.
///
/// Source: Cephes `psi`, with PyTorch's values at the poles.
fn digamma_f64(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        // The tangent has period 1 here, and its fractional argument keeps more digits.
        let fraction = x - x.trunc();
        return digamma_f64(1.0 - x) - std::f64::consts::PI / (std::f64::consts::PI * fraction).tan();
    }
    let (mut x, mut below) = (x, 0.0);
    while x < 10.0 {
        below -= 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = z * polynomial(
        z,
        [1.0 / 12.0, -691.0 / 32760.0, 1.0 / 132.0, -1.0 / 240.0, 1.0 / 252.0, -1.0 / 120.0, 1.0 / 12.0],
    );
    below + x.ln() - 0.5 / x - series
}

/// The error function, 2/√π ∫₀ˣ exp(-t²) dt: `erf(1.0)` is 0.8427.
#[inline(always)]
pub fn erf<T: Special>(x: T) -> T {
    x.erf()
}

/// `1 - erf(x)`, accurate where that is tiny: `erfc(10.0)` is 2.1e-45.
#[inline(always)]
pub fn erfc<T: Special>(x: T) -> T {
    x.erfc()
}

/// The number whose [`erf`] is `x`: `erfinv(0.8427)` is about 1. Beyond ±1 it is NaN.
#[inline(always)]
pub fn erfinv<T: Special>(x: T) -> T {
    x.erfinv()
}

/// ln |Γ(x)|: `lgamma(5.0)` is ln 24. Infinite at 0, -1, -2, ….
#[inline(always)]
pub fn lgamma<T: Special>(x: T) -> T {
    x.lgamma()
}

/// The derivative of [`lgamma`]: `digamma(1.0)` is -0.5772. NaN at -1, -2, …; infinite at 0, with
/// the sign opposite to the zero's.
#[inline(always)]
pub fn digamma<T: Special>(x: T) -> T {
    x.digamma()
}

/// The angle of the point (`x`, `y`) in radians, from -π to π: `atan2(1.0, -1.0)` is 3π/4.
#[inline(always)]
pub fn atan2<T: Special>(y: T, x: T) -> T {
    y.atan2(x)
}

/// √(a² + b²) without overflow between: `hypot(3.0, 4.0)` is 5.
#[inline(always)]
pub fn hypot<T: Special>(a: T, b: T) -> T {
    a.hypot(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-14 * b.abs().max(1.0), "{a} against {b}");
        close(erf(1.0), 0.842_700_792_949_714_9);
        close(erfinv(erf(0.3)), 0.3);
        close(erfinv(-erf(2.0)), -2.0);
        close(erfinv(1.0 - f64::EPSILON / 2.0), 5.863_584_748_755_167_6);
        close(digamma(1.0), -0.577_215_664_901_532_9);
        close(digamma(0.5), -1.963_510_026_021_423_5);
        close(digamma(-0.5), 0.036_489_973_978_576_52);
        close(digamma(10.0), 2.251_752_589_066_721);
        close(lgamma(5.0), 24f64.ln());
    }

    #[test]
    fn poles() {
        assert_eq!(erfinv(1.0), f64::INFINITY);
        assert!(erfinv(1.5f32).is_nan());
        assert_eq!((digamma(0.0), digamma(-0.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(digamma(-3.0f64).is_nan());
        assert_eq!(lgamma(-2.0f32), f32::INFINITY);
    }
}
