//! Writers of buffers: the facts that all passes share.
//!
//! In: a graph. Out: for each buffer its number of writes, the node that makes it, and whether it is visible to a
//! caller. Nodes in regions count as the node around them; their results count as made by no node, so that passes do
//! not change them.

use crate::ir::{BufferKind, Graph, NodeKind};

/// The facts about each buffer.
pub(super) struct Facts {
    /// Number of nodes that write each buffer.
    pub writes: Vec<usize>,
    /// The last node that writes each buffer.
    pub last_write: Vec<Option<usize>>,
    /// The only node that writes each private buffer, if it writes the whole buffer.
    pub maker: Vec<Option<usize>>,
    /// Whether an output is a tensor over it.
    pub is_output: Vec<bool>,
    /// Whether any node writes memory from outside. Two tensors from outside may share memory, so a write to one counts
    /// as a write to all.
    pub writes_outside: bool,
}

impl Facts {
    pub fn of(graph: &Graph) -> Facts {
        let count = graph.buffers.len();
        let mut facts = Facts {
            writes: vec![0; count],
            last_write: vec![None; count],
            maker: vec![None; count],
            is_output: vec![false; count],
            writes_outside: false,
        };
        for (number, node) in graph.nodes.iter().enumerate() {
            node.for_each_write(&mut |id| {
                let buffer = graph.buffer_of(id).index();
                facts.writes[buffer] += 1;
                facts.last_write[buffer] = Some(number);
                let whole = graph.buffers[buffer].root == id;
                let makes = matches!(node.kind, NodeKind::Call { .. } | NodeKind::Copy);
                facts.maker[buffer] = (whole && makes && facts.writes[buffer] == 1).then_some(number);
                facts.writes_outside |= is_outside(graph, buffer);
            });
        }
        for buffer in 0..count {
            if is_outside(graph, buffer) {
                facts.maker[buffer] = None;
            }
        }
        for output in &graph.outputs {
            facts.is_output[graph.buffer_of(*output).index()] = true;
        }
        facts
    }
}

/// Whether a buffer is memory from outside, which may have other owners.
pub(super) fn is_outside(graph: &Graph, buffer: usize) -> bool {
    !matches!(graph.buffers[buffer].kind, BufferKind::Internal)
}
