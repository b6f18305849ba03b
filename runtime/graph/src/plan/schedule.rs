//! Schedule levels: nodes that may run concurrently.
//!
//! In: a graph. Out: a level for each node. Nodes of one level do not access memory that another of them writes, so
//! they may run in any order, or concurrently; memory is planned by levels, so that memory reuse adds no conflict. A
//! node with regions has a level of its own, and so has each node that draws random numbers, which keep their order.
//! The nodes of a fused group share a level, which no other node has.

use super::fusion::Fusion;
use crate::ir::{Graph, Node, NodeKind};

/// The schedule level of each node; a sequential order if the graph has one thread.
pub(crate) fn levels(graph: &Graph, fusion: &Fusion) -> Vec<usize> {
    if graph.threads < 2 {
        let level = |number| fusion.group_of(number).map_or(number, |group| group.nodes.start);
        return (0..graph.nodes.len()).map(level).collect();
    }
    let count = graph.buffers.len();
    // The first level at which a buffer may be read, and written.
    let (mut readable, mut writable) = (vec![0; count], vec![0; count]);
    // No node may be scheduled before the last one with its own level; such a node comes after all before it.
    let (mut earliest, mut end) = (0, 0);
    let mut levels = Vec::with_capacity(graph.nodes.len());
    for (number, node) in graph.nodes.iter().enumerate() {
        if matches!(node.kind, NodeKind::View { .. }) {
            // A node without a kernel.
            levels.push(earliest);
            continue;
        }
        let mut level = earliest;
        node.for_each_read(&mut |id| level = level.max(readable[graph.buffer_of(id).index()]));
        node.for_each_write(&mut |id| level = level.max(writable[graph.buffer_of(id).index()]));
        match fusion.group_of(number) {
            Some(group) if group.nodes.start < number => level = earliest - 1,
            None if !is_alone(node) => {}
            _ => {
                level = end;
                earliest = end + 1;
            }
        }
        end = end.max(level + 1);
        node.for_each_read(&mut |id| {
            let writable = &mut writable[graph.buffer_of(id).index()];
            *writable = (*writable).max(level + 1);
        });
        node.for_each_write(&mut |id| {
            let buffer = graph.buffer_of(id).index();
            readable[buffer] = readable[buffer].max(level + 1);
            writable[buffer] = writable[buffer].max(level + 1);
        });
        levels.push(level);
    }
    levels
}

/// Whether a node has a level of its own.
fn is_alone(node: &Node) -> bool {
    let repeats = node.kind.op().is_none_or(|op| op.facts.deterministic);
    !repeats || !node.kind.regions().is_empty()
}
