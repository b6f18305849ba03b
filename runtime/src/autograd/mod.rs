//! Automatic differentiation: recording, saved tensors, the backward engine.
//!
//! In: operator definitions with their backward formulas. Out: gradients. An operator with tracked arguments runs
//! unrecorded first; then its outputs get an edge to a node that holds the tensors its formulas read (`record`).
//! Backward walks the nodes from new to old (`engine`).

mod adjust;
mod anomaly;
mod call;
mod capture;
mod checkpoint;
mod context;
mod custom;
mod engine;
mod forward_mode;
mod graph;
mod handle;
mod hooks;
mod inplace;
mod leaf;
mod mode;
mod moved;
mod node;
mod pinned;
mod queue;
mod record;
mod saved;
mod strided;
#[cfg(test)]
pub(crate) mod tests;

pub use anomaly::detect_anomaly;
pub use checkpoint::checkpoint;
pub use context::{GradContext, Gradient, TensorMeta, not_implemented};
pub use custom::{CustomContext, Saver, custom};
pub use forward_mode::{ForwardContext, hessian, hvp, jacobian, jvp, vjp};
pub use graph::GraphNode;
pub use handle::{Options, backward, grad};
pub use hooks::HookHandle;
pub use mode::{enable_grad, inference, is_enabled, no_grad, set_enabled};

pub(crate) use forward_mode::is_active as forward_is_active;
use inplace::invoke_inplace_recorded;
pub(crate) use inplace::{check_out, view_requires_grad};
pub(crate) use record::record_results;

use std::sync::Arc;

use crate::arg::Arg;
use crate::dispatch::{self, OperandRoom, Uniform};
use crate::error::Result;
use crate::op::{OpDef, Outputs};
use crate::shared::Shared;
use crate::tensor::Tensor;
use node::{Edge, Kind, Node};

/// The autograd metadata of a tensor.
#[derive(Default)]
pub struct AutogradMeta {
    /// The path of a tracked tensor's gradient: to the node that computed the tensor or, of a leaf, to the node that
    /// adds to `grad`.
    edge: Option<Edge>,
    /// The gradient accumulated by backward passes.
    grad: Option<Tensor>,
    /// Count of in-place rebases; for a view, the base's count when `edge` was computed.
    generation: u64,
    /// Whether a tensor that is not a leaf retains its gradient.
    retains: bool,
    /// The tensor's tangents, if it has been part of a derivative in forward mode.
    tangents: Option<Arc<forward_mode::TangentList>>,
}

impl AutogradMeta {
    fn is_leaf(&self) -> bool {
        self.edge.as_ref().is_none_or(|edge| matches!(edge.node.kind, Kind::Leaf(_)))
    }

    /// Whether the tensor's edge leads to this output of this node.
    fn is_at(&self, node: &Shared<Node>, output: u32) -> bool {
        self.edge.as_ref().is_some_and(|edge| Shared::ptr_eq(&edge.node, node) && edge.output == output)
    }
}

/// The functional form, with the tangents and the node that this thread's mode requires; errors name the call.
///
/// # Errors
/// Errors of inference, conversion, the kernel or a derivative's rule.
#[inline]
pub(crate) fn invoke(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let result = if forward_is_active() { invoke_with_tangents(op, args) } else { invoke_tracked(op, args) };
    result.map_err(|error| op.error_of_call(error, op.name, args))
}

/// The functional form of a call with uniform operands, or of a view that is not recorded, neither with tangents; `None` for
/// other calls. Errors do not name the call.
#[inline(always)]
pub(crate) fn invoke_plain(op: &'static OpDef, args: &[Arg<'_>]) -> Option<Result<Tensor>> {
    if forward_is_active() {
        return None;
    }
    if let Some(call) = Uniform::of(op, args, &mut OperandRoom::new()) {
        if must_record_one(call.operands()) {
            return record::invoke_uniform(op, args, &call);
        }
        return Some(call.functional());
    }
    if op.view.is_none() || must_record(args) {
        return None;
    }
    dispatch::view(op, args)
}

/// As [`invoke_plain`], of the in-place form, where nothing is recorded.
#[inline(always)]
pub(crate) fn invoke_plain_inplace(op: &'static OpDef, args: &[Arg<'_>]) -> Option<Result<()>> {
    if forward_is_active() {
        return None;
    }
    let mut room = OperandRoom::new();
    let call = Uniform::of(op, args, &mut room)?;
    if must_record_one(call.operands()) { None } else { call.inplace(args[0].tensor()) }
}

/// As [`invoke_plain`], of the out form.
#[inline(always)]
pub(crate) fn invoke_plain_out(op: &'static OpDef, args: &[Arg<'_>], out: &Tensor) -> Option<Result<()>> {
    if forward_is_active() {
        return None;
    }
    let mut room = OperandRoom::new();
    let call = Uniform::of(op, args, &mut room)?;
    if must_record_one(call.operands()) || must_record_one(&[out]) { None } else { call.out(out) }
}

/// The functional form where an argument may have a tangent.
#[cold]
fn invoke_with_tangents(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    match forward_mode::top_level(args) {
        Some(level) => forward_mode::invoke(op, args, level),
        None => invoke_tracked(op, args),
    }
}

/// The functional form where an argument may be part of a graph.
#[inline]
fn invoke_tracked(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    if must_record(args) { record::invoke_recorded(op, args) } else { dispatch::functional(op, args) }
}

/// The in-place form where an argument may be part of a graph or have a tangent.
pub(crate) fn invoke_inplace(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    if forward_mode::is_active()
        && let Some(level) = forward_mode::top_level(args)
    {
        return forward_mode::invoke_inplace(op, args, level);
    }
    if recording() { invoke_inplace_recorded(op, args) } else { dispatch::inplace(op, args) }
}

/// Whether recording is on in this thread.
#[inline]
pub(crate) fn recording() -> bool {
    mode::is_enabled()
}

/// Whether this call needs a node.
#[inline]
pub(crate) fn must_record(args: &[Arg<'_>]) -> bool {
    recording() && any_tracked(args)
}

/// As [`must_record`], of a call's tensors.
#[inline(always)]
fn must_record_one(tensors: &[&Tensor]) -> bool {
    recording() && tensors.iter().any(|tensor| tensor.requires_grad())
}

#[inline(always)]
fn any_tracked(args: &[Arg<'_>]) -> bool {
    let mut tracked = false;
    for arg in args {
        arg.for_each_tensor(|tensor| tracked |= tensor.requires_grad());
    }
    tracked
}

/// A tensor's edge; `None` if it is not part of a graph.
///
/// # Errors
/// If the tensor is a leaf and a view, and its base was changed in place.
#[inline]
fn edge_of(tensor: &Tensor) -> Result<Option<Edge>> {
    if !tensor.requires_grad() {
        return Ok(None);
    }
    if let Some(base) = tensor.base()
        && base.is_changed()
    {
        inplace::follow_base(tensor, base)?;
    }
    Ok(tensor.autograd().edge.clone())
}

/// Attaches the edge to a new tensor. If the handle is shared (a function returned its argument), the edge
/// goes to a fresh view instead.
#[inline]
fn attach(tensor: &mut Tensor, edge: Edge) {
    let generation = match tensor.base() {
        Some(base) if base.is_changed() => base.autograd().generation,
        _ => 0,
    };
    if let Some(meta) = tensor.track_unique() {
        meta.edge = Some(edge);
        meta.generation = generation;
        return;
    }
    *tensor = tensor.view_of_all();
    attach(tensor, edge);
}
