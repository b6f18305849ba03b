//! Chains: consecutive element-wise calls on a device that become one kernel.
//!
//! In: a graph at known sizes. Out: groups of calls of one shape whose kernels are loops over expressions, with the loop of each and
//! the places of its inputs: memory, or the result of an earlier loop of the group. A result that nothing outside the group reads
//! exists in registers alone.
//!
//! A chain reads all elements of a position before it writes one, and other positions at other times. So it is sound if each
//! buffer that it writes is accessed at one place alone: the same elements at the same positions. Must not know tiles.

use opsmith_core::DType;
use opsmith_runtime::device::Device;
use opsmith_runtime::internals::{
    ChainInput, ChainLink, ElementLoop, MAX_CHAIN_DIMS, MAX_CHAIN_LINKS, MAX_CHAIN_OPERANDS,
    OperatorInternals as _, TensorInternals as _, element_loop,
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

/// The elements of a tensor at the positions of a shape.
#[derive(Clone, PartialEq)]
struct Elements {
    buffer: usize,
    dtype: DType,
    offset: i64,
    /// Steps along the dimensions; 0 where the tensor is broadcast.
    strides: Dims,
}

/// A buffer that the chain writes.
struct Written {
    elements: Elements,
    tensor: TensorId,
    /// The loop that wrote it last.
    link: usize,
    /// Whether nothing read it before it was written.
    made: bool,
}

/// A chain that may grow.
struct Open {
    start: usize,
    end: usize,
    sizes: Dims,
    device: Device,
    links: Vec<ChainLink>,
    reads: Vec<(Elements, TensorId)>,
    writes: Vec<Written>,
}

impl Open {
    fn at(start: usize, call: &Call) -> Open {
        Open {
            start,
            end: start,
            sizes: call.sizes.clone(),
            device: call.device,
            links: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
        }
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

    fn elements(&self, id: TensorId, sizes: &[i64]) -> Option<Elements> {
        let layout = self.layout(id)?;
        let missing = sizes.len().checked_sub(layout.sizes.len())?;
        let own = std::iter::zip(&layout.sizes, &layout.strides);
        let own = own.map(|(size, stride)| if *size == 1 { 0 } else { *stride });
        Some(Elements {
            buffer: self.graph.buffer_of(id).index(),
            dtype: self.graph.tensor(id).dtype,
            offset: layout.offset,
            strides: std::iter::repeat_n(0, missing).chain(own).collect(),
        })
    }

    /// Adds a call to a chain, if each buffer that is written then is accessed at one place.
    fn add(&self, chain: &mut Open, number: usize, call: &Call) -> bool {
        if chain.sizes != call.sizes || chain.device != call.device || chain.links.len() >= MAX_CHAIN_LINKS {
            return false;
        }
        let Some(out) = self.elements(call.out, &call.sizes) else { return false };
        let overlaps =
            std::iter::zip(&out.strides, &call.sizes).any(|(stride, size)| *stride == 0 && *size != 1);
        let mut inputs: SmallVec<[ChainInput; 4]> = SmallVec::new();
        let mut reads: Vec<(Elements, TensorId)> = Vec::new();
        for &id in &call.inputs {
            let Some(elements) = self.elements(id, &call.sizes) else { return false };
            if let Some(written) =
                chain.writes.iter().find(|written| written.elements.buffer == elements.buffer)
            {
                if written.elements != elements {
                    return false;
                }
                inputs.push(ChainInput::Link(written.link));
                continue;
            }
            let known = chain.reads.iter().chain(&reads).position(|(known, _)| *known == elements);
            inputs.push(ChainInput::Operand(known.unwrap_or_else(|| {
                reads.push((elements, id));
                chain.reads.len() + reads.len() - 1
            })));
        }
        let mut others = chain.reads.iter().chain(&reads).map(|(elements, _)| elements);
        let read_before = others.clone().any(|elements| elements.buffer == out.buffer);
        let read_elsewhere = others.any(|elements| elements.buffer == out.buffer && *elements != out);
        let before = chain.writes.iter().position(|written| written.elements.buffer == out.buffer);
        let written_elsewhere = before.is_some_and(|before| chain.writes[before].elements != out);
        let operands = chain.reads.len() + reads.len() + chain.writes.len() + usize::from(before.is_none());
        if overlaps || read_elsewhere || written_elsewhere || operands > MAX_CHAIN_OPERANDS {
            return false;
        }
        let link = chain.links.len();
        match before {
            Some(before) => chain.writes[before].link = link,
            None => {
                chain.writes.push(Written { elements: out, tensor: call.out, link, made: !read_before });
            }
        }
        let (element, dtype) = (call.element.clone(), self.graph.tensor(call.out).dtype);
        chain.reads.extend(reads);
        chain.links.push(ChainLink { name: call.name, element, inputs, dtype });
        chain.end = number + 1;
        true
    }

    /// The group, if it is more than one call, and not of copies alone.
    fn close(&self, chain: Open) -> Option<Group> {
        let nodes = chain.start..chain.end;
        let computes = chain.links.iter().any(|link| matches!(link.element, ElementLoop::Expression { .. }));
        if chain.links.len() < 2 || !computes {
            return None;
        }
        let (mut private, mut stored) = (Vec::new(), Vec::new());
        for written in &chain.writes {
            match self.is_private(written, &nodes) {
                true => private.push((written.elements.buffer, None)),
                false => stored.push((written.link, written.tensor)),
            }
        }
        if stored.is_empty() {
            return None;
        }
        private.sort_unstable();
        let reads = chain.reads.into_iter().map(|(_, id)| id).collect();
        let links = Links { links: chain.links, stored, reads, device: chain.device };
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
    fn is_private(&self, written: &Written, nodes: &std::ops::Range<usize>) -> bool {
        let buffer = written.elements.buffer;
        matches!(self.graph.buffers[buffer].kind, BufferKind::Internal)
            && written.made
            && self.ranges[buffer].is_some_and(|(first, last)| nodes.start <= first && last < nodes.end)
            && !self.graph.outputs.iter().any(|output| self.graph.buffer_of(*output).index() == buffer)
            && !self.bound.cleared.iter().any(|cleared| cleared.index() == buffer)
    }
}
