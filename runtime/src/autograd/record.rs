//! Recording a call: runs it unrecorded, then gives its outputs edges to a new node.

use smallvec::smallvec;

use super::call::Call;
use super::context::TensorMeta;
use super::mode::no_grad;
use super::node::{Edge, Edges, NewNode, Node};
use super::saved::{SavedTensor, Slot};
use super::strided::{Step, Strided};
use super::{anomaly, attach, edge_of};
use crate::arg::Arg;
use crate::device::Device;
use crate::dispatch::{self, Uniform};
use crate::error::{Error, Result};
use crate::op::{GradDef, GradientFormula, OpDef, Outputs};
use crate::shared::Shared;
use crate::tensor::Tensor;

/// The functional form, recorded.
pub(crate) fn invoke_recorded(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let Some(grad) = op.grad else {
        return match op.composite {
            // Even where a kernel exists: only the composition defines the derivative.
            Some(composite) => composite(args),
            None if op.view.is_some() => record_view(op, args),
            None => forward(op, args),
        };
    };
    let Some(recording) = Recording::start(op, grad, args, None)? else { return forward(op, args) };
    // Completed in the callee's return slot: moving it would cost more than the check.
    let mut result = forward(op, args);
    if let Ok(outs) = &mut result {
        recording.finish(outs)?;
    }
    result
}

/// As [`invoke_recorded`], of a call with uniform operands, one of them tracked; `None` if the derivative is that of the
/// operator's composition.
pub(super) fn invoke_uniform(
    op: &'static OpDef,
    args: &[Arg<'_>],
    call: &Uniform<'_>,
) -> Option<Result<Tensor>> {
    let grad = op.grad?;
    let recording = match Recording::start(op, grad, args, None) {
        Ok(recording) => recording,
        Err(error) => return Some(Err(error)),
    };
    let mut result = no_grad(|| call.functional());
    if let (Some(recording), Ok(out)) = (recording, &mut result)
        && let Err(error) = recording.finish(std::slice::from_mut(out))
    {
        return Some(Err(error));
    }
    Some(result)
}

/// Records a call whose results exist: gives `outs`, all results of the operator, edges to a node. `false` if no formula is
/// for the tracked arguments, as of a composition, whose derivative is that of its calls.
pub(crate) fn record_results(op: &'static OpDef, args: &[Arg<'_>], outs: &mut [Tensor]) -> Result<bool> {
    let Some(grad) = op.grad else { return Ok(false) };
    let Some(recording) = Recording::start(op, grad, args, None)? else { return Ok(false) };
    recording.finish(outs)?;
    Ok(true)
}

/// A view without a formula: its layout determines its derivative.
fn record_view(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let input = args[0].tensor();
    let edge = edge_of(input)?;
    let mut outs = dispatch::functional(op, args)?;
    for out in outs.iter_mut().filter(|_| edge.is_some()) {
        let (base, view) = (input.layout().clone(), out.layout().clone());
        let node = Strided { step: Step::Take, base, view }.into_node(smallvec![edge.clone()], out);
        attach(out, Edge { node, output: 0 });
    }
    Ok(outs)
}

/// The call itself. A view keeps the mode, which decides whether its base tracks it; the view's own computation is
/// never recorded.
fn forward(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    if op.view.is_some() {
        dispatch::functional(op, args)
    } else {
        no_grad(|| dispatch::functional(op, args))
    }
}

/// A call that is being recorded, before its outputs exist.
pub(super) struct Recording(NewNode);

