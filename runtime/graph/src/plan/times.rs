//! Memory times: live ranges finer than levels, within nodes that have regions.
//!
//! In: a graph and the level of each node. Out: the first and last time at which each buffer is live. A level of a node with
//! regions is as many times as its regions have nodes, one region after the other: of two branches one runs, and of a body's own
//! tensors no iteration needs those of another. A buffer that is used outside of a region is live for the whole node, and so is
//! one that a loop carries, which its node mentions.

use std::collections::HashMap;

use crate::ir::{Graph, Node, NodeKind, TensorId};

type Range = (usize, usize);

/// Times of levels, nodes and buffers.
pub(super) struct Times<'a> {
    /// The first and last time at which each buffer is live.
    pub live_ranges: Vec<Option<Range>>,
    /// The first time of each branch that writes a result of its node, by buffer.
    first_in_branches: HashMap<usize, Vec<usize>>,
    /// The nodes in regions, with the node of the graph that they are in and their time.
    pub nested: Vec<(usize, usize, &'a Node)>,
    /// The first time of each level, and of the one after the last.
    starts: Vec<usize>,
}

impl<'a> Times<'a> {
    /// From the live ranges by level.
    pub fn new(graph: &'a Graph, levels: &[usize], by_level: &[Option<Range>]) -> Times<'a> {
        let count = levels.iter().max().map_or(0, |last| last + 1);
        let mut times = Times {
            live_ranges: by_level.to_vec(),
            first_in_branches: HashMap::new(),
            nested: Vec::new(),
            starts: (0..=count).collect(),
        };
        if graph.nodes.iter().all(|node| node.kind.regions().is_empty()) {
            return times;
        }
        let mut widths = vec![1; count];
        for (node, &level) in graph.nodes.iter().zip(levels) {
            widths[level] = widths[level].max(width(node));
        }
        for (level, width) in widths.iter().enumerate() {
            times.starts[level + 1] = times.starts[level] + width;
        }
        for range in times.live_ranges.iter_mut().flatten() {
            *range = (times.starts[range.0], times.starts[range.1 + 1] - 1);
        }
        let mut mentions = HashMap::new();
        for node in &graph.nodes {
            count_mentions(graph, node, &mut mentions);
        }
        for (number, node) in graph.nodes.iter().enumerate() {
            let mut time = times.starts[levels[number]] + 1;
            for region in node.kind.regions() {
                for (buffer, (_, range)) in times.region(graph, &mentions, number, &region.nodes, &mut time) {
                    if !is_result_of_branches(graph, node, buffer) {
                        continue;
                    }
                    let begins = times.starts[levels[number]];
                    if let Some(known) = times.live_ranges[buffer].as_mut().filter(|known| known.0 == begins)
                    {
                        known.0 = range.0;
                    }
                    if by_level[buffer].is_some_and(|(first, _)| first == levels[number]) {
                        times.first_in_branches.entry(buffer).or_default().push(range.0);
                    }
                }
            }
        }
        times
    }

    /// Whether nothing used a buffer before a time, on the path that leads there.
    pub fn begins(&self, buffer: usize, time: usize) -> bool {
        let begins = self.live_ranges[buffer].is_some_and(|(first, _)| first == time);
        begins || self.first_in_branches.get(&buffer).is_some_and(|times| times.contains(&time))
    }

    /// The time of a node outside of regions, by its level.
    pub fn of_level(&self, level: usize) -> usize {
        self.starts[level]
    }

    /// Keeps a buffer alive from the start to the end of its last level: elements that a loop leaves there live on.
    pub fn keep(&mut self, buffer: usize, by_level: Option<Range>) {
        if let Some((_, last)) = by_level {
            self.live_ranges[buffer] = Some((0, self.starts[last + 1] - 1));
        }
    }

    /// Goes over a region's nodes from a time on; returns how often, and when, each buffer is mentioned there. Those mentioned
    /// nowhere else get their range.
    fn region(
        &mut self,
        graph: &Graph,
        all: &HashMap<usize, usize>,
        number: usize,
        nodes: &'a [Node],
        time: &mut usize,
    ) -> HashMap<usize, (usize, Range)> {
        let mut seen: HashMap<usize, (usize, Range)> = HashMap::new();
        let mut see = |buffer: usize, count: usize, range: Range| {
            let known = seen.entry(buffer).or_insert((0, range));
            known.0 += count;
            known.1 = (known.1.0.min(range.0), known.1.1.max(range.1));
        };
        for node in nodes {
            let range = (*time, *time + width(node) - 1);
            self.nested.push((number, *time, node));
            for_each_own(node, &mut |id| {
                let buffer = graph.buffer_of(id).index();
                let is_result = is_result_of_branches(graph, node, buffer);
                see(buffer, 1, if is_result { (range.1, range.1) } else { range });
            });
            let mut inner = *time + 1;
            for region in node.kind.regions() {
                for (buffer, (count, part)) in self.region(graph, all, number, &region.nodes, &mut inner) {
                    let is_result = is_result_of_branches(graph, node, buffer);
                    if all[&buffer] > count {
                        see(buffer, count, if is_result { part } else { range });
                    }
                }
            }
            *time = range.1 + 1;
        }
        for (buffer, (count, range)) in &seen {
            if all[buffer] == *count {
                self.live_ranges[*buffer] = Some(*range);
            }
        }
        seen
    }
}

/// The number of times of a node: its beginning, those of its regions, and its end.
fn width(node: &Node) -> usize {
    let regions = node.kind.regions();
    if regions.is_empty() {
        return 1;
    }
    2 + regions.iter().flat_map(|region| &region.nodes).map(width).sum::<usize>()
}

/// Whether branches write a buffer, and their node does nothing with it before.
fn is_result_of_branches(graph: &Graph, node: &Node, buffer: usize) -> bool {
    let is = |id: TensorId| graph.buffer_of(id).index() == buffer;
    let mut is_read = false;
    node.args.iter().for_each(|arg| arg.for_each_tensor(|id| is_read |= is(id)));
    matches!(node.kind, NodeKind::Cond { .. }) && !is_read && node.outs.iter().any(|id| is(*id))
}

/// Calls `visit` with each tensor that a node itself reads or writes, apart from those in its regions.
fn for_each_own(node: &Node, visit: &mut dyn FnMut(TensorId)) {
    if matches!(node.kind, NodeKind::View { .. }) {
        return;
    }
    if let NodeKind::While { predicate, .. } = &node.kind {
        visit(*predicate);
    }
    node.args.iter().for_each(|arg| arg.for_each_tensor(&mut *visit));
    node.outs.iter().copied().for_each(visit);
}

fn count_mentions(graph: &Graph, node: &Node, mentions: &mut HashMap<usize, usize>) {
    for_each_own(node, &mut |id| *mentions.entry(graph.buffer_of(id).index()).or_default() += 1);
    for region in node.kind.regions() {
        region.nodes.iter().for_each(|node| count_mentions(graph, node, mentions));
    }
}
