//! Single precision.

use std::f32::consts::{LN_2, LOG2_E};

use super::{double, polynomial, select};

/// Adding this to a number of moderate size rounds it to an integer, which the low bits then hold.
const ROUNDER: f32 = 12_582_912.0;
/// The rounder with twice the bias of exponents in its low bits.
const TWICE_BIASED: f32 = ROUNDER + 254.0;
/// The rounder with the bias of exponents in its low bits.
const BIASED: f32 = ROUNDER + 127.0;
/// ln 2 with zeros at the end, so that products with exponents are exact.
const LN_2_HIGH: f32 = f32::from_bits(0x3F31_8000);
/// The low bits of ln 2, which [`LN_2_HIGH`] lacks.
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// eˣ.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = select(x > 89.0, 89.0, x);
    let x = select(x < -104.0, -104.0, x);
    let rounded = x.mul_add(LOG2_E, TWICE_BIASED);
    scaled(exp_near_zero(rest_of(x, rounded - TWICE_BIASED)), rounded)
}

/// (1 + value) 2ᵏ, with k in the low bits of a number rounded by [`TWICE_BIASED`]. 2ᵏ are two factors, of which neither overflows nor
/// vanishes, and the sum is scaled by the first as it is rounded.
#[inline(always)]
fn scaled(value: f32, rounded: f32) -> f32 {
    let bits = rounded.to_bits();
    let first = (bits >> 1) << 23;
    let second = (bits << 23).wrapping_sub(first);
    let first = f32::from_bits(first);
    value.mul_add(first, first) * f32::from_bits(second)
}

/// eˣ for x between -87 and 88, where it is a normal number.
#[inline(always)]
fn exp_moderate(x: f32) -> f32 {
    let rounded = x.mul_add(LOG2_E, BIASED);
    let scale = f32::from_bits(rounded.to_bits() << 23);
    exp_near_zero(rest_of(x, rounded - BIASED)).mul_add(scale, scale)
}

/// r of x = n ln 2 + r.
#[inline(always)]
fn rest_of(x: f32, n: f32) -> f32 {
    (-n).mul_add(LN_2_LOW, (-n).mul_add(LN_2_HIGH, x))
}

/// eʳ - 1 for |r| ≤ ln 2 / 2.
///
/// Source: a minimax fit of the relative error of eʳ, which is 0.06 units in the last place.
#[inline(always)]
fn exp_near_zero(r: f32) -> f32 {
    let series = polynomial!(r; 1.386_378_7e-3, 8.367_482e-3, 4.166_723_8e-2, 1.666_653_5e-1, 0.5);
    series.mul_add(r * r, r)
}

/// 2ˣ; exact for integers.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    let x = select(x > 129.0, 129.0, x);
    let x = select(x < -151.0, -151.0, x);
    let rounded = x + TWICE_BIASED;
    scaled(exp_near_zero((x - (rounded - TWICE_BIASED)) * LN_2), rounded)
}

/// The power: 1 for the exponent 0 and the base 1, NaN for a negative base unless the exponent is an integer.
///
/// Source: exp(exponent * ln |base|) in double precision; special values as in IEEE 754.
#[inline(always)]
pub fn pow(base: f32, exponent: f32) -> f32 {
    let size = f64::from(base.abs());
    let wide = f64::from(exponent);
    // Numbers of single precision are normal in double.
    let log = select(size < f64::INFINITY, double::log_of_normal(size), size);
    let log = select(size == 0.0, f64::NEG_INFINITY, log);
    // The logarithm 0 has a product with infinity, too.
    let product = select(size == 1.0 && wide.abs() == f64::INFINITY, 0.0, wide * log);
    let value = double::exp_of_single(product);
    let is_integer = wide.trunc() == wide;
    let is_odd = is_integer && (0.5 * wide).trunc() != 0.5 * wide;
    let is_negative = base.is_sign_negative();
    let value = select(is_negative && is_odd, -value, value);
    let value = select(base < 0.0 && size < f64::INFINITY && !is_integer, f64::NAN, value);
    select(exponent == 0.0 || base == 1.0, 1.0, value) as f32
}

/// An exponent k and the logarithm of m, where x = 2ᵏ m and m is between √½ and √2.
///
/// Source: Cephes' polynomial for ln m.
#[inline(always)]
fn log_parts(x: f32) -> (f32, f32, f32) {
    const ROOT_HALF: u32 = 0x3F35_04F3;
    let subnormal = x < f32::MIN_POSITIVE;
    let scaled = select(subnormal, x * 8_388_608.0, x);
    let offset = scaled.to_bits().wrapping_sub(ROOT_HALF);
    let exponent = (offset as i32) >> 23;
    let mantissa = f32::from_bits((offset & 0x007F_FFFF).wrapping_add(ROOT_HALF));
    let k = exponent as f32 - select(subnormal, 23.0, 0.0);
    let f = mantissa - 1.0;
    let z = f * f;
    let series = polynomial!(
        f;
        7.037_683_6e-2,
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1
    );
    (k, f, (f * z).mul_add(series, -0.5 * z))
}

