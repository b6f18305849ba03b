//! Elementary functions of complex numbers in double precision.
//!
//! In and out: [`Complex64`]. Branch cuts, infinities and signs of zero are those of C99 annex G,
//! which PyTorch inherits from the C++ library. `num-complex` has these names too, but overflows in
//! `tanh`, cancels in `asin` and ignores annex G.
//!
//! Source of the formulas: W. Kahan, "Branch cuts for complex elementary functions" (1987).

use num_complex::{Complex32, Complex64};
use opsmith_runtime::arith::Arithmetic;
use std::f64::consts::{FRAC_PI_2, LN_2};

/// Above this, products of two parts overflow.
const LARGE: f64 = 1e150;

fn new(re: f64, im: f64) -> Complex64 {
    Complex64::new(re, im)
}

/// Exchanges the parts: the mirror that turns hyperbolic functions into circular ones.
fn swap(z: Complex64) -> Complex64 {
    new(z.im, z.re)
}

pub(super) fn sqrt(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if x == 0.0 && y == 0.0 {
        return new(0.0, y);
    }
    if y.is_infinite() {
        return new(f64::INFINITY, y);
    }
    if x.is_nan() {
        return new(x, f64::NAN);
    }
    if x.is_infinite() {
        let nan_or = |value: f64| if y.is_nan() { y } else { value };
        return if x > 0.0 {
            new(x, nan_or(0f64.copysign(y)))
        } else {
            new(nan_or(0.0), f64::INFINITY.copysign(y))
        };
    }
    // Scale by powers of four, so that the root scales by powers of two, exactly.
    let size = x.abs().max(y.abs());
    let (scale, back) = if size > 1e300 {
        (2f64.powi(-4), 4.0)
    } else if size < 1e-290 {
        (2f64.powi(108), 2f64.powi(-54))
    } else {
        (1.0, 1.0)
    };
    let (x, y) = (x * scale, y * scale);
    let root = ((x.abs() + x.hypot(y)) * 0.5).sqrt();
    let other = y / (2.0 * root);
    let result = if x >= 0.0 { new(root, other) } else { new(other.abs(), root.copysign(y)) };
    new(result.re * back, result.im * back)
}

pub(super) fn exp(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return new(x.exp(), y);
    }
    if !y.is_finite() {
        return match (x.is_infinite(), x > 0.0) {
            (true, false) => new(0.0, 0.0),
            (true, true) => new(x, f64::NAN),
            (false, _) => new(f64::NAN, f64::NAN),
        };
    }
    let (sin, cos) = y.sin_cos();
    if x > 709.0 && x < 1500.0 {
        // Two factors, because the product may be finite where exp(x) is not.
        let half = (x * 0.5).exp();
        return new(half * cos * half, half * sin * half);
    }
    let size = x.exp();
    new(size * cos, size * sin)
}

pub(super) fn expm1(z: Complex64) -> Complex64 {
    // (eˣ - 1) cos y - 2 sin²(y/2) is the real part of eᶻ - 1 without its cancellation near 0.
    let half = (z.im * 0.5).sin();
    let (sin, cos) = z.im.sin_cos();
    new(z.re.exp_m1() * cos - 2.0 * half * half, z.re.exp() * sin)
}

pub(super) fn log(z: Complex64) -> Complex64 {
    new(log_modulus(z), z.im.atan2(z.re))
}

fn log_modulus(z: Complex64) -> f64 {
    let (x, y) = (z.re.abs(), z.im.abs());
    let (high, low) = if x < y { (y, x) } else { (x, y) };
    let modulus = high.hypot(low);
    if modulus > 0.5 && modulus < 2.0 {
        // ln(1 + (|z|² - 1)) / 2: the logarithm itself would lose the digits near 1.
        0.5 * ((high - 1.0) * (high + 1.0) + low * low).ln_1p()
    } else if modulus.is_infinite() && high.is_finite() {
        (high * 0.5).hypot(low * 0.5).ln() + LN_2
    } else {
        modulus.ln()
    }
}