impl Recording {
    /// Saves the arguments that backward will need; `None` if no formula is needed.
    ///
    /// Versions are taken here, before the kernel reads: a concurrent write then makes the saved tensor stale, which is
    /// an error later. Taken after the kernel, it would be a wrong gradient.
    ///
    /// `target` is the tensor that the call will write to: saved tensors that share its memory are copied first.
    pub fn start(
        op: &'static OpDef,
        grad: &GradDef,
        args: &[Arg<'_>],
        target: Option<&Tensor>,
    ) -> Result<Option<Recording>> {
        Recording::of_arguments(op, grad, args, target, tracked_arguments(args))
    }

    /// As [`Recording::start`], for the formulas of some arguments, a bit each.
    pub fn of_arguments(
        op: &'static OpDef,
        grad: &GradDef,
        args: &[Arg<'_>],
        target: Option<&Tensor>,
        wanted: u64,
    ) -> Result<Option<Recording>> {
        let device = device_of(args);
        let needed = |formula: &&GradientFormula| {
            formula.is_for(device) && formula.arguments.iter().any(|index| wanted & (1 << index) != 0)
        };
        let reads = |formula: &GradientFormula| {
            [formula.reads_arguments, formula.reads_outputs, formula.reads_attributes]
        };
        let all = grad.formulas.iter().filter(needed).map(reads);
        let Some([reads_arguments, reads_outputs, reads_attributes]) =
            all.reduce(|a, b| [a[0] | b[0], a[1] | b[1], a[2] | b[2]])
        else {
            return Ok(None);
        };
        let mut node = NewNode::of_call(op);
        let (edges, _, call) = node.parts();
        call.reads_outputs = reads_outputs;
        for (index, arg) in args.iter().enumerate() {
            call.starts.push(call.inputs.len() as u32);
            let save = reads_arguments & (1 << index) != 0;
            let mut push =
                |tensor| add_input(edges, call, tensor, if save { Saving::Of(target) } else { Saving::None });
            match *arg {
                Arg::Tensor(tensor) => push(Some(tensor))?,
                Arg::Tensors(tensors) => tensors.iter().try_for_each(|tensor| push(Some(tensor)))?,
                Arg::OptionalTensors(tensors) => {
                    tensors.iter().try_for_each(|tensor| push(tensor.as_ref()))?
                }
                // An absent optional tensor; no formula reads any other argument of this kind.
                Arg::None => push(None)?,
                _ => {}
            }
            if reads_attributes & (1 << index) != 0 {
                call.attributes.push((index as u8, arg.to_value()));
            }
        }
        call.starts.push(call.inputs.len() as u32);
        Ok(Some(Recording(node)))
    }

    /// Gives the outputs edges to the node.
    ///
    /// # Errors
    /// If an output has a dtype that only stores, so that its gradient would be lost.
    pub fn finish(mut self, outs: &mut [Tensor]) -> Result<()> {
        let op = self.0.parts().2.op;
        outs.iter().try_for_each(refuse_stored)?;
        let differentiable = |index: usize, out: &Tensor| op.is_differentiable(index, out.dtype());
        let Some(last) = (0..outs.len()).rev().find(|&index| differentiable(index, &outs[index])) else {
            return Ok(());
        };
        let node = self.into_node(outs);
        for (index, out) in outs[..last].iter_mut().enumerate() {
            if differentiable(index, out) {
                attach(out, Edge { node: node.clone(), output: index as u32 });
            }
        }
        attach(&mut outs[last], Edge { node, output: last as u32 });
        Ok(())
    }

    /// The node of the call, given its outputs.
    pub fn into_node(mut self, outs: &[Tensor]) -> Shared<Node> {
        let (_, metas, call) = self.0.parts();
        for (index, out) in outs.iter().enumerate() {
            TensorMeta::push_of(metas, out);
            if call.reads_outputs & (1 << call.op.result_of(index)) != 0 {
                call.saved.keep(Slot::Output(index as u32), out);
            }
        }
        let node = self.0.share();
        if anomaly::detecting() {
            anomaly::remember(&node, outs);
        }
        node
    }
}

/// Whether an input is saved, and the tensor that the call writes to.
#[derive(Clone, Copy)]
enum Saving<'a> {
    None,
    Of(Option<&'a Tensor>),
}

/// Adds a tensor input of a call, or an absent one.
#[inline(always)]
fn add_input(edges: &mut Edges, call: &mut Call, tensor: Option<&Tensor>, saving: Saving<'_>) -> Result<()> {
    let position = call.inputs.len() as u32;
    let Some(tensor) = tensor else {
        call.absent.push(position);
        call.inputs.push(TensorMeta::absent());
        edges.push(None);
        return Ok(());
    };
    edges.push(edge_of(tensor)?);
    TensorMeta::push_of(&mut call.inputs, tensor);
    let Saving::Of(target) = saving else { return Ok(()) };
    // A copy of a tensor that the call is about to overwrite.
    match target.is_some_and(|target| target.shares_storage(tensor)) {
        true => call.saved.push(SavedTensor::copied(Slot::Input(position), tensor)?),
        false => call.saved.keep(Slot::Input(position), tensor),
    }
    Ok(())
}

/// The device of the first tensor, which is the call's device.
#[inline]
fn device_of(args: &[Arg<'_>]) -> Device {
    let mut device = None;
    for arg in args {
        arg.for_each_tensor(|tensor| device = device.or(Some(tensor.device())));
        if device.is_some() {
            break;
        }
    }
    device.unwrap_or(Device::CPU)
}

/// The arguments with a tracked tensor, a bit each.
#[inline]
fn tracked_arguments(args: &[Arg<'_>]) -> u64 {
    let mut tracked = 0;
    for (index, arg) in args.iter().enumerate() {
        arg.for_each_tensor(|tensor| tracked |= u64::from(tensor.requires_grad()) << index);
    }
    tracked
}

/// Rejects a result whose dtype only stores: nothing adds gradients of it, and one that is cut without a word would be wrong.
pub(super) fn refuse_stored(result: &Tensor) -> Result<()> {
    if !result.dtype().is_stored() {
        return Ok(());
    }
    let text = format!("the result of dtype {} would lose the gradient of a tracked tensor", result.dtype());
    Err(Error::autograd(text).with_help("convert its detach(), or run it under no_grad"))
}