/// A logarithm's value at infinity, at zero and below.
#[inline(always)]
fn at_the_ends(x: f32, value: f32) -> f32 {
    let value = select(x == f32::INFINITY, x, value);
    let value = select(x == 0.0, f32::NEG_INFINITY, value);
    select(x >= 0.0, value, f32::NAN)
}

/// The natural logarithm.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    let (k, f, rest) = log_parts(x);
    at_the_ends(x, k.mul_add(LN_2_HIGH, f + k.mul_add(LN_2_LOW, rest)))
}

/// The logarithm to base 2; exact for powers of two.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    let (k, f, rest) = log_parts(x);
    let mantissa = (f64::from(f) + f64::from(rest)) * std::f64::consts::LOG2_E;
    at_the_ends(x, (f64::from(k) + mantissa) as f32)
}

/// The logarithm to base 10.
#[inline(always)]
pub fn log10(x: f32) -> f32 {
    let (k, f, rest) = log_parts(x);
    let mantissa = (f64::from(f) + f64::from(rest)) * std::f64::consts::LOG10_E;
    at_the_ends(x, (f64::from(k) * std::f64::consts::LOG10_2 + mantissa) as f32)
}

/// The hyperbolic tangent.
///
/// Source: Cephes: a polynomial up to 0.625, 1 - 2 / (e²ˣ + 1) beyond.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let size = x.abs();
    let z = x * x;
    let series = polynomial!(
        z;
        -5.704_988_7e-3,
        2.063_909e-2,
        -5.373_971_6e-2,
        1.333_144_2e-1,
        -3.333_328e-1
    );
    let near = (series * z).mul_add(x, x);
    let far = 1.0 - 2.0 / (exp_moderate(2.0 * select(size > 44.0, 44.0, size)) + 1.0);
    // The sign of zero gets lost on the way.
    select(size < 0.625, near, far).copysign(x)
}

/// The error function.
///
/// With 1 - erf = (1 - u/2)², erf is u - u²/4: an error of u stays as it is near zero, and vanishes near one. So one
/// polynomial serves the whole range; from 3.85 on the result is one.
///
/// Source: weighted minimax fit of u = 2 - 2 √erfc(t), as t + t s(t), to the error in units in the last place. Pairs
/// of coefficients shorten the chain of dependent operations; the constant apart keeps the error below two units.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = select(size > 3.85, 3.85, size);
    let series = polynomial!(
        t * t;
        polynomial!(t; -6.690_267_5e-7, 9.368_256e-6),
        polynomial!(t; -2.837_400_6e-5, -2.117_910_8e-4),
        polynomial!(t; 1.770_078_2e-3, -3.902_822_7e-3),
        polynomial!(t; -2.562_202_7e-3, 1.338_105_3e-2),
        polynomial!(t; 3.383_065_4e-2, -8.566_352e-2),
        polynomial!(t; -1.965_299_4e-1, 3.183_097_2e-1)
    );
    let series = polynomial!(t; series, 1.283_791_7e-1);
    let value = series.mul_add(t, t);
    (-0.25 * value).mul_add(value, value).copysign(x)
}

/// One minus the error function.
///
/// With t = 2 / (2 + |x|), ln(erfc |x| / t) + x² is a polynomial of t: interpolated at Chebyshev's nodes up to 10.2, from where on
/// the result is zero.
#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    let size = f64::from(x).abs();
    let t = 2.0 / (2.0 + size);
    let series = polynomial!(
        t;
        0.193_823_194_176_260_7,
        -1.428_656_940_400_055_5,
        4.568_362_137_431_376,
        -8.195_866_035_849_674,
        8.919_853_212_186_69,
        -6.072_478_538_721_485_5,
        2.851_995_332_708_889_4,
        -1.151_651_524_038_029,
        0.158_684_655_049_951_2,
        0.042_175_807_937_072_256,
        0.379_560_993_103_666_7,
        0.999_701_069_955_254_3,
        -1.265_503_363_278_375_6
    );
    let tail = t * double::exp((-size).mul_add(size, series));
    select(x < 0.0, 2.0 - tail, tail) as f32
}

/// Steps that reduce any quotient of two numbers: from at most 2^277, each by a factor of 2^51 or more.
const STEPS: usize = 6;

