//! Domains: whether values of an expression are real. As in the checker's types, but attributes may be complex.

use super::{IMAGINARY_UNIT, Known, Sym};

/// The domain of an expression. Arithmetic happens in the higher of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::lower) enum Domain {
    /// A `bool`, an integer or a float: a real number that is not an element.
    Plain,
    /// An attribute that may be any number.
    Scalar,
    /// A real element.
    Real,
    /// An element that may be complex.
    Complex,
}

impl Domain {
    /// Whether every value is its own conjugate.
    pub fn is_real(self) -> bool {
        matches!(self, Domain::Plain | Domain::Real)
    }

    /// The domain of arithmetic between two. An attribute may make a real element complex: expressions treat it as real
    /// there, but derivatives cannot, since they combine factors of several operands.
    fn with(self, other: Domain) -> Domain {
        match (self, other) {
            (Domain::Scalar, Domain::Real) | (Domain::Real, Domain::Scalar) => Domain::Complex,
            (a, b) => a.max(b),
        }
    }
}

impl Sym {
    /// The domain of the expression.
    pub fn domain(&self, known: &dyn Known) -> Domain {
        match self {
            Sym::Number(_) | Sym::Literal(_) => Domain::Plain,
            Sym::Name(name) if name == IMAGINARY_UNIT => Domain::Complex,
            Sym::Name(name) => known.domain(name),
            Sym::Call(name, args) => {
                let Some(signature) = known.signature(name) else { return Domain::Complex };
                match signature.returns {
                    Domain::Complex if is_called_on_reals(args, signature.takes_real, known) => Domain::Real,
                    other => other,
                }
            }
            Sym::Prefix('!', _) => Domain::Plain,
            Sym::Prefix(_, operand) | Sym::Conj(operand) => operand.domain(known),
            Sym::Infix("+" | "-" | "*" | "/" | "%", a, b) => a.domain(known).with(b.domain(known)),
            Sym::Infix(..) => Domain::Plain,
            Sym::If(_, yes, no) => yes.domain(known).with(no.domain(known)),
        }
    }

    /// Whether every value is its own conjugate.
    pub fn is_real(&self, known: &dyn Known) -> bool {
        self.domain(known).is_real()
    }
}

impl Sym {
    /// Whether the expression is an integer that is the same for all elements, so that its quotients are whole numbers.
    pub(super) fn is_integer(&self, known: &dyn Known) -> bool {
        match self {
            Sym::Number(value) => *value == value.trunc(),
            Sym::Name(name) => known.is_integer(name),
            Sym::Prefix('-', operand) => operand.is_integer(known),
            Sym::Infix("+" | "-" | "*" | "/" | "%", a, b) => a.is_integer(known) && b.is_integer(known),
            _ => false,
        }
    }
}

/// Whether a function is called on real numbers.
pub(super) fn is_called_on_reals(args: &[Sym], takes_real: bool, known: &dyn Known) -> bool {
    takes_real && !args.is_empty() && args.iter().all(|arg| arg.is_real(known))
}
