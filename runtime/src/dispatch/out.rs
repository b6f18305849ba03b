//! The out form without recording: writes the results into given tensors.
//!
//! In: an operator definition, arguments and tensors. Out: the tensors, changed or replaced, or an error before the
//! first write. Requirements of the tensors are in `targets`.

use smallvec::SmallVec;

use super::functional::{allocate, functional};
use super::observer;
use super::run::run_kernel;
use super::targets::{check_out, refuse_overlap_with_inputs};
use super::uniform::{OperandRoom, Uniform};
use crate::arg::Arg;
use crate::copy;
use crate::error::{Error, Result};
use crate::op::{Inferred, OpDef, OutSpec, Outputs};
use crate::tensor::{Tensor, replacements};

/// The out form without recording.
pub(crate) fn out(op: &'static OpDef, args: &[Arg<'_>], outs: &mut [&mut Tensor]) -> Result<()> {
    let since = replacements();
    if let [out] = &mut *outs
        && let Some(result) = Uniform::of(op, args, &mut OperandRoom::new()).and_then(|call| call.out(out))
    {
        return result;
    }
    if let Some(observer) = observer::observer() {
        observer.decided_by(op, args)?;
    }
    let inferred = match op.inferred(args) {
        Some(inferred) => inferred?,
        None => return copy_out(op, functional(op, args)?, outs),
    };
    let visible = inferred.outs.len() - op.hidden;
    if outs.len() != visible {
        return Err(Error::argument(format!(
            "the operator has {visible} outputs, {} tensors were given for them",
            outs.len()
        )));
    }
    for (index, spec) in inferred.outs[..visible].iter().enumerate() {
        check_out(op, index, spec, &inferred, outs[index])?;
        refuse_overlap_with_inputs(op, args, outs[index])?;
        if outs[..index].iter().any(|other| other.overlaps(outs[index])) {
            return Err(
                Error::aliasing("two outputs share memory").with_help("give each output its own tensor")
            );
        }
    }
    let direct = (op.composite.is_none() || op.has_kernel(inferred.device.backend, inferred.compute))
        && outs
            .iter()
            .zip(&inferred.outs)
            .all(|(out, spec)| out.dtype() == spec.dtype && out.shape() == &spec.sizes[..]);
    if direct {
        let mut targets: Outputs = outs.iter().map(|out| (**out).clone()).collect();
        for spec in &inferred.outs[visible..] {
            targets.push(allocate(spec, &inferred)?);
        }
        return run_kernel(op, args, &inferred, &targets, true, since);
    }
    copy_out(op, functional(op, args)?, outs)
}

fn copy_out(op: &OpDef, results: Outputs, outs: &mut [&mut Tensor]) -> Result<()> {
    // All targets are checked before the first write, so that a rejected call changes nothing.
    for (index, result) in results.iter().take(outs.len()).enumerate() {
        let spec = OutSpec { sizes: result.shape().into(), dtype: result.dtype() };
        let inferred = Inferred { outs: SmallVec::new(), compute: result.dtype(), device: result.device() };
        check_out(op, index, &spec, &inferred, outs[index])?;
    }
    for (result, out) in results.iter().zip(outs) {
        if out.shape() == result.shape() {
            copy::copy(out, result)?;
            continue;
        }
        // The replacement is written before the caller can see it.
        let replacement = Tensor::uninitialized(result.shape(), out.dtype(), out.device())?;
        copy::copy(&replacement, result)?;
        **out = replacement;
    }
    Ok(())
}
