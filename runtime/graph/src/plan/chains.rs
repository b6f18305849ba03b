//! Chains: consecutive element-wise calls on a device that become one kernel.
//!
//! In: a graph at known sizes. Out: groups of calls of one shape whose kernels are loops over expressions, with the loop of each and
//! the places of its inputs: memory, or the result of an earlier loop of the group. A result that nothing outside the group reads
//! exists in registers alone.
//!
//! A buffer that a chain writes is accessed at one place alone (`GrowingChain`). Must not know tiles.

use opsmith_core::DType;
use opsmith_runtime::device::Device;
use opsmith_runtime::internals::{
    ChainElements, ChainLink, ChainWrite, ElementLoop, GrowingChain, MAX_CHAIN_DIMS, OperatorInternals as _,
    TensorInternals as _, element_loop,
};
use opsmith_runtime::layout::{Dims, Layout, broadcasts};
use opsmith_runtime::op::{KernelCall, OpDef};
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use super::bind::{Bound, argument};
use super::fusion::Group;
use crate::ir::{Argument, BufferKind, Graph, Node, NodeKind, TensorId};

/// The loops of a group, and their operands in memory.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    pub links: Vec<ChainLink>,
    /// The loop of each result that has a place in memory, and its tensor.
    pub stored: Vec<(usize, TensorId)>,
    /// The tensors that are read.
    pub reads: Vec<TensorId>,
    pub device: Device,
}

/// The groups of calls on devices, in the order of their nodes. `ranges` has the first and last node that uses each buffer.
pub(super) fn groups(graph: &Graph, bound: &Bound, ranges: &[Option<(usize, usize)>]) -> Vec<Group> {
    let finder = Finder { graph, bound, ranges };
    let (mut groups, mut open): (Vec<Group>, Option<Open>) = (Vec::new(), None);
    for (number, node) in graph.nodes.iter().enumerate() {
        if matches!(node.kind, NodeKind::View { .. }) {
            continue;
        }
        let call = finder.call(node);
        if let (Some(chain), Some(call)) = (&mut open, &call)
            && finder.add(chain, number, call)
        {
            continue;
        }
        groups.extend(open.take().and_then(|chain| finder.close(chain)));
        open = call.and_then(|call| {
            let mut chain = Open::at(number, &call);
            finder.add(&mut chain, number, &call).then_some(chain)
        });
    }
    groups.extend(open.and_then(|chain| finder.close(chain)));
    groups
}

/// A call that may be in a chain.
struct Call {
    name: &'static str,
    element: ElementLoop,
    /// The tensors that the loop reads, in its order.
    inputs: SmallVec<[TensorId; 4]>,
    out: TensorId,
    sizes: Dims,
    device: Device,
}

/// A chain that may grow.
struct Open {
    start: usize,
    end: usize,
    device: Device,
    chain: GrowingChain<TensorId>,
}

impl Open {
    fn at(start: usize, call: &Call) -> Open {
        Open { start, end: start, device: call.device, chain: GrowingChain::new(call.sizes.clone()) }
    }
}

struct Finder<'a> {
    graph: &'a Graph,
    bound: &'a Bound,
    ranges: &'a [Option<(usize, usize)>],
}

