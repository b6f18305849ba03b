//! Modified Bessel functions of the first kind, of orders 0 and 1, alone and times e⁻ˣ.
//!
//! In: real floats. Out: a float of the same type; single precision is rounded from double. The series are Chebyshev's, of
//! `e⁻ˣ I₀(x)` from 1 to 8 and `e⁻ˣ I₁(x) / x` from 0 to 8 and of `√x e⁻ˣ I(x)` beyond, cut where terms are below double precision.

use opsmith_runtime::arith::Ordered;

/// The types the functions exist for: `f32` and `f64`.
pub trait Bessel: Ordered {
    /// The number in double precision.
    fn widened(self) -> f64;
    /// The nearest number of the type.
    fn rounded(number: f64) -> Self;
}

impl Bessel for f64 {
    #[inline]
    fn widened(self) -> f64 {
        self
    }
    #[inline]
    fn rounded(number: f64) -> f64 {
        number
    }
}

impl Bessel for f32 {
    #[inline]
    fn widened(self) -> f64 {
        f64::from(self)
    }
    #[inline]
    fn rounded(number: f64) -> f32 {
        number as f32
    }
}

/// I₀(x), the solution of x² y″ + x y′ = x² y with y(0) = 1: `i0(1.0)` is 1.2661.
#[inline]
pub fn i0<T: Bessel>(x: T) -> T {
    let x = x.widened();
    T::rounded(x.abs().exp() * scaled_order_0(x))
}

/// I₀(x) e^-|x|, without overflow: `i0e(1.0)` is 0.4658.
#[inline]
pub fn i0e<T: Bessel>(x: T) -> T {
    T::rounded(scaled_order_0(x.widened()))
}

/// I₁(x), the derivative of [`i0`]: `i1(1.0)` is 0.5652.
#[inline]
pub fn i1<T: Bessel>(x: T) -> T {
    let x = x.widened();
    T::rounded(x.abs().exp() * scaled_order_1(x))
}

/// I₁(x) e^-|x|, without overflow: `i1e(1.0)` is 0.2079.
#[inline]
pub fn i1e<T: Bessel>(x: T) -> T {
    T::rounded(scaled_order_1(x.widened()))
}

#[inline(never)]
fn scaled_order_0(x: f64) -> f64 {
    let size = x.abs();
    if size <= 1.0 {
        (-size).exp() * powers(x * x / 4.0)
    } else if size <= 8.0 {
        series(size / 4.0 - 1.0, &SMALL_0)
    } else {
        series(16.0 / size - 1.0, &LARGE_0) / size.sqrt()
    }
}

#[inline(never)]
fn scaled_order_1(x: f64) -> f64 {
    let size = x.abs();
    if size <= 8.0 {
        x * series(size / 4.0 - 1.0, &SMALL_1)
    } else {
        (series(16.0 / size - 1.0, &LARGE_1) / size.sqrt()).copysign(x)
    }
}

/// I₀ by its power series, Σ qᵏ / k!² with q = x² / 4 up to ¼: near 0, where a sum of Chebyshev polynomials cancels.
fn powers(q: f64) -> f64 {
    (1..12).rev().map(f64::from).fold(1.0, |sum, k| 1.0 + sum * q / (k * k))
}

/// A sum of Chebyshev polynomials, by Clenshaw's recurrence; coefficients from the highest degree down.
fn series(t: f64, coefficients: &[f64]) -> f64 {
    let (mut above, mut next) = (0.0, 0.0);
    for coefficient in coefficients {
        (next, above) = (2.0 * t * next - above + coefficient, next);
    }
    next - t * above
}

/// e⁻ˣ I₀(x) over x / 4 - 1.
const SMALL_0: [f64; 29] = [
    3.3307945188222384e-17,
    -2.431279846547955e-16,
    1.715391285555133e-15,
    -1.1685332877993451e-14,
    7.676185498604936e-14,
    -4.856446783111929e-13,
    2.95505266312964e-12,
    -1.726826291441556e-11,
    9.675809035373237e-11,
    -5.189795601635263e-10,
    2.6598237246823866e-09,
    -1.300025009986248e-08,
    6.046995022541919e-08,
    -2.670793853940612e-07,
    1.1173875391201037e-06,
    -4.4167383584587505e-06,
    1.6448448070728896e-05,
    -5.754195010082104e-05,
    0.00018850288509584165,
    -0.0005763755745385824,
    0.0016394756169413357,
    -0.004324309995050576,
    0.010546460394594998,
    -0.02373741480589947,
    0.04930528423967071,
    -0.09490109704804764,
    0.17162090152220877,
    -0.3046826723431984,
    0.33839763720473803,
];

