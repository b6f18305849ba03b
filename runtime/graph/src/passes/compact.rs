//! Removal of unreferenced tensors and buffers, and renumbering of the rest.

use super::for_each_mention;
use crate::ir::{BufferId, Graph, SymbolSource, TensorId};

pub(super) fn compact(graph: &mut Graph) {
    let mut mentioned = vec![false; graph.tensors.len()];
    let Graph { nodes, inputs, outputs, .. } = graph;
    nodes.iter_mut().for_each(|node| for_each_mention(node, &mut |id| mentioned[id.index()] = true));
    inputs.iter().chain(outputs.iter()).for_each(|id| mentioned[id.index()] = true);
    graph.sized_by_nodes().for_each(|tensor| mentioned[tensor.index()] = true);
    let mut needed = vec![false; graph.buffers.len()];
    for (tensor, _) in graph.tensors.iter().zip(&mentioned).filter(|(_, mentioned)| **mentioned) {
        needed[tensor.buffer.index()] = true;
    }
    for (buffer, _) in graph.buffers.iter().zip(&needed).filter(|(_, needed)| **needed) {
        mentioned[buffer.root.index()] = true;
    }
    let (tensors, buffers) = (numbers(&mentioned), numbers(&needed));
    let tensor = |id: &mut TensorId| *id = TensorId(tensors[id.index()]);
    graph.nodes.iter_mut().for_each(|node| for_each_mention(node, &mut { tensor }));
    graph.inputs.iter_mut().chain(&mut graph.outputs).for_each(tensor);
    for source in &mut graph.sources {
        if let SymbolSource::Node { tensor: sized, .. } = source {
            tensor(sized);
        }
    }
    retain(&mut graph.tensors, &mentioned);
    retain(&mut graph.buffers, &needed);
    graph.tensors.iter_mut().for_each(|info| info.buffer = BufferId(buffers[info.buffer.index()]));
    graph.buffers.iter_mut().for_each(|buffer| tensor(&mut buffer.root));
}

/// The new number of each one that is kept.
fn numbers(kept: &[bool]) -> Vec<u32> {
    let mut next = 0;
    let number = |kept: &bool| {
        next += u32::from(*kept);
        next.wrapping_sub(1)
    };
    kept.iter().map(number).collect()
}

fn retain<T>(list: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    list.retain(|_| kept.next().copied().unwrap_or(false));
}
