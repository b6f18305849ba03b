//! Forward mode: each call computes the tangents of its results from those of its arguments.
//!
//! A call with tangents computes its results without them first. Then the rule of the operator's definition
//! ([`Forward`]) computes the tangent; without such a rule, the transpose of the backward formulas does (`transpose`).
//! All steps are ordinary calls: they carry tangents of outer levels and are recorded, so the two modes nest in either
//! order.

mod context;
mod functions;
mod level;
mod rules;
mod tangent;
mod transpose;

use smallvec::SmallVec;

use super::node::{Edge, Kind, Node};
use super::saved::Slot;
use crate::arg::Arg;
use crate::error::{Error, Result};
use crate::op::{OpDef, Outputs};
use crate::shared::Shared;
use crate::tensor::Tensor;
use level::Hidden;
use rules::Inputs;

pub use context::ForwardContext;
pub use functions::{hessian, hvp, jacobian, jvp, vjp};
pub(crate) use level::{LevelId, TangentList, is_active, put};
pub(crate) use tangent::{adopt, share_tangents, top_level, with_tangents};
pub(super) use transpose::{custom, untracked};

/// The functional form of an operator with tangents at a level, which is the innermost.
pub(crate) fn invoke(op: &'static OpDef, args: &[Arg<'_>], level: LevelId) -> Result<Outputs> {
    let Some(grad) = op.grad else {
        return match op.composite {
            Some(composite) => composite(args),
            None if op.view.is_some() => rules::view(op, args, level),
            None => {
                let _hidden = Hidden::new(level);
                super::invoke(op, args)
            }
        };
    };
    if op.view.is_some() {
        if grad.formulas.is_empty() {
            // A view would have the tangent of its base.
            let _hidden = Hidden::new(level);
            return Ok(super::invoke(op, args)?.iter().map(Tensor::detach).collect());
        }
        return rules::view(op, args, level);
    }
    let inputs = Inputs::of(args, level)?;
    let _hidden = Hidden::new(level);
    let (outs, tangents) = rules::apply(op, grad, args, &inputs)?;
    let outs = outs.into_iter().map(settle).collect::<Result<Outputs>>()?;
    for (out, tangent) in outs.iter().zip(&tangents) {
        tangent::own_tangent(out, level, tangent.clone());
    }
    keep(op, &outs, level, &inputs, &tangents);
    Ok(outs)
}

/// An output of a composition as a tensor that can have a tangent of its own, even if the composition made it as a view
/// of an internal tensor.
fn settle(out: Tensor) -> Result<Tensor> {
    if out.base().is_some() || out.forward_base().is_none() {
        return Ok(out);
    }
    let mut own = untracked(&out)?;
    let edge = out.autograd().edge.clone();
    if let Some(edge) = edge {
        super::attach(&mut own, edge);
    }
    Ok(own)
}

/// The in-place form of an operator with tangents at a level, which is the innermost.
pub(crate) fn invoke_inplace(op: &'static OpDef, args: &[Arg<'_>], level: LevelId) -> Result<()> {
    let target = args[0].tensor();
    if target.is_unrecorded_view() && target.forward_base().is_none() {
        return Err(Error::autograd(
            "self is a view that was made before the derivative was asked for, without recording, so its base would not notice the tangent",
        )
        .with_help("take the view inside the function that is differentiated"));
    }
    let inputs = Inputs::of(args, level)?;
    // The tangent is that of the functional form: its inputs must not be overwritten before it is computed.
    let result = invoke(op, args, level)?.swap_remove(0);
    let tangent = if target.dtype().is_differentiable() { tangent::tangent(&result, level)? } else { None };
    drop(result);
    let hidden = Hidden::new(level);
    super::invoke_inplace(op, args)?;
    let tangent = tangent.map(|tangent| rules::fit(op, tangent, target)).transpose()?;
    keep(op, std::slice::from_ref(target), level, &inputs, std::slice::from_ref(&tangent));
    drop(hidden);
    let add = |a: &Tensor, b: &Tensor| (super::adjust::roles_of(op)?.accumulate)(a, b);
    tangent::set_tangent(target, level, tangent, add)
}

/// Returns an error for an out form with tangents, which would be lost.
pub(crate) fn check_out(op: &OpDef, args: &[Arg<'_>], outs: &[&mut Tensor]) -> Result<()> {
    if !is_active() {
        return Ok(());
    }
    let outs: SmallVec<[Arg<'_>; 2]> = outs.iter().map(|out| Arg::Tensor(out)).collect();
    if top_level(args).is_none() && top_level(&outs).is_none() {
        return Ok(());
    }
    Err(Error::autograd("a tensor has a tangent, and the out form does not compute with tangents")
        .with_help(format!("use the functional form `{}`", op.name)))
}

/// The node of the call that made the outputs, if the call was recorded.
fn recorded_as(op: &OpDef, outs: &[Tensor]) -> Option<Shared<Node>> {
    let edge = |out: &Tensor| -> Option<Edge> { out.autograd().edge.clone() };
    let Edge { node, .. } = outs.iter().find_map(edge)?;
    let is_call = matches!(&node.kind, Kind::Call(call) if std::ptr::eq(call.op, op));
    is_call.then_some(node)
}

/// Stores tangents with the saved tensors of the call's node, so that its backward has tangents too.
fn keep(op: &OpDef, outs: &[Tensor], level: LevelId, inputs: &Inputs, tangents: &[Option<Tensor>]) {
    let Some(node) = recorded_as(op, outs) else { return };
    let Kind::Call(call) = &node.kind else { return };
    if let Some(tangent) = inputs.tangents.iter().flatten().next() {
        call.saved.note_tangents(level, tangent);
    }
    call.saved.add_tangents(|slot, list| {
        let tangent = match slot {
            Slot::Input(position) => inputs.tangents.get(position as usize).cloned().flatten(),
            Slot::Output(position) => tangents.get(position as usize).cloned().flatten(),
            Slot::Other(_) => None,
        };
        if let Some(tangent) = tangent {
            level::put(list.get_or_insert_default(), level, Some(tangent));
        }
    });
}
