//! Attention, and the rotation of its positions.
//!
//! In: calls. Out: results.

use opsmith_core::DType;
use opsmith_runtime::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::all;
use super::pointwise::to;
use crate::call::Call;
use crate::errors::unsupported;
use crate::libraries::run;
use crate::tensors;
use crate::values::Datum;

/// `(samples, places, heads * features)` as `(samples, heads, places, features)`.
fn heads(x: &Tensor, call: &Call<'_>, attribute: &str) -> Result<Tensor> {
    match *x.shape() {
        [_, _, _, _] => Ok(x.clone()),
        [samples, places, width] => {
            let count = call.int(attribute, 0)?;
            if count < 1 || width % count != 0 {
                return Err(Error::value(format!(
                    "`{attribute}` is {count}, and {width} features are given"
                )));
            }
            let split = run!("reshape", x, vec![samples, places, count, width / count])?;
            run!("transpose.int", &split, 1i64, 2i64)
        }
        _ => Err(Error::shape(format!("an operand has {} dimensions, and 3 or 4 are needed", x.dim()))),
    }
}

/// The mask of an attention, to be added to scores or of truth values.
struct Mask {
    given: Option<Tensor>,
    causal: bool,
    /// The number of keys before the first query.
    offset: i64,
}

impl Mask {
    /// The mask as numbers to add, `-inf` for keys that a query has not; `None` if each has all.
    fn bias(&self, queries: i64, keys: i64, dtype: DType) -> Result<Option<Tensor>> {
        let infinite = || run!("full", Vec::<i64>::new(), f64::NEG_INFINITY; "dtype" => dtype);
        let zero = || run!("zeros", Vec::<i64>::new(); "dtype" => dtype);
        let mut bias = match &self.given {
            Some(mask) if mask.dtype() == DType::Bool => {
                Some(run!("where.self", mask, zero()?, infinite()?)?)
            }
            Some(mask) => Some(to(mask, dtype)?),
            None => None,
        };
        if let Some(mask) = &bias
            && let Some(last) = mask.shape().last().copied().filter(|last| *last < keys)
        {
            bias = Some(run!("constant_pad_nd", mask, vec![0, keys - last], f64::NEG_INFINITY)?);
        }
        if self.causal {
            let query = run!("unsqueeze", run!("arange.start", self.offset, self.offset + queries)?, 1i64)?;
            let seen = run!("ge.Tensor", &query, run!("arange", keys)?)?;
            bias = Some(match bias {
                Some(bias) => run!("where.self", &seen, &bias, infinite()?)?,
                None => run!("where.self", &seen, zero()?, infinite()?)?,
            });
        }
        Ok(bias)
    }
}

pub(super) fn attention(call: &Call<'_>) -> Result<Vec<Datum>> {
    let flat = call.tensor(0)?.dim() == 3;
    let query = heads(&call.tensor(0)?, call, "q_num_heads")?;
    let mut key = heads(&call.tensor(1)?, call, "kv_num_heads")?;
    let mut value = heads(&call.tensor(2)?, call, "kv_num_heads")?;
    let mut offset = 0;
    if let (Some(past_key), Some(past_value)) = (call.maybe(4)?, call.maybe(5)?) {
        offset = past_key.size(2)?;
        key = run!("cat", vec![past_key, key], 2i64)?;
        value = run!("cat", vec![past_value, value], 2i64)?;
    }
    if call.maybe(6)?.is_some() {
        return Err(unsupported("`nonpad_kv_seqlen`"));
    }
    let mask = Mask { given: call.maybe(3)?, causal: call.flag("is_causal", false)?, offset };
    let (queries, keys) = (query.size(2)?, key.size(2)?);
    let scale = call.float("scale", 1.0 / (query.size(3)? as f64).sqrt())?;
    let (softcap, precision) = (call.float("softcap", 0.0)?, call.maybe_int("softmax_precision")?);
    let plain = softcap == 0.0 && !call.wants(3) && (precision.is_none() || query.dtype() == DType::F32);
    let (result, scores) = match plain {
        true => {
            let causal = mask.causal && mask.given.is_none() && mask.offset == 0;
            let bias = if causal { None } else { mask.bias(queries, keys, query.dtype())? };
            let bias = bias.map_or(Value::None, Value::Tensor);
            let grouped = query.size(1)? != key.size(1)?;
            let result = run!("scaled_dot_product_attention", &query, &key, &value, bias, 0.0, causal;
                "scale" => scale, "enable_gqa" => grouped)?;
            (result, None)
        }
        false => {
            let (result, scores) = explicit(call, [&query, &key, &value], &mask, scale)?;
            (result, Some(scores))
        }
    };
    let result = match flat {
        false => result,
        true => {
            let joined = run!("transpose.int", &result, 1i64, 2i64)?;
            let shape = vec![joined.size(0)?, joined.size(1)?, joined.size(2)? * joined.size(3)?];
            run!("reshape", &joined, shape)?
        }
    };
    Ok(all([result, key, value].into_iter().chain(scores)))
}

