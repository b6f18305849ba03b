//! Special functions in double precision that neither the standard library nor `libm` has, exact to about ten digits:
//! enough for pictures.

use std::f64::consts::PI;

/// The inverse of the error function: Winitzki's approximation, then Newton's steps.
pub(super) fn inverse_error_function(y: f64) -> f64 {
    if y.is_nan() || y.abs() > 1.0 {
        return f64::NAN;
    }
    if y.abs() == 1.0 {
        return y * f64::INFINITY;
    }
    let logarithm = (-y * y).ln_1p();
    let first = 2.0 / (PI * 0.147) + logarithm / 2.0;
    let mut x = ((first * first - logarithm / 0.147).sqrt() - first).sqrt().copysign(y);
    for _ in 0..3 {
        x -= (libm::erf(x) - y) / (2.0 / PI.sqrt() * (-x * x).exp());
    }
    x
}

/// The derivative of ψ of an order, by the recurrence up to 20 and the asymptotic series there. Source: Abramowitz and
/// Stegun, 6.4.6 and 6.4.11.
pub(super) fn derivative_of_psi(order: f64, x: f64) -> f64 {
    if order < 0.0 || order != order.trunc() || order > 20.0 || x.is_nan() {
        return f64::NAN;
    }
    if x <= 0.0 && x == x.trunc() {
        return if order == 0.0 { f64::NAN } else { f64::INFINITY };
    }
    if x < -1e4 {
        return f64::NAN;
    }
    // ψ⁽ⁿ⁾(x) = ψ⁽ⁿ⁾(x + 1) - (-1)ⁿ n! / xⁿ⁺¹
    let n = order as i32;
    let alternating = if n % 2 == 0 { 1.0 } else { -1.0 };
    let factorial = |k: i32| (1..=k).map(f64::from).product::<f64>();
    let (mut at, mut sum) = (x, 0.0);
    while at < 20.0 {
        sum -= alternating * factorial(n) / at.powi(n + 1);
        at += 1.0;
    }
    // Bernoulli's numbers B₂, B₄, …
    let bernoulli = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0];
    let terms = bernoulli.iter().zip(1..);
    let series = if n == 0 {
        at.ln() - 0.5 / at - terms.map(|(b, k)| b / (2.0 * f64::from(k) * at.powi(2 * k))).sum::<f64>()
    } else {
        let rest = terms.map(|(b, k)| b * factorial(2 * k + n - 1) / (factorial(2 * k) * at.powi(2 * k + n)));
        let first = factorial(n - 1) / at.powi(n) + factorial(n) / (2.0 * at.powi(n + 1));
        -alternating * (first + rest.sum::<f64>())
    };
    sum + series
}

/// The number next to `a` in the direction of `b`.
pub(super) fn next_after(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a < b {
        a.next_up()
    } else if a > b {
        a.next_down()
    } else {
        b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64) {
        assert!((left - right).abs() <= 1e-9 * right.abs().max(1.0), "{left} is not {right}");
    }

    #[test]
    fn special_functions_have_their_known_values() {
        near(derivative_of_psi(0.0, 1.0), -0.577_215_664_901_532_9);
        near(derivative_of_psi(0.0, 0.5), -1.963_510_026_021_423_5);
        near(derivative_of_psi(0.0, -0.5), 0.036_489_973_978_576_52);
        near(derivative_of_psi(1.0, 1.0), PI * PI / 6.0);
        near(derivative_of_psi(1.0, -0.5), PI * PI / 2.0 + 4.0);
        near(derivative_of_psi(2.0, 1.0), -2.404_113_806_319_188_6);
        near(derivative_of_psi(3.0, 1.0), PI.powi(4) / 15.0);
        for y in [-0.999, -0.5, 1e-8, 0.3, 0.99] {
            near(libm::erf(inverse_error_function(y)), y);
        }
        assert_eq!(inverse_error_function(1.0), f64::INFINITY);
        assert!(inverse_error_function(1.5).is_nan());
        assert_eq!(next_after(1.0, 2.0), 1.0 + f64::EPSILON);
    }
}
