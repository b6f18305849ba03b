//! Nodes that check or ask for sizes and dtypes, and compute nothing.
//!
//! In: arguments of such a node. Out: a number, or an error if a check fails.

use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, ErrorKind, Result, ShapeText};
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::scalar::Scalar;

use crate::errors::unsupported;
use crate::structural::LayoutNumber;

/// A number of a tensor's layout.
///
/// # Errors
/// If the arguments are no tensor and dimension.
pub(super) fn layout_number(
    number: LayoutNumber,
    tensor: Option<&Value>,
    dim: Option<&Value>,
) -> Result<Value> {
    let Some(Value::Tensor(tensor)) = tensor else { return Err(Error::argument("it is given no tensor")) };
    let number = match (number, dim) {
        (LayoutNumber::Count, _) => tensor.numel(),
        (LayoutNumber::Offset, _) => tensor.layout().offset,
        (LayoutNumber::Size, Some(Value::Int(dim))) => tensor.size(*dim)?,
        (LayoutNumber::Stride, Some(Value::Int(dim))) => tensor.strides()[wrap_dim(*dim, tensor.dim())?],
        _ => return Err(Error::argument("it is given no dimension")),
    };
    Ok(Value::Int(number))
}

/// Checks a truth value.
///
/// # Errors
/// If it is false.
pub(super) fn assert_truth(truth: Option<&Value>, message: Option<&Value>) -> Result<Option<Vec<Value>>> {
    let message = match message {
        Some(Value::Str(message)) => format!(": {message}"),
        _ => String::new(),
    };
    match truth {
        Some(Value::Bool(true)) => Ok(Some(Vec::new())),
        Some(Value::Int(number)) if *number != 0 => Ok(Some(Vec::new())),
        Some(Value::Bool(false) | Value::Int(_)) => {
            Err(Error::value(format!("a check of the program does not hold{message}"))
                .with_help("use inputs that the program was exported for"))
        }
        _ => Err(unsupported(format!("a check of elements{message}"))),
    }
}

/// Checks the only element of a tensor.
///
/// # Errors
/// If it is 0 or false, or the tensor has no elements yet.
pub(super) fn assert_element(truth: Option<&Value>, message: Option<&Value>) -> Result<Option<Vec<Value>>> {
    let Some(Value::Tensor(truth)) = truth else { return Err(Error::argument("it is given no tensor")) };
    let truth = match truth.item()? {
        Scalar::Bool(truth) => truth,
        Scalar::Int(number) => number != 0,
        Scalar::Float(number) => number != 0.0,
        Scalar::Complex(number) => number.norm_sqr() != 0.0,
    };
    assert_truth(Some(&Value::Bool(truth)), message)
}

/// Checks the bounds of a number, both inclusive and either absent.
///
/// # Errors
/// If it is outside.
pub(super) fn assert_range(
    number: Option<&Value>,
    least: Option<&Value>,
    most: Option<&Value>,
) -> Result<Option<Vec<Value>>> {
    let Some(Value::Int(number)) = number else { return Err(Error::argument("it is given no integer")) };
    let bound = |value: Option<&Value>| match value {
        None | Some(Value::None) => Ok(None),
        Some(Value::Int(bound)) => Ok(Some(*bound)),
        Some(_) => Err(Error::argument("a bound is no integer")),
    };
    let (least, most) = (bound(least)?, bound(most)?);
    if least.is_some_and(|least| *number < least) || most.is_some_and(|most| *number > most) {
        let end = |bound: Option<i64>| bound.map_or("none".to_owned(), |bound| bound.to_string());
        let text = format!(
            "a number of the program is {number}, and its bounds are {} and {}",
            end(least),
            end(most)
        );
        return Err(Error::value(text).with_help("use inputs that the program was exported for"));
    }
    Ok(Some(Vec::new()))
}

/// Checks that all elements of a tensor are 0.
///
/// # Errors
/// If one is not, or the tensor has no elements yet.
pub(super) fn assert_zeros(counts: Option<&Value>, name: Option<&Value>) -> Result<Option<Vec<Value>>> {
    let Some(Value::Tensor(counts)) = counts else { return Err(Error::argument("it is given no tensor")) };
    let found = counts.to_vec::<i32>()?;
    match found.iter().position(|count| *count != 0) {
        None => Ok(Some(Vec::new())),
        Some(at) => {
            let name = if let Some(Value::Str(name)) = name { name } else { "an operator" };
            let text = format!("{name} failed for the matrix {at} of a batch, with the code {}", found[at]);
            Err(Error::value(text).with_help("the matrix is singular, or not positive definite"))
        }
    }
}

/// Checks dtype and sizes. Strides are those of our kernels, and programs run on one device.
///
/// # Errors
/// If they are others.
pub(super) fn assert_metadata(
    tensor: Option<&Value>,
    sizes: Option<&Value>,
    dtype: Option<&Value>,
) -> Result<Option<Vec<Value>>> {
    let Some(Value::Tensor(tensor)) = tensor else { return Err(Error::argument("it is given no tensor")) };
    if let Some(Value::DType(dtype)) = dtype
        && tensor.dtype() != *dtype
    {
        let text = format!("the program was exported with {dtype} here, and this is {}", tensor.dtype());
        return Err(Error::new(ErrorKind::DType, text));
    }
    if let Some(Value::Ints(sizes)) = sizes
        && tensor.shape() != sizes.as_slice()
    {
        let text = format!(
            "the program was exported with the shape {} here, and this is {}",
            ShapeText(sizes),
            ShapeText(tensor.shape())
        );
        return Err(Error::shape(text));
    }
    Ok(Some(Vec::new()))
}