pub(super) fn log1p(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    let angle = y.atan2(x + 1.0);
    if x.hypot(y) >= 0.5 {
        return new(log_modulus(new(x + 1.0, y)), angle);
    }
    let excess = x * (2.0 + x) + y * y;
    new(if excess == 0.0 { x } else { 0.5 * excess.ln_1p() }, angle)
}

pub(super) fn sinh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return new(x.sinh(), y);
    }
    if !y.is_finite() {
        return new(if x == 0.0 || x.is_infinite() { x } else { f64::NAN }, f64::NAN);
    }
    let (sin, cos) = y.sin_cos();
    if x.abs() > 709.0 {
        let half = half_of_large_cosh(x);
        return new(half.0 * cos * half.1 * x.signum(), half.0 * sin * half.1);
    }
    new(x.sinh() * cos, x.cosh() * sin)
}

pub(super) fn cosh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return new(x.cosh(), if x.is_nan() { y } else { 0f64.copysign(x) * y.signum() });
    }
    if !y.is_finite() {
        let re = if x.is_infinite() { f64::INFINITY } else { f64::NAN };
        return new(re, if x == 0.0 { x } else { f64::NAN });
    }
    let (sin, cos) = y.sin_cos();
    if x.abs() > 709.0 {
        let half = half_of_large_cosh(x);
        return new(half.0 * cos * half.1, half.0 * sin * half.1 * x.signum());
    }
    new(x.cosh() * cos, x.sinh() * sin)
}

/// Two factors of cosh x, where that is eˣ / 2 and may overflow.
fn half_of_large_cosh(x: f64) -> (f64, f64) {
    let half = (x.abs() * 0.5).exp();
    (half * 0.5, half)
}

pub(super) fn tanh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if x.is_nan() {
        return new(x, if y == 0.0 { y } else { f64::NAN });
    }
    if x.is_infinite() {
        let sign = if y.is_finite() { (2.0 * y).sin() } else { y };
        return new(x.signum(), 0f64.copysign(sign));
    }
    if !y.is_finite() {
        return new(if x == 0.0 { x } else { f64::NAN }, f64::NAN);
    }
    if x.abs() >= 22.0 {
        // sinh² + cos² is e²ˣ / 4 here.
        let small = (-x.abs()).exp();
        return new(x.signum(), 4.0 * y.sin() * y.cos() * small * small);
    }
    let tangent = y.tan();
    let beta = 1.0 + tangent * tangent;
    let sinh = x.sinh();
    let rho = (1.0 + sinh * sinh).sqrt();
    if tangent.is_infinite() {
        return new(rho / sinh, 1.0 / tangent);
    }
    let scale = 1.0 + beta * sinh * sinh;
    new(beta * rho * sinh / scale, tangent / scale)
}

pub(super) fn sin(z: Complex64) -> Complex64 {
    swap(sinh(swap(z)))
}

pub(super) fn cos(z: Complex64) -> Complex64 {
    cosh(new(-z.im, z.re))
}

pub(super) fn tan(z: Complex64) -> Complex64 {
    swap(tanh(swap(z)))
}

pub(super) fn asin(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if x.is_infinite() || y.is_infinite() {
        let re = if x.is_nan() { x } else { x.atan2(y.abs()) };
        return new(re, f64::INFINITY.copysign(y));
    }
    if y.is_nan() && x == 0.0 {
        return new(x, y);
    }
    let (minus, plus) = (sqrt(new(1.0 - x, -y)), sqrt(new(1.0 + x, y)));
    new(
        x.atan2(minus.re * plus.re - minus.im * plus.im),
        libm::asinh(minus.re * plus.im - minus.im * plus.re),
    )
}

pub(super) fn acos(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if x.is_infinite() || y.is_infinite() {
        let re = if x.is_nan() { x } else { y.abs().atan2(x) };
        return new(re, -f64::INFINITY.copysign(y));
    }
    if y.is_nan() && x == 0.0 {
        return new(FRAC_PI_2, y);
    }
    let (minus, plus) = (sqrt(new(1.0 - x, -y)), sqrt(new(1.0 + x, y)));
    new(2.0 * minus.re.atan2(plus.re), libm::asinh(plus.re * minus.im - plus.im * minus.re))
}

