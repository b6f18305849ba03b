//! Inference: shapes and dtypes of results from those of operands.
//!
//! Every rule of `opsmith_core::rules` is a function of [`shape`] or [`dtype`] with the same name, and has one body for
//! numbers and formulas. [`expr`] has rules as data, [`context`] the interface of hand-written inference, and
//! [`symbolic`] inference with unknown sizes. Must not know the dispatcher, automatic differentiation or graphs.

pub mod context;
pub mod dtype;
mod extent;
pub mod shape;
pub mod symbolic;

pub use context::InferContext;
pub use opsmith_core::rule_tree as expr;

use opsmith_core::DType;
use smallvec::SmallVec;

use crate::arg::Arg;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::layout::{Dims, wrap_dim};
use crate::op::{Combination, OpDef};
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// The dtype of factories' results, and of functions that compute floats from integers.
pub const DEFAULT_FLOAT: DType = DType::F32;

/// Which dimensions a reduction removes, a flag each.
///
/// # Errors
/// If a dimension is out of range or named twice.
pub fn reduced_dims(rank: usize, dims: Option<&[i64]>) -> Result<SmallVec<[bool; 6]>> {
    let all = dims.is_none_or(<[i64]>::is_empty);
    // A tensor without dimensions counts as one-dimensional.
    let mut reduced: SmallVec<[bool; 6]> = SmallVec::from_elem(all, rank.max(1));
    for &dim in dims.unwrap_or(&[]) {
        let flag = &mut reduced[wrap_dim(dim, rank)?];
        if *flag {
            return Err(Error::value(format!("dimension {dim} is given twice")));
        }
        *flag = true;
    }
    reduced.truncate(rank);
    Ok(reduced)
}

/// The size of each shape along one dimension of the others; 0 for an empty vector, which joins with
/// shapes of any number of dimensions.
///
/// # Errors
/// If a shape has no such dimension.
pub fn sizes_along<'a>(shapes: impl Iterator<Item = &'a [i64]>, dim: i64) -> Result<Dims> {
    shapes
        .map(|shape| {
            if shape == [0] {
                return Ok(0);
            }
            let wrapped = wrap_dim(dim, shape.len())?;
            shape
                .get(wrapped)
                .copied()
                .ok_or_else(|| Error::index("a tensor without dimensions has no sizes"))
        })
        .collect()
}

/// One operand of a rule: a tensor, or a number given as an attribute.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A list of tensors.
    Tensors(&'a [Tensor]),
    /// A number.
    Scalar(Scalar),
    /// An optional operand that is absent.
    Absent,
}

/// The dtype of an operand, which may be a description, with its priority in promotion.
#[derive(Clone, Copy)]
struct TypedOperand {
    dtype: DType,
    priority: Priority,
}

/// Priority of operands in promotion; one of lower priority counts only if its category is higher.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Priority {
    /// A tensor with dimensions.
    Dimensioned,
    /// A tensor without dimensions.
    ZeroDim,
    /// A number.
    Number,
}

impl Priority {
    fn of_rank(rank: usize) -> Priority {
        if rank > 0 { Priority::Dimensioned } else { Priority::ZeroDim }
    }
}

impl<'a> Operand<'a> {
    /// The tensors of the operand.
    #[inline]
    fn tensors(&self) -> &'a [Tensor] {
        match *self {
            Operand::Tensor(tensor) => std::slice::from_ref(tensor),
            Operand::Tensors(tensors) => tensors,
            Operand::Scalar(_) | Operand::Absent => &[],
        }
    }

    /// The dtypes of the operand: one for each tensor, or that of the number.
    #[inline]
    fn types(&self) -> impl Iterator<Item = TypedOperand> {
        let number = match self {
            Operand::Scalar(scalar) => {
                Some(TypedOperand { dtype: scalar.dtype(), priority: Priority::Number })
            }
            _ => None,
        };
        let tensors = self
            .tensors()
            .iter()
            .map(|tensor| TypedOperand { dtype: tensor.dtype(), priority: Priority::of_rank(tensor.dim()) });
        tensors.chain(number)
    }
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    #[inline]
    fn from(tensor: &'a Tensor) -> Operand<'a> {
        Operand::Tensor(tensor)
    }
}

