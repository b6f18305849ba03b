//! Fusion: calls that run tile by tile instead of one after the other; on devices, as one kernel (`plan/chains`).
//!
//! In: a graph and the layouts of its tensors. Out: groups of consecutive calls with common rows. All calls of a group
//! run for one tile of rows before the next, so intermediate results stay in the processor's cache, and those that no
//! other node uses have memory for a tile alone. Every call is the kernel that would run anyway, on fewer rows, so
//! results keep their bits. Must not know the execution of tiles.
//!
//! A group is sound if its calls compute each row from the same row: [`Rows`] are so divided, and the tensors that a
//! call of the group writes must be read by the others at that row, too ([`Access::tensors`]). The rows of element-wise
//! calls of one shape are single elements.

use std::collections::HashMap;
use std::ops::Range;

use opsmith_runtime::layout::{Dims, Layout};
use opsmith_runtime::parallel::CHUNK;
use smallvec::{SmallVec, smallvec};

use super::bind::Bound;
use super::chains::{self, Links};
use super::offsets::{self, Lifetime};
use super::rows::{Rows, placement};
use crate::ir::{BufferId, BufferKind, Graph, Node, NodeKind, RunState, TensorId, Variant};

/// Maximal number of elements of a tile: so few that a kernel does not use several threads for them, and so many that a
/// call costs little beside its kernel.
pub(crate) const TILE: i64 = CHUNK as i64;

/// Maximal number of elements of a row, in tiles: a tile of one row of a few tensors still fits the second cache.
const LONGEST: i64 = 4;

/// Consecutive nodes that run tile by tile, or as one kernel.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The nodes: calls, copies, and views between them.
    pub nodes: Range<usize>,
    /// Sizes of the leading dimensions that all calls have: each index of them is a row.
    pub outer: Dims,
    /// Maximal number of rows of a tile.
    pub rows: i64,
    /// Whether it has calls by lines, which depend on the number of dimensions.
    pub by_lines: bool,
    /// Buffers that exist for a tile alone, by number, with their offset in bytes in a tile's memory; in a kernel they exist in
    /// registers.
    pub private: Vec<(usize, Option<usize>)>,
    /// Memory of one tile in bytes.
    pub bytes: usize,
    /// The loops, if the nodes run as one kernel of a device.
    pub links: Option<Links>,
}

impl Graph {
    /// The graph with consecutive element-wise calls in tiles of at most so many elements. For tests of small tensors:
    /// programs use [`Pass::Fusion`](crate::Pass::Fusion), which knows how many are fast.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tiles(mut self, elements: i64) -> Graph {
        self.tile = Some(elements.max(1));
        self.state = RunState::default();
        let variants = std::mem::take(&mut self.variants).into_iter();
        self.variants = variants
            .map(|variant| Variant { graph: variant.graph.with_tiles(elements), ..variant })
            .collect();
        self
    }
}

/// The groups of a graph, in the order of their nodes.
#[derive(Default)]
pub(crate) struct Fusion {
    pub groups: Vec<Group>,
}

impl Fusion {
    /// The groups of a graph; none if it is not to be fused.
    pub fn of(graph: &Graph, bound: &Bound) -> Fusion {
        let Some(tile) = graph.tile else { return Fusion::default() };
        let ranges = node_ranges(graph);
        let chains = chains::groups(graph, bound, &ranges);
        let finder = Finder { graph, layouts: &bound.layouts, ranges, cleared: &bound.cleared, tile };
        let mut groups = finder.groups();
        // Each begins and ends with a call on its own side, so that none contains a part of another.
        groups.extend(chains);
        groups.sort_by_key(|group| group.nodes.start);
        Fusion { groups }
    }

    /// Memory of a tile of any group in bytes.
    pub fn tile_bytes(&self) -> usize {
        self.groups.iter().map(|group| group.bytes).max().unwrap_or(0)
    }

    /// The buffers that exist for a tile alone, with their offsets, or in registers.
    pub fn private(&self) -> impl Iterator<Item = (usize, Option<usize>)> + '_ {
        self.groups.iter().flat_map(|group| group.private.iter().copied())
    }

    /// The group of a node.
    pub fn group_of(&self, node: usize) -> Option<&Group> {
        let position = self.groups.partition_point(|group| group.nodes.end <= node);
        self.groups.get(position).filter(|group| group.nodes.contains(&node))
    }
}

