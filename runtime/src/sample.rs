//! Samples: argument values that a spec declares for an operator, for tests and documents.
//!
//! In: static data written by the generator. Out: argument values, of which `boxed::samples` makes a call. Must not
//! know tensors or operators.

pub use opsmith_core::{Check, Tolerance, ToleranceOf};

use opsmith_core::DType;

/// One call: values of some arguments; the others have their defaults.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The text in the spec.
    pub text: &'static str,
    /// Arguments by name, with their values.
    pub args: &'static [(&'static str, SampleValue)],
}

impl Sample {
    /// A call, from its text in the spec and its arguments.
    pub const fn new(text: &'static str, args: &'static [(&'static str, SampleValue)]) -> Sample {
        Sample { text, args }
    }
}

/// The value of an argument.
#[derive(Clone, Copy, Debug)]
pub enum SampleValue {
    /// Absent.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A complex number: its real and imaginary part.
    Complex(f64, f64),
    /// A text.
    Str(&'static str),
    /// An element type.
    DType(DType),
    /// A list that holds no tensors; of lists, if the argument is a list of lists.
    List(&'static [SampleValue]),
    /// A tensor.
    Tensor(SampleTensor),
    /// Tensors, of which some may be absent.
    Tensors(&'static [Option<SampleTensor>]),
}

/// A tensor by shape and fill.
#[derive(Clone, Copy, Debug)]
pub struct SampleTensor {
    /// Its sizes.
    pub shape: &'static [i64],
    /// Its elements.
    pub fill: Fill,
}

/// The elements of a tensor.
#[derive(Clone, Copy, Debug)]
pub enum Fill {
    /// Numbers between two bounds, of the caller's dtype.
    Between(f64, f64),
    /// Integers from the first up to but not including the second, `int64`.
    Integers(i64, i64),
    /// Truth values.
    Mask,
    /// These numbers, of the caller's dtype.
    Numbers(&'static [f64]),
    /// These integers, `int64`.
    Places(&'static [i64]),
}

impl SampleTensor {
    /// Numbers from -1 to 1.
    pub const fn spread(shape: &'static [i64]) -> SampleTensor {
        SampleTensor::between(shape, -1.0, 1.0)
    }

    /// Numbers between two.
    pub const fn between(shape: &'static [i64], low: f64, high: f64) -> SampleTensor {
        SampleTensor { shape, fill: Fill::Between(low, high) }
    }

    /// Integers from the first to before the second.
    pub const fn integers(shape: &'static [i64], low: i64, high: i64) -> SampleTensor {
        SampleTensor { shape, fill: Fill::Integers(low, high) }
    }

    /// Truth values.
    pub const fn mask(shape: &'static [i64]) -> SampleTensor {
        SampleTensor { shape, fill: Fill::Mask }
    }

    /// These numbers.
    pub const fn numbers(shape: &'static [i64], values: &'static [f64]) -> SampleTensor {
        SampleTensor { shape, fill: Fill::Numbers(values) }
    }

    /// These integers.
    pub const fn places(shape: &'static [i64], values: &'static [i64]) -> SampleTensor {
        SampleTensor { shape, fill: Fill::Places(values) }
    }
}

/// [`SampleTensor::spread`] as the value of an argument.
pub const fn spread(shape: &'static [i64]) -> SampleValue {
    SampleValue::Tensor(SampleTensor::spread(shape))
}

/// [`SampleTensor::between`] as the value of an argument.
pub const fn between(shape: &'static [i64], low: f64, high: f64) -> SampleValue {
    SampleValue::Tensor(SampleTensor::between(shape, low, high))
}

/// [`SampleTensor::integers`] as the value of an argument.
pub const fn integers(shape: &'static [i64], low: i64, high: i64) -> SampleValue {
    SampleValue::Tensor(SampleTensor::integers(shape, low, high))
}

/// [`SampleTensor::mask`] as the value of an argument.
pub const fn mask(shape: &'static [i64]) -> SampleValue {
    SampleValue::Tensor(SampleTensor::mask(shape))
}

/// [`SampleTensor::numbers`] as the value of an argument.
pub const fn numbers(shape: &'static [i64], values: &'static [f64]) -> SampleValue {
    SampleValue::Tensor(SampleTensor::numbers(shape, values))
}

/// [`SampleTensor::places`] as the value of an argument.
pub const fn places(shape: &'static [i64], values: &'static [i64]) -> SampleValue {
    SampleValue::Tensor(SampleTensor::places(shape, values))
}
