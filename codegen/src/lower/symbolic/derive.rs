//! Derivatives of expressions by Wirtinger's calculus.
//!
//! A function of a complex number z changes by `∂w/∂z · dz + ∂w/∂z̄ · dz̄`; it is holomorphic where the second
//! is zero. Both go through the chain rule `dw = f_u · du + f_ū · dū`, where `dū` is the conjugate of `du`.
//! Among real numbers `dz̄` is `dz`, and their sum is the derivative.

use super::domain::is_called_on_reals;
use super::simplify::scaled;
use super::{Domain, Known, Sym, branch, conjugate, infix, prefix};

/// The reason why an expression has no symbolic derivative.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::lower) struct Missing {
    /// The function that declares no derivative.
    pub function: String,
}

/// The Wirtinger derivatives of an expression with respect to one argument.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) struct Partial {
    /// The derivative with respect to the argument.
    pub by: Sym,
    /// The derivative with respect to its conjugate.
    pub by_conjugate: Sym,
}

/// The factor of a gradient in the chain rule.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) enum Slope {
    /// `grad * derivative`, without complex values or conjugation.
    Plain(Sym),
    /// `grad * conj(derivative)`, of a holomorphic function.
    Holomorphic(Sym),
    /// `grad * conj(by) + conj(grad) * by_conjugate`.
    Both(Partial),
}

impl Slope {
    /// The slope after a substitution.
    pub fn replace(&self, from: &Sym, to: &Sym) -> Slope {
        match self {
            Slope::Plain(slope) => Slope::Plain(slope.replace(from, to)),
            Slope::Holomorphic(slope) => Slope::Holomorphic(slope.replace(from, to)),
            Slope::Both(partial) => Slope::Both(partial.map(|part| part.replace(from, to))),
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Slope::Plain(slope) | Slope::Holomorphic(slope) => slope.is(0.0),
            Slope::Both(partial) => partial.is_zero(),
        }
    }
}

impl Partial {
    fn new(by: Sym, by_conjugate: Sym) -> Partial {
        Partial { by, by_conjugate }
    }

    fn zero() -> Partial {
        Partial::new(Sym::Number(0.0), Sym::Number(0.0))
    }

    /// Whether both derivatives are zero.
    pub fn is_zero(&self) -> bool {
        self.by.is(0.0) && self.by_conjugate.is(0.0)
    }

    /// Both derivatives after a transformation.
    pub fn map(&self, change: impl Fn(&Sym) -> Sym) -> Partial {
        Partial::new(change(&self.by), change(&self.by_conjugate))
    }

    fn with(self, other: Partial, join: impl Fn(Sym, Sym) -> Sym) -> Partial {
        Partial::new(join(self.by, other.by), join(self.by_conjugate, other.by_conjugate))
    }
}

impl Sym {
    /// The factor that turns the output's gradient into that of one argument.
    ///
    /// # Errors
    /// If a called function declares no derivative.
    pub fn slope(&self, by: &str, known: &dyn Known) -> Result<Slope, Missing> {
        let partial = self.derive(by, known)?;
        let (result, argument) = (known.result().is_real(), known.domain(by).is_real());
        Ok(match (result, argument) {
            // For a real argument both derivatives are one; the gradient's imaginary part is dropped when it gets the
            // argument's dtype.
            (true, true) => Slope::Plain(infix("+", partial.by, partial.by_conjugate)),
            (false, true) => Slope::Holomorphic(infix("+", partial.by, partial.by_conjugate)),
            // The derivatives of a real result are conjugate to each other, and its gradient is real.
            (true, false) => Slope::Plain(scaled(partial.by_conjugate, 2.0)),
            (false, false) if partial.by_conjugate.is(0.0) => Slope::Holomorphic(partial.by),
            (false, false) => Slope::Both(partial),
        })
    }