/// The first and last node that uses each buffer.
fn node_ranges(graph: &Graph) -> Vec<Option<(usize, usize)>> {
    let mut ranges: Vec<Option<(usize, usize)>> = vec![None; graph.buffers.len()];
    for (number, node) in graph.nodes.iter().enumerate() {
        let mut touch = |id: TensorId| {
            ranges[graph.buffer_of(id).index()].get_or_insert((number, number)).1 = number;
        };
        node.for_each_read(&mut touch);
        node.for_each_write(&mut touch);
    }
    ranges
}

/// How the calls of a group use a buffer.
#[derive(Clone)]
struct Access {
    /// A tensor over it for each layout and dtype, in the order of their use.
    tensors: SmallVec<[TensorId; 2]>,
    written: bool,
    /// Whether the first call that uses it writes it without reading it.
    made: bool,
    /// Whether each call that uses it has its dimensions: a call may read a tensor with fewer, whose leading ones then are
    /// others, or which is the same for all rows.
    whole: bool,
    /// Number of calls that use it.
    calls: usize,
}

/// A group that may grow.
struct Open {
    start: usize,
    /// The last call and one.
    end: usize,
    outer: Dims,
    /// The shapes of calls.
    shapes: SmallVec<[Dims; 2]>,
    /// Elements of the largest tensor.
    largest: i64,
    by_lines: bool,
    calls: usize,
    accesses: HashMap<usize, Access>,
}

impl Open {
    fn at(start: usize, rows: &Rows) -> Open {
        Open {
            start,
            end: start,
            outer: rows.outer.clone(),
            shapes: SmallVec::new(),
            largest: 0,
            by_lines: false,
            calls: 0,
            accesses: HashMap::new(),
        }
    }

    /// Elements of the largest row.
    fn row(&self) -> i64 {
        self.largest / count(&self.outer)
    }
}

/// Number of elements of a shape.
fn count(sizes: &[i64]) -> i64 {
    sizes.iter().product()
}

struct Finder<'a> {
    graph: &'a Graph,
    layouts: &'a [Option<Layout>],
    ranges: Vec<Option<(usize, usize)>>,
    cleared: &'a [BufferId],
    /// Maximal number of elements of a tile.
    tile: i64,
}

