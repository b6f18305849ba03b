//! Scalar functions of pointwise expressions that documents know: their notation and their value in double precision.
//!
//! In: a function of the model. Out: a row of [`TABLE`], found by the Rust function that the spec names, because another
//! spec may give the same name to another function. A function without a row is typeset by its name and has no value.

mod special;

use opsmith_codegen::model::Function;

/// The way in which a call of a function is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Notation {
    /// The function's own name and its arguments.
    Named,
    /// Another name, upright.
    Called(&'static str),
    /// A constant to the power of the argument.
    PowerOf(&'static str),
    /// e to the power of the argument, less 1.
    PowerLessOne,
    /// The logarithm of 1 and the argument.
    LogarithmOfOneAnd,
    /// The square root.
    Root,
    /// 1 over the square root.
    InverseRoot,
    /// 1 over the argument.
    Inverse,
    /// The first argument to the power of the second.
    Raised,
    /// The argument between two signs.
    Between(&'static str, &'static str),
    /// The quotient of both arguments between two signs.
    QuotientBetween(&'static str, &'static str),
    /// A word or sign between both arguments.
    Infix(&'static str),
    /// Both arguments, true or not, between which a sign stands.
    Logical(&'static str),
    /// The opposite of a truth value.
    Opposite,
    /// The logarithm of the size of the gamma function.
    LogGamma,
    /// A derivative of ψ, by its order.
    DerivativeOfPsi,
    /// The root of the sum of both squares.
    Hypotenuse,
    /// The least of the third argument and the largest of the others.
    Bounded,
    /// The mark of the complex conjugate.
    Conjugate,
    /// Real and imaginary part.
    Parts,
    /// A statement about the argument.
    Statement(&'static str),
}

/// A function that documents know.
pub(crate) struct Scalar {
    /// The Rust function, as specs name it.
    pub rust: &'static str,
    /// The notation.
    pub notation: Notation,
    /// The value at numbers, as many as there are parameters; a truth value is 0 or 1.
    pub value: Value,
}

/// The value of a function at numbers.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    /// Of one number.
    One(fn(f64) -> f64),
    /// Of two.
    Two(fn(f64, f64) -> f64),
    /// Of three.
    Three(fn(f64, f64, f64) -> f64),
    /// Not a function of real numbers.
    None,
}

const fn one(rust: &'static str, notation: Notation, value: fn(f64) -> f64) -> Scalar {
    Scalar { rust, notation, value: Value::One(value) }
}

const fn two(rust: &'static str, notation: Notation, value: fn(f64, f64) -> f64) -> Scalar {
    Scalar { rust, notation, value: Value::Two(value) }
}

const fn none(rust: &'static str, notation: Notation) -> Scalar {
    Scalar { rust, notation, value: Value::None }
}

use Notation::{
    Between, Bounded, Called, Conjugate, DerivativeOfPsi, Hypotenuse, Infix, Inverse, InverseRoot, LogGamma,
    LogarithmOfOneAnd, Logical, Named, Opposite, Parts, PowerLessOne, PowerOf, QuotientBetween, Raised, Root,
    Statement,
};

/// The functions that documents know.
pub(crate) const TABLE: &[Scalar] = &[
    one("math::exp", PowerOf("e"), f64::exp),
    one("math::exp2", PowerOf("2"), f64::exp2),
    one("math::expm1", PowerLessOne, f64::exp_m1),
    one("math::log", Called("ln"), f64::ln),
    one("math::log1p", LogarithmOfOneAnd, f64::ln_1p),
    one("math::log2", Named, f64::log2),
    one("math::log10", Named, f64::log10),
    one("math::sqrt", Root, f64::sqrt),
    one("math::rsqrt", InverseRoot, |x| 1.0 / x.sqrt()),
    one("math::reciprocal", Inverse, |x| 1.0 / x),
    one("math::sin", Named, f64::sin),
    one("math::cos", Named, f64::cos),
    one("math::tan", Named, f64::tan),
    one("math::asin", Named, f64::asin),
    one("math::acos", Named, f64::acos),
    one("math::atan", Named, f64::atan),
    one("math::sinh", Named, f64::sinh),
    one("math::cosh", Named, f64::cosh),
    one("math::tanh", Named, f64::tanh),
    one("math::asinh", Named, f64::asinh),
    one("math::acosh", Named, f64::acosh),
    one("math::atanh", Named, f64::atanh),
    one("math::sigmoid", Called("σ"), |x| 1.0 / (1.0 + (-x).exp())),
    two("math::pow", Raised, f64::powf),
    one("math::erf", Named, libm::erf),
    one("math::erfc", Named, libm::erfc),
    one("math::erfinv", Named, special::inverse_error_function),
    one("math::lgamma", LogGamma, libm::lgamma),
    one("math::digamma", Called("ψ"), |x| special::derivative_of_psi(0.0, x)),
    two("math::polygamma", DerivativeOfPsi, special::derivative_of_psi),
    two("math::atan2", Named, f64::atan2),
    two("math::hypot", Hypotenuse, f64::hypot),
    one("math::abs", Between("|", "|"), f64::abs),
    one("math::sgn", Named, sign),
    one("math::sign", Named, |x| if x.is_nan() { x } else { sign(x) }),
    one("math::conj", Conjugate, |x| x),
    one("math::real", Called("Re"), |x| x),
    one("math::imag", Called("Im"), |_| 0.0),
    none("math::complex", Parts),
    one("math::is_nan", Statement("is NaN"), |x| truth(x.is_nan())),
    one("math::is_inf", Statement("is infinite"), |x| truth(x.is_infinite())),
    one("math::is_finite", Statement("is finite"), |x| truth(x.is_finite())),
    one("math::floor", Between("⌊", "⌋"), f64::floor),
    one("math::ceil", Between("⌈", "⌉"), f64::ceil),
    one("math::round", Named, f64::round_ties_even),
    one("math::trunc", Named, f64::trunc),
    one("math::frac", Named, |x| x - x.trunc()),
    two("math::floor_div", QuotientBetween("⌊", "⌋"), |a, b| (a / b).floor()),
    two("math::trunc_div", Named, |a, b| (a / b).trunc()),
    two("math::remainder", Infix("mod"), |a, b| a - b * (a / b).floor()),
    two("math::copysign", Named, f64::copysign),
    two("math::next_after", Named, special::next_after),
    one("math::sign_bit", Statement("is negative"), |x| truth(x.is_sign_negative())),
    two("math::fmod", Named, |a, b| a % b),
    two("math::maximum", Called("max"), |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }),
    two("math::minimum", Called("min"), |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }),
    two("math::fmax", Named, f64::max),
    two("math::fmin", Named, f64::min),
    Scalar {
        rust: "math::clamp",
        notation: Bounded,
        value: Value::Three(|x, low, high| if x.is_nan() { x } else { x.max(low).min(high) }),
    },
    two("math::clamp_min", Called("max"), |x, low| if x.is_nan() { x } else { x.max(low) }),
    two("math::clamp_max", Called("min"), |x, high| if x.is_nan() { x } else { x.min(high) }),
    two("math::logical_and", Logical("∧"), |a, b| truth(a != 0.0 && b != 0.0)),
    two("math::logical_or", Logical("∨"), |a, b| truth(a != 0.0 || b != 0.0)),
    two("math::logical_xor", Logical("⊻"), |a, b| truth((a != 0.0) != (b != 0.0))),
    one("math::logical_not", Opposite, |x| truth(x == 0.0)),
    none("math::bitwise_and", Infix("&")),
    none("math::bitwise_or", Infix("|")),
    none("math::bitwise_xor", Infix("⊕")),
    none("math::bitwise_not", Called("~")),
    none("math::shift_left", Infix("≪")),
    none("math::shift_right", Infix("≫")),
];

/// The row of a function.
pub(crate) fn known(function: &Function) -> Option<&'static Scalar> {
    TABLE.iter().find(|row| row.rust == function.rust)
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// Constants that a number may stand for, each with its text: numerator and denominator of factors.
pub(crate) const CONSTANTS: &[(f64, Constant)] = &[
    (std::f64::consts::PI, Constant::Pi),
    (std::f64::consts::LN_2, Constant::Ln("2")),
    (std::f64::consts::LN_10, Constant::Ln("10")),
    (std::f64::consts::LOG2_E, Constant::InverseLn("2")),
    (std::f64::consts::LOG10_E, Constant::InverseLn("10")),
    (std::f64::consts::FRAC_2_SQRT_PI, Constant::TwoOverRootOfPi),
    (0.886_226_925_452_757_9, Constant::HalfRootOfPi),
    (std::f64::consts::SQRT_2, Constant::Root("2")),
    (std::f64::consts::FRAC_1_SQRT_2, Constant::InverseRoot("2")),
    (0.398_942_280_401_432_7, Constant::InverseRoot("2π")),
    (0.797_884_560_802_865_4, Constant::RootOfTwoOverPi),
];

/// A number with a notation of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Constant {
    /// π.
    Pi,
    /// The natural logarithm of a number.
    Ln(&'static str),
    /// 1 over it.
    InverseLn(&'static str),
    /// The root of a number.
    Root(&'static str),
    /// 1 over it.
    InverseRoot(&'static str),
    /// 2 over the root of π.
    TwoOverRootOfPi,
    /// The root of π over 2.
    HalfRootOfPi,
    /// The root of 2 over π.
    RootOfTwoOverPi,
}

/// The constant that a number stands for.
pub(crate) fn constant(value: f64) -> Option<Constant> {
    let near = |known: f64| (value - known).abs() <= 4.0 * f64::EPSILON * known;
    CONSTANTS.iter().find(|(known, _)| near(*known)).map(|(_, constant)| *constant)
}
