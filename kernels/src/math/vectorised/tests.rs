//! Every function against a more accurate one, over numbers of every size.

use super::{angles, double, gamma, single};

/// Every `step`-th single-precision number.
fn singles(step: usize) -> impl Iterator<Item = f32> {
    (0..=u32::MAX).step_by(step).map(f32::from_bits)
}

/// Units in the last place between a result and the exact value, in single precision.
fn single_error(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if got == rounded || (got.is_nan() && rounded.is_nan()) {
        return 0.0;
    }
    if !rounded.is_finite() || !got.is_finite() {
        return f64::INFINITY;
    }
    let unit = (rounded.abs().next_up() - rounded.abs()).max(f32::from_bits(1));
    (f64::from(got) - exact).abs() / f64::from(unit)
}

/// The step from one number to the next: `OPSMITH_ULP_STEP`, 1 for all numbers.
fn step() -> usize {
    let text = std::env::var("OPSMITH_ULP_STEP");
    text.map_or(20_011, |text| text.parse().expect("OPSMITH_ULP_STEP is a number"))
}

#[track_caller]
fn check_single(name: &str, function: fn(f32) -> f32, exact: fn(f64) -> f64, bound: f64) {
    let (mut worst, mut at, mut sum, mut count) = (0.0, 0.0, 0.0, 0.0);
    for x in singles(step()) {
        let error = single_error(function(x), exact(f64::from(x)));
        if error > worst {
            (worst, at) = (error, x);
        }
        sum += error;
        count += 1.0;
    }
    println!("{name}: {worst:.3} units at worst, at {at:e}; {:.4} on average", sum / count);
    assert!(worst <= bound, "{name}({at}) is {}, off by {worst} units", function(at));
}

/// A name, the function, a more accurate one, and the allowed error.
type Case = (&'static str, fn(f32) -> f32, fn(f64) -> f64, f64);

#[test]
fn single_precision() {
    let cases: &[Case] = &[
        ("exp", single::exp, f64::exp, 1.5),
        ("expm1", single::expm1, f64::exp_m1, 0.51),
        ("log", single::log, f64::ln, 1.5),
        ("log2", single::log2, f64::log2, 1.5),
        ("log10", single::log10, f64::log10, 1.5),
        ("log1p", single::log1p, f64::ln_1p, 1.5),
        ("tanh", single::tanh, f64::tanh, 2.0),
        ("sinh", single::sinh, f64::sinh, 0.51),
        ("cosh", single::cosh, f64::cosh, 0.51),
        ("asinh", single::asinh, libm::asinh, 0.51),
        ("acosh", single::acosh, crate::math::acosh, 0.51),
        ("atanh", single::atanh, libm::atanh, 0.51),
        ("erf", single::erf, libm::erf, 2.0),
        ("erfc", single::erfc, libm::erfc, 0.51),
        ("erfinv", single::erfinv, crate::math::special::erfinv_f64, 0.51),
        ("exp2", single::exp2, f64::exp2, 1.5),
        ("sin", angles::sin, f64::sin, 0.51),
        ("cos", angles::cos, f64::cos, 0.51),
        ("tan", angles::tan, f64::tan, 0.51),
        ("asin", angles::asin, f64::asin, 0.51),
        ("acos", angles::acos, f64::acos, 0.51),
        ("atan", angles::atan, f64::atan, 0.51),
        ("lgamma", positive_lgamma, libm::lgamma, 0.6),
    ];
    std::thread::scope(|scope| {
        for &(name, function, exact, bound) in cases {
            scope.spawn(move || check_single(name, function, exact, bound));
        }
    });
}

/// The function of negative numbers is another test's: near its zeros the error is one of double precision, relative to one.
fn positive_lgamma(x: f32) -> f32 {
    if x.is_sign_negative() { libm::lgamma(f64::from(x)) as f32 } else { gamma::lgamma(x) }
}

#[test]
fn lgamma_of_negative_numbers() {
    let near_zeros = (0..200_000).map(|at| -2.0 - at as f32 / 20_000.0);
    for x in singles(step()).filter(|x| x.is_sign_negative()).chain(near_zeros) {
        let (got, exact) = (gamma::lgamma(x), libm::lgamma(f64::from(x)));
        let error = single_error(got, exact);
        let is_near_zero = (f64::from(got) - exact).abs() <= 4e-14;
        assert!(error <= 0.6 || is_near_zero, "lgamma({x}) is {got}, not {exact}: off by {error} units");
    }
    for x in [0.0, -0.0, -1.0, -2.0, -8e6, -1e30, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(gamma::lgamma(x), f32::INFINITY);
    }
    assert!(gamma::lgamma(f32::NAN).is_nan());
    assert_eq!((gamma::lgamma(1.0), gamma::lgamma(2.0)), (0.0, 0.0));
}

#[test]
fn functions_of_two_numbers() {
    let parts = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        1e-45,
        f32::MAX,
    ];
    let many: Vec<f32> =
        singles(40_000_003).chain(parts).chain((0..400).map(|at| at as f32 * 0.37 - 70.0)).collect();
    let (mut angle, mut length) = (0f64, 0f64);
    for &x in &many {
        for &y in &many {
            let exact = f64::atan2(f64::from(y), f64::from(x));
            let found = angles::atan2(y, x);
            assert_eq!(
                found.is_sign_negative() && !found.is_nan(),
                exact.is_sign_negative() && !exact.is_nan(),
                "{y} {x}"
            );
            angle = angle.max(single_error(found, exact));
            length = length.max(single_error(angles::hypot(x, y), f64::hypot(f64::from(x), f64::from(y))));
            let (rest, exact) = (single::fmod(x, y), x % y);
            assert!(
                rest.to_bits() == exact.to_bits() || rest.is_nan() && exact.is_nan(),
                "{x} % {y}: {rest}"
            );
        }
    }
    println!("atan2: {angle:.3} units at worst, hypot: {length:.3}");
    assert!(angle <= 0.51 && length <= 0.51, "atan2 {angle}, hypot {length}");
}

