//! Smart constructors: each gives the simplest equivalent expression.

use super::{IMAGINARY_UNIT, Known, Sym};

impl Sym {
    /// The expression itself, if it is a conditional.
    pub(super) fn first_choice(&self) -> Option<&Sym> {
        matches!(self, Sym::If(..)).then_some(self)
    }

    /// The expression where a condition is known to be true or false.
    pub(super) fn assuming(self, condition: &Sym, holds: bool) -> Sym {
        match self {
            Sym::If(asked, yes, no) if *asked == *condition => {
                if holds { *yes } else { *no }.assuming(condition, holds)
            }
            other => other,
        }
    }
}

/// A call. A conditional argument becomes a conditional result.
pub(super) fn call(name: &str, args: Vec<Sym>) -> Sym {
    if let Some(position) = args.iter().position(|arg| matches!(arg, Sym::If(..))) {
        let mut args = args;
        let Sym::If(condition, yes, no) = args[position].clone() else { unreachable!("just found") };
        args[position] = *yes;
        let first = call(name, args.clone());
        args[position] = *no;
        return branch(*condition, first, call(name, args));
    }
    Sym::Call(name.to_owned(), args)
}

/// `-operand` or `!operand`.
pub(super) fn prefix(symbol: char, operand: Sym) -> Sym {
    match (symbol, operand) {
        ('-', Sym::Number(value)) => Sym::Number(if value == 0.0 { 0.0 } else { -value }),
        ('-', Sym::Prefix('-', inner)) => *inner,
        (_, Sym::If(condition, yes, no)) => branch(*condition, prefix(symbol, *yes), prefix(symbol, *no)),
        (_, operand) => Sym::Prefix(symbol, Box::new(operand)),
    }
}

/// `if condition { yes } else { no }`.
pub(super) fn branch(condition: Sym, yes: Sym, no: Sym) -> Sym {
    let (yes, no) = (yes.assuming(&condition, true), no.assuming(&condition, false));
    if yes == no { yes } else { Sym::If(Box::new(condition), Box::new(yes), Box::new(no)) }
}

/// An operator between two operands.
pub(super) fn infix(symbol: &'static str, a: Sym, b: Sym) -> Sym {
    let arithmetic = matches!(symbol, "+" | "-" | "*" | "/");
    if arithmetic {
        if let (Some(x), Some(y)) = (a.number(), b.number()) {
            match symbol {
                "+" => return Sym::Number(x + y),
                "-" => return Sym::Number(x - y),
                "*" => return Sym::Number(x * y),
                _ if y != 0.0 => return Sym::Number(x / y),
                _ => {}
            }
        }
        match symbol {
            "+" if a.is(0.0) => return b,
            "+" | "-" if b.is(0.0) => return a,
            "-" if a.is(0.0) => return prefix('-', b),
            "+" if a == b => return infix("*", Sym::Number(2.0), a),
            "-" if a == b => return Sym::Number(0.0),
            "*" if a.is(0.0) || b.is(0.0) => return Sym::Number(0.0),
            "*" if a.is(1.0) => return b,
            "*" | "/" if b.is(1.0) => return a,
            "/" if a.is(0.0) => return Sym::Number(0.0),
            "*" if a.is(-1.0) => return prefix('-', b),
            "*" if b.is(-1.0) => return prefix('-', a),
            _ => {}
        }
        // A conditional moves outward, so that the formula finally selects between gradients.
        if let Sym::If(condition, yes, no) = a {
            return branch(*condition, infix(symbol, *yes, b.clone()), infix(symbol, *no, b));
        }
        if let Sym::If(condition, yes, no) = b {
            return branch(*condition, infix(symbol, a.clone(), *yes), infix(symbol, a, *no));
        }
    }
    Sym::Infix(symbol, Box::new(a), Box::new(b))
}

/// The complex conjugate; of a real value the value itself.
pub(super) fn conjugate(value: Sym, known: &dyn Known) -> Sym {
    if value.is_real(known) {
        return value;
    }
    match value {
        Sym::Name(name) if name == IMAGINARY_UNIT => prefix('-', Sym::Name(name)),
        Sym::Conj(inner) => *inner,
        Sym::Prefix('-', inner) => prefix('-', conjugate(*inner, known)),
        Sym::If(condition, yes, no) => branch(*condition, conjugate(*yes, known), conjugate(*no, known)),
        // Real factors stay outside, so that only possibly complex ones are conjugated.
        Sym::Infix("*", a, b) if a.is_real(known) => infix("*", *a, conjugate(*b, known)),
        Sym::Infix(symbol @ ("*" | "/"), a, b) if b.is_real(known) => infix(symbol, conjugate(*a, known), *b),
        other => Sym::Conj(Box::new(other)),
    }
}

/// Twice an expression, or half of it; a constant absorbs the factor. Powers of two are exact, so the value is the
/// same.
pub(super) fn scaled(value: Sym, by: f64) -> Sym {
    match value {
        Sym::Number(number) => Sym::Number(number * by),
        Sym::Prefix('-', inner) => prefix('-', scaled(*inner, by)),
        Sym::If(condition, yes, no) => branch(*condition, scaled(*yes, by), scaled(*no, by)),
        Sym::Infix(symbol @ ("+" | "-"), a, b) if takes_factor(&a) && takes_factor(&b) => {
            infix(symbol, scaled(*a, by), scaled(*b, by))
        }
        Sym::Infix("*", a, b) if takes_factor(&b) => infix("*", *a, scaled(*b, by)),
        Sym::Infix(symbol @ ("*" | "/"), a, b) if takes_factor(&a) => infix(symbol, scaled(*a, by), *b),
        other => infix("*", Sym::Number(by), other),
    }
}

/// Whether a constant in the expression can absorb a factor.
fn takes_factor(value: &Sym) -> bool {
    match value {
        Sym::Number(_) => true,
        Sym::Prefix('-', inner) => takes_factor(inner),
        Sym::Infix("*", a, b) => takes_factor(a) || takes_factor(b),
        Sym::Infix("/", a, _) => takes_factor(a),
        Sym::Infix("+" | "-", a, b) | Sym::If(_, a, b) => takes_factor(a) && takes_factor(b),
        _ => false,
    }
}
