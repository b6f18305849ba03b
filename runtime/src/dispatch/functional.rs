//! The functional form without recording: from inference to new outputs.
//!
//! In: an operator definition and arguments. Out: outputs. Input conversion is in `convert`, kernel execution in `run`.

use opsmith_core::DType;

use super::observer;
use super::run::{Call, run_kernel, run_uniform};
use crate::arg::Arg;
use crate::error::{Error, Result, ShapeText};
use crate::layout::{checked_numel, same_sizes};
use crate::op::{Inferred, Kernel, OpDef, OutSpec, Outputs, UniformCall};
use crate::tensor::{Tensor, replacements};

/// The functional form without recording.
pub(crate) fn functional(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    if let Some(view) = op.view {
        let base = args[0].tensor();
        let outs: Outputs =
            view(args)?.into_iter().map(|layout| base.with_layout(layout)).collect::<Result<_>>()?;
        if let Some(observer) = observer::observer() {
            observer.decided_by(op, args)?;
            observer.viewed(op, args, &outs)?;
        }
        return Ok(outs);
    }
    if let Some(out) = uniform(op, args) {
        return Ok(Outputs::from_buf([out?]));
    }
    let since = replacements();
    if let Some(observer) = observer::observer() {
        observer.decided_by(op, args)?;
        if let Some(outs) = observer.data_dependent(op, args) {
            return outs;
        }
    }
    let Some(inferred) = op.inferred(args) else { return compose(op, args) };
    let inferred = inferred?;
    if op.composite.is_some() && !op.has_kernel(inferred.device.backend, inferred.compute) {
        return compose(op, args).and_then(|outs| refuse_other_results(outs, &inferred));
    }
    let outs: Outputs = inferred.outs.iter().map(|spec| allocate(spec, &inferred)).collect::<Result<_>>()?;
    run_kernel(op, args, &inferred, &outs, false, since)?;
    Ok(outs)
}

/// The functional form without recording for operands of one form, which need no inference; `None` for other calls. A
/// separate function, since most calls are of this kind, and a single result needs no list.
#[inline(always)]
pub(crate) fn uniform(op: &'static OpDef, args: &[Arg<'_>]) -> Option<Result<Tensor>> {
    let since = replacements();
    let (kernel, dtype, like) = uniform_kernel(op, args)?;
    let out = match Tensor::uninitialized(like.shape(), dtype, like.device()) {
        Ok(out) => out,
        Err(error) => return Some(Err(error)),
    };
    let call = Call { op, args, outs: std::slice::from_ref(&out), shared: false, since };
    // SAFETY: operands of one form give the output that inference would give, and it is new.
    let result = unsafe { run_uniform(kernel, call, like) };
    Some(result.map(|()| out))
}

/// The kernel, the output's dtype and a tensor of the output's shape and device, where every tensor operand has one
/// shape, dtype and device, which makes inference unnecessary ([`UniformCall`]).
#[inline]
pub(super) fn uniform_kernel<'a>(op: &OpDef, args: &[Arg<'a>]) -> Option<(Kernel, DType, &'a Tensor)> {
    if op.uniform == UniformCall::No {
        return None;
    }
    let mut first: Option<&'a Tensor> = None;
    for arg in args {
        match (*arg, first) {
            (Arg::Tensor(tensor), None) => first = Some(tensor),
            (Arg::Tensor(tensor), Some(first)) => {
                let same = tensor.dtype() == first.dtype()
                    && same_sizes(tensor.shape(), first.shape())
                    && tensor.device() == first.device();
                if !same {
                    return None;
                }
            }
            (Arg::Scalar(scalar), Some(first)) if scalar.dtype().category() > first.dtype().category() => {
                return None;
            }
            (Arg::Scalar(_), None) => return None,
            _ => {}
        }
    }
    let first = first?;
    let dtype = match op.uniform {
        UniformCall::Fixed(dtype) => dtype,
        UniformCall::SameIfInexact if !first.dtype().is_differentiable() => return None,
        _ => first.dtype(),
    };
    let kernel = op.kernels.get(first.device().backend, first.dtype())?;
    Some((kernel, dtype, first))
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