/// The remainder of the quotient rounded toward zero, exactly.
///
/// In double precision, where each step's quotient is an integer, off by a few units in its last place, and the rest that it leaves has
/// few digits. The last step's is off by one at most.
#[inline(always)]
pub fn fmod(a: f32, b: f32) -> f32 {
    let (mut rest, size) = (f64::from(a).abs(), f64::from(b).abs());
    let size = select(size == f64::INFINITY, f64::MAX, size);
    let inverse = 1.0 / size;
    for _ in 0..STEPS {
        rest = (-(rest * inverse).trunc()).mul_add(size, rest);
    }
    let rest = select(rest < 0.0, rest + size, rest);
    let rest = select(rest >= size, rest - size, rest);
    (rest as f32).copysign(a)
}

/// The inverse of the error function; NaN beyond ±1.
///
/// A function of w = -ln(1 - x²) times x, of which x has the digits near ±1: w up to 5, then its root. The polynomials are
/// interpolations at Chebyshev's nodes. Source of the form: M. Giles, "Approximating the erfinv function" (2011).
#[inline(always)]
pub fn erfinv(x: f32) -> f32 {
    let y = f64::from(x);
    let w = -double::log((1.0 - y) * (1.0 + y));
    let near = polynomial!(
        w - 2.5;
        4.384_995_311_926_027e-13,
        -3.388_817_519_066_577e-13,
        -3.012_234_602_162_957_6e-11,
        1.298_244_604_337_144_9e-10,
        9.024_881_447_909_744e-10,
        -1.090_665_574_311_065_3e-8,
        1.342_928_714_221_635_8e-8,
        4.788_369_412_627_382e-7,
        -3.416_636_103_077_881e-6,
        -4.996_222_761_366_711e-6,
        2.182_502_739_341_82e-4,
        -1.252_707_826_076_258_2e-3,
        -4.177_317_725_991_64e-3,
        0.246_640_276_730_559_33,
        1.501_409_351_110_792
    );
    let far = polynomial!(
        w.sqrt() - 3.118_033_988_749_895;
        1.210_023_812_091_784_7e-5,
        -1.127_024_979_713_253_9e-5,
        -5.853_921_150_010_26e-5,
        1.511_657_227_553_516_7e-4,
        -9.854_160_083_450_693e-5,
        -3.282_805_863_073_256e-4,
        1.276_658_936_844_934_5e-3,
        -2.571_839_368_903_299_6e-3,
        3.883_099_838_055_169_6e-3,
        -5.408_071_925_576_2e-3,
        7.159_778_698_509_46e-3,
        1.003_619_726_471_132_8,
        2.951_328_578_343_118
    );
    let value = (select(w < 5.0, near, far) * y) as f32;
    let value = select(x.abs() == 1.0, f32::INFINITY.copysign(x), value);
    select(x.abs() > 1.0, f32::NAN, value)
}

/// Below this, the first terms of a series are exact to single precision.
const TINY: f64 = 1.0 / 65_536.0;

/// eˣ - 1.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let x = f64::from(x);
    select(x.abs() < TINY, x * (1.0 + 0.5 * x), double::exp(x) - 1.0) as f32
}

/// ln(1 + x): the logarithm of the rounded sum, and the rest of the sum divided by it.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let sum = 1.0 + x;
    let rest = (x - (sum - 1.0)) / sum;
    let (k, f, series) = log_parts(sum);
    let value = k.mul_add(LN_2_HIGH, f + (k.mul_add(LN_2_LOW, series) + rest));
    let value = select(x.abs() < f32::EPSILON / 2.0, x, value);
    at_the_ends(sum, value)
}

/// The hyperbolic sine.
#[inline(always)]
pub fn sinh(x: f32) -> f32 {
    let x = f64::from(x);
    let power = double::exp(x);
    select(x.abs() < TINY, x, 0.5 * (power - 1.0 / power)) as f32
}

/// The hyperbolic cosine.
#[inline(always)]
pub fn cosh(x: f32) -> f32 {
    let power = double::exp(f64::from(x));
    (0.5 * (power + 1.0 / power)) as f32
}

/// The inverse of the hyperbolic sine.
#[inline(always)]
pub fn asinh(x: f32) -> f32 {
    let x = f64::from(x);
    let size = x.abs();
    let far = double::log(size + (size * size + 1.0).sqrt()).copysign(x);
    select(size < TINY, x, far) as f32
}

/// The inverse of the hyperbolic cosine; NaN below 1.
#[inline(always)]
pub fn acosh(x: f32) -> f32 {
    let x = f64::from(x);
    // Below -1 the root is real again.
    select(x < 1.0, f64::NAN, double::log(x + (x * x - 1.0).sqrt())) as f32
}

/// The inverse of the hyperbolic tangent; NaN beyond ±1.
#[inline(always)]
pub fn atanh(x: f32) -> f32 {
    let x = f64::from(x);
    select(x.abs() < TINY, x, 0.5 * double::log((1.0 + x) / (1.0 - x))) as f32
}
