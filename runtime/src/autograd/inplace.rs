//! In-place and out forms of tracked tensors.
//!
//! An in-place call sets its target's edge to the call's node. If the target is a view, its base's edge moves too: to a
//! node that overwrites part of the base's former elements (`strided`). Other views of the base detect the change by
//! its generation and compute their edges anew on the next use.

use smallvec::smallvec;

use super::mode::no_grad;
use super::node::Edge;
use super::record::{Recording, refuse_stored};
use super::saved::tracked_at;
use super::strided::{Step, Strided};
use super::{any_tracked, edge_of, recording};
use crate::arg::{Arg, Value};
use crate::copy;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::op::{CompositeFn, OpDef};
use crate::tensor::Tensor;

/// The in-place form, recorded if an argument is tracked.
pub(crate) fn invoke_inplace_recorded(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    if !any_tracked(args) {
        return dispatch::inplace(op, args);
    }
    let target = args[0].tensor();
    refuse_stored(target)?;
    if !target.dtype().is_differentiable() {
        return no_grad(|| dispatch::inplace(op, args));
    }
    refuse_leaf(target)?;
    if target.is_unrecorded_view() {
        return Err(Error::autograd(
            "self is a view that was made while nothing was recorded, so its base would not notice a recorded change",
        )
        .with_help("take the view where operators are recorded, or change it under no_grad"));
    }
    let edge = match (op.grad, op.composite) {
        (Some(grad), _) => {
            let recording = Recording::start(op, grad, args, Some(target))?;
            no_grad(|| dispatch::inplace(op, args))?;
            // If no formula is needed, the written elements do not depend on a tracked tensor.
            recording.map(|recording| {
                let node = recording.into_node(std::slice::from_ref(target));
                Edge { node, output: 0 }
            })
        }
        (None, Some(composite)) => compose_inplace(op, composite, args)?,
        (None, None) => {
            no_grad(|| dispatch::inplace(op, args))?;
            None
        }
    };
    rewrite(target, edge)
}

/// The in-place form of a composition: the recorded results are copied into the target, which gets their edge.
fn compose_inplace(op: &'static OpDef, composite: CompositeFn, args: &[Arg<'_>]) -> Result<Option<Edge>> {
    let target = args[0].tensor();
    // Tensors that the composition saves from the target's memory must survive the write.
    let copies = args.iter().map(|arg| copy_shared(*arg, target)).collect::<Result<Vec<_>>>()?;
    let args: Vec<Arg<'_>> =
        args.iter().zip(&copies).map(|(arg, copy)| copy.as_ref().map_or(*arg, Value::as_arg)).collect();
    let result = composite(&args)?.swap_remove(0);
    dispatch::check_inplace(target, result.shape(), result.dtype())?;
    let result = if result.dtype() == target.dtype() {
        result
    } else {
        (super::adjust::roles_of(op)?.cast)(&result, target.dtype())?
    };
    copy::copy(target, &result)?;
    edge_of(&result)
}

/// The argument with copies, with the same edges, of the tensors that share the target's memory; `None` if none does.
fn copy_shared(arg: Arg<'_>, target: &Tensor) -> Result<Option<Value>> {
    let mut shared = false;
    arg.for_each_tensor(|tensor| shared |= tensor.shares_storage(target));
    if !shared {
        return Ok(None);
    }
    let copy = |tensor: &Tensor| -> Result<Tensor> {
        if !tensor.shares_storage(target) {
            return Ok(tensor.clone());
        }
        let copy = tensor.cast_untracked(tensor.dtype())?;
        Ok(tracked_at(copy, edge_of(tensor)?.as_ref()))
    };
    Ok(match arg {
        Arg::Tensor(tensor) => Some(Value::Tensor(copy(tensor)?)),
        Arg::Tensors(tensors) => Some(Value::Tensors(tensors.iter().map(copy).collect::<Result<_>>()?)),
        Arg::OptionalTensors(tensors) => Some(Value::OptionalTensors(
            tensors.iter().map(|tensor| tensor.as_ref().map(copy).transpose()).collect::<Result<_>>()?,
        )),
        _ => None,
    })
}

/// Sets the edge of a tensor, and of the base if it is a view, after its elements were overwritten.
fn rewrite(target: &Tensor, edge: Option<Edge>) -> Result<()> {
    let Some(base) = target.base() else {
        replace(target, edge, None);
        return Ok(());
    };
    let old = edge_of(base)?;
    if old.is_none() && edge.is_none() {
        return Ok(());
    }
    let step = Strided { step: Step::Overwrite, base: base.layout().clone(), view: target.layout().clone() };
    let node = step.into_node(smallvec![old, edge.clone()], base);
    let generation = replace(base, Some(Edge { node, output: 0 }), None);
    replace(target, edge, Some(generation));
    Ok(())
}

/// Replaces a tensor's edge; returns the edge's generation. A view gets the given generation; any other tensor begins
/// its next.
fn replace(tensor: &Tensor, edge: Option<Edge>, generation: Option<u64>) -> u64 {
    let tracked = edge.is_some();
    let mut meta = tensor.autograd();
    meta.generation = generation.unwrap_or_else(|| meta.generation + 1);
    let old = std::mem::replace(&mut meta.edge, edge);
    let generation = meta.generation;
    if meta.retains
        && let Some(Edge { node, output }) = &meta.edge
    {
        node.extras().retain(*output, tensor.downgrade());
    }
    drop(meta);
    // Dropped without the lock: the edge may own a whole graph.
    drop(old);
    tensor.set_tracked(tracked);
    tensor.set_changed();
    generation
}

/// Whether a view of a base that was changed in place requires a gradient: as before, unless its edge is out of date.
#[cold]
pub(crate) fn view_requires_grad(view: &Tensor, base: &Tensor) -> bool {
    let generation = base.autograd().generation;
    let meta = view.autograd();
    let out_of_date = meta.generation != generation && !(view.is_tracked_itself() && meta.is_leaf());
    if out_of_date { base.is_tracked_itself() } else { view.is_tracked_itself() }
}

/// Recomputes a view's edge from its base if the base was changed in place since the edge was computed.
pub(super) fn follow_base(view: &Tensor, base: &Tensor) -> Result<()> {
    let generation = base.autograd().generation;
    let meta = view.autograd();
    if meta.generation == generation {
        return Ok(());
    }
    if view.is_tracked_itself() && meta.is_leaf() {
        return Err(Error::autograd(
            "a leaf that requires a gradient is a view, and its base was changed in place",
        )
        .with_help("make the leaf of a copy, or change its base under no_grad"));
    }
    drop(meta);
    let edge = edge_of(base)?.map(|edge| {
        let (base, layout) = (base.layout().clone(), view.layout().clone());
        let node = Strided { step: Step::Take, base, view: layout }.into_node(smallvec![Some(edge)], view);
        Edge { node, output: 0 }
    });
    replace(view, edge, Some(generation));
    Ok(())
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

/// Returns an error for an out form with tracked tensors.
pub(crate) fn check_out(op: &OpDef, args: &[Arg<'_>], outs: &[&mut Tensor]) -> Result<()> {
    super::forward_mode::check_out(op, args, outs)?;
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
