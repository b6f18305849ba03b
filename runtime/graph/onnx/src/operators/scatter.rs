//! Elements written at places.
//!
//! In: calls. Out: results. Several elements at one place are combined as `reduction` says.

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::selection::{columns, wrapped};
use crate::call::{Call, axis};
use crate::errors::unsupported;
use crate::libraries::run;

/// The library's name of a reduction; `None` if the last element stays.
fn reduction(call: &Call<'_>) -> Result<Option<&'static str>> {
    Ok(match call.text("reduction", "none")?.as_str() {
        "none" => None,
        "add" => Some("sum"),
        "mul" => Some("prod"),
        "max" => Some("amax"),
        "min" => Some("amin"),
        other => return Err(unsupported(format!("`reduction` = {other:?}"))),
    })
}

pub(super) fn elements(call: &Call<'_>) -> Result<Tensor> {
    let (x, updates) = (call.tensor(0)?, call.tensor(2)?);
    let dim = axis(call.int("axis", 0)?, x.dim())?;
    let at = wrapped(&call.tensor(1)?, x.shape()[dim as usize])?;
    match reduction(call)? {
        None => run!("scatter.src", &x, dim, &at, &updates),
        Some(reduce) => run!("scatter_reduce.two", &x, dim, &at, &updates, reduce),
    }
}

pub(super) fn places(call: &Call<'_>) -> Result<Tensor> {
    let (x, given, updates) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let indices = columns(&given)?;
    let Some(reduce) = reduction(call)? else {
        return run!("index_put", &x, indices, &updates);
    };
    let depth = indices.len();
    if depth > x.dim() {
        return Err(Error::shape(format!("indices of {depth} numbers lead into {} dimensions", x.dim())));
    }
    // The places of whole rows in the first dimensions, taken as one.
    let (rows, rest) = x.shape().split_at(depth);
    let (count, width) = (rows.iter().product::<i64>(), rest.iter().product::<i64>());
    let mut row = None;
    for (index, size) in indices.into_iter().flatten().zip(rows) {
        let index = wrapped(&index, *size)?;
        row = Some(match row {
            None => index,
            Some(before) => run!("add.Tensor", run!("mul.Scalar", &before, *size)?, &index)?,
        });
    }
    let row = row.ok_or_else(|| Error::shape("the indices have no numbers"))?;
    let number = row.numel();
    let row = run!("expand", run!("reshape", &row, vec![number, 1])?, vec![number, width])?;
    let flat = run!("reshape", &x, vec![count, width])?;
    let updates = run!("reshape", &updates, vec![number, width])?;
    let result = run!("scatter_reduce.two", &flat, 0i64, &row, &updates, reduce)?;
    run!("reshape", &result, x.shape().to_vec())
}
