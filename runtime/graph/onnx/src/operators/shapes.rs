//! Shapes: read, changed, padded.
//!
//! In: calls. Out: results.

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use crate::call::{Call, axes, axis};
use crate::errors::unsupported;
use crate::libraries::run;

pub(super) fn shape(call: &Call<'_>) -> Result<Tensor> {
    let sizes = call.shape(0)?;
    let rank = sizes.len() as i64;
    let clamped = |at: i64| if at < 0 { (at + rank).max(0) } else { at.min(rank) };
    let start = clamped(call.int("start", 0)?);
    let end = clamped(call.int("end", rank)?).max(start);
    let part = &sizes[start as usize..end as usize];
    Tensor::from_slice(part, &[part.len() as i64])
}

pub(super) fn size(call: &Call<'_>) -> Result<Tensor> {
    Tensor::from_slice(&[call.shape(0)?.iter().product::<i64>()], &[])
}

pub(super) fn reshape(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let mut sizes = call.given(1)?.ints("shape")?;
    if !call.flag("allowzero", false)? {
        for (dim, size) in sizes.iter_mut().enumerate().filter(|(_, size)| **size == 0) {
            *size = *x.shape().get(dim).ok_or_else(|| {
                Error::shape(format!(
                    "size 0 of dimension {dim} stands for that of the input, which has {} dimensions",
                    x.dim()
                ))
            })?;
        }
    }
    run!("reshape", &x, sizes)
}

pub(super) fn flatten(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let given = call.int("axis", 1)?;
    let dim = if given == x.dim() as i64 { given } else { axis(given, x.dim())? } as usize;
    let (rows, columns) = x.shape().split_at(dim);
    run!("reshape", &x, vec![rows.iter().product::<i64>(), columns.iter().product::<i64>()])
}

pub(super) fn squeeze(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    match call.numbers(1, "axes")? {
        None => {
            let dims: Vec<i64> =
                (0..x.dim()).filter(|dim| x.shape()[*dim] == 1).map(|dim| dim as i64).collect();
            run!("squeeze.dims", &x, dims)
        }
        Some(given) => {
            let dims = axes(&given, x.dim())?;
            if let Some(dim) = dims.iter().find(|dim| x.shape()[**dim as usize] != 1) {
                return Err(Error::shape(format!(
                    "dimension {dim} has size {}, not 1",
                    x.shape()[*dim as usize]
                )));
            }
            run!("squeeze.dims", &x, dims)
        }
    }
}

pub(super) fn unsqueeze(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let given = call.given(1)?.ints("axes")?;
    let mut dims = axes(&given, x.dim() + given.len())?;
    dims.sort_unstable();
    dims.iter().try_fold(x, |x, dim| run!("unsqueeze", &x, *dim))
}

pub(super) fn transpose(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let dims = match call.ints("perm")? {
        Some(dims) => dims,
        None => (0..x.dim() as i64).rev().collect(),
    };
    run!("permute", &x, dims)
}

/// Channels as blocks of rows and columns.
pub(super) fn depth_to_space(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let block = block_size(call)?;
    let &[samples, channels, height, width] = x.shape() else {
        return Err(Error::shape("the input must have 4 dimensions"));
    };
    let less = channels / (block * block);
    let (split, order) = match call.text("mode", "DCR")?.as_str() {
        "DCR" => (vec![samples, block, block, less, height, width], vec![0i64, 3, 4, 1, 5, 2]),
        "CRD" => (vec![samples, less, block, block, height, width], vec![0i64, 1, 4, 2, 5, 3]),
        other => return Err(unsupported(format!("`mode` = {other:?}"))),
    };
    let moved = run!("permute", run!("reshape", &x, split)?, order)?;
    run!("reshape", &moved, vec![samples, less, height * block, width * block])
}