impl Finder<'_> {
    fn layout(&self, id: TensorId) -> Option<&Layout> {
        self.bound.layouts[id.index()].as_ref()
    }

    /// The loop of a node, if it is an element-wise call, or a copy, on a device.
    fn call(&self, node: &Node) -> Option<Call> {
        let &[out] = node.outs.as_slice() else { return None };
        let (device, sizes) = (self.graph.tensor(out).device, &self.layout(out)?.sizes);
        let mut fits = device != Device::CPU
            && !sizes.contains(&0)
            && sizes.iter().filter(|size| **size != 1).count() <= MAX_CHAIN_DIMS;
        for arg in &node.args {
            fits &= !matches!(arg, Argument::Tensors(_) | Argument::OptionalTensors(_));
            arg.for_each_tensor(|id| {
                fits &= self.graph.tensor(id).device == device
                    && self.layout(id).is_some_and(|layout| broadcasts(&layout.sizes, sizes));
            });
        }
        if !fits {
            return None;
        }
        let (name, element) = match &node.kind {
            NodeKind::Copy => ("converted elements", ElementLoop::Conversion(0)),
            NodeKind::Call { op, compute } => (op.name, self.element(node, op, *compute, device)?),
            _ => return None,
        };
        let read: SmallVec<[usize; 4]> = match &element {
            ElementLoop::Expression { inputs, .. } => inputs.clone(),
            ElementLoop::Conversion(argument) => SmallVec::from_slice(&[*argument]),
        };
        let tensor = |position: &usize| match node.args.get(*position) {
            Some(Argument::Tensor(id)) => Some(*id),
            _ => None,
        };
        let inputs = read.iter().map(tensor).collect::<Option<SmallVec<[TensorId; 4]>>>()?;
        let is_computed = inputs.iter().chain([&out]).all(|id| !self.graph.tensor(*id).dtype.is_stored());
        is_computed.then(|| Call { name, element, inputs, out, sizes: sizes.clone(), device })
    }

    /// The loop of a call whose kernel was made from an expression. A call that its adapter rejects has none: it fails when it runs.
    fn element(
        &self,
        node: &Node,
        op: &'static OpDef,
        compute: DType,
        device: Device,
    ) -> Option<ElementLoop> {
        if !op.facts.deterministic || !op.forms.elementwise || op.forms.updates || op.custom.is_some() {
            return None;
        }
        let kernel = op.kernel(device.backend, compute).ok()?;
        if !op.kernels.is_expression(device.backend, kernel) {
            return None;
        }
        let described = |id: TensorId| {
            let info = self.graph.tensor(id);
            let layout = self.layout(id).cloned().unwrap_or_else(|| Layout::contiguous(&[0]));
            Tensor::described(layout, info.dtype, info.device)
        };
        let values =
            node.args.iter().map(|arg| argument(arg, &self.bound.symbols, &mut |id| Ok(described(id))));
        let values = values.collect::<opsmith_runtime::error::Result<Vec<_>>>().ok()?;
        let args: Vec<_> = values.iter().map(opsmith_runtime::arg::Value::as_arg).collect();
        let outs: Vec<Tensor> = node.outs.iter().map(|id| described(*id)).collect();
        // SAFETY: binding inferred the outputs; the kernel is one of the operator's expression, whose loop is described: no memory
        // is accessed.
        unsafe { element_loop(kernel, &KernelCall::new(op, &args, &outs)).ok() }
    }

    fn elements(&self, id: TensorId, sizes: &[i64]) -> Option<(ChainElements, TensorId)> {
        let (memory, dtype) = (self.graph.buffer_of(id).index(), self.graph.tensor(id).dtype);
        Some((ChainElements::of(memory, self.layout(id)?, dtype, sizes)?, id))
    }

    /// Adds a call to a chain, if it is of its shape and device, and the chain stays sound.
    fn add(&self, open: &mut Open, number: usize, call: &Call) -> bool {
        if open.chain.sizes != call.sizes || open.device != call.device {
            return false;
        }
        let elements = |id: &TensorId| self.elements(*id, &call.sizes);
        let inputs = call.inputs.iter().map(elements).collect::<Option<Vec<_>>>();
        let (Some(inputs), Some(out)) = (inputs, elements(&call.out)) else { return false };
        let added = open.chain.add((call.name, &call.element), &inputs, out);
        if added {
            open.end = number + 1;
        }
        added
    }

    /// The group, if it is more than one call, and not of copies alone.
    fn close(&self, open: Open) -> Option<Group> {
        let Open { start, end, device, chain } = open;
        let nodes = start..end;
        let computes = chain.links.iter().any(|link| matches!(link.element, ElementLoop::Expression { .. }));
        if chain.links.len() < 2 || !computes {
            return None;
        }
        let (mut private, mut stored) = (Vec::new(), Vec::new());
        for written in &chain.writes {
            match self.is_private(written, &nodes) {
                true => private.push((written.elements.memory, None)),
                false => stored.push((written.link, written.tensor)),
            }
        }
        if stored.is_empty() {
            return None;
        }
        private.sort_unstable();
        let reads = chain.reads.into_iter().map(|(_, id)| id).collect();
        let links = Links { links: chain.links, stored, reads, device };
        Some(Group {
            nodes,
            outer: chain.sizes,
            rows: 0,
            by_lines: false,
            private,
            bytes: 0,
            links: Some(links),
        })
    }

    /// Whether a buffer is used by the group alone, after it was written.
    fn is_private(&self, written: &ChainWrite<TensorId>, nodes: &std::ops::Range<usize>) -> bool {
        let buffer = written.elements.memory;
        matches!(self.graph.buffers[buffer].kind, BufferKind::Internal)
            && written.made
            && self.ranges[buffer].is_some_and(|(first, last)| nodes.start <= first && last < nodes.end)
            && !self.graph.outputs.iter().any(|output| self.graph.buffer_of(*output).index() == buffer)
            && !self.bound.cleared.iter().any(|cleared| cleared.index() == buffer)
    }
}
