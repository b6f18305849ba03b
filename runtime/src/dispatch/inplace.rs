//! The in-place form without recording: writes the result into the first argument.
//!
//! In: an operator definition and arguments. Out: the first argument, changed, or an error before anything was written.
//! Requirements of the argument are in `targets`.

use super::functional::functional;
use super::run::run_kernel;
use super::targets::{check_inplace, refuse_overlapping_target, refuse_partial_overlap, shares};
use super::uniform::{OperandRoom, Uniform};
use crate::arg::Arg;
use crate::copy;
use crate::error::Result;
use crate::op::OpDef;
use crate::tensor::replacements;

/// The in-place form without recording.
pub(crate) fn inplace(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    let since = replacements();
    let target = args[0].tensor();
    if let Some(result) = Uniform::of(op, args, &mut OperandRoom::new()).and_then(|call| call.inplace(target))
    {
        return result;
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
