//! Automatic differentiation: recording, saved tensors, the backward engine.
//!
//! In: operator definitions with their backward formulas. Out: gradients. An operator whose
//! arguments are tracked runs unrecorded first; then a node with what its formulas read is put
//! behind its outputs.

mod context;
mod mode;

pub use context::{GradContext, Gradient};
pub use mode::{is_enabled, no_grad, set_enabled};

use crate::arg::Arg;
use crate::dispatch;
use crate::error::Result;
use crate::op::{OpDef, Outputs};
use crate::tensor::Tensor;

/// What a tensor knows about the graph it is part of.
#[derive(Default)]
pub struct AutogradMeta {}

/// Whether operators record themselves in this thread now.
#[inline]
pub(crate) fn recording() -> bool {
    mode::is_enabled()
}

/// Whether this call has to be recorded.
#[inline]
pub(crate) fn must_record(op: &OpDef, args: &[Arg<'_>]) -> bool {
    let mut tracked = false;
    for arg in args {
        arg.for_each_tensor(|tensor| tracked |= tensor.requires_grad());
    }
    tracked && recording() && (op.grad.is_some() || op.view.is_some() || op.composite.is_none())
}

/// The functional form, recorded.
pub(crate) fn invoke_recorded(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    dispatch::forward(op, args)
}

/// The in-place form, recorded if an argument is tracked.
pub(crate) fn invoke_inplace_recorded(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    dispatch::forward_inplace(op, args)
}

/// Refuses an out form whose tensors are tracked.
pub(crate) fn check_out(_args: &[Arg<'_>], _outs: &[&mut Tensor]) -> Result<()> {
    Ok(())
}
