//! Common subexpression elimination.
//!
//! Two nodes are merged if they do the same with the same arguments, no write to memory they read lies between them,
//! and their results are not written later. The second one's tensors become tensors over the first one's memory. Two
//! outputs stay separate, as callers may write to them.

use hashbrown::HashMap;
use opsmith_core::DType;
use opsmith_runtime::infer::symbolic::Size;
use opsmith_runtime::op::OpDef;
use smallvec::SmallVec;

use super::facts::{Facts, is_outside};
use super::{for_each_mention, repeats};
use crate::ir::{Argument, BufferId, BufferKind, Graph, Node, NodeKind, SymbolicLayout, TensorId};

pub(super) fn merge(graph: &mut Graph) -> bool {
    let facts = Facts::of(graph);
    let nodes = std::mem::take(&mut graph.nodes);
    let moves = moving(&nodes);
    let mut merger = Merger {
        is_output: facts.is_output.clone(),
        versions: vec![0; graph.buffers.len()],
        outside: 0,
        instead: (0..graph.tensors.len() as u32).map(TensorId).collect(),
        moves,
        of_buffer: of_buffer(graph),
        alike: HashMap::new(),
        known: HashMap::new(),
        kept: Vec::with_capacity(nodes.len()),
        graph,
    };
    let mut changed = false;
    // Tensors that there are without a node, or that one made before.
    let mut made = vec![false; merger.graph.tensors.len()];
    for buffer in &merger.graph.buffers {
        made[buffer.root.index()] = !matches!(buffer.kind, BufferKind::Internal);
    }
    for (number, mut node) in nodes.into_iter().enumerate() {
        for_each_mention(&mut node, &mut |id| {
            let same = merger.same(*id);
            changed |= same != *id;
            *id = same;
        });
        // A view of a view may be the first tensor again.
        let is_again =
            matches!(node.kind, NodeKind::View { .. }) && node.outs.iter().all(|out| made[out.index()]);
        if is_again || merger.is_done(&node, number, &facts) {
            changed = true;
        } else {
            node.outs.iter().for_each(|out| made[out.index()] = true);
            merger.count_writes(&node);
            merger.kept.push(node);
        }
    }
    let Merger { instead, graph, kept, .. } = merger;
    graph.nodes = kept;
    graph.outputs.iter_mut().for_each(|output| *output = instead[output.index()]);
    changed
}

/// The tensors whose offset changes with a loop's iterations.
fn moving(nodes: &[Node]) -> Vec<TensorId> {
    let mut found = Vec::new();
    for node in nodes {
        if let NodeKind::Scan { moving, .. } = &node.kind {
            found.extend(moving.iter().map(|moving| moving.tensor));
        }
        node.kind.regions().iter().for_each(|region| found.extend(self::moving(&region.nodes)));
    }
    found
}

fn of_buffer(graph: &Graph) -> Vec<Vec<TensorId>> {
    let mut tensors = vec![Vec::new(); graph.buffers.len()];
    for (number, info) in graph.tensors.iter().enumerate() {
        tensors[info.buffer.index()].push(TensorId(number as u32));
    }
    tensors
}

/// The identity of a tensor.
type Look = (BufferId, DType, Vec<Size>);

struct Merger<'a> {
    graph: &'a mut Graph,
    is_output: Vec<bool>,
    /// Number of writes to each buffer so far.
    versions: Vec<usize>,
    /// Number of writes to memory from outside.
    outside: usize,
    /// The representative of each tensor.
    instead: Vec<TensorId>,
    moves: Vec<TensorId>,
    of_buffer: Vec<Vec<TensorId>>,
    alike: HashMap<Look, TensorId>,
    kept: Vec<Node>,
    /// The positions in `kept` of nodes that an equal one would repeat.
    known: HashMap<Key, SmallVec<[usize; 1]>>,
}

/// The part of a node's work that finds equal nodes: its operator, its tensors, and the state of the memory that it reads.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    /// `None` for a copy.
    op: Option<*const OpDef>,
    is_view: bool,
    tensors: SmallVec<[TensorId; 4]>,
    versions: SmallVec<[usize; 4]>,
}

