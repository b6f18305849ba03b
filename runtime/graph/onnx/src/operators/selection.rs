//! Selection of elements: by places, ranges and conditions.
//!
//! In: calls. Out: results. Negative places count from the end.

use opsmith_core::DType;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::all;
use super::pointwise::to;
use crate::call::{Call, axes, axis};
use crate::errors::unsupported;
use crate::libraries::{run, tensors};
use crate::values::Datum;

/// Places as `int64`.
pub(super) fn places(tensor: &Tensor) -> Result<Tensor> {
    to(tensor, DType::I64)
}

/// Places as `int64`, negative ones counted from the end of a dimension.
pub(super) fn wrapped(tensor: &Tensor, size: i64) -> Result<Tensor> {
    let places = places(tensor)?;
    let negative = run!("lt.Scalar", &places, 0i64)?;
    run!("where.self", &negative, run!("add.Scalar", &places, size)?, &places)
}

pub(super) fn gather(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let dim = axis(call.int("axis", 0)?, x.dim())?;
    // One place needs no table: it is a view.
    if let Some(known) = call.datum(1).and_then(Datum::known)
        && known.tensor.dim() == 0
    {
        let at = call.given(1)?.ints("indices")?[0];
        return run!("select.int", &x, dim, at);
    }
    let mut indices: Vec<Option<Tensor>> = vec![None; dim as usize];
    indices.push(Some(places(&call.tensor(1)?)?));
    run!("index.Tensor", &x, indices)
}

pub(super) fn gather_elements(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let dim = axis(call.int("axis", 0)?, x.dim())?;
    run!("gather", &x, dim, wrapped(&call.tensor(1)?, x.shape()[dim as usize])?)
}

/// The parts of places along their last dimension.
pub(super) fn columns(places: &Tensor) -> Result<Vec<Option<Tensor>>> {
    let places = self::places(places)?;
    let Some(last) = places.shape().last().copied() else {
        return Err(Error::shape("the indices have no dimension"));
    };
    (0..last).map(|at| run!("select.int", &places, -1i64, at).map(Some)).collect()
}

pub(super) fn gather_nd(call: &Call<'_>) -> Result<Tensor> {
    let (x, given) = (call.tensor(0)?, call.tensor(1)?);
    let batch = call.int("batch_dims", 0)?.max(0) as usize;
    if batch >= x.dim().min(given.dim()) {
        return Err(Error::value(format!("`batch_dims` is {batch}, and the inputs have fewer dimensions")));
    }
    let mut indices = Vec::new();
    for dim in 0..batch {
        // The place in a dimension of samples is that of the index.
        let mut shape = vec![1i64; given.dim() - 1];
        shape[dim] = x.shape()[dim];
        indices.push(Some(run!("reshape", run!("arange", x.shape()[dim])?, shape)?));
    }
    indices.extend(columns(&given)?);
    run!("index.Tensor", &x, indices)
}