/// √x e⁻ˣ I₀(x) over 16 / x - 1.
const LARGE_0: [f64; 25] = [
    -7.233180487874754e-18,
    -4.830504485944182e-18,
    4.46562142029676e-17,
    3.461222867697461e-17,
    -2.8276239805165836e-16,
    -3.425485619677219e-16,
    1.7725601330565263e-15,
    3.8116806693526224e-15,
    -9.554846698828307e-15,
    -4.150569347287222e-14,
    1.54008621752141e-14,
    3.8527783827421426e-13,
    7.180124451383666e-13,
    -1.7941785315068062e-12,
    -1.3215811840447713e-11,
    -3.1499165279632416e-11,
    1.1889147107846439e-11,
    4.94060238822497e-10,
    3.3962320257083865e-09,
    2.266668990498178e-08,
    2.0489185894690638e-07,
    2.8913705208347567e-06,
    6.889758346916825e-05,
    0.0033691164782556943,
    0.4022452055070544,
];

/// e⁻ˣ I₁(x) / x over x / 4 - 1.
const SMALL_1: [f64; 29] = [
    2.7779141127610464e-18,
    -2.111421214358166e-17,
    1.5536319577362005e-16,
    -1.1055969477353862e-15,
    7.600684294735408e-15,
    -5.042185504727912e-14,
    3.223793365945575e-13,
    -1.9839743977649436e-12,
    1.1736186298890901e-11,
    -6.663489723502027e-11,
    3.625590281552117e-10,
    -1.8872497517228294e-09,
    9.381537386495773e-09,
    -4.445059128796328e-08,
    2.0032947535521353e-07,
    -8.568720264695455e-07,
    3.4702513081376785e-06,
    -1.3273163656039436e-05,
    4.781565107550054e-05,
    -0.00016176081582589674,
    0.0005122859561685758,
    -0.0015135724506312532,
    0.004156422944312888,
    -0.010564084894626197,
    0.024726449030626516,
    -0.05294598120809499,
    0.1026436586898471,
    -0.17641651835783406,
    0.12629359322181682,
];

/// √x e⁻ˣ I₁(x) over 16 / x - 1.
const LARGE_1: [f64; 25] = [
    7.517296310842105e-18,
    4.414348323071708e-18,
    -4.6503053684893586e-17,
    -3.209525921993424e-17,
    2.96262899764595e-16,
    3.3082023109209285e-16,
    -1.8803547755107825e-15,
    -3.8144030724370075e-15,
    1.0420276984128802e-14,
    4.272440016711951e-14,
    -2.1015418427726643e-14,
    -4.0835511110921974e-13,
    -7.198551776245908e-13,
    2.0356285441470896e-12,
    1.4125807436613782e-11,
    3.2526035830154884e-11,
    -1.8974958123505413e-11,
    -5.589743462196584e-10,
    -3.835380385964237e-09,
    -2.6314688468895196e-08,
    -2.512236237870209e-07,
    -3.882564808877691e-06,
    -0.00011058893876262371,
    -0.009761097491361469,
    0.38928811750914005,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let close =
            |a: f64, b: f64| assert!((a - b).abs() <= 4.0 * f64::EPSILON * b.abs(), "{a} against {b}");
        close(i0(0.5), 1.0634833707413236);
        close(i0(1.0), 1.2660658777520084);
        close(i0(8.0), 427.5641157218048);
        close(i0(8.5), 683.1619269901156);
        close(i0(-30.0), 781672297823.9775);
        close(i0e(3.0), 0.2430003541618254);
        close(i0e(700.0), 0.015081295651531358);
        close(i1(0.5), 0.2578943053908963);
        close(i1(1.0), 0.565159103992485);
        close(i1(8.0), 399.8731367825601);
        close(i1(8.5), 641.6199025400667);
        close(i1(-30.0), -768532038938.957);
        close(i1e(3.0), 0.19682671329730086);
        close(i1e(700.0), 0.015070519444716848);
    }

    #[test]
    fn ends() {
        assert_eq!((i0(0.0f64), i1(0.0f64), i1(-0.0f32)), (1.0, 0.0, -0.0));
        assert_eq!((i0(800.0f64), i1(-800.0f64)), (f64::INFINITY, f64::NEG_INFINITY));
        assert_eq!((i0e(f64::INFINITY), i1e(f64::NEG_INFINITY)), (0.0, 0.0));
        assert!(i0(f64::NAN).is_nan() && i1e(f32::NAN).is_nan());
    }
}