impl<'a> From<Option<&'a Tensor>> for Operand<'a> {
    #[inline]
    fn from(tensor: Option<&'a Tensor>) -> Operand<'a> {
        tensor.map_or(Operand::Absent, Operand::Tensor)
    }
}

impl<'a> From<&'a [Tensor]> for Operand<'a> {
    #[inline]
    fn from(tensors: &'a [Tensor]) -> Operand<'a> {
        Operand::Tensors(tensors)
    }
}

macro_rules! from_number {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Operand<'_> {
            #[inline]
            fn from(number: $ty) -> Self {
                Operand::Scalar(number.into())
            }
        }
        impl From<Option<$ty>> for Operand<'_> {
            #[inline]
            fn from(number: Option<$ty>) -> Self {
                number.map_or(Operand::Absent, |number| Operand::Scalar(number.into()))
            }
        }
    )*};
}
from_number!(bool, i64, f64, Scalar);

impl<'a> From<Arg<'a>> for Operand<'a> {
    #[inline]
    fn from(arg: Arg<'a>) -> Operand<'a> {
        match arg {
            Arg::Tensor(tensor) => Operand::Tensor(tensor),
            Arg::Tensors(tensors) => Operand::Tensors(tensors),
            Arg::Scalar(scalar) => Operand::Scalar(scalar),
            Arg::Int(value) => Operand::Scalar(Scalar::Int(value)),
            Arg::Float(value) => Operand::Scalar(Scalar::Float(value)),
            Arg::Bool(value) => Operand::Scalar(Scalar::Bool(value)),
            _ => Operand::Absent,
        }
    }
}

/// The error of a data-dependent result whose elements are unknown before the run.
#[cold]
pub(crate) fn value_unknown(argument: &str) -> Error {
    Error::value(format!(
        "the elements of `{argument}` decide the shape or dtype of the result, and they are not known before the run"
    ))
    .with_help(format!("give a constant for `{argument}` when the graph is built"))
}

/// The error of a condition that does not hold; `values` are both sides of a comparison.
#[cold]
pub fn check_failed(text: &str, values: &[i64]) -> Error {
    let message = match values {
        [left, right] => format!("`{text}` does not hold: the left side is {left}, the right side {right}"),
        _ => format!("`{text}` does not hold"),
    };
    Error::shape(message).with_help("the operator's documentation says what it accepts")
}

/// Rejects arguments whose dtypes are not in an operator's allowed combinations.
///
/// # Errors
/// Lists the allowed combinations.
pub fn check_combination(op: &OpDef, args: &[Arg<'_>]) -> Result<()> {
    let fits = |row: &Combination| row.inputs.iter().all(|&(at, dtype)| args[at].tensor().dtype() == dtype);
    if op.combinations.iter().any(fits) {
        return Ok(());
    }
    Err(combination_refused(op.combinations, |at| op.schema.args[at].name))
}

/// The error of dtypes that are not in an operator's allowed combinations.
#[cold]
fn combination_refused<'a>(rows: &[Combination], name: impl Fn(usize) -> &'a str) -> Error {
    let names = |row: &Combination| {
        let each = row.inputs.iter().map(|&(at, dtype)| format!("{} {dtype}", name(at)));
        each.collect::<Vec<_>>().join(", ")
    };
    let rows: Vec<String> = rows.iter().map(names).collect();
    Error::dtype("the dtypes of the arguments do not go together")
        .with_help(format!("convert them to one of: {}", rows.join("; ")))
}

/// The device of the tensor operands. A CPU tensor without dimensions combines with any device.
///
/// # Errors
/// If two operands are on different devices.
#[inline]
pub fn device_of(args: &[Arg<'_>]) -> Result<Device> {
    let mut found: Option<&Tensor> = None;
    let mut clash = None;
    for arg in args {
        arg.for_each_tensor(|tensor| match found {
            Some(first) if first.device() != tensor.device() => {
                if first.dim() == 0 && first.device() == Device::CPU {
                    found = Some(tensor);
                } else if !(tensor.dim() == 0 && tensor.device() == Device::CPU) {
                    clash = Some((first.device(), tensor.device()));
                }
            }
            Some(_) => {}
            None => found = Some(tensor),
        });
    }
    match clash {
        Some((a, b)) => Err(Error::device(format!("the operands are on different devices, {a} and {b}"))
            .with_help("move them to one device first")),
        None => Ok(found.map_or(Device::CPU, Tensor::device)),
    }
}
