//! Random numbers, which are not those of other programs, also with a `seed`.
//!
//! In: calls. Out: results.

use opsmith_core::DType;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::all;
use super::pointwise::to;
use crate::call::Call;
use crate::libraries::{run, tensors};
use crate::values::Datum;

fn uniform_of(call: &Call<'_>, shape: Vec<i64>, dtype: DType) -> Result<Tensor> {
    let (low, high) = (call.float("low", 0.0)?, call.float("high", 1.0)?);
    let unit = run!("rand", shape; "dtype" => dtype)?;
    run!("add.Scalar", run!("mul.Scalar", &unit, high - low)?, low)
}

fn normal_of(call: &Call<'_>, shape: Vec<i64>, dtype: DType) -> Result<Tensor> {
    let (mean, scale) = (call.float("mean", 0.0)?, call.float("scale", 1.0)?);
    let unit = run!("randn", shape; "dtype" => dtype)?;
    run!("add.Scalar", run!("mul.Scalar", &unit, scale)?, mean)
}

fn shape(call: &Call<'_>) -> Result<Vec<i64>> {
    call.ints("shape")?.ok_or_else(|| Error::argument("the attribute `shape` is missing"))
}

pub(super) fn uniform(call: &Call<'_>) -> Result<Tensor> {
    uniform_of(call, shape(call)?, call.dtype("dtype")?.unwrap_or(DType::F32))
}

pub(super) fn uniform_like(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    uniform_of(call, x.shape().to_vec(), call.dtype("dtype")?.unwrap_or(x.dtype()))
}

pub(super) fn normal(call: &Call<'_>) -> Result<Tensor> {
    normal_of(call, shape(call)?, call.dtype("dtype")?.unwrap_or(DType::F32))
}

pub(super) fn normal_like(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    normal_of(call, x.shape().to_vec(), call.dtype("dtype")?.unwrap_or(x.dtype()))
}

pub(super) fn bernoulli(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    to(&run!("bernoulli", &x)?, call.dtype("dtype")?.unwrap_or(x.dtype()))
}

/// Classes drawn by their logarithms of probabilities.
pub(super) fn multinomial(call: &Call<'_>) -> Result<Tensor> {
    let weights = run!("softmax.int", call.tensor(0)?, -1i64)?;
    let drawn = run!("multinomial", &weights, call.int("sample_size", 1)?, true)?;
    to(&drawn, call.dtype("dtype")?.unwrap_or(DType::I32))
}

pub(super) fn dropout(call: &Call<'_>) -> Result<Vec<Datum>> {
    let x = call.tensor(0)?;
    let training = call.datum(2).map(|datum| datum.ints("training_mode")).transpose()?;
    if training.is_some_and(|flags| flags.first().is_some_and(|flag| *flag != 0)) {
        let ratio = call.datum(1).map(|datum| datum.floats("ratio")).transpose()?;
        let ratio = ratio.and_then(|ratio| ratio.first().copied()).unwrap_or(0.5);
        return Ok(all(tensors("native_dropout", &[(&x).into(), ratio.into(), true.into()], &[])?));
    }
    let mut results = vec![x.clone()];
    if call.wants(1) {
        results.push(run!("ones_like", &x; "dtype" => DType::Bool)?);
    }
    Ok(all(results))
}
