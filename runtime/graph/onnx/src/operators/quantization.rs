//! Quantized tensors: integers with scales and zero points.
//!
//! In: calls. Out: results. 4-bit integers are those of 8 bits, as the reader unpacks them.

use opsmith_core::DType;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::all;
use super::convolution::convolved;
use super::pointwise::to;
use crate::call::{Call, axis};
use crate::errors::unsupported;
use crate::libraries::run;
use crate::tensors;
use crate::values::Datum;

/// Scales or zero points for each element of a tensor: of all, of places along a dimension, or of blocks.
fn spread(part: &Tensor, x: &Tensor, call: &Call<'_>) -> Result<Tensor> {
    if part.numel() == 1 && part.dim() <= 1 {
        return run!("reshape", part, Vec::<i64>::new());
    }
    let dim = axis(call.int("axis", 1)?, x.dim())?;
    if part.dim() == 1 {
        let mut shape = vec![1i64; x.dim()];
        shape[dim as usize] = part.numel();
        return run!("reshape", part, shape);
    }
    let block = call.int("block_size", 0)?;
    if block < 1 || part.dim() != x.dim() {
        return Err(Error::shape(
            "scales of several dimensions need a `block_size` and the rank of the input",
        ));
    }
    let places = run!("floor_divide.Scalar", run!("arange", x.shape()[dim as usize])?, block)?;
    run!("index_select", part, dim, &places)
}

/// The least and the greatest number of a type of quantized elements.
fn bounds(code: i64) -> Result<(f64, f64)> {
    match code {
        2 => Ok((0.0, 255.0)),
        3 => Ok((-128.0, 127.0)),
        4 => Ok((0.0, 65535.0)),
        5 => Ok((-32768.0, 32767.0)),
        21 => Ok((0.0, 15.0)),
        22 => Ok((-8.0, 7.0)),
        17 => Ok((-448.0, 448.0)),
        19 => Ok((-57344.0, 57344.0)),
        other => Err(unsupported(format!("quantization to the element type with the number {other}"))),
    }
}

/// Rounded quotients, moved by zero points, within bounds.
fn quantized(x: &Tensor, scale: &Tensor, zero: Option<&Tensor>, code: i64) -> Result<Tensor> {
    let (least, most) = bounds(code)?;
    let quotient = run!("div.Tensor", x, to(scale, x.dtype())?)?;
    // Floats of 8 bits round as they are converted.
    let quotient = if tensors::dtype(code)?.is_stored() { quotient } else { run!("round", quotient)? };
    let wide = if quotient.dtype() == DType::F64 { quotient } else { to(&quotient, DType::F32)? };
    let moved = match zero {
        Some(zero) => run!("add.Tensor", &wide, to(zero, wide.dtype())?)?,
        None => wide,
    };
    to(&run!("clamp", &moved, least, most)?, tensors::dtype(code)?)
}

pub(super) fn quantize(call: &Call<'_>) -> Result<Tensor> {
    let (x, scale, zero) = (call.tensor(0)?, call.tensor(1)?, call.maybe(2)?);
    let code = match (call.int("output_dtype", 0)?, &zero) {
        (0, Some(zero)) => i64::from(tensors::code(zero.dtype())),
        (0, None) => 2,
        (code, _) => code,
    };
    let x = if x.dtype().is_float() { x } else { to(&x, DType::F32)? };
    let zero = zero.map(|zero| spread(&zero, &x, call)).transpose()?;
    quantized(&x, &spread(&scale, &x, call)?, zero.as_ref(), code)
}

pub(super) fn dequantize(call: &Call<'_>) -> Result<Tensor> {
    let (x, scale, zero) = (call.tensor(0)?, call.tensor(1)?, call.maybe(2)?);
    let (scale, dtype) = (spread(&scale, &x, call)?, scale.dtype());
    let mut wide = to(&x, DType::F32)?;
    if let Some(zero) = zero {
        wide = run!("sub.Tensor", &wide, to(&spread(&zero, &x, call)?, DType::F32)?)?;
    }
    to(&run!("mul.Tensor", &wide, to(&scale, DType::F32)?)?, dtype)
}

/// Scale and zero point by the least and the greatest element.
pub(super) fn dynamic_quantize(call: &Call<'_>) -> Result<Vec<Datum>> {
    let x = call.tensor(0)?;
    let edge = |name: &str, bound: &str| run!(bound, run!(name, &x)?, 0.0);
    let (least, most) = (edge("amin", "clamp_max")?, edge("amax", "clamp_min")?);
    let scale = run!("div.Scalar", run!("sub.Tensor", &most, &least)?, 255.0)?;
    let place = run!("round", run!("neg", run!("div.Tensor", &least, &scale)?)?)?;
    let zero = to(&run!("clamp", &place, 0.0, 255.0)?, DType::U8)?;
    let result = quantized(&x, &scale, Some(&zero), 2)?;
    Ok(all([result, scale, zero]))
}

/// Elements minus their zero point, in a wide type.
fn centred(x: &Tensor, zero: Option<Tensor>, dtype: DType) -> Result<Tensor> {
    let wide = to(x, dtype)?;
    match zero {
        Some(zero) => run!("sub.Tensor", &wide, to(&zero, dtype)?),
        None => Ok(wide),
    }
}

/// Zero points of rows as a column.
fn of_rows(zero: Option<Tensor>, x: &Tensor) -> Result<Option<Tensor>> {
    match zero {
        Some(zero) if zero.dim() == 1 && zero.numel() > 1 && x.dim() > 1 => {
            run!("unsqueeze", &zero, -1i64).map(Some)
        }
        other => Ok(other),
    }
}

