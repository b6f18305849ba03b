//! In-place and out forms of tracked tensors.

use super::{any_tracked, recording};
use crate::arg::Arg;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::op::OpDef;
use crate::tensor::Tensor;

/// The in-place form, recorded if an argument is tracked.
pub(crate) fn invoke_inplace_recorded(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    if !any_tracked(args) {
        return dispatch::forward_inplace(op, args);
    }
    let target = args[0].tensor();
    refuse_leaf(target)?;
    Err(Error::not_implemented("in-place calls on tracked tensors are not recorded yet")
        .with_help("use the functional form"))
}

fn refuse_leaf(target: &Tensor) -> Result<()> {
    let help = "do it under no_grad (an optimizer step), or on a copy";
    if target.requires_grad() && target.is_leaf() {
        return Err(Error::autograd("self is a leaf that requires a gradient, so it cannot be changed in place while operators are recorded")
            .with_help(help));
    }
    if let Some(base) = target.base()
        && base.requires_grad()
        && base.is_leaf()
    {
        return Err(Error::autograd("self is a view of a leaf that requires a gradient, so it cannot be changed in place while operators are recorded")
            .with_help(help));
    }
    Ok(())
}

/// Refuses an out form whose tensors are tracked.
pub(crate) fn check_out(op: &OpDef, args: &[Arg<'_>], outs: &[&mut Tensor]) -> Result<()> {
    if !recording() {
        return Ok(());
    }
    let what = if outs.iter().any(|out| out.requires_grad()) {
        "out"
    } else if any_tracked(args) {
        "an input"
    } else {
        return Ok(());
    };
    Err(Error::autograd(format!("{what} is part of a graph, and the out form is not recorded"))
        .with_help(format!("use the functional form `{}`, or call the out form under no_grad", op.name)))
}
