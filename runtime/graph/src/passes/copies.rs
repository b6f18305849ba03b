//! Elimination of view nodes, which run nothing, and of redundant copies.
//!
//! A view whose layout depends on sizes stays if binding has to infer it. A copy is redundant if its source is
//! unchanged while the copy is live, and has the same layout: then the tensors over the copy become tensors over the
//! source. A copy at the end of a branch is redundant if nothing else needs its source.

use std::collections::HashMap;

use opsmith_runtime::infer::symbolic::Size;

use super::facts::{Facts, is_outside};
use super::{for_each_mention, keep};
use crate::ir::{Argument, BufferId, BufferKind, Graph, Node, NodeKind, SymbolicLayout, TensorId};

pub(super) fn drop(graph: &mut Graph) -> bool {
    let mut changed = drop_copies(graph) | drop_copies_of_branches(graph);
    let tensors = &graph.tensors;
    let known = |id: &TensorId| numbers(&tensors[id.index()].layout).all(|size| size.known().is_some());
    let mut nodes = std::mem::take(&mut graph.nodes);
    changed |= retain(&mut nodes, &|node| {
        !matches!(node.kind, NodeKind::View { .. }) || !node.outs.iter().all(known)
    });
    graph.nodes = nodes;
    changed
}

/// Keeps nodes, those in regions, too. Returns whether one was removed.
fn retain(nodes: &mut Vec<Node>, stays: &dyn Fn(&Node) -> bool) -> bool {
    let before = nodes.len();
    nodes.retain(stays);
    let mut changed = nodes.len() < before;
    for node in nodes {
        for region in node.kind.regions_mut() {
            changed |= retain(&mut region.nodes, stays);
        }
    }
    changed
}

fn numbers(layout: &SymbolicLayout) -> impl Iterator<Item = &Size> {
    layout.sizes.iter().chain(&layout.strides).chain(std::iter::once(&layout.offset))
}

fn drop_copies(graph: &mut Graph) -> bool {
    let mut facts = Facts::of(graph);
    let mut kept = vec![true; graph.nodes.len()];
    let mut instead: Vec<TensorId> = (0..graph.tensors.len() as u32).map(TensorId).collect();
    for (number, kept) in kept.iter_mut().enumerate() {
        let Some((source, copy)) = needless(graph, &facts, &instead, number) else { continue };
        *kept = false;
        let (from, to) = (graph.buffer_of(copy), graph.buffer_of(source));
        let offset = graph.tensor(source).layout.offset.clone();
        for info in graph.tensors.iter_mut().filter(|info| info.buffer == from) {
            info.buffer = BufferId(to.0);
            info.layout.offset = &info.layout.offset + &offset;
        }
        instead[copy.index()] = source;
        facts.is_output[to.index()] |= facts.is_output[from.index()];
    }
    if !keep(&mut graph.nodes, &kept) {
        return false;
    }
    // A replacement may itself have been replaced.
    let last = |mut id: TensorId| {
        while instead[id.index()] != id {
            id = instead[id.index()];
        }
        id
    };
    graph.nodes.iter_mut().for_each(|node| for_each_mention(node, &mut |id| *id = last(*id)));
    graph.outputs.iter_mut().for_each(|id| *id = last(*id));
    true
}

