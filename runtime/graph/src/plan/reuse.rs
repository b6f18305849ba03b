//! Memory that element-wise calls write over: of an input that is dead afterwards.
//!
//! In: the times of nodes and buffers, and layouts. Out: for each buffer the one whose memory it takes, and for those that a
//! result takes over that result.

use opsmith_runtime::layout::Layout;

use super::liveness::{Liveness, device_of};
use super::times::Times;
use crate::ir::{Argument, Graph, Node, NodeKind, TensorId};

/// The memory that buffers take over from others.
pub(super) struct Reuse {
    /// The buffer whose memory a buffer takes, if any.
    pub shares: Vec<Option<usize>>,
    /// The first buffer of the chain in which a buffer is, which is placed.
    pub firsts: Vec<usize>,
    /// The result in whose memory a buffer, the first of a chain, lies from its first time on.
    pub results: Vec<Option<usize>>,
    /// The first time at which such a buffer is in the memory of a result.
    pub taken_from: Vec<usize>,
    /// The first and last time at which buffers are live: the first buffer of a chain as long as the whole chain.
    pub live_ranges: Vec<Option<(usize, usize)>>,
}

impl Reuse {
    pub fn new(
        graph: &Graph,
        liveness: &Liveness,
        times: Times<'_>,
        layouts: &[Option<Layout>],
        levels: &[usize],
    ) -> Reuse {
        let count = graph.buffers.len();
        let (mut shares, mut becomes) = (vec![None; count], vec![None; count]);
        if graph.reuse {
            let outside = levels.iter().enumerate();
            let outside =
                outside.map(|(number, &level)| (number, times.of_level(level), &graph.nodes[number]));
            for site in outside.chain(times.nested.iter().copied()) {
                if let Some((from, to)) = takes_over(graph, liveness, &times, layouts, site) {
                    match liveness.is_result[to] {
                        true => becomes[from] = Some(to),
                        false => shares[to] = Some(from),
                    }
                }
            }
        }
        let mut reuse = Reuse {
            firsts: firsts(&shares),
            shares,
            results: vec![None; count],
            taken_from: vec![usize::MAX; count],
            live_ranges: times.live_ranges,
        };
        for buffer in 0..count {
            let first = reuse.firsts[buffer];
            let last = reuse.live_ranges[buffer].filter(|_| first != buffer).map(|(_, last)| last);
            if let (Some(last), Some(range)) = (last, &mut reuse.live_ranges[first]) {
                range.1 = range.1.max(last);
            }
        }
        for (buffer, result) in becomes.into_iter().enumerate() {
            let Some(result) = result else { continue };
            let first = reuse.firsts[buffer];
            reuse.results[first] = Some(result);
            let begins = reuse.live_ranges[first].map_or(0, |(begins, _)| begins);
            reuse.taken_from[result] = reuse.taken_from[result].min(begins);
        }
        reuse
    }
}

/// The first buffer of each buffer's chain. Chains are as long as the graph, so each is followed once.
fn firsts(shares: &[Option<usize>]) -> Vec<usize> {
    let mut firsts: Vec<usize> = (0..shares.len()).map(|buffer| shares[buffer].unwrap_or(buffer)).collect();
    for buffer in 0..firsts.len() {
        let mut first = buffer;
        while firsts[first] != first {
            first = firsts[first];
        }
        let mut next = buffer;
        while firsts[next] != first {
            next = std::mem::replace(&mut firsts[next], first);
        }
    }
    firsts
}

/// The buffers of an element-wise call's input and output if the output can reuse the input's memory: the input is dead
/// afterwards, and both have the same layout. Of a call that updates a copy of its first argument, that is the input, which
/// then is not copied.
///
/// The node has a time, and is, or is in, a node of the graph with this number.
fn takes_over(
    graph: &Graph,
    liveness: &Liveness,
    times: &Times<'_>,
    layouts: &[Option<Layout>],
    (number, time, node): (usize, usize, &Node),
) -> Option<(usize, usize)> {
    let NodeKind::Call { op, .. } = &node.kind else { return None };
    let [out] = node.outs.as_slice() else { return None };
    let to = graph.buffer_of(*out).index();
    // Not by an earlier node: those of a fused group have one level.
    let made_here = graph.buffers[to].root == *out
        && liveness.first_nodes[to] == Some(number)
        // Memory that is shared in one of two branches would be another's in the other.
        && if liveness.is_result[to] { times.begins(to, time) } else { times.live_ranges[to]?.0 == time };
    let updates = op.forms.updates;
    if !(op.forms.elementwise || updates) || !made_here || !liveness.is_private(graph, to) {
        return None;
    }
    let wanted = layouts[out.index()].as_ref()?;
    let fits = |id: TensorId| -> Option<usize> {
        let from = graph.buffer_of(id).index();
        let dies = liveness.in_arena(graph, from)
            && times.live_ranges[from]?.1 == time
            && liveness.at_last[from] == 1;
        let alike = graph.tensor(id).dtype == graph.tensor(*out).dtype
            && device_of(graph, from) == device_of(graph, to)
            && layouts[id.index()].as_ref()? == wanted
            && layouts[graph.buffers[from].root.index()].as_ref()?.numel() == wanted.numel();
        // Elements read at other positions as well would be overwritten too early.
        let mut only_so = true;
        let mut look = |other: TensorId| {
            only_so &= graph.buffer_of(other).index() != from
                || (graph.tensor(other).dtype == graph.tensor(id).dtype
                    && layouts[other.index()].as_ref() == Some(wanted));
        };
        node.args.iter().for_each(|arg| arg.for_each_tensor(&mut look));
        let mut read_otherwise = false;
        let mut read = |other: TensorId| read_otherwise |= graph.buffer_of(other).index() == from;
        node.args.iter().skip(1).filter(|_| updates).for_each(|arg| arg.for_each_tensor(&mut read));
        (from != to && dies && alike && only_so && !read_otherwise).then_some(from)
    };
    let candidates = if updates { 1 } else { node.args.len() };
    node.args.iter().take(candidates).find_map(|arg| match arg {
        Argument::Tensor(id) => Some((fits(*id)?, to)),
        _ => None,
    })
}
