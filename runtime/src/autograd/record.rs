//! Recording a call: running it unrecorded and putting a node behind its outputs.

use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use super::call::Call;
use super::context::TensorMeta;
use super::mode::no_grad;
use super::node::{Edge, Edges, Kind, Node, OutputMetas};
use super::saved::{SavedTensor, SavedTensors, Slot};
use super::{attach, edge_of};
use crate::arg::Arg;
use crate::dispatch;
use crate::error::Result;
use crate::op::{Formula, GradDef, OpDef, Outputs};
use crate::tensor::Tensor;

/// The functional form, recorded.
pub(crate) fn invoke_recorded(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let Some(grad) = op.grad else {
        return match op.composite {
            // Even where a kernel exists: only the composition says how gradients flow.
            Some(composite) => composite(args),
            None => forward(op, args),
        };
    };
    let Some(recording) = Recording::start(op, grad, args)? else { return forward(op, args) };
    let outs = forward(op, args)?;
    recording.finish(outs)
}

/// The call itself. A view keeps the mode, which decides whether its base knows of it; it computes
/// nothing that could be recorded.
fn forward(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    if op.view.is_some() { dispatch::forward(op, args) } else { no_grad(|| dispatch::forward(op, args)) }
}

/// A call that is being recorded, before its outputs exist.
pub(super) struct Recording {
    call: Call,
    edges: Edges,
    saved: SavedTensors,
    reads_outputs: u64,
}

impl Recording {
    /// Notes what backward will need of the arguments; `None` if no formula is needed.
    ///
    /// Versions are taken here, before the kernel reads: a write in between makes the saved tensor
    /// stale, which is an error later, where the other order would give a wrong gradient.
    pub fn start(op: &'static OpDef, grad: &GradDef, args: &[Arg<'_>]) -> Result<Option<Recording>> {
        let mut call = Call {
            op,
            starts: SmallVec::new(),
            inputs: SmallVec::new(),
            absent: SmallVec::new(),
            attributes: SmallVec::new(),
            saved: Mutex::default(),
        };
        let mut edges = Edges::new();
        let mut tracked = 0u64;
        for (index, arg) in args.iter().enumerate() {
            call.starts.push(call.inputs.len() as u32);
            let mut push = |tensor: Option<&Tensor>| -> Result<()> {
                let Some(tensor) = tensor else {
                    call.absent.push(call.inputs.len() as u32);
                    call.inputs.push(TensorMeta::absent());
                    edges.push(None);
                    return Ok(());
                };
                let edge = edge_of(tensor)?;
                tracked |= u64::from(edge.is_some()) << index;
                call.inputs.push(TensorMeta::of(tensor));
                edges.push(edge);
                Ok(())
            };
            match *arg {
                Arg::Tensor(tensor) => push(Some(tensor))?,
                Arg::Tensors(tensors) => tensors.iter().try_for_each(|tensor| push(Some(tensor)))?,
                Arg::OptionalTensors(tensors) => {
                    tensors.iter().try_for_each(|tensor| push(tensor.as_ref()))?
                }
                // An optional tensor that is absent; any other argument has no formula to ask for it.
                Arg::None => push(None)?,
                _ => {}
            }
        }
        call.starts.push(call.inputs.len() as u32);

        let needed = |formula: &&Formula| formula.arguments.iter().any(|index| tracked & (1 << index) != 0);
        let (mut reads_arguments, mut reads_outputs, mut reads_attributes) = (0, 0, 0);
        let mut any = false;
        for formula in grad.formulas.iter().filter(needed) {
            any = true;
            reads_arguments |= formula.reads_arguments;
            reads_outputs |= formula.reads_outputs;
            reads_attributes |= formula.reads_attributes;
        }
        if !any {
            return Ok(None);
        }
        let mut saved = SavedTensors::default();
        for_each_bit(reads_attributes, |index| call.attributes.push((index as u8, args[index].to_value())));
        for_each_bit(reads_arguments, |index| {
            let mut position = call.starts[index];
            let mut save = |tensor: Option<&Tensor>| {
                if let Some(tensor) = tensor {
                    saved.push(SavedTensor::new(Slot::Input(position), tensor));
                }
                position += 1;
            };
            match args[index] {
                Arg::Tensor(tensor) => save(Some(tensor)),
                Arg::Tensors(tensors) => tensors.iter().for_each(|tensor| save(Some(tensor))),
                Arg::OptionalTensors(tensors) => tensors.iter().for_each(|tensor| save(tensor.as_ref())),
                _ => {}
            }
        });
        Ok(Some(Recording { call, edges, saved, reads_outputs }))
    }

    /// Puts the node behind the outputs.
    pub fn finish(self, mut outs: Outputs) -> Result<Outputs> {
        let op = self.call.op;
        if !outs.iter().enumerate().any(|(index, out)| op.is_differentiable(index, out.dtype())) {
            return Ok(outs);
        }
        for out in &mut outs {
            // A composition may return an argument as it is. That tensor's place in the graph is
            // not this call's to change.
            if !out.is_unique() {
                *out = out.detach();
            }
        }
        let node = self.into_node(&outs);
        for (index, out) in outs.iter_mut().enumerate() {
            if op.is_differentiable(index, out.dtype()) {
                attach(out, Edge { node: node.clone(), output: index as u32 });
            }
        }
        Ok(outs)
    }

    /// The node of the call, given its outputs.
    pub fn into_node(mut self, outs: &[Tensor]) -> Arc<Node> {
        let op = self.call.op;
        let mut metas = OutputMetas::new();
        for (index, out) in outs.iter().enumerate() {
            metas.push(TensorMeta::of(out));
            if self.reads_outputs & (1 << op.result_of(index)) != 0 {
                self.saved.push(SavedTensor::new(Slot::Output(index as u32), out));
            }
        }
        self.call.saved = Mutex::new(self.saved);
        Node::new(self.edges, metas, Kind::Call(self.call))
    }
}

#[inline]
fn for_each_bit(mut bits: u64, mut visit: impl FnMut(usize)) {
    while bits != 0 {
        visit(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
