//! Calls of scalar functions, each with its notation.

use opsmith_codegen::model::Function;

use super::mathml::{
    Level, Math, between, call, conjugate, difference_of, infix, not, number, operator_sign, power,
    product_of, quotient, root, sum_of, words,
};
use super::names::{function as function_name, upright};
use crate::scalar::{Constant, Notation, known};

/// The call of a function. A count of arguments that its notation does not have cannot occur in a checked spec; then it
/// is written by its name.
pub(super) fn call_of(function: &Function, arguments: Vec<Math>) -> Math {
    let plain = |arguments| call(function_name(&function.name), arguments);
    let Some(row) = known(function) else { return plain(arguments) };
    match arguments.len() {
        1 => {
            let mut arguments = arguments;
            let argument = arguments.remove(0);
            of_one(row.notation, argument.clone()).unwrap_or_else(|| plain(vec![argument]))
        }
        2 => {
            let (first, second) = (arguments[0].clone(), arguments[1].clone());
            of_two(row.notation, first, second).unwrap_or_else(|| plain(arguments))
        }
        3 if row.notation == Notation::Bounded => {
            let [x, low, high] = [0, 1, 2].map(|index| arguments[index].clone());
            call(upright("min"), vec![call(upright("max"), vec![x, low]), high])
        }
        _ => plain(arguments),
    }
}

fn of_one(notation: Notation, x: Math) -> Option<Math> {
    Some(match notation {
        Notation::Called(name) => call(upright(name), vec![x]),
        Notation::PowerOf(base) => power(constant_base(base), x),
        Notation::PowerLessOne => difference_of(power(constant_base("e"), x), number(1.0)),
        Notation::LogarithmOfOneAnd => call(upright("ln"), vec![sum_of(number(1.0), x)]),
        Notation::Root => root(x),
        Notation::InverseRoot => quotient(number(1.0), root(x)),
        Notation::Inverse => quotient(number(1.0), x),
        Notation::Between(open, close) => between(open, x, close),
        Notation::LogGamma => call(upright("ln"), vec![between("|", call(upright("Γ"), vec![x]), "|")]),
        Notation::Conjugate => conjugate(x),
        Notation::Opposite => not(x),
        Notation::Statement(text) => statement(x, text),
        _ => return None,
    })
}

fn of_two(notation: Notation, a: Math, b: Math) -> Option<Math> {
    Some(match notation {
        Notation::Called(name) => call(upright(name), vec![a, b]),
        Notation::Raised => power(a, b),
        Notation::QuotientBetween(open, close) => between(open, quotient(a, b), close),
        Notation::Infix(symbol) => infix(a, symbol, b, Level::Infix),
        Notation::Logical(symbol) => infix(a, symbol, b, if symbol == "∧" { Level::And } else { Level::Or }),
        Notation::Hypotenuse => root(sum_of(power(a, number(2.0)), power(b, number(2.0)))),
        Notation::DerivativeOfPsi => call(power(upright("ψ"), between("(", a, ")")), vec![b]),
        Notation::Parts => sum_of(a, product_of(upright("i"), b, "⋅")),
        _ => return None,
    })
}

/// `x is NaN`
pub(super) fn statement(x: Math, text: &str) -> Math {
    let x = x.at_least(Level::Infix);
    Math::new(format!("{}{}", x.xml, words(&format!(" {text}"))), Level::Compare)
}

fn constant_base(base: &'static str) -> Math {
    match base.parse() {
        Ok(value) => number(value),
        Err(_) => upright(base).compact(),
    }
}

/// A number with a notation of its own.
pub(super) fn constant(constant: Constant) -> Math {
    let pi = || upright("π").compact();
    let inner = |text: &str| match text.strip_suffix('π') {
        Some(factor) => product_of(number(factor.parse().unwrap_or(1.0)), pi(), "⋅"),
        None => number(text.parse().unwrap_or(f64::NAN)),
    };
    let ln = |text: &str| {
        let name = upright("ln").xml;
        Math::new(
            format!("{name}{}<mspace width=\"0.17em\"/>{}", operator_sign("\u{2061}"), inner(text).xml),
            Level::Prefix,
        )
    };
    match constant {
        Constant::Pi => pi(),
        Constant::Ln(text) => ln(text),
        Constant::InverseLn(text) => quotient(number(1.0), ln(text)),
        Constant::Root(text) => root(inner(text)),
        Constant::InverseRoot(text) => quotient(number(1.0), root(inner(text))),
        Constant::TwoOverRootOfPi => quotient(number(2.0), root(pi())),
        Constant::HalfRootOfPi => quotient(root(pi()), number(2.0)),
        Constant::RootOfTwoOverPi => root(quotient(number(2.0), pi())),
    }
}
