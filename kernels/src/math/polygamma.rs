//! Derivatives of the digamma function, of any order.
//!
//! In: an order and a number. Out: a number; the poles give infinities, as PyTorch's do.

use std::f64::consts::PI;

use super::special::{Special, digamma};

/// The largest order whose factorial is a number.
const MOST: usize = 170;

/// The `order`-th derivative of [`digamma`]: `polygamma(1, 1.0)` is π²/6. Infinite at 0, -1, -2, … for
/// orders from 1, and beyond order 170, where factorials overflow.
#[inline(always)]
pub fn polygamma<T: Special>(order: T, x: T) -> T {
    x.polygamma(order)
}

/// Up from zero by the Hurwitz zeta function, ψ⁽ⁿ⁾(x) = (-1)ⁿ⁺¹ n! ζ(n + 1, x); below by reflection,
/// ψ⁽ⁿ⁾(x) = (-1)ⁿ ψ⁽ⁿ⁾(1 - x) - π dⁿ/dxⁿ cot πx.
pub(super) fn polygamma_f64(order: f64, x: f64) -> f64 {
    if order == 0.0 {
        return digamma(x);
    }
    if x.is_nan() || order.is_nan() || order < 0.0 {
        return f64::NAN;
    }
    if order == 1.0 {
        return trigamma_f64(x);
    }
    let odd = order % 2.0 == 1.0;
    let sign = if odd { 1.0 } else { -1.0 };
    if x <= 0.0 && x == x.trunc() || order > MOST as f64 {
        return sign * f64::INFINITY;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    let order = order as usize;
    if x < 0.0 {
        return -sign * polygamma_f64(order as f64, 1.0 - x) - cotangent_derivative(order, x);
    }
    let factorial: f64 = (1..=order).map(|factor| factor as f64).product();
    sign * factorial * zeta(order as f64 + 1.0, x)
}

/// The first derivative. Below a half by reflection, whose sine is of the rounded product πx, so that the poles
/// but 0 give large numbers instead of infinities.
///
/// Source: PyTorch's `trigamma`.
fn trigamma_f64(x: f64) -> f64 {
    if x >= 0.5 {
        return if x == f64::INFINITY { 0.0 } else { zeta(2.0, x) };
    }
    let sine = (PI * x).sin();
    PI * PI / (sine * sine) - zeta(2.0, 1.0 - x)
}

/// [`trigamma_f64`] in single precision, which the sine near the poles shows.
fn trigamma_f32(x: f32) -> f32 {
    use std::f32::consts::PI;
    if x >= 0.5 || x.is_nan() {
        return trigamma_f64(f64::from(x)) as f32;
    }
    let sine = (PI * x).sin();
    PI * PI / (sine * sine) - trigamma_f64(f64::from(1.0 - x)) as f32
}

/// [`polygamma_f64`] of a number in single precision.
pub(super) fn polygamma_f32(order: f32, x: f32) -> f32 {
    if order == 1.0 { trigamma_f32(x) } else { polygamma_f64(f64::from(order), f64::from(x)) as f32 }
}

/// Σ (x + k)⁻ˢ over k from 0, for s > 1 and x > 0: summed until the terms are far out, the rest by
/// Euler's and Maclaurin's formula.
fn zeta(s: f64, x: f64) -> f64 {
    // Bernoulli numbers over factorials, B₂ₖ / (2k)!.
    const TERMS: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30_240.0,
        -1.0 / 1_209_600.0,
        1.0 / 47_900_160.0,
        -691.0 / 1_307_674_368_000.0,
        1.0 / 74_724_249_600.0,
        -3_617.0 / 10_670_622_842_880_000.0,
    ];
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 + s {
        sum += x.powf(-s);
        x += 1.0;
    }
    let power = x.powf(-s);
    // The k-th term has the factor s (s + 1) … (s + 2k - 2) x^(1 - s - 2k).
    let (mut factor, mut rest) = (s * power / x, 0.0);
    for (index, term) in TERMS.into_iter().enumerate() {
        rest += term * factor;
        let next = s + 2.0 * index as f64 + 1.0;
        factor *= next * (next + 1.0) / (x * x);
    }
    sum + x * power / (s - 1.0) + power / 2.0 + rest
}

/// π dⁿ/dxⁿ cot πx: with c = cot πx it is πⁿ⁺¹ times a polynomial in c, of which each is -(1 + c²) times
/// the derivative of the one before. All its coefficients have one sign, so nothing cancels.
fn cotangent_derivative(order: usize, x: f64) -> f64 {
    let mut coefficients = [0.0; MOST + 2];
    coefficients[1] = PI;
    for step in 1..=order {
        let before = coefficients;
        let slope = |power: usize| before.get(power + 1).map_or(0.0, |next| (power + 1) as f64 * next);
        for (power, coefficient) in coefficients.iter_mut().enumerate().take(step + 2) {
            let shifted = if power >= 2 { slope(power - 2) } else { 0.0 };
            *coefficient = -PI * (slope(power) + shifted);
        }
    }
    // The fraction is exact and keeps the cotangent's digits.
    let cotangent = 1.0 / (PI * (x - x.trunc())).tan();
    coefficients[..order + 2].iter().rev().fold(0.0, |sum, coefficient| sum * cotangent + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 4e-14 * b.abs(), "{a} against {b}");
    }

    #[test]
    fn known_values() {
        let zeta3 = 1.202_056_903_159_594_2;
        close(polygamma(1.0, 1.0), PI * PI / 6.0);
        close(polygamma(1.0, 0.5), PI * PI / 2.0);
        close(polygamma(1.0, 10.0), 0.105_166_335_681_685_75);
        close(polygamma(2.0, 1.0), -2.0 * zeta3);
        close(polygamma(3.0, 1.0), PI.powi(4) / 15.0);
        close(polygamma(1.0, -0.5), PI * PI / 2.0 + 4.0);
        close(polygamma(2.0, -0.5), -14.0 * zeta3 + 16.0);
        assert_eq!(polygamma(0.0, 2.5), digamma(2.5));
    }

    #[test]
    fn one_step_up_takes_one_term_away() {
        for order in [1.0, 2.0, 3.0, 5.0, 12.0] {
            let factorial: f64 = (1..=order as i64).map(|factor| factor as f64).product();
            for x in [-3.3f64, -0.75, 0.2, 1.7, 8.5, 40.25] {
                let sign = if order % 2.0 == 1.0 { 1.0 } else { -1.0 };
                let term = sign * factorial / f64::powf(x.abs(), order + 1.0)
                    * if x < 0.0 && order % 2.0 == 0.0 { -1.0 } else { 1.0 };
                let (here, above) = (polygamma(order, x), polygamma(order, x + 1.0));
                assert!(
                    (here - above - term).abs() <= 1e-12 * (here.abs() + term.abs()),
                    "order {order} at {x}: {here} against {}",
                    above + term
                );
            }
        }
    }

    #[test]
    fn poles() {
        assert_eq!((polygamma(1.0, 0.0), polygamma(2.0, -3.0)), (f64::INFINITY, f64::NEG_INFINITY));
        assert_eq!(polygamma(171.0, 2.0f32), f32::INFINITY);
        assert!(polygamma(1.0, f64::NAN).is_nan());
        assert_eq!(polygamma(1.0, f64::INFINITY), 0.0);
    }
}