#[test]
fn double_precision() {
    let numbers = singles(40_009).map(|x| f64::from(x) * 1.000_000_123_456_7);
    let spread = (0..100_000).map(|i| f64::from(i) * 0.0149 - 745.0);
    for x in numbers.chain(spread).chain([f64::INFINITY, f64::MAX, 5e-324, 1e-310, -0.0]) {
        for (name, got, exact) in [
            ("exp", double::exp(x), x.exp()),
            ("log", double::log(x), x.ln()),
            ("tanh", double::tanh(x), x.tanh()),
        ] {
            let units = (exact.abs().next_up() - exact.abs()).max(f64::from_bits(1));
            let same = got == exact || (got.is_nan() && exact.is_nan());
            assert!(same || (got - exact).abs() <= 2.0 * units, "{name}({x:e}) is {got:e}, not {exact:e}");
        }
    }
}

#[test]
fn powers() {
    let special = [0.0, 0.5, 1.0, 2.0, 3.0, 1e-45, 1e30, 16_777_216.0, 16_777_215.0, f32::MAX, f32::INFINITY];
    let special: Vec<f32> = special.iter().flat_map(|&x| [x, -x]).chain([f32::NAN]).collect();
    for &base in &special {
        for &exponent in &special {
            let (got, exact) = (single::pow(base, exponent), base.powf(exponent));
            let same = got.to_bits() == exact.to_bits() || (got.is_nan() && exact.is_nan());
            assert!(same, "pow({base}, {exponent}) is {got}, not {exact}");
        }
    }
    for (base, exponent) in singles(60_013).zip(singles(40_009).chain(singles(20_011))) {
        for (base, exponent) in [(base, exponent), (exponent.abs(), base), (base.abs(), exponent % 40.0)] {
            let error = single_error(single::pow(base, exponent), f64::from(base).powf(f64::from(exponent)));
            assert!(error <= 0.51, "pow({base}, {exponent}) is off by {error} units");
        }
    }
}

#[test]
fn signs_of_zero_survive() {
    for function in [angles::sin, angles::tan, angles::asin, angles::atan] {
        assert_eq!(function(-0.0).to_bits(), (-0.0f32).to_bits());
    }
    for function in [single::tanh, single::erf, single::expm1, single::log1p, single::sinh, single::asinh] {
        assert_eq!(function(-0.0).to_bits(), (-0.0f32).to_bits());
    }
    assert_eq!(double::tanh(-0.0).to_bits(), (-0.0f64).to_bits());
}
