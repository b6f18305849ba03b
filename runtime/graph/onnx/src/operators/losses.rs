//! Losses of classes.
//!
//! In: calls. Out: results. Scores are `(samples, classes, …)`, targets classes.

use opsmith_runtime::Value;
use opsmith_runtime::error::Result;
use opsmith_runtime::tensor::Tensor;

use super::all;
use super::selection::places;
use crate::call::Call;
use crate::errors::unsupported;
use crate::libraries::run;
use crate::values::Datum;

/// The negative logarithms of probabilities at their targets, weighted and reduced.
fn picked(call: &Call<'_>, logarithms: &Tensor) -> Result<Tensor> {
    let target = places(&call.tensor(1)?)?;
    // A class that no target has, if none is left out.
    let ignored = call.int("ignore_index", i64::MIN)?;
    let reduction = match call.text("reduction", "mean")?.as_str() {
        "none" => 0i64,
        "mean" => 1,
        "sum" => 2,
        other => return Err(unsupported(format!("`reduction` = {other:?}"))),
    };
    let weight = call.maybe(2)?.map_or(Value::None, Value::Tensor);
    // Losses know one or two dimensions of space.
    if logarithms.dim() <= 2 || logarithms.dim() == 4 {
        return run!("nll_loss_nd", logarithms, &target, weight, reduction, ignored);
    }
    let (samples, classes) = (logarithms.shape()[0], logarithms.shape()[1]);
    let count = target.numel() / samples.max(1);
    let flat = run!("reshape", logarithms, vec![samples, classes, 1, count])?;
    let flat_target = run!("reshape", &target, vec![samples, 1, count])?;
    let loss = run!("nll_loss_nd", &flat, &flat_target, weight, reduction, ignored)?;
    if reduction == 0 { run!("reshape", &loss, target.shape().to_vec()) } else { Ok(loss) }
}

pub(super) fn negative_log_likelihood(call: &Call<'_>) -> Result<Tensor> {
    picked(call, &call.tensor(0)?)
}

pub(super) fn softmax_cross_entropy(call: &Call<'_>) -> Result<Vec<Datum>> {
    let logarithms = run!("log_softmax.int", call.tensor(0)?, 1i64)?;
    let loss = picked(call, &logarithms)?;
    Ok(all([loss, logarithms]))
}