    /// The derivatives with respect to one argument and its conjugate.
    fn derive(&self, by: &str, known: &dyn Known) -> Result<Partial, Missing> {
        Ok(match self {
            Sym::Number(_) | Sym::Literal(_) => Partial::zero(),
            Sym::Name(name) if name == by => Partial::new(Sym::Number(1.0), Sym::Number(0.0)),
            Sym::Name(_) => Partial::zero(),
            Sym::Prefix('-', operand) => operand.derive(by, known)?.map(|part| prefix('-', part.clone())),
            Sym::Prefix(..) => Partial::zero(),
            Sym::Conj(operand) => {
                let inner = operand.derive(by, known)?;
                Partial::new(conjugate(inner.by_conjugate, known), conjugate(inner.by, known))
            }
            Sym::If(condition, yes, no) => {
                let (yes, no) = (yes.derive(by, known)?, no.derive(by, known)?);
                yes.with(no, |yes, no| branch((**condition).clone(), yes, no))
            }
            Sym::Call(name, args) => self.derive_call(name, args, by, known)?,
            Sym::Infix(symbol @ ("+" | "-" | "*" | "/" | "%"), a, b) => {
                let (da, db) = (a.derive(by, known)?, b.derive(by, known)?);
                da.with(db, |da, db| self.derive_infix(symbol, (a, da), (b, db), known))
            }
            // Comparisons and logic are constant almost everywhere.
            Sym::Infix(..) => Partial::zero(),
        })
    }

    /// The derivative of arithmetic, from its operands and their derivatives.
    fn derive_infix(
        &self,
        symbol: &'static str,
        (a, da): (&Sym, Sym),
        (b, db): (&Sym, Sym),
        known: &dyn Known,
    ) -> Sym {
        let (a, b) = (a.clone(), b.clone());
        match symbol {
            "+" | "-" => infix(symbol, da, db),
            "*" => infix("+", infix("*", da, b), infix("*", a, db)),
            "/" => {
                let first = quotient(da, b.clone(), known);
                let second = infix("/", infix("*", self.clone(), db), b);
                infix("-", first, second)
            }
            _ if db.is(0.0) => da,
            // The subtracted part is an integer multiple of the divisor.
            _ => infix("-", da, infix("*", infix("/", infix("-", a, self.clone()), b), db)),
        }
    }

    fn derive_call(&self, name: &str, args: &[Sym], by: &str, known: &dyn Known) -> Result<Partial, Missing> {
        let missing = || Missing { function: name.to_owned() };
        let signature = known.signature(name).ok_or_else(missing)?;
        // A `bool` is constant almost everywhere.
        if signature.returns == Domain::Plain {
            return Ok(Partial::zero());
        }
        let called = |outer: Sym, names: &[String]| {
            outer.substitute(names, args).replace(&Sym::Name("result".into()), self)
        };
        let among_reals = is_called_on_reals(args, signature.takes_real, known);
        let mut total = Partial::zero();
        for (parameter, arg) in args.iter().enumerate() {
            let inner = arg.derive(by, known)?;
            if inner.is_zero() {
                continue;
            }
            let term = match known.wirtinger(name, parameter) {
                Some(([outer, outer_conjugate], names)) if !among_reals => {
                    let outer = Partial::new(called(outer, &names), called(outer_conjugate, &names));
                    chained(outer, inner, known)
                }
                _ => {
                    let (outer, names) = known.derivative(name, parameter).ok_or_else(missing)?;
                    let outer = called(outer, &names);
                    if signature.returns == Domain::Real && !among_reals {
                        // For a real function, the derivative equals the gradient: twice the one with respect to the
                        // conjugate.
                        let half = scaled(outer, 0.5);
                        chained(Partial::new(conjugate(half.clone(), known), half), inner, known)
                    } else {
                        inner.map(|inner| infix("*", outer.clone(), inner.clone()))
                    }
                }
            };
            total = total.with(term, |total, term| infix("+", total, term));
        }
        Ok(total)
    }
}

/// A quotient of elements. That of two integers that are attributes would be a whole number.
fn quotient(a: Sym, b: Sym, known: &dyn Known) -> Sym {
    let is_constant = matches!((&a, &b), (Sym::Number(_), Sym::Number(_)));
    if is_constant || a.is(0.0) || !a.is_integer(known) || !b.is_integer(known) {
        return infix("/", a, b);
    }
    let a = match a {
        Sym::Number(value) => Sym::Literal(format!("{value:?}")),
        other => Sym::Infix("*", Box::new(other), Box::new(Sym::Literal("1.0".to_owned()))),
    };
    infix("/", a, b)
}

/// The chain rule for a function of a complex argument.
fn chained(outer: Partial, inner: Partial, known: &dyn Known) -> Partial {
    let conjugated =
        Partial::new(conjugate(inner.by_conjugate.clone(), known), conjugate(inner.by.clone(), known));
    let of = |outer: &Sym, part: Partial| part.map(|part| infix("*", outer.clone(), part.clone()));
    let (direct, through) = (of(&outer.by, inner), of(&outer.by_conjugate, conjugated));
    direct.with(through, |direct, through| infix("+", direct, through))
}
