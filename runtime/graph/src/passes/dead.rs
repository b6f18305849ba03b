//! Dead code elimination.
//!
//! A node stays if it writes memory from outside, memory of an output, or memory that a later node reads; and if
//! it draws random numbers, since later draws depend on it. Nodes in regions stay with their node.

use super::facts::{Facts, is_outside};
use super::{for_each_mention, keep, repeats};
use crate::ir::{Graph, NodeKind};

pub(super) fn drop(graph: &mut Graph) -> bool {
    let mut needed = Facts::of(graph).is_output;
    let mut needed_tensors = vec![false; graph.tensors.len()];
    graph.outputs.iter().for_each(|id| needed_tensors[id.index()] = true);
    for tensor in graph.sized_by_nodes() {
        needed[graph.buffer_of(tensor).index()] = true;
        needed_tensors[tensor.index()] = true;
    }
    let mut kept = vec![false; graph.nodes.len()];
    for number in (0..graph.nodes.len()).rev() {
        let node = &graph.nodes[number];
        let mut stays = !repeats(node);
        if matches!(node.kind, NodeKind::View { .. }) {
            stays |= node.outs.iter().any(|out| needed_tensors[out.index()]);
        } else {
            node.for_each_write(&mut |id| {
                let buffer = graph.buffer_of(id).index();
                stays |= needed[buffer] || is_outside(graph, buffer);
            });
        }
        if !stays {
            continue;
        }
        kept[number] = true;
        node.for_each_read(&mut |id| needed[graph.buffer_of(id).index()] = true);
        let tensors = &mut needed_tensors;
        for_each_mention(&mut graph.nodes[number], &mut |id| tensors[id.index()] = true);
    }
    keep(&mut graph.nodes, &kept)
}
