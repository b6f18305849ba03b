//! The logarithm of the gamma function in single precision, computed in double precision.

use std::f64::consts::PI;

use super::double::log_of_normal;
use super::{polynomial, select};

/// Half of the logarithm of 2π.
const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_7;

/// ln |Γ(x)|; infinite at 0, -1, -2, ….
///
/// Of positive numbers up to 2.5, it is that of a number between 1.5 and 2.5, whose quotient by the distance from the zero at 2 is a
/// polynomial, less the logarithm of factors: near the zeros at 1 and 2, no digits cancel. Of larger ones it is Stirling's series, from 8
/// on. Of negative ones it is that of the positive number, by the reflection formula; near their zeros, which are no numbers, the
/// error is that of double precision, relative to one.
///
/// The polynomials are interpolations at Chebyshev's nodes.
#[inline(always)]
pub fn lgamma(x: f32) -> f32 {
    let size = f64::from(x).abs();
    // Products stay normal numbers. The least is as far from zero as a number is.
    let size = select(size == 0.0, 1.0, size);
    let (is_near, is_middle) = (size < 2.5, size < 8.0);
    let moved = select(size < 0.5, size + 2.0, select(size < 1.5, size + 1.0, size));
    let (one, two) = (size, select(size < 0.5, size + 1.0, 1.0));
    let of_near = select(size < 1.5, one * two, 1.0);
    let six = (size * (size + 1.0)) * ((size + 2.0) * (size + 3.0)) * ((size + 4.0) * (size + 5.0));
    let factors = select(is_near, of_near, select(is_middle, six, 1.0));
    let base = select(is_near, near_two(moved - 2.0), stirling(select(is_middle, size + 6.0, size)));
    // |x| sin(π |x|) / π, by the distance from the nearest integer.
    let distance = size - size.round_ties_even();
    let sine = (distance * sine_of_half_turns(distance * distance)).abs();
    let is_negative = x < 0.0;
    let quotient = select(is_negative, factors * PI / (size * select(sine == 0.0, 1.0, sine)), factors);
    let value = base - log_of_normal(quotient);
    // Minus the value of the positive number, and the logarithm of the reflection, which the quotient has.
    let reflected = log_of_normal(quotient) - base;
    let value = select(is_negative, reflected, value);
    let is_pole = x == 0.0 || (is_negative && sine == 0.0);
    let is_infinite = is_pole || x.abs() == f32::INFINITY;
    select(is_infinite, f32::INFINITY, select(x.is_nan(), x, value as f32))
}

/// ln Γ(2 + t), for t from -½ to ½.
#[inline(always)]
fn near_two(t: f64) -> f64 {
    let series = polynomial!(
        t;
        1.198_789_941_492_057_9e-6,
        -2.554_914_527_462_414e-6,
        4.271_453_571_823_135e-6,
        -9.220_663_323_909_058e-6,
        2.052_955_658_697_094e-5,
        -4.497_351_099_968_974_4e-5,
        9.945_486_265_716_54e-5,
        -0.000_223_149_151_802_412_02,
        0.000_509_669_694_622_328_5,
        -0.001_192_754_271_087_742,
        0.002_890_510_325_409_574,
        -0.007_385_551_017_394_38,
        0.020_580_808_427_848_166,
        -0.067_352_301_053_332_67,
        0.322_467_033_424_113_1,
        0.422_784_335_098_467_4
    );
    series * t
}

/// ln Γ(z), for z from 8 on.
#[inline(always)]
fn stirling(z: f64) -> f64 {
    let inverse = 1.0 / z;
    let series = polynomial!(
        inverse * inverse;
        -691.0 / 360_360.0,
        1.0 / 1188.0,
        -1.0 / 1680.0,
        1.0 / 1260.0,
        -1.0 / 360.0,
        1.0 / 12.0
    );
    (z - 0.5).mul_add(log_of_normal(z), HALF_LOG_TAU - z) + series * inverse
}

/// sin(π d) / d for d² up to ¼.
#[inline(always)]
fn sine_of_half_turns(square: f64) -> f64 {
    polynomial!(
        square;
        -2.113_362_735_205_297e-5,
        0.000_465_987_015_804_337_8,
        -0.007_370_364_326_530_415_5,
        0.082_145_878_816_310_43,
        -0.599_264_528_825_224,
        2.550_164_039_861_867_7,
        -5.167_712_780_049_785_5,
        3.141_592_653_589_792_7
    )
}
