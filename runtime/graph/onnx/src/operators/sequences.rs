//! Sequences and optional values, which are lists while a model is replayed, and no values of its graph.
//!
//! In: calls. Out: results.

use opsmith_core::DType;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::all;
use super::pointwise::to;
use super::selection::places;
use crate::call::{Call, axis};
use crate::errors::unsupported;
use crate::libraries::{run, tensors};
use crate::values::Datum;

fn list<'a>(call: &'a Call<'_>) -> Result<&'a [Datum]> {
    match call.given(0)? {
        Datum::List(list) => Ok(list),
        _ => Err(Error::argument("input 0 is no sequence")),
    }
}

/// A place in a list of this length.
fn place(call: &Call<'_>, position: usize, length: usize) -> Result<usize> {
    let at = call.number(position, "position")?.ok_or_else(|| Error::argument("the position is missing"))?;
    let from_front = if at < 0 { at + length as i64 } else { at };
    usize::try_from(from_front).ok().filter(|at| *at < length).ok_or_else(|| {
        Error::new(opsmith_runtime::ErrorKind::Index, format!("there is no element {at} in {length}"))
    })
}

pub(super) fn identity(call: &Call<'_>) -> Result<Vec<Datum>> {
    Ok(vec![call.given(0)?.clone()])
}

pub(super) fn construct(call: &Call<'_>) -> Result<Vec<Datum>> {
    let each = (0..call.inputs.len()).map(|at| call.given(at).cloned()).collect::<Result<_>>()?;
    Ok(vec![Datum::List(each)])
}

pub(super) fn empty(_: &Call<'_>) -> Result<Vec<Datum>> {
    Ok(vec![Datum::List(Vec::new())])
}

pub(super) fn at(call: &Call<'_>) -> Result<Vec<Datum>> {
    let list = list(call)?;
    Ok(vec![list[place(call, 1, list.len())?].clone()])
}

pub(super) fn insert(call: &Call<'_>) -> Result<Vec<Datum>> {
    let mut list = list(call)?.to_vec();
    let at = match call.datum(2) {
        Some(_) => place(call, 2, list.len() + 1)?,
        None => list.len(),
    };
    list.insert(at, call.given(1)?.clone());
    Ok(vec![Datum::List(list)])
}

pub(super) fn erase(call: &Call<'_>) -> Result<Vec<Datum>> {
    let mut list = list(call)?.to_vec();
    let last = list.len().checked_sub(1).ok_or_else(|| Error::argument("the sequence is empty"))?;
    list.remove(if call.datum(1).is_some() { place(call, 1, list.len())? } else { last });
    Ok(vec![Datum::List(list)])
}

pub(super) fn length(call: &Call<'_>) -> Result<Vec<Datum>> {
    Ok(vec![Datum::sizes(&[list(call)?.len() as i64], &[], false)?])
}

pub(super) fn concat(call: &Call<'_>) -> Result<Tensor> {
    let each = list(call)?.iter().map(Datum::tensor).collect::<Result<Vec<_>>>()?;
    let rank = each.first().map_or(0, Tensor::dim);
    let new = call.flag("new_axis", false)?;
    let dim = axis(call.int("axis", 0)?, rank + usize::from(new))?;
    run!(if new { "stack" } else { "cat" }, each, dim)
}

pub(super) fn split(call: &Call<'_>) -> Result<Vec<Datum>> {
    let x = call.tensor(0)?;
    let dim = axis(call.int("axis", 0)?, x.dim())?;
    let size = x.shape()[dim as usize];
    let (sizes, keep) = match call.datum(1) {
        None => (vec![1; size.clamp(0, 1 << 16) as usize], call.flag("keepdims", true)?),
        Some(given) => match given.known().is_some_and(|known| known.tensor.dim() == 0) {
            false => (given.ints("split")?, true),
            true => {
                let each = given.ints("split")?[0].max(1);
                (
                    (0..((size + each - 1) / each).min(1 << 16))
                        .map(|part| each.min(size - part * each))
                        .collect(),
                    true,
                )
            }
        },
    };
    let mut parts = tensors("split_with_sizes", &[(&x).into(), sizes.into(), dim.into()], &[])?;
    if !keep {
        parts = parts.iter().map(|part| run!("squeeze.dim", part, dim)).collect::<Result<_>>()?;
    }
    Ok(vec![Datum::List(all(parts))])
}

pub(super) fn optional(call: &Call<'_>) -> Result<Vec<Datum>> {
    Ok(vec![call.datum(0).cloned().unwrap_or(Datum::Absent)])
}

pub(super) fn element_of_optional(call: &Call<'_>) -> Result<Vec<Datum>> {
    match call.given(0)? {
        Datum::Absent => Err(Error::value("the optional value is absent")),
        found => Ok(vec![found.clone()]),
    }
}

pub(super) fn has_element(call: &Call<'_>) -> Result<Vec<Datum>> {
    let has = !matches!(call.datum(0), None | Some(Datum::Absent));
    Ok(vec![Datum::constant(Tensor::from_slice(&[has], &[])?)])
}

/// The first elements of each sample in reverse order.
pub(super) fn reverse(call: &Call<'_>) -> Result<Tensor> {
    let (x, lengths) = (call.tensor(0)?, places(&call.tensor(1)?)?);
    let (batch, time) = (call.int("batch_axis", 1)?, call.int("time_axis", 0)?);
    if batch + time != 1 || batch * time != 0 || x.dim() < 2 {
        return Err(unsupported("axes of a reversed sequence other than 0 and 1"));
    }
    let steps = run!("arange", x.size(time)?)?;
    reversed(&x, &steps, &lengths, time)
}

/// The elements along a dimension, 0 or 1, of which as many as `lengths` says are in reverse order.
pub(super) fn reversed(x: &Tensor, steps: &Tensor, lengths: &Tensor, time: i64) -> Result<Tensor> {
    let (steps, lengths) = match time {
        0 => (run!("unsqueeze", steps, 1i64)?, run!("unsqueeze", lengths, 0i64)?),
        _ => (run!("unsqueeze", steps, 0i64)?, run!("unsqueeze", lengths, 1i64)?),
    };
    let back = run!("sub.Tensor", run!("add.Scalar", &lengths, -1i64)?, &steps)?;
    let within = run!("ge.Scalar", &back, 0i64)?;
    let at = to(&run!("where.self", &within, &back, &steps)?, DType::I64)?;
    let samples = run!("unsqueeze", run!("arange", x.size(1 - time)?)?, time)?;
    let indices = if time == 0 { vec![Some(at), Some(samples)] } else { vec![Some(samples), Some(at)] };
    run!("index.Tensor", x, indices)
}
