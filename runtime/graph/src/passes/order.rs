//! Early release: nodes that free memory and allocate none, such as updates of parameters by gradients, run earlier.
//!
//! A node moves before others as long as neither writes to memory that the other reads or writes, so every node reads
//! the same elements as before; a run rejects inputs that share memory with the graph's targets. Nodes that draw random
//! numbers, and those with regions, stay.

use super::repeats;
use crate::ir::{BufferKind, Graph, Node, NodeKind};

pub(super) fn release_early(graph: &mut Graph) {
    let touched: Vec<Touched> = graph.nodes.iter().map(|node| Touched::by(graph, node)).collect();
    let mut first = vec![usize::MAX; graph.buffers.len()];
    let mut last = vec![0; graph.buffers.len()];
    for (number, touched) in touched.iter().enumerate() {
        for &buffer in touched.reads.iter().chain(&touched.writes) {
            first[buffer] = first[buffer].min(number);
            last[buffer] = number;
        }
    }
    let internal = |buffer: usize| matches!(graph.buffers[buffer].kind, BufferKind::Internal);
    let frees = |number: usize| {
        let Touched { reads, writes, .. } = &touched[number];
        let simple =
            matches!(graph.nodes[number].kind, NodeKind::Call { .. } | NodeKind::Copy | NodeKind::Add);
        simple
            && repeats(&graph.nodes[number])
            && reads.iter().any(|&buffer| internal(buffer) && last[buffer] == number)
            && writes.iter().all(|&buffer| first[buffer] < number || !internal(buffer))
    };
    let mut order: Vec<usize> = Vec::with_capacity(touched.len());
    for number in 0..touched.len() {
        let behind = match frees(number) {
            true => order.iter().rposition(|&other| touched[number].conflicts(&touched[other])),
            false => order.len().checked_sub(1),
        };
        order.insert(behind.map_or(0, |position| position + 1), number);
    }
    let mut nodes: Vec<Option<Node>> = std::mem::take(&mut graph.nodes).into_iter().map(Some).collect();
    graph.nodes = order.into_iter().filter_map(|number| nodes[number].take()).collect();
}

/// The memory that a node reads or writes.
struct Touched {
    reads: Vec<usize>,
    writes: Vec<usize>,
    /// Whether no node may move past it: a view, whose tensors other nodes reference, a node with regions, or one with
    /// data-dependent sizes that other nodes need.
    stays: bool,
}

impl Touched {
    fn by(graph: &Graph, node: &Node) -> Touched {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let mut views_of = Vec::new();
        node.for_each_read(&mut |id| reads.push(graph.buffer_of(id).index()));
        node.for_each_write(&mut |id| writes.push(graph.buffer_of(id).index()));
        if matches!(node.kind, NodeKind::View { .. }) {
            // A node that accesses the memory may reference the view.
            views_of.extend(node.outs.iter().map(|out| graph.buffer_of(*out).index()));
        }
        writes.extend(views_of);
        let finds_sizes = node.outs.iter().any(|out| graph.is_found_by_node(*out));
        let stays = finds_sizes || !node.kind.regions().is_empty();
        Touched { reads, writes, stays }
    }

    fn conflicts(&self, other: &Touched) -> bool {
        let meet = |a: &[usize], b: &[usize]| a.iter().any(|buffer| b.contains(buffer));
        self.stays
            || other.stays
            || meet(&self.writes, &other.writes)
            || meet(&self.writes, &other.reads)
            || meet(&self.reads, &other.writes)
    }
}