/// Attention with its matrix of scores, which a result, a bound or another precision needs.
fn explicit(
    call: &Call<'_>,
    [query, key, value]: [&Tensor; 3],
    mask: &Mask,
    scale: f64,
) -> Result<(Tensor, Tensor)> {
    let groups = query.size(1)? / key.size(1)?.max(1);
    let repeated = |x: &Tensor| match groups {
        0 | 1 => Ok(x.clone()),
        _ => {
            let [samples, heads, places, features] = x.shape() else {
                unreachable!("heads have 4 dimensions")
            };
            let each = run!(
                "expand",
                run!("unsqueeze", x, 2i64)?,
                vec![*samples, *heads, groups, *places, *features]
            )?;
            run!("reshape", &each, vec![*samples, heads * groups, *places, *features])
        }
    };
    let (key, value) = (repeated(key)?, repeated(value)?);
    let mode = call.int("qk_matmul_output_mode", 0)?;
    let product = run!("matmul", query, run!("transpose.int", &key, 2i64, 3i64)?)?;
    let mut scores = run!("mul.Scalar", &product, scale)?;
    let raw = scores.clone();
    let softcap = call.float("softcap", 0.0)?;
    if softcap != 0.0 {
        let within = run!("tanh", run!("div.Scalar", &scores, softcap)?)?;
        scores = run!("mul.Scalar", &within, softcap)?;
    }
    let capped = scores.clone();
    let bias = mask.bias(query.size(2)?, key.size(2)?, query.dtype())?;
    if let Some(bias) = &bias {
        scores = run!("add.Tensor", &scores, bias)?;
    }
    let biased = scores.clone();
    let inner =
        call.maybe_int("softmax_precision")?.map(tensors::dtype).transpose()?.unwrap_or(query.dtype());
    let mut weights = to(&run!("softmax.int", to(&scores, inner)?, -1i64)?, query.dtype())?;
    if let Some(bias) = &bias {
        // A query without keys gets zeros.
        let most = run!("amax", bias, vec![-1i64], true)?;
        let none = run!("eq.Scalar", &most, f64::NEG_INFINITY)?;
        weights = run!("where.self", &none, run!("zeros_like", &weights)?, &weights)?;
    }
    let result = run!("matmul", &weights, &value)?;
    let shown = match mode {
        0 => raw,
        1 => capped,
        2 => biased,
        3 => weights,
        other => return Err(unsupported(format!("`qk_matmul_output_mode` = {other}"))),
    };
    Ok((result, shown))
}

/// Pairs of features, turned by the angles of their places.
pub(super) fn rotary(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let (mut cos, mut sin) = (call.tensor(1)?, call.tensor(2)?);
    let flat = x.dim() == 3;
    let turned = match flat {
        true => {
            let count = call.int("num_heads", 0)?;
            let &[samples, places, width] = x.shape() else { unreachable!("3 dimensions") };
            if count < 1 || width % count != 0 {
                return Err(Error::value(format!("`num_heads` is {count}, and {width} features are given")));
            }
            run!("reshape", &x, vec![samples, places, count, width / count])?
        }
        false => run!("transpose.int", &x, 1i64, 2i64)?,
    };
    if let Some(positions) = call.maybe(3)? {
        let at = |table: &Tensor| run!("index.Tensor", table, vec![Some(to(&positions, DType::I64)?)]);
        (cos, sin) = (at(&cos)?, at(&sin)?);
    }
    let (cos, sin) = (run!("unsqueeze", &cos, 2i64)?, run!("unsqueeze", &sin, 2i64)?);
    let features = turned.size(3)?;
    let width = match call.int("rotary_embedding_dim", 0)? {
        0 => features,
        width => width,
    };
    let part = |x: &Tensor, start: i64, end: i64, step: i64| run!("slice.Tensor", x, 3i64, start, end, step);
    let pairs = part(&turned, 0, width, 1)?;
    let interleaved = call.flag("interleaved", false)?;
    let (first, second) = match interleaved {
        true => (part(&pairs, 0, width, 2)?, part(&pairs, 1, width, 2)?),
        false => (part(&pairs, 0, width / 2, 1)?, part(&pairs, width / 2, width, 1)?),
    };
    let product = |a: &Tensor, b: &Tensor| run!("mul.Tensor", a, b);
    let real = run!("sub.Tensor", product(&cos, &first)?, product(&sin, &second)?)?;
    let imaginary = run!("add.Tensor", product(&sin, &first)?, product(&cos, &second)?)?;
    let joined = match interleaved {
        true => run!("reshape", run!("stack", vec![real, imaginary], -1i64)?, pairs.shape().to_vec())?,
        false => run!("cat", vec![real, imaginary], 3i64)?,
    };
    let whole = run!("cat", vec![joined, part(&turned, width, features, 1)?], 3i64)?;
    match flat {
        true => run!("reshape", &whole, x.shape().to_vec()),
        false => run!("transpose.int", &whole, 1i64, 2i64),
    }
}
