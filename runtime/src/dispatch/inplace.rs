//! The in-place form without recording: writes the result into the first argument.
//!
//! In: an operator definition and arguments. Out: the first argument, changed, or an error before anything was written.
//! Requirements of the argument are in `targets`.

use super::functional::{functional, uniform_kernel};
use super::run::{Call, run_kernel, run_uniform};
use super::targets::{
    check_inplace, refuse_overlapping_target, refuse_partial_overlap, shares, shares_elsewhere,
};
use crate::arg::Arg;
use crate::copy;
use crate::error::Result;
use crate::op::OpDef;
use crate::tensor::replacements;

/// The in-place form without recording.
pub(crate) fn inplace(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    let since = replacements();
    let target = args[0].tensor();
    if op.forms.elementwise
        && let Some((kernel, dtype, like)) = uniform_kernel(op, args)
        && dtype == target.dtype()
        && target.is_contiguous()
        && !shares_elsewhere(args, target)
    {
        let call = Call { op, args, outs: std::slice::from_ref(target), shared: true, since };
        // SAFETY: operands of one form give the target that inference would give; arguments that share its memory have
        // the same elements.
        return unsafe { run_uniform(kernel, call, like) };
    }
    refuse_overlapping_target(target, "self")?;
    let updates = op.forms.updates && !shares(&args[1..], target);
    let Some(infer) = op.infer.filter(|_| op.forms.elementwise || updates) else {
        // The kernel may read an input after writing the output, so the output gets memory of its own.
        let results = functional(op, args)?;
        check_inplace(target, results[0].shape(), results[0].dtype())?;
        copy::copy(target, &results[0])?;
        return Ok(());
    };
    let inferred = infer(args)?;
    let spec = &inferred.outs[0];
    check_inplace(target, &spec.sizes, spec.dtype)?;
    refuse_partial_overlap(op, args, target)?;
    if spec.dtype == target.dtype()
        && (op.composite.is_none() || op.has_kernel(inferred.device.backend, inferred.compute))
    {
        return run_kernel(op, args, &inferred, std::slice::from_ref(target), true, since);
    }
    let results = functional(op, args)?;
    copy::copy(target, &results[0])
}