pub(super) fn asinh(z: Complex64) -> Complex64 {
    swap(asin(swap(z)))
}

pub(super) fn acosh(z: Complex64) -> Complex64 {
    let mirror = acos(z);
    new(mirror.im.abs(), mirror.re.copysign(z.im))
}

pub(super) fn atan(z: Complex64) -> Complex64 {
    swap(atanh(swap(z)))
}

pub(super) fn atanh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if x.is_infinite() || y.is_infinite() {
        let im = if y.is_nan() { y } else { FRAC_PI_2.copysign(y) };
        return new(0f64.copysign(x), im);
    }
    if y.is_nan() && x == 0.0 {
        return new(x, y);
    }
    if x.abs() > LARGE || y.abs() > LARGE {
        let modulus = (x * 0.5).hypot(y * 0.5);
        return new(x / modulus / modulus * 0.25, FRAC_PI_2.copysign(y));
    }
    let size = x.abs();
    let below = 1.0 - size;
    let re = if below == 0.0 && y.abs() < 1e-150 {
        // y² would vanish.
        0.5 * (LN_2 - y.abs().ln())
    } else {
        0.25 * (4.0 * size / (below * below + y * y)).ln_1p()
    };
    new(re.copysign(x), 0.5 * (2.0 * y).atan2(below * (1.0 + size) - y * y))
}

pub(super) fn pow(base: Complex64, exponent: Complex64) -> Complex64 {
    by_special_base(base, exponent).unwrap_or_else(|| exp(Arithmetic::mul(exponent, log(base))))
}

/// [`pow`] in single precision.
///
/// Source: the C library's `cpowf`, which PyTorch calls. It rounds the logarithm and its product with the
/// exponent to single precision, which the angle and size of a large power show.
pub(super) fn pow_single(base: Complex32, exponent: Complex32) -> Complex32 {
    let wide = |z: Complex32| new(f64::from(z.re), f64::from(z.im));
    let narrow = |z: Complex64| Complex32::new(z.re as f32, z.im as f32);
    match by_special_base(wide(base), wide(exponent)) {
        Some(power) => narrow(power),
        None => narrow(exp(wide(Arithmetic::mul(exponent, log_single(base))))),
    }
}

/// [`log`] as `clogf` computes it: from the rounded modulus, or from its rounded square less 1 if that is near 1.
fn log_single(z: Complex32) -> Complex32 {
    let (x, y) = (z.re.abs(), z.im.abs());
    let (high, low) = if x < y { (y, x) } else { (x, y) };
    // These functions err as the C library's do, where the nearest numbers would give another power.
    let angle = libm::atan2f(z.im, z.re);
    let square_less_one = if high == 1.0 {
        Some(low * low)
    } else if high > 1.0 && high < 2.0 && low < 1.0 {
        let square = (high - 1.0) * (high + 1.0);
        Some(if low >= f32::EPSILON { square + low * low } else { square })
    } else if (0.5..1.0).contains(&high) && high * high + low * low >= 0.5 {
        let (high, low) = (f64::from(high), f64::from(low));
        Some(((high - 1.0) * (high + 1.0) + low * low) as f32)
    } else {
        None
    };
    let modulus = match square_less_one {
        Some(square) => libm::log1pf(square) / 2.0,
        None => f64::from(f64::from(high).hypot(f64::from(low)) as f32).ln() as f32,
    };
    // A modulus beyond single precision has a logarithm within.
    let beyond = modulus.is_infinite() && high.is_finite() && high > 0.0;
    let modulus = if beyond { f64::from(high).hypot(f64::from(low)).ln() as f32 } else { modulus };
    Complex32::new(modulus, angle)
}

/// Powers that the logarithm does not give.
fn by_special_base(base: Complex64, exponent: Complex64) -> Option<Complex64> {
    if exponent == Complex64::ZERO {
        return Some(Complex64::ONE);
    }
    if base == Complex64::ZERO {
        return Some(match exponent.re.partial_cmp(&0.0) {
            Some(std::cmp::Ordering::Greater) => Complex64::ZERO,
            _ => new(f64::NAN, f64::NAN),
        });
    }
    None
}
