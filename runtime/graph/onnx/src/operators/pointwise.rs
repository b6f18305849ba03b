//! Operators on single elements.
//!
//! In: calls. Out: results. Operands have one dtype, which the result keeps.

use opsmith_core::{DType, DTypeCategory, Float8E5M2};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::scalar::Scalar;
use opsmith_runtime::tensor::Tensor;

use crate::call::Call;
use crate::errors::unsupported;
use crate::libraries::run;

pub(super) fn is_float(tensor: &Tensor) -> bool {
    tensor.dtype().category() == DTypeCategory::Float
}

/// A tensor of a dtype.
pub(super) fn to(tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    if tensor.dtype() == dtype { Ok(tensor.clone()) } else { run!("to.dtype", tensor, dtype) }
}

pub(super) fn cast(call: &Call<'_>) -> Result<Tensor> {
    let dtype = call.dtype("to")?.ok_or_else(|| Error::argument("the attribute `to` is missing"))?;
    converted(call, dtype)
}

pub(super) fn cast_like(call: &Call<'_>) -> Result<Tensor> {
    converted(call, call.tensor(1)?.dtype())
}

/// The first input in a dtype. Numbers too large for a float of 8 bits become the largest, or, if `saturate` is 0, NaN or
/// infinite.
fn converted(call: &Call<'_>, dtype: DType) -> Result<Tensor> {
    let x = call.tensor(0)?;
    if !dtype.is_stored() {
        return to(&x, dtype);
    }
    let wide = if x.dtype() == DType::F64 { x } else { to(&x, DType::F32)? };
    let within = match (call.flag("saturate", true)?, dtype) {
        (true, DType::F8E5M2) => {
            let largest = f64::from(Float8E5M2::MAX);
            run!("clamp", &wide, -largest, largest)?
        }
        // Those that round to the number after the largest, which is not there.
        (false, DType::F8E4M3) => {
            let beyond = run!("gt.Scalar", run!("abs", &wide)?, 464.0)?;
            run!("masked_fill.Scalar", &wide, &beyond, f64::NAN)?
        }
        _ => wide,
    };
    to(&within, dtype)
}

pub(super) fn div(call: &Call<'_>) -> Result<Tensor> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    match is_float(&a) {
        true => run!("div.Tensor", &a, &b),
        false => run!("div.Tensor_mode", &a, &b; "rounding_mode" => "trunc"),
    }
}

pub(super) fn modulo(call: &Call<'_>) -> Result<Tensor> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    run!(if call.flag("fmod", false)? { "fmod.Tensor" } else { "remainder.Tensor" }, &a, &b)
}

pub(super) fn pow(call: &Call<'_>) -> Result<Tensor> {
    let (base, exponent) = (call.tensor(0)?, call.tensor(1)?);
    if base.dtype() == exponent.dtype() {
        return run!("pow.Tensor_Tensor", &base, &exponent);
    }
    let dtype = match (is_float(&base), is_float(&exponent)) {
        (false, true) => exponent.dtype(),
        _ => base.dtype(),
    };
    to(&run!("pow.Tensor_Tensor", to(&base, dtype)?, to(&exponent, dtype)?)?, base.dtype())
}

pub(super) fn bit_shift(call: &Call<'_>) -> Result<Tensor> {
    let name = match call.text("direction", "")?.as_str() {
        "LEFT" => "bitwise_left_shift.Tensor",
        "RIGHT" => "bitwise_right_shift.Tensor",
        other => return Err(unsupported(format!("`direction` = {other:?}"))),
    };
    run!(name, call.tensor(0)?, call.tensor(1)?)
}

/// Folds all operands with an operator of two.
fn folded(call: &Call<'_>, name: &str) -> Result<Tensor> {
    let mut tensors = call.tensors(0)?.into_iter();
    let first = tensors.next().ok_or_else(|| Error::argument("there is no operand"))?;
    tensors.try_fold(first, |a, b| run!(name, &a, &b))
}

pub(super) fn max(call: &Call<'_>) -> Result<Tensor> {
    folded(call, "maximum")
}

pub(super) fn min(call: &Call<'_>) -> Result<Tensor> {
    folded(call, "minimum")
}

pub(super) fn sum(call: &Call<'_>) -> Result<Tensor> {
    folded(call, "add.Tensor")
}

pub(super) fn mean(call: &Call<'_>) -> Result<Tensor> {
    run!("div.Scalar", folded(call, "add.Tensor")?, call.inputs.len() as i64)
}

