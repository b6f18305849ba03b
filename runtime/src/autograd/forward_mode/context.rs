//! The input of a forward formula: arguments, results and tangents.

use super::super::adjust::roles_of;
use super::super::node::Edge;
use super::super::saved::tracked_at;
use super::rules::Inputs;
use super::tangent;
use crate::arg::Arg;
use crate::error::Result;
use crate::op::OpDef;
use crate::tensor::Tensor;

/// A call, its results, and the tangents of its arguments.
pub struct ForwardContext<'a> {
    op: &'static OpDef,
    args: &'a [Arg<'a>],
    outs: &'a [Tensor],
    inputs: &'a Inputs,
}

impl<'a> ForwardContext<'a> {
    pub(super) fn new(
        op: &'static OpDef,
        args: &'a [Arg<'a>],
        outs: &'a [Tensor],
        inputs: &'a Inputs,
    ) -> ForwardContext<'a> {
        ForwardContext { op, args, outs, inputs }
    }

    /// The operator that was called.
    pub(crate) fn op(&self) -> &'static OpDef {
        self.op
    }

    /// The arguments of the call.
    pub fn args(&self) -> &'a [Arg<'a>] {
        self.args
    }

    /// A result of the call.
    ///
    /// # Errors
    /// If the tangent is itself part of a derivative, and the result is declared to have none.
    pub fn result(&self, output: usize) -> Result<Tensor> {
        let out = &self.outs[output];
        if !self.op.is_unfollowed(output, out.dtype()) {
            return Ok(out.clone());
        }
        let has_outer = |tensor: &Tensor| !tangent::levels(tensor).is_empty();
        if self.inputs.tensors.iter().flatten().any(has_outer) {
            return Err(self.op.unfollowed(output));
        }
        // A gradient that flows back to the result is an error at that node.
        let edge = super::recorded_as(self.op, self.outs)
            .filter(|_| super::super::recording())
            .map(|node| Edge { node, output: output as u32 });
        Ok(tracked_at(out.detach(), edge.as_ref()))
    }

    /// Whether one of these arguments has a tangent.
    pub fn any(&self, arguments: &[usize]) -> bool {
        arguments.iter().any(|&argument| self.inputs.any(argument))
    }

    /// The tangent of an argument; zeros if it has none.
    ///
    /// # Errors
    /// If there is no memory for zeros, or the argument is absent.
    pub fn tangent(&self, argument: usize) -> Result<Tensor> {
        self.inputs.tangent_or_zeros(self.inputs.positions(argument).start)
    }

    /// The tangents of a list; zeros for the tensors that have none.
    ///
    /// # Errors
    /// As [`ForwardContext::tangent`].
    pub fn tangents(&self, argument: usize) -> Result<Vec<Tensor>> {
        self.inputs.positions(argument).map(|position| self.inputs.tangent_or_zeros(position)).collect()
    }

    /// Adds a part to a tangent.
    ///
    /// # Errors
    /// If the two cannot be added.
    pub fn add(&self, total: &mut Option<Tensor>, part: Tensor) -> Result<()> {
        *total = Some(match total.take() {
            Some(total) => (roles_of(self.op)?.accumulate)(&total, &part)?,
            None => part,
        });
        Ok(())
    }
}
