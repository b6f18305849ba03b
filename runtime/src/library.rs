//! A set of operators that were generated together, and the libraries it builds on.

use crate::error::{Error, Result};
use crate::op::OpDef;
use crate::tensor::Tensor;

/// The operators of one spec.
pub struct Library {
    /// The crate's name.
    pub name: &'static str,
    /// The operators, in the order of the spec.
    pub ops: &'static [&'static OpDef],
    /// Every callable name, sorted, with the operator and form it stands for.
    pub names: &'static [(&'static str, &'static OpDef, Form)],
    /// Libraries whose operators this one uses.
    pub parents: &'static [&'static Library],
    /// What the autograd engine needs to compute with; `None` to use a parent's.
    pub roles: Option<Roles>,
    /// What Rust's operators between tensors and numbers stand for.
    pub operators: &'static [OperatorRow],
}

/// A Rust operator and what it calls.
pub struct OperatorRow {
    /// The symbol.
    pub symbol: Symbol,
    /// What the second operand is.
    pub operand: OperandKind,
    /// Whether the tensor is the right operand: `2.0 - x`.
    pub reversed: bool,
    /// What is called, the tensor first.
    pub op: &'static OpDef,
}

/// The operators that Rust lets types define.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the variants are the traits of std::ops")]
pub enum Symbol {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Neg,
    Not,
    BitAnd,
    BitOr,
    BitXor,
}

/// The second operand of a Rust operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandKind {
    /// There is none.
    None,
    /// A tensor.
    Tensor,
    /// A number.
    Scalar,
}

/// A library that is linked into the program.
pub struct Registered(pub &'static Library);

inventory::collect!(Registered);

/// Makes a library known to the whole program, so that Rust's operators find its own.
#[macro_export]
macro_rules! __register_library {
    ($library:expr) => {
        $crate::inventory::submit! { $crate::library::Registered($library) }
    };
}
pub use crate::__register_library as register;

/// The libraries linked into the program.
pub fn linked() -> impl Iterator<Item = &'static Library> {
    inventory::iter::<Registered>().map(|registered| registered.0)
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
    /// `role: conjugate`: the complex conjugate; tangents of element-wise operators of complex numbers
    /// need it.
    pub conjugate: Option<fn(&Tensor) -> Result<Tensor>>,
}

/// Which form of an operator a name stands for.
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
    /// Finds an operator of this library or its parents by full name; the name of an in-place or
    /// out form finds its operator. Operators declared while the program runs are found in every library.
    pub fn find(&self, name: &str) -> Option<(&'static OpDef, Form)> {
        self.find_generated(name).or_else(|| Some((crate::aot::find(name)?, Form::Functional)))
    }

    /// The same, of generated operators only.
    pub(crate) fn find_generated(&self, name: &str) -> Option<(&'static OpDef, Form)> {
        if let Ok(index) = self.names.binary_search_by(|(known, _, _)| (*known).cmp(name)) {
            let (_, op, form) = self.names[index];
            return Some((op, form));
        }
        self.parents.iter().find_map(|parent| parent.find_generated(name))
    }

    /// Finds an operator, or explains which names are near.
    ///
    /// # Errors
    /// If no operator has that name.
    pub fn get(&self, name: &str) -> Result<(&'static OpDef, Form)> {
        self.find(name).ok_or_else(|| {
            let error = Error::not_found(format!("there is no operator `{name}`"));
            let near = self.near(name);
            if near.is_empty() {
                error.with_help("the operators are listed in the API documentation")
            } else {
                error.with_help(format!("did you mean {}?", near.join(", ")))
            }
        })
    }

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

    /// What the autograd engine computes with.
    pub fn roles(&self) -> Option<&Roles> {
        self.roles.as_ref().or_else(|| self.parents.iter().find_map(|parent| parent.roles()))
    }

    fn near(&self, name: &str) -> Vec<String> {
        let base = name.split('.').next().unwrap_or(name);
        // By the name alone, then by the overload too.
        let mut ranked: Vec<((usize, usize), &str)> = self
            .all_ops()
            .iter()
            .chain(&crate::aot::all())
            .flat_map(|op| std::iter::once(op.name).chain(op.forms.inplace).chain(op.forms.out))
            .filter_map(|known| {
                let known_base = known.split('.').next().unwrap_or(known);
                let distance = edit_distance(base, known_base);
                let near = distance <= base.len().max(3) / 3;
                near.then(|| ((distance, edit_distance(name, known)), known))
            })
            .collect();
        ranked.sort_unstable();
        ranked.truncate(5);
        ranked.into_iter().map(|(_, known)| format!("`{known}`")).collect()
    }
}

/// Number of insertions, deletions and replacements that turn one text into the other.
pub(crate) fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
