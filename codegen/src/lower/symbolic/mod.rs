//! Pointwise expressions as algebra: read, differentiated, simplified, written as a gradient formula.
//!
//! In: the syntax tree of a pointwise expression and the derivatives that scalar functions declare.
//! Out: the text of a formula over tensors, which is then checked like one a person wrote. Of types it
//! knows which values are real ([`Domain`]), since that is what derivatives of complex numbers turn on.

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
    /// An attribute that is a literal of another kind, such as a text.
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
    /// The complex conjugate. Expressions call a function for it; derivatives need it without one.
    Conj(Box<Sym>),
}

/// A scalar function as far as algebra goes.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    /// What it returns.
    pub returns: Domain,
    /// Whether it has a meaning among real numbers, so that real arguments give a real result.
    pub takes_real: bool,
}

/// Facts about scalar functions and names.
pub(super) trait Known {
    /// The derivative of a function by a parameter, among real numbers and, if it is holomorphic, among
    /// complex ones, with the parameters' names; `result` in it is the function's value. `None` if it
    /// declares none.
    fn derivative(&self, function: &str, parameter: usize) -> Option<(Sym, Vec<String>)>;
    /// The Wirtinger derivatives by a parameter and by its conjugate, of a function that declares them.
    fn wirtinger(&self, function: &str, parameter: usize) -> Option<([Sym; 2], Vec<String>)>;
    /// What a function takes and returns; `None` if there is no such function.
    fn signature(&self, function: &str) -> Option<Signature>;
    /// The operator that computes a function of tensors.
    fn operator(&self, function: &str) -> String;
    /// The values of the whole expression, as elements of the result.
    fn result(&self) -> Domain;
    /// The values that a name may have.
    fn domain(&self, name: &str) -> Domain;
    /// Whether a name is a tensor; attributes are the same for all elements.
    fn is_tensor(&self, name: &str) -> bool;
}

impl Sym {
    /// Reads a syntax tree; `None` if it holds something that has no algebra.
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

    /// The same expression with its direct parts changed, simplified.
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
