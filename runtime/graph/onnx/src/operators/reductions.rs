//! Reductions, running sums and distributions over dimensions.
//!
//! In: calls. Out: results. Axes are an input since version 18 of the operators, and an attribute of a few before.

use opsmith_core::DType;
use opsmith_runtime::error::Result;
use opsmith_runtime::tensor::Tensor;

use super::pointwise::to;
use crate::call::{Call, axes, axis};
use crate::errors::unsupported;
use crate::libraries::run;

/// The operand of a reduction, its dimensions, and whether they stay.
struct Reduction {
    x: Tensor,
    dims: Vec<i64>,
    keep: bool,
}

impl Reduction {
    /// `None` if nothing is reduced.
    fn of(call: &Call<'_>) -> Result<Option<Reduction>> {
        let x = call.tensor(0)?;
        let given = match call.numbers(1, "axes")? {
            Some(given) => given,
            None => call.ints("axes")?.unwrap_or_default(),
        };
        if given.is_empty() && call.flag("noop_with_empty_axes", false)? {
            return Ok(None);
        }
        let dims = match given.is_empty() {
            true => (0..x.dim() as i64).collect(),
            false => axes(&given, x.dim())?,
        };
        Ok(Some(Reduction { x, dims, keep: call.flag("keepdims", true)? }))
    }

    fn sum(&self, x: &Tensor) -> Result<Tensor> {
        match self.dims.is_empty() {
            true => Ok(x.clone()),
            false => run!("sum.dim_IntList", x, self.dims.clone(), self.keep; "dtype" => x.dtype()),
        }
    }
}

/// A reduction, preceded by a function of single elements and followed by one.
fn reduced(
    call: &Call<'_>,
    before: impl Fn(&Tensor) -> Result<Tensor>,
    reduce: impl Fn(&Reduction, &Tensor) -> Result<Tensor>,
    after: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    match Reduction::of(call)? {
        Some(reduction) => after(&reduce(&reduction, &before(&reduction.x)?)?),
        None => after(&before(&call.tensor(0)?)?),
    }
}

fn same(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn square(x: &Tensor) -> Result<Tensor> {
    run!("mul.Tensor", x, x)
}

fn in_float(name: &'static str) -> impl Fn(&Tensor) -> Result<Tensor> {
    move |x| {
        let float = if x.dtype().is_float() { x.clone() } else { to(x, DType::F64)? };
        to(&run!(name, &float)?, x.dtype())
    }
}

pub(super) fn sum(call: &Call<'_>) -> Result<Tensor> {
    reduced(call, same, Reduction::sum, same)
}

pub(super) fn sum_square(call: &Call<'_>) -> Result<Tensor> {
    reduced(call, square, Reduction::sum, same)
}

pub(super) fn l1(call: &Call<'_>) -> Result<Tensor> {
    reduced(call, |x| run!("abs", x), Reduction::sum, same)
}

pub(super) fn l2(call: &Call<'_>) -> Result<Tensor> {
    reduced(call, square, Reduction::sum, in_float("sqrt"))
}

pub(super) fn log_sum(call: &Call<'_>) -> Result<Tensor> {
    reduced(call, same, Reduction::sum, in_float("log"))
}

pub(super) fn log_sum_exp(call: &Call<'_>) -> Result<Tensor> {
    let reduce = |by: &Reduction, x: &Tensor| match by.dims.is_empty() {
        true => Ok(x.clone()),
        false => run!("logsumexp", x, by.dims.clone(), by.keep),
    };
    reduced(call, same, reduce, same)
}

pub(super) fn mean(call: &Call<'_>) -> Result<Tensor> {
    let reduce = |by: &Reduction, x: &Tensor| match (by.dims.is_empty(), x.dtype().is_float()) {
        (true, _) => Ok(x.clone()),
        (false, true) => run!("mean.dim", x, by.dims.clone(), by.keep),
        (false, false) => to(&run!("mean.dim", to(x, DType::F64)?, by.dims.clone(), by.keep)?, x.dtype()),
    };
    reduced(call, same, reduce, same)
}

pub(super) fn max(call: &Call<'_>) -> Result<Tensor> {
    extreme(call, "amax", f64::NEG_INFINITY)
}

pub(super) fn min(call: &Call<'_>) -> Result<Tensor> {
    extreme(call, "amin", f64::INFINITY)
}

fn extreme(call: &Call<'_>, name: &str, of_none: f64) -> Result<Tensor> {
    let reduce = |by: &Reduction, x: &Tensor| {
        if by.dims.is_empty() {
            return Ok(x.clone());
        }
        if x.dtype() == DType::Bool {
            let name = if of_none < 0.0 { "any.dims" } else { "all.dims" };
            return run!(name, x, by.dims.clone(), by.keep);
        }
        let empty = x.dtype().is_float() && by.dims.iter().any(|dim| x.shape()[*dim as usize] == 0);
        match empty {
            false => run!(name, x, by.dims.clone(), by.keep),
            true => run!("add.Scalar", by.sum(x)?, of_none),
        }
    };
    reduced(call, same, reduce, same)
}

pub(super) fn prod(call: &Call<'_>) -> Result<Tensor> {
    let reduce = |by: &Reduction, x: &Tensor| {
        let mut dims = by.dims.clone();
        dims.sort_unstable_by(|a, b| b.cmp(a));
        dims.iter()
            .try_fold(x.clone(), |x, dim| run!("prod.dim_int", &x, *dim, by.keep; "dtype" => x.dtype()))
    };
    reduced(call, same, reduce, same)
}

pub(super) fn arg_max(call: &Call<'_>) -> Result<Tensor> {
    place(call, "argmax")
}

pub(super) fn arg_min(call: &Call<'_>) -> Result<Tensor> {
    place(call, "argmin")
}

fn place(call: &Call<'_>, name: &str) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let dim = axis(call.int("axis", 0)?, x.dim())?;
    let keep = call.flag("keepdims", true)?;
    if !call.flag("select_last_index", false)? {
        return run!(name, &x, dim, keep);
    }
    let last = x.shape()[dim as usize] - 1;
    let from_last = run!(name, run!("flip", &x, vec![dim])?, dim, keep)?;
    run!("add.Scalar", run!("neg", &from_last)?, last)
}

pub(super) fn softmax(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    run!("softmax.int", &x, axis(call.int("axis", -1)?, x.dim())?)
}

pub(super) fn log_softmax(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    run!("log_softmax.int", &x, axis(call.int("axis", -1)?, x.dim())?)
}

/// 1 at the first largest element along a dimension, 0 elsewhere.
pub(super) fn hard_max(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let dim = axis(call.int("axis", -1)?, x.dim())?;
    let largest = run!("argmax", &x, dim, true)?;
    run!("scatter.value", run!("zeros_like", &x)?, dim, &largest, 1i64)
}

pub(super) fn cum_sum(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let Some(given) = call.number(1, "axis")? else {
        return Err(unsupported("a running sum without `axis`"));
    };
    let dim = axis(given, x.dim())?;
    let reverse = call.flag("reverse", false)?;
    let flipped = |x: &Tensor| if reverse { run!("flip", x, vec![dim]) } else { Ok(x.clone()) };
    let x = flipped(&x)?;
    let sums = run!("cumsum", &x, dim; "dtype" => x.dtype())?;
    let sums = if call.flag("exclusive", false)? { run!("sub.Tensor", &sums, &x)? } else { sums };
    flipped(&sums)
}