/// Blocks of rows and columns as channels.
pub(super) fn space_to_depth(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let block = block_size(call)?;
    let &[samples, channels, height, width] = x.shape() else {
        return Err(Error::shape("the input must have 4 dimensions"));
    };
    let (rows, columns) = (height / block, width / block);
    let split = run!("reshape", &x, vec![samples, channels, rows, block, columns, block])?;
    let moved = run!("permute", &split, vec![0i64, 3, 5, 1, 2, 4])?;
    run!("reshape", &moved, vec![samples, channels * block * block, rows, columns])
}

fn block_size(call: &Call<'_>) -> Result<i64> {
    match call.int("blocksize", 0)? {
        block @ 1..=65536 => Ok(block),
        block => Err(Error::value(format!("`blocksize` is {block}"))),
    }
}

/// Sizes before and after each dimension; negative ones cut off.
pub(super) fn pad(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let pads = call.given(1)?.ints("pads")?;
    let dims = match call.numbers(3, "axes")? {
        Some(given) => axes(&given, x.dim())?,
        None => (0..x.dim() as i64).collect(),
    };
    if pads.len() != 2 * dims.len() {
        let text = format!("`pads` has {} numbers, and {} dimensions need two each", pads.len(), dims.len());
        return Err(Error::argument(text));
    }
    let (before, after) = pads.split_at(dims.len());
    let sides =
        || dims.iter().zip(before.iter().zip(after)).map(|(dim, (before, after))| (*dim, *before, *after));
    match call.text("mode", "constant")?.as_str() {
        "constant" => {
            // The last dimension is first.
            let mut flat = vec![0i64; 2 * x.dim()];
            for (dim, before, after) in sides() {
                let at = 2 * (x.dim() - 1 - dim as usize);
                (flat[at], flat[at + 1]) = (before, after);
            }
            match call.datum(2) {
                Some(value) if x.dtype().is_float() => {
                    let value = value.floats("constant_value")?.first().copied().unwrap_or(0.0);
                    run!("constant_pad_nd", &x, flat, value)
                }
                Some(value) => {
                    let value = value.ints("constant_value")?.first().copied().unwrap_or(0);
                    run!("constant_pad_nd", &x, flat, value)
                }
                None => run!("constant_pad_nd", &x, flat),
            }
        }
        mode => {
            let padded = |x: Tensor, (dim, before, after): (i64, i64, i64)| match (before, after) {
                (0, 0) => Ok(x),
                _ => run!("index_select", &x, dim, border(mode, x.shape()[dim as usize], before, after)?),
            };
            sides().try_fold(x, padded)
        }
    }
}

/// The places of a padded dimension's elements among its own.
fn border(mode: &str, size: i64, before: i64, after: i64) -> Result<Tensor> {
    let places = run!("arange.start", -before, size + after)?;
    match mode {
        "edge" => run!("clamp", &places, 0i64, size - 1),
        "wrap" => run!("remainder.Scalar", &places, size),
        "reflect" => {
            let period = (2 * (size - 1)).max(1);
            let within = run!("remainder.Scalar", &places, period)?;
            let back = run!("add.Scalar", run!("neg", &within)?, period)?;
            run!("clamp", run!("minimum", &within, &back)?, 0i64, (size - 1).max(0))
        }
        other => Err(unsupported(format!("`mode` = {other:?}"))),
    }
}

/// Cut off or padded with zeros on both sides, to given sizes.
pub(super) fn center_crop_pad(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let sizes = call.given(1)?.ints("shape")?;
    let dims = match call.ints("axes")? {
        Some(given) => axes(&given, x.dim())?,
        None => (0..x.dim() as i64).collect(),
    };
    dims.iter().zip(sizes).try_fold(x, |x, (dim, size)| {
        let has = x.shape()[*dim as usize];
        if size <= has {
            return run!("narrow", &x, *dim, (has - size) / 2, size);
        }
        let before = (size - has) / 2;
        let mut flat = vec![0i64; 2 * x.dim()];
        let at = 2 * (x.dim() - 1 - *dim as usize);
        (flat[at], flat[at + 1]) = (before, size - has - before);
        run!("constant_pad_nd", &x, flat)
    })
}
