//! Functions of angles and their inverses in single precision, computed in double precision.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use super::double::ROUNDER;
use super::{polynomial, select};

/// 1 / 2π in parts of 29 bits, whose products with numbers of 24 bits are exact, and the rest.
const TURNS: [f64; 5] = [
    0.159_154_942_259_192_47,
    8.327_028_684_640_414e-10,
    5.690_025_119_525_34e-19,
    6.317_065_083_361_892e-27,
    5.595_982_707_708_916e-36,
];
const TURNS_REST: f64 = 6.551_007_954_373_285e-45;

/// An angle as a number of quarter turns and a remainder: the sine and the cosine of that.
///
/// Source: M. Payne and R. Hanek, "Radian reduction for trigonometric functions" (1983), in floating point: of each exact
/// product only the fraction of a turn counts. The polynomials are interpolations at Chebyshev's nodes.
#[inline(always)]
fn parts(x: f64) -> (u64, f64, f64) {
    let fraction = |turns: f64| turns - turns.round_ties_even();
    let far = fraction(x * TURNS[4]) + x * TURNS_REST;
    let middle = fraction(x * TURNS[3]) + far;
    let near = fraction(x * TURNS[2]) + middle;
    let turns = (fraction(x * TURNS[0]) + fraction(x * TURNS[1])) + near;
    let rounded = turns.mul_add(4.0, ROUNDER);
    let rest = (turns - (rounded - ROUNDER) * 0.25) * TAU;
    let z = rest * rest;
    let sine = polynomial!(
        z;
        2.717_345_684_108_995_3e-6,
        -1.983_920_221_223_11e-4,
        8.333_328_782_458_88e-3,
        -1.666_666_663_159_116_5e-1,
        9.999_999_999_956_731e-1
    );
    let cosine = polynomial!(
        z;
        2.437_983_125_117_536_7e-5,
        -1.388_661_799_964_707_6e-3,
        4.166_661_669_253_282_6e-2,
        -4.999_999_961_485_761e-1,
        9.999_999_999_524_894e-1
    );
    (rounded.to_bits(), sine * rest, cosine)
}

/// Below this, an odd function of an angle is the angle to single precision.
const TINY: f32 = 1.0 / 4096.0;

/// The sine.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (quarters, sine, cosine) = parts(f64::from(x));
    let value = select(quarters & 1 == 0, sine, cosine);
    let value = select(quarters & 2 == 0, value, -value) as f32;
    select(x.abs() < TINY, x, value)
}

/// The cosine.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (quarters, sine, cosine) = parts(f64::from(x));
    let value = select(quarters & 1 == 0, cosine, -sine);
    select(quarters & 2 == 0, value, -value) as f32
}

/// The tangent.
#[inline(always)]
pub fn tan(x: f32) -> f32 {
    let (quarters, sine, cosine) = parts(f64::from(x));
    let (above, below) = (select(quarters & 1 == 0, sine, -cosine), select(quarters & 1 == 0, cosine, sine));
    select(x.abs() < TINY, x, (above / below) as f32)
}

/// The inverse of the sine, up to one half.
#[inline(always)]
fn asin_near(x: f64) -> f64 {
    let series = polynomial!(
        x * x;
        3.474_842_480_808_39e-2,
        7.401_007_239_075_379_5e-3,
        2.465_086_266_060_408_8e-2,
        3.010_250_689_966_149e-2,
        4.466_113_930_866_896e-2,
        7.499_941_908_754_719e-2,
        1.666_666_736_418_644_7e-1,
        9.999_999_999_863_537e-1
    );
    series * x
}

/// The inverse of the sine; NaN beyond ±1.
#[inline(always)]
pub fn asin(x: f32) -> f32 {
    let size = f64::from(x).abs();
    let far = size > 0.5;
    let value = asin_near(select(far, (0.5 - 0.5 * size).sqrt(), size));
    (select(far, FRAC_PI_2 - 2.0 * value, value) as f32).copysign(x)
}

/// The inverse of the cosine; NaN beyond ±1.
#[inline(always)]
pub fn acos(x: f32) -> f32 {
    let x = f64::from(x);
    let size = x.abs();
    let far = size > 0.5;
    let value = asin_near(select(far, (0.5 - 0.5 * size).sqrt(), x));
    let near_one = 2.0 * value;
    select(far, select(x > 0.0, near_one, PI - near_one), FRAC_PI_2 - value) as f32
}

/// The inverse of the tangent, up to one.
#[inline(always)]
fn atan_near(t: f64) -> f64 {
    let series = polynomial!(
        t * t;
        1.057_607_438_057_242e-3,
        -7.030_669_470_424_213e-3,
        2.191_294_586_544_839_3e-2,
        -4.392_841_073_326_746e-2,
        6.685_281_517_877_424e-2,
        -8.785_043_282_363_845e-2,
        1.105_077_127_584_966e-1,
        -1.427_857_602_480_798_5e-1,
        1.999_955_810_036_398_2e-1,
        -3.333_332_248_891_159_3e-1,
        9.999_999_995_535_376e-1
    );
    series * t
}

/// The inverse of the tangent.
#[inline(always)]
pub fn atan(x: f32) -> f32 {
    let size = f64::from(x).abs();
    let far = size > 1.0;
    let value = atan_near(select(far, 1.0 / size, size));
    (select(far, FRAC_PI_2 - value, value) as f32).copysign(x)
}

/// The angle of the point (`x`, `y`).
#[inline(always)]
pub fn atan2(y: f32, x: f32) -> f32 {
    let (across, up) = (f64::from(x).abs(), f64::from(y).abs());
    let steep = up > across;
    let (short, long) = (select(steep, across, up), select(steep, up, across));
    // Two infinite sides are equal, as others are; two of no length have no angle between them.
    let t = select(short == long, select(long == 0.0, 0.0, 1.0), short / long);
    let value = atan_near(t);
    let value = select(steep, FRAC_PI_2 - value, value);
    (select(x.is_sign_negative(), PI - value, value) as f32).copysign(y)
}

/// The length of the vector (`x`, `y`): infinite if a side is, whatever the other one is.
#[inline(always)]
pub fn hypot(x: f32, y: f32) -> f32 {
    let (a, b) = (f64::from(x), f64::from(y));
    let length = a.mul_add(a, b * b).sqrt() as f32;
    select(x.is_infinite() | y.is_infinite(), f32::INFINITY, length)
}
