//! Arrays: made, joined, repeated.
//!
//! In: calls. Out: results.

use opsmith_core::DType;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::pointwise::to;
use crate::call::{Call, axis};
use crate::libraries::run;
use crate::model::Attribute;
use crate::values::Datum;

pub(super) fn constant(call: &Call<'_>) -> Result<Vec<Datum>> {
    let found = call.node.attributes.first().map(|(_, value)| value);
    let tensor = match found {
        Some(Attribute::Tensor(tensor)) => tensor.clone(),
        Some(Attribute::Int(number)) => Tensor::from_slice(&[*number], &[])?,
        Some(Attribute::Float(number)) => Tensor::from_slice(&[*number as f32], &[])?,
        Some(Attribute::Ints(numbers)) => Tensor::from_slice(numbers, &[numbers.len() as i64])?,
        Some(Attribute::Floats(numbers)) => {
            let numbers: Vec<f32> = numbers.iter().map(|number| *number as f32).collect();
            Tensor::from_slice(&numbers, &[numbers.len() as i64])?
        }
        _ => return Err(Error::argument("a constant needs a tensor or numbers as its value")),
    };
    Ok(vec![Datum::constant(tensor)])
}

fn product(numbers: &[i64]) -> Option<i64> {
    numbers.iter().try_fold(1i64, |product, number| product.checked_mul((*number).max(1)))
}

pub(super) fn size_of_numbers(call: &Call<'_>) -> Option<i64> {
    product(&call.numbers(0, "input").ok()??)
}

pub(super) fn size_of_expanded(call: &Call<'_>) -> Option<i64> {
    product(&call.shape(0).ok()?)?.checked_mul(product(&call.numbers(1, "shape").ok()??)?)
}

pub(super) fn size_of_tiled(call: &Call<'_>) -> Option<i64> {
    product(&call.shape(0).ok()?)?.checked_mul(product(&call.numbers(1, "repeats").ok()??)?)
}

pub(super) fn size_of_range(call: &Call<'_>) -> Option<i64> {
    let number = |at: usize| Some(*call.datum(at)?.floats("range").ok()?.first()?);
    let count = (number(1)? - number(0)?) / number(2)?;
    (count.is_finite() && count < 1e15).then_some(count.max(0.0) as i64 + 1)
}

pub(super) fn constant_of_shape(call: &Call<'_>) -> Result<Tensor> {
    let sizes = call.given(0)?.ints("input")?;
    match call.attribute("value") {
        Some(Attribute::Tensor(value)) if value.numel() == 1 => {
            let number = Datum::constant(value.clone());
            let scalar = match value.dtype().is_float() {
                true => opsmith_runtime::Scalar::Float(number.floats("value")?[0]),
                false => opsmith_runtime::Scalar::Int(number.ints("value")?[0]),
            };
            run!("full", sizes, scalar; "dtype" => value.dtype())
        }
        None => run!("zeros", sizes; "dtype" => DType::F32),
        Some(_) => Err(Error::argument("the attribute `value` is no tensor with one element")),
    }
}

pub(super) fn range(call: &Call<'_>) -> Result<Tensor> {
    let dtype = match call.given(0)? {
        Datum::Known(known) => known.tensor.dtype(),
        other => other.tensor()?.dtype(),
    };
    let known = (0..3).all(|at| call.datum(at).is_some_and(|datum| datum.known().is_some()));
    if !known {
        let tensor = run!("arange.tensor", call.tensor(0)?, call.tensor(1)?, call.tensor(2)?)?;
        return to(&tensor, dtype);
    }
    let one = |at: usize| -> Result<opsmith_runtime::Scalar> {
        let datum = call.given(at)?;
        let number = match dtype.is_float() {
            true => datum.floats("range")?.first().map(|number| opsmith_runtime::Scalar::Float(*number)),
            false => datum.ints("range")?.first().map(|number| opsmith_runtime::Scalar::Int(*number)),
        };
        number.ok_or_else(|| Error::argument(format!("input {at} has no element")))
    };
    run!("arange.start_step", one(0)?, one(1)?, one(2)?; "dtype" => dtype)
}

pub(super) fn concat(call: &Call<'_>) -> Result<Tensor> {
    let tensors = call.tensors(0)?;
    let rank = tensors.first().map_or(0, Tensor::dim);
    let dim = call.maybe_int("axis")?.ok_or_else(|| Error::argument("the attribute `axis` is missing"))?;
    run!("cat", tensors, axis(dim, rank)?)
}

pub(super) fn expand(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let sizes = call.given(1)?.ints("shape")?;
    run!("expand", &x, expanded(x.shape(), &sizes)?)
}

/// The shape that two shapes broadcast to.
///
/// # Errors
/// If they do not.
pub(super) fn expanded(a: &[i64], b: &[i64]) -> Result<Vec<i64>> {
    let rank = a.len().max(b.len());
    let at = |sizes: &[i64], dim: usize| (dim + sizes.len()).checked_sub(rank).map_or(1, |dim| sizes[dim]);
    (0..rank)
        .map(|dim| match (at(a, dim), at(b, dim)) {
            (a, b) if a == b => Ok(a),
            (1, other) | (other, 1) => Ok(other),
            (a, b) => Err(Error::shape(format!("the sizes {a} and {b} of dimension {dim} do not broadcast"))),
        })
        .collect()
}

pub(super) fn tile(call: &Call<'_>) -> Result<Tensor> {
    run!("repeat", call.tensor(0)?, call.given(1)?.ints("repeats")?)
}

pub(super) fn eye_like(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let dtype = call.dtype("dtype")?.unwrap_or(x.dtype());
    let [rows, columns] = x.shape() else {
        return Err(Error::shape("the input must have 2 dimensions"));
    };
    let offset = call.int("k", 0)?;
    let row = run!("arange", *rows; "dtype" => DType::I64)?;
    let column = run!("arange", *columns; "dtype" => DType::I64)?;
    let places = run!("add.Scalar", run!("unsqueeze", &row, 1i64)?, offset)?;
    to(&run!("eq.Tensor", &places, &column)?, dtype)
}

pub(super) fn trilu(call: &Call<'_>) -> Result<Tensor> {
    let diagonal = call.number(1, "k")?.unwrap_or(0);
    run!(if call.flag("upper", true)? { "triu" } else { "tril" }, call.tensor(0)?, diagonal)
}