impl Merger<'_> {
    /// The first tensor with the same elements.
    fn same(&mut self, id: TensorId) -> TensorId {
        let id = self.instead[id.index()];
        let info = self.graph.tensor(id);
        if self.of_buffer[info.buffer.index()].len() == 1 {
            return id;
        }
        let SymbolicLayout { sizes, strides, offset } = &info.layout;
        let layout: Vec<Size> = sizes.iter().chain(strides).chain(std::iter::once(offset)).cloned().collect();
        if self.moves.contains(&id) || layout.iter().any(Size::is_unknown) {
            return id;
        }
        *self.alike.entry((info.buffer, info.dtype, layout)).or_insert(id)
    }

    /// Whether an equal node was kept before. If so, its results replace this node's.
    fn is_done(&mut self, node: &Node, number: usize, facts: &Facts) -> bool {
        let buffer = |id: &TensorId| self.graph.buffer_of(*id).index();
        let can_be = match node.kind {
            NodeKind::View { .. } => true,
            NodeKind::Call { .. } | NodeKind::Copy => {
                node.outs.iter().all(|out| facts.maker[buffer(out)] == Some(number))
            }
            _ => false,
        };
        if !can_be || !repeats(node) {
            return false;
        }
        let key = self.key(node);
        let before = self.known.get(&key).and_then(|known| {
            let mut before = known.iter().map(|position| &self.kept[*position]);
            before.find(|before| self.is_same_work(before, node)).map(|before| before.outs.clone())
        });
        let Some(before) = before else {
            self.known.entry(key).or_default().push(self.kept.len());
            return false;
        };
        let pairs: Vec<(usize, usize)> =
            node.outs.iter().map(buffer).zip(before.iter().map(buffer)).collect();
        if pairs.iter().any(|&(new, old)| new != old && self.is_output[new] && self.is_output[old]) {
            return false;
        }
        for (new, old) in pairs {
            self.is_output[old] |= self.is_output[new];
            if new != old {
                let moved = std::mem::take(&mut self.of_buffer[new]);
                for id in &moved {
                    self.graph.tensors[id.index()].buffer = BufferId(old as u32);
                }
                self.of_buffer[old].extend(moved);
            }
        }
        for (new, old) in node.outs.iter().zip(before) {
            self.instead[new.index()] = old;
        }
        true
    }

    fn key(&self, node: &Node) -> Key {
        let (op, is_view) = match &node.kind {
            NodeKind::Call { op, .. } => (Some(std::ptr::from_ref(*op)), false),
            NodeKind::View { op } => (Some(std::ptr::from_ref(*op)), true),
            _ => (None, false),
        };
        let (mut tensors, mut versions) = (SmallVec::new(), SmallVec::new());
        node.args.iter().for_each(|arg| arg.for_each_tensor(&mut |id| tensors.push(id)));
        node.for_each_read(&mut |id| {
            let buffer = self.graph.buffer_of(id).index();
            versions.push(if is_outside(self.graph, buffer) { self.outside } else { self.versions[buffer] });
        });
        Key { op, is_view, tensors, versions }
    }

    /// Whether two nodes of one key have equal arguments and results.
    fn is_same_work(&self, a: &Node, b: &Node) -> bool {
        let compute = |node: &Node| match node.kind {
            NodeKind::Call { compute, .. } => Some(compute),
            _ => None,
        };
        let facts = |id: &TensorId| {
            let info = self.graph.tensor(*id);
            (info.dtype, info.device, &info.layout)
        };
        compute(a) == compute(b)
            && a.args.len() == b.args.len()
            && a.args.iter().zip(&b.args).all(|(a, b)| arguments_equal(a, b))
            && a.outs.iter().map(facts).eq(b.outs.iter().map(facts))
    }

    fn count_writes(&mut self, node: &Node) {
        let Merger { graph, versions, outside, .. } = self;
        node.for_each_write(&mut |id| {
            let buffer = graph.buffer_of(id).index();
            versions[buffer] += 1;
            *outside += usize::from(is_outside(graph, buffer));
        });
    }
}

/// Whether two arguments are the same, numbers bit for bit.
fn arguments_equal(a: &Argument, b: &Argument) -> bool {
    match (a, b) {
        (Argument::Tensor(a), Argument::Tensor(b)) => a == b,
        (Argument::Tensors(a), Argument::Tensors(b)) => a == b,
        (Argument::OptionalTensors(a), Argument::OptionalTensors(b)) => a == b,
        (Argument::Value(a), Argument::Value(b)) => a.same_bits(b),
        (Argument::Int(a), Argument::Int(b)) => a == b,
        (Argument::Ints(a), Argument::Ints(b)) => a == b,
        (Argument::Scalar(a), Argument::Scalar(b)) | (Argument::Float(a), Argument::Float(b)) => a == b,
        _ => false,
    }
}
