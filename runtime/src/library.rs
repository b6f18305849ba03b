//! A library: the operators generated together from one spec, and the libraries it builds on.

pub(crate) mod declared;
mod lookup;

pub use lookup::{Candidates, Named};
pub use opsmith_core::{ExampleCall, ExampleTensor, Operation, Words};

use crate::error::Result;
use crate::op::OpDef;
use crate::tensor::Tensor;

/// The operators of one spec.
pub struct Library {
    /// The crate's name.
    pub name: &'static str,
    /// The operators, in the order of the spec.
    pub ops: &'static [&'static OpDef],
    /// Every callable name, sorted, with its operator and form.
    pub names: &'static [(&'static str, &'static OpDef, Form)],
    /// Libraries whose operators this one uses.
    pub parents: &'static [&'static Library],
    /// Operators that the autograd engine calls; `None` to use a parent's.
    pub roles: Option<Roles>,
    /// The operators for Rust's `+`, `-` and so on, between tensors and numbers.
    pub operators: &'static [OperatorRow],
    /// Prefixes of names in other libraries, each with the prefix that such names have here, sorted.
    pub namespaces: &'static [(&'static str, &'static str)],
    /// Names in other libraries, each with the name here without overload, sorted.
    pub known_as: &'static [(&'static str, &'static str)],
    /// Names in other libraries with a different meaning here, each with advice, sorted.
    pub unlike: &'static [(&'static str, &'static str)],
    /// The fingerprint of the spec's entries, 16 hexadecimal digits: results recorded of this library have it too.
    pub fingerprint: &'static str,
}

/// The documentation of a library's operators, beyond their definitions.
pub struct Documentation {
    /// The library.
    pub library: &'static Library,
    /// The sentences about each of its operators, in the same order.
    pub words: &'static [&'static Words],
    /// The documentation of the libraries whose operators it uses.
    pub parents: &'static [&'static Documentation],
}

/// A Rust operator and the operator that it calls.
pub struct OperatorRow {
    /// The symbol, one that Rust allows types to define.
    pub symbol: Operation,
    /// The kind of the second operand.
    pub operand: OperandKind,
    /// Whether the tensor is the right operand: `2.0 - x`.
    pub reversed: bool,
    /// The called operator, the tensor first.
    pub op: &'static OpDef,
}

impl OperatorRow {
    /// A symbol with its second operand, whether the tensor is the right one, and the called operator.
    pub const fn new(
        symbol: Operation,
        operand: OperandKind,
        reversed: bool,
        op: &'static OpDef,
    ) -> OperatorRow {
        OperatorRow { symbol, operand, reversed, op }
    }
}

/// The second operand of a Rust operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandKind {
    /// No second operand.
    None,
    /// A tensor.
    Tensor,
    /// A number.
    Scalar,
}

/// A library that is linked into the program.
pub struct RegisteredLibrary(pub &'static Library);

inventory::collect!(RegisteredLibrary);

/// Registers a library for the whole program, so that Rust's operators find its operators.
#[macro_export]
macro_rules! __register_library {
    ($library:expr) => {
        $crate::inventory::submit! { $crate::library::RegisteredLibrary($library) }
    };
}
pub use crate::__register_library as register;

/// The libraries linked into the program.
pub fn linked() -> impl Iterator<Item = &'static Library> {
    inventory::iter::<RegisteredLibrary>().map(|registered| registered.0)
}

/// Operators that automatic differentiation itself calls. The spec marks them with `role:`.
#[derive(Clone, Copy)]
pub struct Roles {
    /// `role: accumulate`: the sum of two gradients.
    pub accumulate: fn(&Tensor, &Tensor) -> Result<Tensor>,
    /// `role: sum_to`: the gradient of a broadcast input, summed back to the given sizes.
    pub sum_to: fn(&Tensor, &[i64]) -> Result<Tensor>,
    /// `role: cast`: the tensor converted to another dtype.
    pub cast: fn(&Tensor, crate::DType) -> Result<Tensor>,
    /// `role: conjugate`: the complex conjugate, for tangents of element-wise operators of complex numbers.
    pub conjugate: Option<fn(&Tensor) -> Result<Tensor>>,
}

/// The form of an operator that a name denotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Allocates its outputs.
    Functional,
    /// Writes into its first argument.
    Inplace,
    /// Writes into tensors that the caller gives.
    Out,
}

impl Library {
    /// A library without operators.
    pub const EMPTY: Library = Library {
        name: "",
        ops: &[],
        names: &[],
        parents: &[],
        roles: None,
        operators: &[],
        namespaces: &[],
        known_as: &[],
        unlike: &[],
        fingerprint: "",
    };

    /// Every operator of this library and its parents, each once also where two parents share one.
    pub fn all_ops(&self) -> Vec<&'static OpDef> {
        let mut libraries: Vec<&Library> = vec![self];
        let mut at = 0;
        while let Some(library) = libraries.get(at).copied() {
            for parent in library.parents {
                if !libraries.iter().any(|known| std::ptr::eq(*known, *parent)) {
                    libraries.push(parent);
                }
            }
            at += 1;
        }
        libraries.iter().flat_map(|library| library.ops).copied().collect()
    }

    /// The position of an operator's declaration among those of this library and its parents.
    pub(crate) fn position(&self, op: &OpDef) -> Option<usize> {
        let own = self.ops.iter().position(|known| std::ptr::eq(*known, op));
        own.or_else(|| {
            let mut before = self.ops.len();
            self.parents.iter().find_map(|parent| {
                let found = parent.position(op).map(|position| before + position);
                before += parent.all_ops().len();
                found
            })
        })
    }

    /// Whether the library is the other one, or has it among its ancestors.
    pub(crate) fn builds_on(&self, other: &Library) -> bool {
        std::ptr::eq(self, other) || self.parents.iter().any(|parent| parent.builds_on(other))
    }

    /// The operators that the autograd engine calls.
    pub fn roles(&self) -> Option<&Roles> {
        self.roles.as_ref().or_else(|| self.parents.iter().find_map(|parent| parent.roles()))
    }
}
