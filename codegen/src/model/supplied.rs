//! Facts about operators that another project computes.
//!
//! Nothing is generated from it but a refusal that names it; documents, exports and tools read it.

use super::{Kind, Op};

/// The kernels of an operator that another project supplies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Supplied {
    /// The kernels, in the order of the spec.
    pub kernels: Vec<SuppliedKernel>,
    /// Whether the operator is a declaration: a function of that project that formulas call.
    pub declared: bool,
    /// Whether it writes its arguments, which only the signature says.
    pub writes: bool,
}

/// One kernel that another project supplies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SuppliedKernel {
    /// The full name of the form it computes.
    pub form: String,
    /// The backend, as that project calls it.
    pub backend: String,
    /// The function, as that project calls it.
    pub function: String,
}

/// A value that is kept as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// Nothing.
    Null,
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Note>),
    /// A mapping in its order.
    Map(Vec<(String, Note)>),
}

impl Op {
    /// Whether no kernel here computes the operator, so that a call can only name the library that does.
    pub fn is_supplied(&self) -> bool {
        let body = &self.body;
        self.supplied.is_some()
            && body.pointwise.is_none()
            && body.kernels.is_empty()
            && body.view.is_none()
            && body.composite.is_none()
            && body.host.is_none()
    }

    /// Whether generated code has types for the arguments and results.
    pub fn is_callable(&self) -> bool {
        let types = self.args.iter().map(|arg| &arg.ty).chain(self.outputs.iter().map(|output| &output.ty));
        types.into_iter().all(|ty| !matches!(ty.kind, Kind::Foreign(_)))
    }
}
