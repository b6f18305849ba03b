//! Which steps may run at the same time.
//!
//! In: a graph. Out: a moment for each step. Steps of one moment touch nothing that another of them writes, so they
//! may run in any order, or together; memory is planned in moments, so that it does not bring them together
//! either. A step with others inside has a moment of its own, and so has each that draws random numbers, which
//! come in the order of the steps.

use super::ir::{Graph, Node, NodeKind};

/// When each step runs: one after the other, or together where a graph has several threads.
pub(super) fn moments(graph: &Graph) -> Vec<usize> {
    if graph.threads < 2 {
        return (0..graph.nodes.len()).collect();
    }
    let count = graph.buffers.len();
    // The first moment at which a buffer may be read, and written.
    let (mut readable, mut writable) = (vec![0; count], vec![0; count]);
    // No step may come before the last one that was alone; none after all of them.
    let (mut earliest, mut end) = (0, 0);
    let mut moments = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        if matches!(node.kind, NodeKind::View { .. }) {
            // Nothing runs.
            moments.push(earliest);
            continue;
        }
        let mut moment = earliest;
        node.for_each_read(&mut |id| moment = moment.max(readable[graph.buffer_of(id).index()]));
        node.for_each_write(&mut |id| moment = moment.max(writable[graph.buffer_of(id).index()]));
        if is_alone(node) {
            moment = end;
            earliest = end + 1;
        }
        end = end.max(moment + 1);
        node.for_each_read(&mut |id| {
            let writable = &mut writable[graph.buffer_of(id).index()];
            *writable = (*writable).max(moment + 1);
        });
        node.for_each_write(&mut |id| {
            let buffer = graph.buffer_of(id).index();
            readable[buffer] = readable[buffer].max(moment + 1);
            writable[buffer] = writable[buffer].max(moment + 1);
        });
        moments.push(moment);
    }
    moments
}

/// Whether a step runs while no other does.
fn is_alone(node: &Node) -> bool {
    let repeats = node.kind.op().is_none_or(|op| op.facts.deterministic);
    !repeats || !node.kind.regions().is_empty()
}
