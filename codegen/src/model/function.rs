//! Scalar functions of pointwise expressions.

use opsmith_core::DTypeSet;

use crate::diagnostics::Span;

/// A scalar function of pointwise expressions.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it computes, Markdown.
    pub doc: String,
    /// Its parameters.
    pub params: Vec<String>,
    /// What it returns.
    pub returns: FunctionReturn,
    /// The Rust function.
    pub rust: String,
    /// The dtypes it is defined for.
    pub dtypes: DTypeSet,
    /// Its derivative by each parameter, as text in which `result` is its value.
    pub derivatives: Vec<Option<String>>,
    /// The place of its head.
    pub span: Span,
    /// The place of the whole entry.
    pub entry: Span,
    /// The library that declares it, as of an operator.
    pub parent: Option<usize>,
}

/// What a scalar function returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionReturn {
    /// The type of its arguments.
    Element,
    /// The real part's type.
    Real,
    /// A truth value.
    Bool,
}

impl Function {
    /// Whether a parent library declares it.
    pub fn is_external(&self) -> bool {
        self.parent.is_some()
    }
}