pub(super) fn matmul_integer(call: &Call<'_>) -> Result<Tensor> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    let left = centred(&a, of_rows(call.maybe(2)?, &a)?, DType::I32)?;
    run!("matmul", &left, centred(&b, call.maybe(3)?, DType::I32)?)
}

/// Sums are exact: products of bytes are integers that a float of 64 bits holds.
pub(super) fn conv_integer(call: &Call<'_>) -> Result<Tensor> {
    let (x, weight) = (call.tensor(0)?, call.tensor(1)?);
    let zero = channel_zero(call.maybe(3)?, &weight)?;
    let (x, weight) = (centred(&x, call.maybe(2)?, DType::F64)?, centred(&weight, zero, DType::F64)?);
    to(&convolved(call, &x, &weight, None)?, DType::I32)
}

/// Numbers of output channels, for each element of a weight.
fn channel_zero(zero: Option<Tensor>, weight: &Tensor) -> Result<Option<Tensor>> {
    match zero {
        Some(zero) if zero.numel() > 1 => {
            let mut shape = vec![1i64; weight.dim()];
            shape[0] = zero.numel();
            run!("reshape", &zero, shape).map(Some)
        }
        other => Ok(other),
    }
}

pub(super) fn quantized_matmul(call: &Call<'_>) -> Result<Tensor> {
    let (a, b, zero) = (call.tensor(0)?, call.tensor(3)?, call.tensor(7)?);
    let left = centred(&a, of_rows(Some(call.tensor(2)?), &a)?, DType::F64)?;
    let right = centred(&b, Some(call.tensor(5)?), DType::F64)?;
    let sums = run!("matmul", &left, &right)?;
    let scales = [call.tensor(1)?, call.tensor(4)?].map(|scale| to(&scale, DType::F64));
    let [a_scale, b_scale] = scales;
    let a_scale = of_rows(Some(a_scale?), &a)?.ok_or_else(|| Error::argument("input 1 is missing"))?;
    let scaled = run!("mul.Tensor", run!("mul.Tensor", &sums, &a_scale)?, &b_scale?)?;
    quantized(&scaled, &call.tensor(6)?, Some(&zero), i64::from(tensors::code(zero.dtype())))
}

pub(super) fn quantized_conv(call: &Call<'_>) -> Result<Tensor> {
    let (x, weight, zero) = (call.tensor(0)?, call.tensor(3)?, call.tensor(7)?);
    let of_weight = channel_zero(Some(call.tensor(5)?), &weight)?;
    let (x, wide) =
        (centred(&x, Some(call.tensor(2)?), DType::F64)?, centred(&weight, of_weight, DType::F64)?);
    let bias = call.maybe(8)?.map(|bias| to(&bias, DType::F64)).transpose()?;
    let sums = convolved(call, &x, &wide, bias)?;
    let mut scale = to(&call.tensor(4)?, DType::F64)?;
    if scale.numel() > 1 {
        let mut shape = vec![1i64; sums.dim()];
        shape[1] = scale.numel();
        scale = run!("reshape", &scale, shape)?;
    }
    let scale = run!("mul.Tensor", &scale, to(&call.tensor(1)?, DType::F64)?)?;
    let scaled = run!("mul.Tensor", &sums, &scale)?;
    quantized(&scaled, &call.tensor(6)?, Some(&zero), i64::from(tensors::code(zero.dtype())))
}

/// A product with a matrix of four bits, packed, with scales and zero points of blocks of neighbours.
pub(super) fn matmul_nbits(call: &Call<'_>) -> Result<Tensor> {
    call.only_int("bits", 4)?;
    if call.maybe(4)?.is_some() {
        return Err(unsupported("an order of groups, `g_idx`"));
    }
    let (x, packed, scales) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let (length, count, block) = (call.int("K", 0)?, call.int("N", 0)?, call.int("block_size", 0)?);
    if length < 1 || count < 1 || block < 2 || block % 2 == 1 {
        return Err(Error::value(format!("`K` is {length}, `N` {count} and `block_size` {block}"))
            .with_help("sizes are 1 or more, and a block has an even number of elements"));
    }
    let blocks = (length + block - 1) / block;
    let packed = run!("reshape", &packed, vec![count, blocks * block / 2])?;
    let scales = run!("reshape", to(&scales, x.dtype())?, vec![count, blocks])?;
    let zeros = match call.maybe(3)? {
        None => run!("full_like", &scales, 8.0)?,
        Some(zeros) if zeros.dtype() == DType::U8 => {
            let rows = run!("reshape", &zeros, vec![count, (blocks + 1) / 2])?;
            let numbers = run!("unpack_int4", &rows; "dtype" => DType::U4)?;
            to(&run!("narrow", &numbers, -1i64, 0i64, blocks)?, x.dtype())?
        }
        Some(zeros) => run!("reshape", to(&zeros, x.dtype())?, vec![count, blocks])?,
    };
    // The last block may be longer than the rows.
    let rest = blocks * block - length;
    let x = if rest == 0 { x } else { run!("constant_pad_nd", &x, vec![0, rest], 0.0)? };
    let product = run!("mm_int4", &x, &packed, &scales, &zeros; "dtype" => DType::U4)?;
    match call.maybe(5)? {
        Some(bias) => run!("add.Tensor", &product, &bias),
        None => Ok(product),
    }
}
