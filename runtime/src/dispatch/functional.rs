//! The functional form without recording: from inference to new outputs.
//!
//! In: an operator definition and arguments. Out: outputs. Input conversion is in `convert`, kernel execution in `run`.

use super::observer;
use super::run::run_kernel;
use super::uniform::{OperandRoom, Uniform};
use crate::arg::Arg;
use crate::error::{Error, Result, ShapeText};
use crate::layout::{checked_numel, same_sizes};
use crate::op::{Inferred, OpDef, OutSpec, Outputs, ViewFn};
use crate::tensor::{Tensor, replacements};

/// The functional form without recording.
pub(crate) fn functional(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    if let Some(view) = op.view {
        return viewed(op, view, args);
    }
    if let Some(call) = Uniform::of(op, args, &mut OperandRoom::new()) {
        return Ok(Outputs::from_buf([call.functional()?]));
    }
    let since = replacements();
    if let Some(observer) = observer::observer() {
        observer.decided_by(op, args)?;
        if let Some(outs) = observer.data_dependent(op, args) {
            return outs;
        }
    }
    // In place: bytes just written would be moved before they are there.
    let inferred = op.inferred(args);
    let inferred = match inferred {
        Some(Ok(ref inferred)) => inferred,
        Some(Err(error)) => return Err(error),
        None => return compose(op, args),
    };
    if op.composite.is_some() && !op.has_kernel(inferred.device.backend, inferred.compute) {
        return compose(op, args).and_then(|outs| refuse_other_results(outs, inferred));
    }
    let mut outs = Outputs::new();
    for spec in &inferred.outs {
        outs.push(allocate(spec, inferred)?);
    }
    run_kernel(op, args, inferred, &outs, false, since)?;
    Ok(outs)
}

/// The views of an operator that only computes layouts.
fn viewed(op: &'static OpDef, view: ViewFn, args: &[Arg<'_>]) -> Result<Outputs> {
    let base = args[0].tensor();
    let outs: Outputs = match view {
        ViewFn::One(layout) => Outputs::from_buf([base.with_layout(&layout(args)?)?]),
        ViewFn::List(layouts) => {
            layouts(args)?.iter().map(|layout| base.with_layout(layout)).collect::<Result<_>>()?
        }
    };
    if let Some(observer) = observer::observer() {
        observer.decided_by(op, args)?;
        observer.viewed(op, args, &outs)?;
    }
    Ok(outs)
}

/// The only view of an operator that computes a layout, without a list; `None` for others, and while this thread traces.
#[inline(always)]
pub(crate) fn view(op: &'static OpDef, args: &[Arg<'_>]) -> Option<Result<Tensor>> {
    let Some(ViewFn::One(layout)) = op.view else { return None };
    if observer::observer().is_some() {
        return None;
    }
    // The layout stays where it was written: a copy of bytes just written waits for the memory.
    Some(match layout(args) {
        Ok(ref layout) => args[0].tensor().with_layout(layout),
        Err(error) => Err(error),
    })
}

fn compose(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    match op.composite {
        Some(composite) => composite(args),
        None => Err(Error::not_implemented("the operator has neither a kernel nor a composition")),
    }
}

/// Rejects results of a composition that are not those of the entry's rules, by which graphs and the callers of a later
/// kernel go.
fn refuse_other_results(outs: Outputs, inferred: &Inferred) -> Result<Outputs> {
    let other = |(out, spec): &(&Tensor, &OutSpec)| {
        !same_sizes(out.shape(), &spec.sizes) || out.dtype() != spec.dtype
    };
    match outs.iter().zip(&inferred.outs).find(other) {
        None => Ok(outs),
        Some((out, spec)) => Err(Error::shape(format!(
            "the operator's composition gives {} of shape {}, and its rules {} of shape {}",
            out.dtype(),
            ShapeText(out.shape()),
            spec.dtype,
            ShapeText(&spec.sizes)
        ))
        .with_help("the arguments do not fit together; the entry should have a `check` that says so")),
    }
}

#[inline]
pub(super) fn allocate(spec: &OutSpec, inferred: &Inferred) -> Result<Tensor> {
    // Shapes from a spec's expression have passed no rule that checks the number of elements.
    checked_numel(&spec.sizes)?;
    Tensor::uninitialized(&spec.sizes, spec.dtype, inferred.device)
}
