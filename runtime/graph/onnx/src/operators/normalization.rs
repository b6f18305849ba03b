//! Normalization.
//!
//! In: calls. Out: results.

use opsmith_runtime::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::all;
use super::pointwise::to;
use crate::call::{Call, axes, axis};
use crate::errors::unsupported;
use crate::libraries::{run, tensors};
use crate::tensors::dtype;
use crate::values::Datum;

fn option(tensor: Option<Tensor>) -> Value {
    tensor.map_or(Value::None, Value::Tensor)
}

pub(super) fn batch_norm(call: &Call<'_>) -> Result<Vec<Datum>> {
    let [x, scale, bias, mean, variance] = [0, 1, 2, 3, 4].map(|at| call.tensor(at));
    let (x, scale, bias, mean, variance) = (x?, scale?, bias?, mean?, variance?);
    let (epsilon, momentum) = (call.float("epsilon", 1e-5)?, call.float("momentum", 0.9)?);
    if !call.flag("training_mode", false)? {
        let result = run!("batch_norm", &x, &scale, &bias, &mean, &variance, false, 0.0, epsilon, true)?;
        return Ok(all([result]));
    }
    let dims: Vec<i64> = (0..x.dim() as i64).filter(|dim| *dim != 1).collect();
    let current_mean = run!("mean.dim", &x, dims.clone(), false)?;
    let current = run!("var.dim", &x, dims, false, false)?;
    let blended = |running: &Tensor, current: &Tensor| {
        run!(
            "add.Tensor",
            run!("mul.Scalar", running, momentum)?,
            run!("mul.Scalar", current, 1.0 - momentum)?
        )
    };
    let result = run!("batch_norm", &x, &scale, &bias, &current_mean, &current, false, 0.0, epsilon, true)?;
    Ok(all([result, blended(&mean, &current_mean)?, blended(&variance, &current)?]))
}

pub(super) fn instance_norm(call: &Call<'_>) -> Result<Tensor> {
    let (x, scale, bias) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let epsilon = call.float("epsilon", 1e-5)?;
    run!("instance_norm", &x, &scale, &bias, Value::None, Value::None, true, 0.0, epsilon, true)
}

pub(super) fn group_norm(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let groups = call.int("num_groups", 0)?;
    let channels = x.shape().get(1).copied().unwrap_or(0);
    // Until version 21, scale and bias are those of groups.
    let of_channels = |tensor: Tensor| match tensor.numel() == channels || groups < 1 {
        true => Ok(tensor),
        false => {
            let each = run!("expand", run!("unsqueeze", &tensor, 1i64)?, vec![groups, channels / groups])?;
            run!("reshape", &each, vec![channels])
        }
    };
    let (scale, bias) = (of_channels(call.tensor(1)?)?, of_channels(call.tensor(2)?)?);
    run!("group_norm", &x, groups, &scale, &bias, call.float("epsilon", 1e-5)?)
}

pub(super) fn layer_norm(call: &Call<'_>) -> Result<Vec<Datum>> {
    let (x, scale, bias) = (call.tensor(0)?, call.tensor(1)?, call.maybe(2)?);
    let epsilon = call.float("epsilon", 1e-5)?;
    let first = axis(call.int("axis", -1)?, x.dim())? as usize;
    let shape = x.shape()[first..].to_vec();
    let fits = scale.shape() == shape && bias.as_ref().is_none_or(|bias| bias.shape() == shape);
    if fits {
        if !call.wants(1) && !call.wants(2) {
            return Ok(all([run!("layer_norm", &x, shape, &scale, option(bias), epsilon)?]));
        }
        let args = [(&x).into(), shape.into(), (&scale).into(), option(bias), epsilon.into()];
        return Ok(all(tensors("native_layer_norm", &args, &[])?));
    }
    let none = || Value::None;
    let args = [(&x).into(), shape.into(), none(), none(), epsilon.into()];
    let mut results = tensors("native_layer_norm", &args, &[])?;
    results[0] = run!("mul.Tensor", &results[0], &scale)?;
    if let Some(bias) = bias {
        results[0] = run!("add.Tensor", &results[0], &bias)?;
    }
    Ok(all(results))
}

pub(super) fn rms_norm(call: &Call<'_>) -> Result<Tensor> {
    let (x, scale) = (call.tensor(0)?, call.tensor(1)?);
    let epsilon = call.float("epsilon", 1e-5)?;
    let first = axis(call.int("axis", -1)?, x.dim())? as usize;
    let shape = x.shape()[first..].to_vec();
    let inner = dtype(call.int("stash_type", 1)?)?;
    if scale.shape() == shape && inner == x.dtype() && scale.dtype() == x.dtype() {
        return run!("rms_norm", &x, shape, &scale, epsilon);
    }
    let normalized = to(&run!("rms_norm", to(&x, inner)?, shape, Value::None, epsilon)?, x.dtype())?;
    to(&run!("mul.Tensor", &normalized, &scale)?, scale.dtype())
}

/// `(x - mean) / (deviation + 1e-9)`.
pub(super) fn mean_variance(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let dims = axes(&call.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]), x.dim())?;
    let mean = run!("mean.dim", &x, dims.clone(), true)?;
    let squares = run!("mean.dim", run!("mul.Tensor", &x, &x)?, dims, true)?;
    let variance = run!("sub.Tensor", &squares, run!("mul.Tensor", &mean, &mean)?)?;
    let deviation = run!("add.Scalar", run!("sqrt", &variance)?, 1e-9)?;
    run!("div.Tensor", run!("sub.Tensor", &x, &mean)?, &deviation)
}

/// Each element divided by a power of the squares of its neighbours in channels.
pub(super) fn local_response(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let size = call.int("size", 0)?;
    if size < 1 || x.dim() < 3 {
        return Err(Error::value(format!("`size` is {size}, over an input of {} dimensions", x.dim())));
    }
    let (alpha, beta, bias) =
        (call.float("alpha", 1e-4)?, call.float("beta", 0.75)?, call.float("bias", 1.0)?);
    let squares = run!("mul.Tensor", &x, &x)?;
    let mut pads = vec![0i64; 2 * (x.dim() - 1)];
    let last = pads.len() - 2;
    (pads[last], pads[last + 1]) = ((size - 1) / 2, size - 1 - (size - 1) / 2);
    let padded = run!("constant_pad_nd", &squares, pads)?;
    let sums = run!("sum.dim_IntList", run!("unfold", &padded, 1i64, size, 1i64)?, vec![-1i64])?;
    let base = run!("add.Scalar", run!("mul.Scalar", &sums, alpha / size as f64)?, bias)?;
    run!("div.Tensor", &x, run!("pow.Tensor_Scalar", &base, beta)?)
}

pub(super) fn lp_norm(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let dim = axis(call.int("axis", -1)?, x.dim())?;
    let power = call.int("p", 2)?;
    if !(1..=2).contains(&power) {
        return Err(unsupported(format!("`p` = {power}")));
    }
    let norm = run!("linalg_vector_norm", &x, power, vec![dim], true)?;
    let zero = run!("eq.Scalar", &norm, 0i64)?;
    let divided = run!("div.Tensor", &x, &norm)?;
    run!("where.self", &zero, run!("zeros_like", &x)?, &divided)
}
