//! Common subexpression elimination.
//!
//! Two nodes are merged if they do the same with the same arguments, no write to memory they read lies between them,
//! and their results are not written later. The second one's tensors become tensors over the first one's memory. Two
//! outputs stay separate, as callers may write to them.

use std::collections::HashMap;

use opsmith_core::DType;
use opsmith_runtime::infer::symbolic::Size;

use super::facts::{Facts, is_outside};
use super::{for_each_mention, repeats};
use crate::ir::{BufferId, Graph, Node, NodeKind, SymbolicLayout, TensorId};

pub(super) fn merge(graph: &mut Graph) {
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
        graph,
    };
    let mut kept = Vec::with_capacity(nodes.len());
    for (number, mut node) in nodes.into_iter().enumerate() {
        for_each_mention(&mut node, &mut |id| *id = merger.same(*id));
        if !merger.is_done(&node, number, &facts) {
            merger.count_writes(&node);
            kept.push(node);
        }
    }
    let Merger { instead, graph, .. } = merger;
    graph.nodes = kept;
    graph.outputs.iter_mut().for_each(|output| *output = instead[output.index()]);
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
    /// The nodes that were kept, by the text of their work, with their results.
    known: HashMap<String, Vec<TensorId>>,
}

impl Merger<'_> {
    /// The first tensor with the same elements.
    fn same(&mut self, id: TensorId) -> TensorId {
        let id = self.instead[id.index()];
        let info = self.graph.tensor(id);
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
        let text = self.text(node);
        let Some(before) = self.known.get(&text).cloned() else {
            self.known.insert(text, node.outs.to_vec());
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

    /// A node's work, and the state of the memory it reads.
    fn text(&self, node: &Node) -> String {
        let kind = match &node.kind {
            NodeKind::Call { op, compute } => format!("call {:p} {compute:?}", *op),
            NodeKind::View { op } => format!("view {:p}", *op),
            _ => "copy elements".to_owned(),
        };
        let outs = node.outs.iter().map(|out| {
            let info = self.graph.tensor(*out);
            format!("{:?} {:?} {:?}", info.dtype, info.device, info.layout)
        });
        let outs: Vec<String> = outs.collect();
        let mut versions = Vec::new();
        node.for_each_read(&mut |id| {
            let buffer = self.graph.buffer_of(id).index();
            versions.push(if is_outside(self.graph, buffer) { self.outside } else { self.versions[buffer] });
        });
        format!("{kind} {:?} {outs:?} {versions:?}", node.args)
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
