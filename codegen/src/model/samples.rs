//! Argument values for tests and documents, and the errors that tests allow.

use opsmith_core::DType;
pub use opsmith_core::{Tolerance, ToleranceOf};

/// One call: a value for each argument that is given; the others have their defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Arguments by position, with their values.
    pub args: Vec<(usize, SampleValue)>,
    /// As written.
    pub text: String,
}

/// The value of an argument.
#[derive(Clone, PartialEq, Debug)]
pub enum SampleValue {
    /// Absent.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number: its real and imaginary part.
    Complex(f64, f64),
    /// A text.
    Str(String),
    /// An element type.
    DType(DType),
    /// A list that holds no tensors; of lists, if the argument is a list of lists.
    List(Vec<SampleValue>),
    /// A tensor.
    Tensor(SampleTensor),
    /// Tensors, of which some may be absent.
    Tensors(Vec<Option<SampleTensor>>),
}

/// A tensor by how it is filled.
#[derive(Clone, PartialEq, Debug)]
pub struct SampleTensor {
    /// Its sizes.
    pub shape: Vec<i64>,
    /// Its elements.
    pub fill: Fill,
}

/// The elements of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub enum Fill {
    /// Numbers between two, no two of them equal, in the dtype under test.
    Between(f64, f64),
    /// Integers from the first to before the second, `int64`.
    Integers(i64, i64),
    /// Truth values.
    Mask,
    /// These numbers, in the dtype under test.
    Numbers(Vec<f64>),
    /// These integers, `int64`.
    Places(Vec<i64>),
}