/// The source and the target of a redundant copy.
fn needless(
    graph: &Graph,
    facts: &Facts,
    instead: &[TensorId],
    number: usize,
) -> Option<(TensorId, TensorId)> {
    let node = &graph.nodes[number];
    let (NodeKind::Copy, [Argument::Tensor(source)], [copy]) =
        (&node.kind, node.args.as_slice(), node.outs.as_slice())
    else {
        return None;
    };
    let source = instead[source.index()];
    let (from, to) = (graph.buffer_of(*copy).index(), graph.buffer_of(source).index());
    let (a, b) = (graph.tensor(source), graph.tensor(*copy));
    let alike = (a.dtype, a.device) == (b.dtype, b.device)
        && (&a.layout.sizes, &a.layout.strides) == (&b.layout.sizes, &b.layout.strides)
        && !numbers(&a.layout).any(Size::is_unknown)
        && graph.tensors.iter().filter(|info| info.buffer.index() == from).all(|info| {
            // Offsets count elements, so the dtypes over both have to agree.
            info.dtype == a.dtype && !numbers(&info.layout).any(Size::is_unknown)
        });
    let stays = facts.last_write[to].is_none_or(|write| write < number)
        && !(is_outside(graph, to) && facts.writes_outside);
    // An output needs its memory whole, and not shared.
    let may_be_output = !facts.is_output[from]
        || (matches!(graph.buffers[to].kind, BufferKind::Internal)
            && !facts.is_output[to]
            && graph.buffers[to].root == source);
    (facts.maker[from] == Some(number) && alike && stays && may_be_output).then_some((source, *copy))
}

/// Lets branches write their results into the outputs of their node, in place of copying them there: a result whose memory nothing
/// else mentions becomes the output.
fn drop_copies_of_branches(graph: &mut Graph) -> bool {
    let mut mentions = vec![0; graph.tensors.len()];
    let mut nodes = std::mem::take(&mut graph.nodes);
    for node in &mut nodes {
        for_each_mention(node, &mut |id| mentions[id.index()] += 1);
    }
    for output in &graph.outputs {
        mentions[output.index()] += 1;
    }
    let mut over = vec![0; graph.buffers.len()];
    for info in &graph.tensors {
        over[info.buffer.index()] += 1;
    }
    let changed = write_results(graph, &mut nodes, &mentions, &over);
    graph.nodes = nodes;
    changed
}

/// Does so in some nodes and their regions. `mentions` counts those of each tensor, `over` the tensors over each buffer.
fn write_results(graph: &Graph, nodes: &mut [Node], mentions: &[usize], over: &[usize]) -> bool {
    let mut changed = false;
    for node in nodes {
        let outs = node.outs.clone();
        let NodeKind::Cond { branches } = &mut node.kind else {
            for region in node.kind.regions_mut() {
                changed |= write_results(graph, &mut region.nodes, mentions, over);
            }
            continue;
        };
        for region in branches.iter_mut() {
            changed |= write_results(graph, &mut region.nodes, mentions, over);
            let (mut here, mut of_buffers) = (HashMap::new(), HashMap::new());
            for node in &mut region.nodes {
                for_each_mention(node, &mut |id| {
                    *here.entry(*id).or_insert(0) += 1;
                    *of_buffers.entry(graph.buffer_of(*id).index()).or_insert(0) += 1;
                });
            }
            let own = |id: TensorId| {
                let buffer = graph.buffer_of(id).index();
                over[buffer] == 1
                    && mentions[id.index()] == here[&id]
                    && matches!(graph.buffers[buffer].kind, BufferKind::Internal)
                    && graph.buffers[buffer].root == id
            };
            let alike = |a: TensorId, b: TensorId| {
                let (a, b) = (graph.tensor(a), graph.tensor(b));
                (a.dtype, a.device, &a.layout) == (b.dtype, b.device, &b.layout)
                    && !numbers(&a.layout).any(Size::is_unknown)
            };
            let mut instead: HashMap<TensorId, TensorId> = HashMap::new();
            region.nodes.retain(|node| {
                let (NodeKind::Copy, [Argument::Tensor(result)], [out]) =
                    (&node.kind, node.args.as_slice(), node.outs.as_slice())
                else {
                    return true;
                };
                let replaces = own(*result)
                    && alike(*result, *out)
                    && !instead.contains_key(result)
                    && outs.contains(out)
                    && of_buffers[&graph.buffer_of(*out).index()] == 1
                    && graph.buffers[graph.buffer_of(*out).index()].root == *out;
                if replaces {
                    instead.insert(*result, *out);
                }
                !replaces
            });
            changed |= !instead.is_empty();
            for node in &mut region.nodes {
                for_each_mention(node, &mut |id| *id = *instead.get(id).unwrap_or(id));
            }
        }
    }
    changed
}
