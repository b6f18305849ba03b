//! Double precision: exponential, logarithm, hyperbolic tangent.

use std::f64::consts::LOG2_E;

use super::{polynomial, select};

/// Adding this to a number of moderate size rounds it to an integer, which the low bits then hold.
pub(super) const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// The rounder with twice the bias of exponents in its low bits.
const TWICE_BIASED: f64 = ROUNDER + 2046.0;
/// The rounder with the bias of exponents in its low bits.
const BIASED: f64 = ROUNDER + 1023.0;
/// ln 2 with zeros at the end, so that products with exponents are exact.
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
/// The low bits of ln 2, which [`LN_2_HIGH`] lacks.
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// eˣ.
///
/// Source: x = n ln 2 + r (`reduced`), Taylor's series for eʳ, and 2ⁿ in two factors so that
/// results near the ends of the range neither overflow nor vanish too early.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // Beyond these the result is infinite or 0 in any case. NaN passes both comparisons.
    let x = select(x > 710.0, 710.0, x);
    let x = select(x < -746.0, -746.0, x);
    let (rounded, r) = reduced(x, TWICE_BIASED);
    let series = polynomial!(
        r;
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5
    );
    let value = (series * r).mul_add(r, r);
    let first = (rounded >> 1) << 52;
    let second = (rounded << 52).wrapping_sub(first);
    let first = f64::from_bits(first);
    value.mul_add(first, first) * f64::from_bits(second)
}

/// The integer n of x = n ln 2 + r with |r| ≤ ln 2 / 2, as the low bits of n and the rounder, and r.
#[inline(always)]
fn reduced(x: f64, rounder: f64) -> (u64, f64) {
    let rounded = x.mul_add(LOG2_E, rounder);
    let n = rounded - rounder;
    (rounded.to_bits(), (-n).mul_add(LN_2_LOW, (-n).mul_add(LN_2_HIGH, x)))
}

/// eˣ for results of single precision, within a relative error of 2⁻³²; beyond ±200, e²⁰⁰ or e⁻²⁰⁰.
#[inline(always)]
pub fn exp_of_single(x: f64) -> f64 {
    let x = select(x > 200.0, 200.0, x);
    let x = select(x < -200.0, -200.0, x);
    let (rounded, r) = reduced(x, BIASED);
    let series = polynomial!(
        r;
        1.0 / 40_320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0
    );
    series * f64::from_bits(rounded << 52)
}

/// The natural logarithm.
#[inline(always)]
pub fn log(x: f64) -> f64 {
    let subnormal = x < f64::MIN_POSITIVE;
    let scaled = select(subnormal, x * 18_014_398_509_481_984.0, x);
    let value = log_of_scaled(scaled, select(subnormal, 54.0, 0.0));
    let value = select(x == f64::INFINITY, x, value);
    let value = select(x == 0.0, f64::NEG_INFINITY, value);
    // NaN too: it is not at least zero.
    select(x >= 0.0, value, f64::NAN)
}

/// The natural logarithm of a positive normal number; that of others has no meaning.
#[inline(always)]
pub fn log_of_normal(x: f64) -> f64 {
    log_of_scaled(x, 0.0)
}

/// The natural logarithm of x 2⁻ˢ, where x is a normal number.
///
/// Source: x = 2ᵏ m with m between √½ and √2, and fdlibm's series for ln m in (m - 1) / (m + 1).
#[inline(always)]
fn log_of_scaled(x: f64, scale: f64) -> f64 {
    const ROOT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    let offset = x.to_bits().wrapping_sub(ROOT_HALF);
    let exponent = (offset as i64) >> 52;
    let mantissa = f64::from_bits((offset & 0x000F_FFFF_FFFF_FFFF).wrapping_add(ROOT_HALF));
    // An integer added to the bits of the rounder is added to its value.
    let k = f64::from_bits(ROUNDER.to_bits().wrapping_add(exponent as u64)) - ROUNDER;
    let k = k - scale;
    let f = mantissa - 1.0;
    let s = f / (f + 2.0);
    let z = s * s;
    let series = z * polynomial!(
        z;
        1.479_819_860_511_658_6e-1,
        1.531_383_769_920_937_3e-1,
        1.818_357_216_161_805e-1,
        2.222_219_843_214_978_4e-1,
        2.857_142_874_366_239e-1,
        3.999_999_999_940_942e-1,
        6.666_666_666_666_735e-1
    );
    let half_square = 0.5 * f * f;
    k * LN_2_HIGH - ((half_square - (s * (half_square + series) + k * LN_2_LOW)) - f)
}

/// The hyperbolic tangent.
///
/// Source: Cephes: a rational function up to 0.625, 1 - 2 / (e²ˣ + 1) beyond.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    let size = x.abs();
    let z = x * x;
    let numerator =
        polynomial!(z; -9.643_991_794_250_523e-1, -9.928_772_310_019_185e1, -1.614_687_684_417_084_5e3);
    let denominator = polynomial!(
        z;
        1.0,
        1.128_116_784_916_329_3e2,
        2.235_488_390_601_004_5e3,
        4.844_063_053_251_255e3
    );
    let near = x + x * z * (numerator / denominator);
    let far = 1.0 - 2.0 / (exp(2.0 * size) + 1.0);
    // The sign of zero gets lost on the way.
    select(size < 0.625, near, far).copysign(x)
}