pub(super) fn slice(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let known = |at: usize| call.datum(at).is_none_or(|datum| datum.known().is_some());
    let Some(starts) = call.numbers(1, "starts").ok().flatten().filter(|_| known(2)) else {
        return slice_by_tensors(call, &x);
    };
    let ends = call.given(2)?.ints("ends")?;
    let dims = match call.numbers(3, "axes")? {
        Some(given) => axes(&given, x.dim())?,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = call.numbers(4, "steps")?.unwrap_or_else(|| vec![1; starts.len()]);
    if ends.len() != starts.len() || dims.len() != starts.len() || steps.len() != starts.len() {
        return Err(Error::argument("`starts`, `ends`, `axes` and `steps` have different lengths"));
    }
    let mut result = x;
    for (((start, end), dim), step) in starts.into_iter().zip(ends).zip(dims).zip(steps) {
        let size = *result
            .shape()
            .get(dim as usize)
            .ok_or_else(|| Error::shape(format!("there is no dimension {dim}")))?;
        result = match step {
            1.. => run!("slice.Tensor", &result, dim, start, end, step)?,
            0 => return Err(Error::value("a step is 0")),
            _ => {
                // From the end: in the flipped dimension, place p is size - 1 - p.
                let from =
                    |at: i64| if at < 0 { (at.saturating_add(size)).max(-1) } else { at.min(size - 1) };
                let (first, last) = (size - 1 - from(start), size - 1 - from(end));
                let flipped = run!("flip", &result, vec![dim])?;
                run!(
                    "slice.Tensor",
                    &flipped,
                    dim,
                    first,
                    last.max(first),
                    step.checked_neg().unwrap_or(i64::MAX)
                )?
            }
        };
    }
    Ok(result)
}

/// A part between bounds that are known when the model runs.
fn slice_by_tensors(call: &Call<'_>, x: &Tensor) -> Result<Tensor> {
    let (starts, ends) = (places(&call.tensor(1)?)?, places(&call.tensor(2)?)?);
    let steps = call.numbers(4, "steps")?.unwrap_or_else(|| vec![1]);
    let dims = call.numbers(3, "axes")?.unwrap_or_else(|| vec![0]);
    let ([dim], [step], 1) = (dims.as_slice(), steps.as_slice(), starts.numel()) else {
        return Err(unsupported("a slice of several dimensions whose bounds are computed from elements"));
    };
    call.opens_sizes.set(true);
    let scalar = |tensor: &Tensor| run!("reshape", tensor, Vec::<i64>::new());
    run!("slice.by_tensor", x, scalar(&starts)?, scalar(&ends)?, axis(*dim, x.dim())?, *step)
}

pub(super) fn split(call: &Call<'_>) -> Result<Vec<Datum>> {
    let x = call.tensor(0)?;
    let dim = axis(call.int("axis", 0)?, x.dim())?;
    let sizes = match call.numbers(1, "split")? {
        Some(sizes) => sizes,
        None => {
            let size = x.shape()[dim as usize];
            let parts = call.int("num_outputs", call.node.outputs.len() as i64)?.max(1);
            let each = (size + parts - 1) / parts;
            // The last part may be smaller.
            (0..parts.min(1 << 16)).map(|part| (size - part * each).clamp(0, each)).collect()
        }
    };
    Ok(all(tensors("split_with_sizes", &[(&x).into(), sizes.into(), dim.into()], &[])?))
}

pub(super) fn top_k(call: &Call<'_>) -> Result<Vec<Datum>> {
    let x = call.tensor(0)?;
    let count = call.number(1, "K")?.ok_or_else(|| Error::argument("input 1 is missing"))?;
    let dim = axis(call.int("axis", -1)?, x.dim())?;
    let (largest, sorted) = (call.flag("largest", true)?, call.flag("sorted", true)?);
    let args = [(&x).into(), count.into(), dim.into(), largest.into(), sorted.into()];
    Ok(all(tensors("topk", &args, &[])?))
}

pub(super) fn non_zero(call: &Call<'_>) -> Result<Tensor> {
    call.opens_sizes.set(true);
    run!("t", run!("nonzero", call.tensor(0)?)?)
}

pub(super) fn compress(call: &Call<'_>) -> Result<Tensor> {
    call.opens_sizes.set(true);
    let (x, condition) = (call.tensor(0)?, call.tensor(1)?);
    let (x, dim) = match call.maybe_int("axis")? {
        Some(given) => {
            let dim = axis(given, x.dim())?;
            (x, dim)
        }
        None => (run!("reshape", &x, vec![-1i64])?, 0),
    };
    let count = condition.numel();
    if count > x.shape()[dim as usize] {
        return Err(Error::shape(format!("the condition has {count} elements, more than dimension {dim}")));
    }
    let chosen = run!("reshape", run!("nonzero", &condition)?, vec![-1i64])?;
    run!("index_select", &x, dim, &chosen)
}

/// The elements that differ, the first place of each, the place of each element among them, and how often each is there.
pub(super) fn unique(call: &Call<'_>) -> Result<Vec<Datum>> {
    call.opens_sizes.set(true);
    let x = call.tensor(0)?;
    if call.maybe_int("axis")?.is_some() && x.dim() != 1 {
        return Err(unsupported(format!("`axis`, of a tensor of {} dimensions", x.dim()))
            .with_help("elements can be compared, and slices cannot"));
    }
    let found = tensors("_unique2", &[(&x).into(), true.into(), true.into(), true.into()], &[])?;
    let [mut values, inverse, mut counts] = <[Tensor; 3]>::try_from(found)
        .map_err(|_| Error::argument("the operator for elements that differ has not three results"))?;
    let mut inverse = run!("reshape", &inverse, vec![-1i64])?;
    let count = inverse.numel();
    let last = run!("full_like", &counts, count)?;
    let mut first = run!("scatter_reduce.two", &last, 0i64, &inverse, run!("arange", count)?, "amin")?;
    if !call.flag("sorted", true)? {
        let order = run!("argsort", &first)?;
        let ordered = |tensor: &Tensor| run!("index_select", tensor, 0i64, &order);
        (values, first, counts) = (ordered(&values)?, ordered(&first)?, ordered(&counts)?);
        inverse = run!("index_select", run!("argsort", &order)?, 0i64, &inverse)?;
    }
    Ok(all([values, first, inverse, counts]))
}

pub(super) fn one_hot(call: &Call<'_>) -> Result<Tensor> {
    let (given, values) = (call.tensor(0)?, call.tensor(2)?);
    let depth = call.number(1, "depth")?.ok_or_else(|| Error::argument("input 1 is missing"))?;
    let rank = given.dim() + 1;
    let dim = axis(call.int("axis", -1)?, rank)?;
    let hot = run!("unsqueeze", wrapped(&given, depth)?, dim)?;
    let mut shape = vec![1i64; rank];
    shape[dim as usize] = depth;
    let places = run!("reshape", run!("arange", depth)?, shape)?;
    let value = |at: i64| run!("select.int", &values, 0i64, at);
    run!("where.self", run!("eq.Tensor", &hot, &places)?, value(1)?, value(0)?)
}