pub(super) fn clip(call: &Call<'_>) -> Result<Tensor> {
    let mut result = call.tensor(0)?;
    for (position, name) in [(1, "maximum"), (2, "minimum")] {
        if let Some(bound) = call.maybe(position)? {
            result = run!(name, &result, &bound)?;
        }
    }
    Ok(result)
}

pub(super) fn choose(call: &Call<'_>) -> Result<Tensor> {
    run!("where.self", call.tensor(0)?, call.tensor(1)?, call.tensor(2)?)
}

pub(super) fn is_inf(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let infinite = run!("isinf", &x)?;
    match (call.flag("detect_positive", true)?, call.flag("detect_negative", true)?) {
        (true, true) => Ok(infinite),
        (true, false) => run!("logical_and", &infinite, run!("gt.Scalar", &x, 0i64)?),
        (false, true) => run!("logical_and", &infinite, run!("lt.Scalar", &x, 0i64)?),
        (false, false) => run!("zeros_like", &infinite),
    }
}

pub(super) fn relu(call: &Call<'_>) -> Result<Tensor> {
    run!("relu", call.tensor(0)?)
}

pub(super) fn leaky_relu(call: &Call<'_>) -> Result<Tensor> {
    run!("leaky_relu", call.tensor(0)?, call.float("alpha", 0.01)?)
}

pub(super) fn thresholded_relu(call: &Call<'_>) -> Result<Tensor> {
    run!("threshold", call.tensor(0)?, call.float("alpha", 1.0)?, 0i64)
}

pub(super) fn prelu(call: &Call<'_>) -> Result<Tensor> {
    let (x, slope) = (call.tensor(0)?, call.tensor(1)?);
    run!("where.self", run!("lt.Scalar", &x, 0i64)?, run!("mul.Tensor", &x, &slope)?, &x)
}

pub(super) fn elu(call: &Call<'_>) -> Result<Tensor> {
    run!("elu", call.tensor(0)?, call.float("alpha", 1.0)?)
}

pub(super) fn celu(call: &Call<'_>) -> Result<Tensor> {
    run!("celu", call.tensor(0)?, call.float("alpha", 1.0)?)
}

pub(super) fn selu(call: &Call<'_>) -> Result<Tensor> {
    // The defaults are the nearest floats of 32 bits.
    let alpha = call.float("alpha", 1.673_263_192_176_818_8)?;
    let gamma = call.float("gamma", 1.050_700_941_696_167)?;
    run!("elu", call.tensor(0)?, alpha, gamma)
}

pub(super) fn gelu(call: &Call<'_>) -> Result<Tensor> {
    run!("gelu", call.tensor(0)?; "approximate" => call.text("approximate", "none")?)
}

pub(super) fn softplus(call: &Call<'_>) -> Result<Tensor> {
    run!("softplus", call.tensor(0)?)
}

/// `x * sigmoid(alpha * x)`.
pub(super) fn swish(call: &Call<'_>) -> Result<Tensor> {
    let (x, alpha) = (call.tensor(0)?, call.float("alpha", 1.0)?);
    if alpha == 1.0 {
        return run!("silu", &x);
    }
    run!("mul.Tensor", &x, run!("sigmoid", run!("mul.Scalar", &x, alpha)?)?)
}

/// `max(0, min(1, alpha * x + beta))`.
pub(super) fn hard_sigmoid(call: &Call<'_>) -> Result<Tensor> {
    let (alpha, beta) = (call.float("alpha", 0.2)?, call.float("beta", 0.5)?);
    let line = run!("add.Scalar", run!("mul.Scalar", call.tensor(0)?, alpha)?, beta)?;
    run!("hardtanh", &line, 0i64, 1i64)
}

/// Elements nearer to 0 than `lambd` become 0, others come nearer by `bias`.
pub(super) fn shrink(call: &Call<'_>) -> Result<Tensor> {
    let (x, limit, bias) = (call.tensor(0)?, call.float("lambd", 0.5)?, call.float("bias", 0.0)?);
    let zero = run!("zeros_like", &x)?;
    let moved = |by: f64| to(&run!("add.Scalar", &x, Scalar::Float(by))?, x.dtype());
    let above = run!("where.self", run!("gt.Scalar", &x, limit)?, moved(-bias)?, &zero)?;
    run!("where.self", run!("lt.Scalar", &x, -limit)?, moved(bias)?, &above)
}