impl Finder<'_> {
    fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut open: Option<Open> = None;
        for (number, node) in self.graph.nodes.iter().enumerate() {
            if matches!(node.kind, NodeKind::View { .. }) {
                continue;
            }
            let rows = Rows::of(self.graph, self.layouts, node);
            if let (Some(group), Some(rows)) = (&mut open, &rows)
                && self.add(group, number, node, rows)
            {
                continue;
            }
            groups.extend(open.take().and_then(|group| self.close(group)));
            // Less than a tile stays in the cache as it is.
            let first = rows.filter(|rows| count(&rows.sizes) > self.tile);
            open = first.and_then(|rows| {
                let mut group = Open::at(number, &rows);
                self.add(&mut group, number, node, &rows).then_some(group)
            });
        }
        groups.extend(open.and_then(|group| self.close(group)));
        groups
    }

    /// Adds a call to a group, if they have rows in common, and no call then reads or writes a row that another writes as
    /// part of another row.
    fn add(&self, group: &mut Open, number: usize, node: &Node, rows: &Rows) -> bool {
        let common =
            std::iter::zip(&group.outer, &rows.outer).take_while(|(one, other)| one == other).count();
        let outer: Dims = group.outer[..common].into();
        let largest = group.largest.max(count(&rows.sizes));
        if count(&outer) < 2 || largest / count(&outer) > self.tile.saturating_mul(LONGEST) {
            return false;
        }
        let mut changed: Vec<(usize, Access)> = Vec::new();
        let mut touch = |id: TensorId, written: bool| {
            let buffer = self.graph.buffer_of(id).index();
            let rank = self.layouts[id.index()].as_ref().map(|layout| layout.sizes.len());
            let whole = rank == Some(rows.sizes.len()) || written && rows.by_lines;
            if let Some((_, access)) = changed.iter_mut().find(|(known, _)| *known == buffer) {
                self.extend(access, id, written, whole);
            } else if let Some(before) = group.accesses.get(&buffer) {
                let mut access = before.clone();
                access.calls += 1;
                self.extend(&mut access, id, written, whole);
                changed.push((buffer, access));
            } else {
                changed.push((
                    buffer,
                    Access { tensors: smallvec![id], written, made: written, whole, calls: 1 },
                ));
            }
        };
        node.for_each_read(&mut |id| touch(id, false));
        node.for_each_write(&mut |id| touch(id, true));
        // Calls of other shapes join only if that saves the way through memory.
        let known = group.calls == 0 || group.shapes.contains(&rows.sizes) && common == group.outer.len();
        if !known && changed.iter().all(|(buffer, _)| !group.accesses.contains_key(buffer)) {
            return false;
        }
        let is_sound = |access: &Access| !access.written || self.is_aligned(access, &outer);
        if !changed.iter().all(|(_, access)| is_sound(access)) {
            return false;
        }
        // Rows of fewer dimensions are larger, so those of each buffer are looked at again.
        if common < group.outer.len() && !group.accesses.values().all(is_sound) {
            return false;
        }
        if !group.shapes.contains(&rows.sizes) {
            group.shapes.push(rows.sizes.clone());
        }
        group.accesses.extend(changed);
        (group.outer, group.largest) = (outer, largest);
        group.by_lines |= rows.by_lines;
        group.calls += 1;
        group.end = number + 1;
        true
    }

    /// Whether the tensors over a buffer have each row in the same elements of it, which no other row has.
    fn is_aligned(&self, access: &Access, outer: &[i64]) -> bool {
        let layout = |id: TensorId| self.layouts[id.index()].as_ref();
        let Some((&first, others)) = access.tensors.split_first() else { return true };
        if !access.whole || layout(first).and_then(|layout| layout.sizes.get(..outer.len())) != Some(outer) {
            return false;
        }
        let place = |id: TensorId| layout(id).and_then(|layout| placement(layout, outer));
        let mut place_of_first = None;
        others.iter().all(|&other| {
            let first_place = place_of_first.get_or_insert_with(|| place(first));
            self.graph.tensor(first).dtype == self.graph.tensor(other).dtype
                && first_place.is_some()
                && *first_place == place(other)
        })
    }

    /// Adds a use of a buffer by another tensor of the same call, or by a later call.
    fn extend(&self, access: &mut Access, id: TensorId, written: bool, whole: bool) {
        access.written |= written;
        access.whole &= whole;
        if !access.tensors.iter().any(|known| self.are_alike(*known, id)) {
            access.tensors.push(id);
        }
    }

    fn are_alike(&self, one: TensorId, other: TensorId) -> bool {
        self.layouts[one.index()] == self.layouts[other.index()]
            && self.graph.tensor(one).dtype == self.graph.tensor(other).dtype
    }

    /// The group, if several calls share a buffer.
    fn close(&self, open: Open) -> Option<Group> {
        if open.calls < 2 || open.accesses.values().all(|access| access.calls < 2) {
            return None;
        }
        let nodes = open.start..open.end;
        let mut private: Vec<usize> = open
            .accesses
            .iter()
            .filter(|(buffer, access)| self.is_private(**buffer, access, &nodes))
            .map(|(buffer, _)| *buffer)
            .collect();
        private.sort_unstable();
        let rows = (self.tile / open.row().max(1)).clamp(1, count(&open.outer));
        let lifetimes: Vec<Lifetime> = private
            .iter()
            .map(|&buffer| {
                let (first, last) = self.ranges[buffer].expect("a node of the group uses it");
                let root = self.graph.buffers[buffer].root;
                let numel = self.layouts[root.index()].as_ref().map_or(0, Layout::numel);
                let elements = rows * (numel / count(&open.outer));
                Lifetime { bytes: elements as usize * self.graph.tensor(root).dtype.size(), first, last }
            })
            .collect();
        let assignment = offsets::assign(&lifetimes);
        let private = private.into_iter().zip(assignment.offsets.into_iter().map(Some)).collect();
        let Open { outer, by_lines, .. } = open;
        Some(Group { nodes, outer, rows, by_lines, private, bytes: assignment.bytes, links: None })
    }

    /// Whether a buffer is used by the group alone, each element after it was written.
    fn is_private(&self, buffer: usize, access: &Access, nodes: &Range<usize>) -> bool {
        let root = self.graph.buffers[buffer].root;
        let contiguous = self.layouts[root.index()].as_ref().is_some_and(Layout::is_contiguous);
        matches!(self.graph.buffers[buffer].kind, BufferKind::Internal)
            && access.made
            && contiguous
            && access.tensors.first().is_some_and(|first| self.are_alike(root, *first))
            && self.ranges[buffer].is_some_and(|(first, last)| nodes.start <= first && last < nodes.end)
            && !self.graph.outputs.iter().any(|output| self.graph.buffer_of(*output).index() == buffer)
            && !self.cleared.iter().any(|cleared| cleared.index() == buffer)
    }
}
