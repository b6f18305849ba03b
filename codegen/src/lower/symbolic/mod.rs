//! Pointwise expressions as algebra: read, differentiated, simplified, written as a gradient formula.
//!
//! In: the syntax tree of a pointwise expression and the declared derivatives of scalar functions. Out: the text of a
//! formula over tensors, which is then checked like a written one. The only type information is whether values are real
//! ([`Domain`]), on which derivatives of complex numbers depend.

mod derive;
mod domain;
mod read;
mod simplify;
#[cfg(test)]
mod tests;
mod write;

pub(super) use derive::{Missing, Partial, Slope};
pub(super) use domain::Domain;
pub(super) use write::{Lacking, Writer};

use read::Reader;
use simplify::{branch, call, conjugate, infix, prefix};

/// The name of the imaginary unit in formulas.
pub(super) const IMAGINARY_UNIT: &str = crate::model::expr::IMAGINARY_UNIT;

/// A pointwise expression.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Sym {
    /// A number as written.
    Number(f64),
    /// An attribute that is a literal other than a number, such as a text.
    Literal(String),
    /// An argument.
    Name(String),
    /// A scalar function.
    Call(String, Vec<Sym>),
    /// `-a` or `!a`.
    Prefix(char, Box<Sym>),
    /// Arithmetic, comparison or logic.
    Infix(&'static str, Box<Sym>, Box<Sym>),
    /// `if c { a } else { b }`.
    If(Box<Sym>, Box<Sym>, Box<Sym>),
    /// The complex conjugate. Expressions call a function for it; derivatives need one independent of the spec's
    /// functions.
    Conj(Box<Sym>),
}

/// The signature of a scalar function for algebra.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    /// The domain of its result.
    pub returns: Domain,
    /// Whether it is defined on real numbers, so that real arguments give a real result.
    pub takes_real: bool,
}

/// Facts about scalar functions and names.
pub(super) trait Known {
    /// The derivative of a function with respect to a parameter, valid for real numbers and, if it is holomorphic, for
    /// complex ones, with the parameters' names; `result` denotes the function's value. `None` if it declares none.
    fn derivative(&self, function: &str, parameter: usize) -> Option<(Sym, Vec<String>)>;
    /// The Wirtinger derivatives with respect to a parameter and its conjugate, if the function declares them.
    fn wirtinger(&self, function: &str, parameter: usize) -> Option<([Sym; 2], Vec<String>)>;
    /// The signature of a function; `None` if it does not exist.
    fn signature(&self, function: &str) -> Option<Signature>;
    /// The operator that computes a function on tensors.
    fn operator(&self, function: &str) -> String;
    /// The domain of the whole expression.
    fn result(&self) -> Domain;
    /// The domain of a name.
    fn domain(&self, name: &str) -> Domain;
    /// Whether a name is an attribute that is an integer.
    fn is_integer(&self, name: &str) -> bool;
    /// Whether a name is a tensor; attributes are constant over elements.
    fn is_tensor(&self, name: &str) -> bool;
}

impl Sym {
    /// Reads a syntax tree; `None` if a part has no algebraic form.
    pub fn read(tree: &syn::Expr) -> Option<Sym> {
        Reader::new().read(tree)
    }

    fn number(&self) -> Option<f64> {
        match self {
            Sym::Number(value) => Some(*value),
            _ => None,
        }
    }

    fn is(&self, value: f64) -> bool {
        self.number() == Some(value)
    }

    /// Replaces every occurrence of one expression by another.
    pub fn replace(&self, from: &Sym, to: &Sym) -> Sym {
        if self == from {
            return to.clone();
        }
        self.rebuild(|part| part.replace(from, to))
    }

    /// Replaces names by expressions.
    fn substitute(&self, names: &[String], values: &[Sym]) -> Sym {
        if let Sym::Name(name) = self
            && let Some(position) = names.iter().position(|known| known == name)
        {
            return values[position].clone();
        }
        self.rebuild(|part| part.substitute(names, values))
    }

    /// The expression with its direct parts transformed, simplified.
    fn rebuild(&self, mut change: impl FnMut(&Sym) -> Sym) -> Sym {
        match self {
            Sym::Number(_) | Sym::Literal(_) | Sym::Name(_) => self.clone(),
            Sym::Call(name, args) => call(name, args.iter().map(change).collect()),
            Sym::Prefix(symbol, operand) => prefix(*symbol, change(operand)),
            Sym::Infix(symbol, a, b) => {
                let (a, b) = (change(a), change(b));
                infix(symbol, a, b)
            }
            Sym::If(condition, yes, no) => {
                let (condition, yes, no) = (change(condition), change(yes), change(no));
                branch(condition, yes, no)
            }
            Sym::Conj(operand) => Sym::Conj(Box::new(change(operand))),
        }
    }

    /// Whether the value differs from element to element.
    pub fn varies(&self, known: &dyn Known) -> bool {
        match self {
            Sym::Number(_) | Sym::Literal(_) => false,
            Sym::Name(name) => known.is_tensor(name),
            Sym::Call(_, args) => args.iter().any(|arg| arg.varies(known)),
            Sym::Prefix(_, operand) | Sym::Conj(operand) => operand.varies(known),
            Sym::Infix(_, a, b) => a.varies(known) || b.varies(known),
            Sym::If(condition, yes, no) => condition.varies(known) || yes.varies(known) || no.varies(known),
        }
    }
}
