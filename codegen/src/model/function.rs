//! Scalar functions of pointwise expressions, as `functions:` declares them.

use opsmith_core::DTypeSet;

use crate::diagnostics::Span;

/// A scalar function of pointwise expressions.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its documentation, Markdown.
    pub doc: String,
    /// Its parameters.
    pub params: Vec<String>,
    /// Its type of result.
    pub returns: FunctionReturn,
    /// The Rust function.
    pub rust: String,
    /// The dtypes it is defined for.
    pub dtypes: DTypeSet,
    /// Its derivative by each parameter, as text in which `result` is its value: among real numbers and,
    /// unless there are two of complex ones, among complex numbers. That of a function with a real result
    /// is its gradient.
    pub derivatives: Vec<Option<String>>,
    /// Its derivatives by each complex parameter and by that parameter's conjugate, if it is not
    /// holomorphic.
    pub wirtinger: Vec<Option<[String; 2]>>,
    /// The base name of the operator that computes it of tensors, if not its own name.
    pub operator: Option<String>,
    /// The span of its head.
    pub span: Span,
    /// The span of the whole entry.
    pub entry: Span,
    /// The library that declares it, as of an operator.
    pub parent: Option<usize>,
}

impl Function {
    /// Whether a parent library declares it.
    pub fn is_external(&self) -> bool {
        self.parent.is_some()
    }

    /// Whether it has a meaning among real numbers, so that real arguments give a real result.
    pub fn takes_real(&self) -> bool {
        self.dtypes.iter().any(|dtype| !dtype.is_complex())
    }
}

/// The type of a scalar function's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionReturn {
    /// The type of its arguments.
    Element,
    /// The real part's type.
    Real,
    /// A truth value.
    Bool,
}
