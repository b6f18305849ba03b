//! Fusion: element-wise calls that run tile by tile instead of one after the other.
//!
//! In: a graph and the layouts of its tensors. Out: groups of consecutive calls of one shape. All calls of a group run
//! for one tile of elements before the next, so intermediate results stay in the processor's cache, and those that no
//! other node uses have memory for a tile alone. Every call is the kernel that would run anyway, on fewer elements, so
//! results keep their bits. Must not know the execution of tiles.
//!
//! A group is sound if its calls compute each element from elements at the same index: an element-wise operator does
//! for its inputs, which are broadcast, but what a call of the group writes must be read by the others at that index,
//! too ([`Access::aligned`]).

use std::collections::HashMap;
use std::ops::Range;

use opsmith_runtime::device::Device;
use opsmith_runtime::layout::{Dims, Layout, broadcasts};
use opsmith_runtime::parallel::CHUNK;

use super::offsets::{self, Lifetime};
use crate::ir::{Argument, BufferId, BufferKind, Graph, Node, NodeKind, RunState, TensorId, Variant};

/// Maximal number of elements of a tile: so few that a kernel does not use several threads for them, and so many that a
/// call costs little beside its kernel.
pub(crate) const TILE: i64 = CHUNK as i64;

/// Consecutive nodes that run tile by tile.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Group {
    /// The nodes: calls, copies, and views between them.
    pub nodes: Range<usize>,
    /// The shape of every result.
    pub sizes: Dims,
    /// Maximal number of elements of a tile.
    pub tile: i64,
    /// Buffers that exist for a tile alone, by number, with their offset in bytes in a tile's memory.
    pub private: Vec<(usize, usize)>,
    /// Memory of one tile in bytes.
    pub bytes: usize,
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
    pub fn of(graph: &Graph, layouts: &[Option<Layout>], cleared: &[BufferId]) -> Fusion {
        let Some(tile) = graph.tile else { return Fusion::default() };
        let finder = Finder { graph, layouts, ranges: node_ranges(graph), cleared, tile };
        Fusion { groups: finder.groups() }
    }

    /// Memory of a tile of any group in bytes.
    pub fn tile_bytes(&self) -> usize {
        self.groups.iter().map(|group| group.bytes).max().unwrap_or(0)
    }

    /// The buffers that exist for a tile alone, with their offsets.
    pub fn private(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
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
#[derive(Clone, Copy)]
struct Access {
    /// The first tensor over it.
    tensor: TensorId,
    written: bool,
    /// Whether the first call that uses it writes it without reading it.
    made: bool,
    /// Whether all tensors over it have one layout, of the group's shape, and one dtype.
    aligned: bool,
    /// Number of calls that use it.
    calls: usize,
}

/// A group that may grow.
struct Open {
    start: usize,
    /// The last call and one.
    end: usize,
    sizes: Dims,
    calls: usize,
    accesses: HashMap<usize, Access>,
}

impl Open {
    fn at(start: usize, sizes: Dims) -> Open {
        Open { start, end: start, sizes, calls: 0, accesses: HashMap::new() }
    }
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
            let sizes = self.shape_of(node);
            let fits = |group: &&mut Open| Some(&group.sizes) == sizes.as_ref();
            if open.as_mut().filter(fits).is_some_and(|group| self.add(group, number, node)) {
                continue;
            }
            groups.extend(open.take().and_then(|group| self.close(group)));
            let group = sizes.map(|sizes| Open::at(number, sizes));
            open = group.and_then(|mut group| self.add(&mut group, number, node).then_some(group));
        }
        groups.extend(open.and_then(|group| self.close(group)));
        groups
    }

    /// The shape of a node's results if it may be in a group: of an element-wise call or a copy on the host, of more
    /// elements than a tile.
    fn shape_of(&self, node: &Node) -> Option<Dims> {
        match &node.kind {
            NodeKind::Call { op, .. } if op.forms.elementwise && op.facts.deterministic => {}
            NodeKind::Copy => {}
            _ => return None,
        }
        let lists = |arg: &Argument| matches!(arg, Argument::Tensors(_) | Argument::OptionalTensors(_));
        if node.args.iter().any(lists) {
            return None;
        }
        let layout = self.layouts[node.outs.first()?.index()].as_ref()?;
        let mut fits = layout.numel() > self.tile;
        let mut look = |id: TensorId, is_output: bool| {
            let Some(other) = &self.layouts[id.index()] else { return fits = false };
            let same = other.sizes == layout.sizes;
            fits &= self.graph.tensor(id).device == Device::CPU
                && if is_output { same } else { broadcasts(&other.sizes, &layout.sizes) };
        };
        node.outs.iter().for_each(|id| look(*id, true));
        node.args.iter().for_each(|arg| arg.for_each_tensor(|id| look(id, false)));
        fits.then(|| layout.sizes.clone())
    }

    /// Adds a call to a group, if no call then reads or writes an element that another writes at another index.
    fn add(&self, group: &mut Open, number: usize, node: &Node) -> bool {
        let mut changed: Vec<(usize, Access)> = Vec::new();
        let mut touch = |id: TensorId, written: bool| {
            let buffer = self.graph.buffer_of(id).index();
            let position = changed.iter().position(|(known, _)| *known == buffer);
            let known = position.map(|position| changed[position].1);
            let before = known.or_else(|| group.accesses.get(&buffer).copied());
            let new = Access {
                tensor: id,
                written,
                made: written,
                aligned: self.has_shape(id, &group.sizes),
                calls: 1,
            };
            let access = before.map_or(new, |before| Access {
                tensor: before.tensor,
                written: before.written | written,
                made: before.made,
                aligned: before.aligned && self.are_alike(before.tensor, id),
                calls: before.calls + usize::from(known.is_none()),
            });
            match position {
                Some(position) => changed[position].1 = access,
                None => changed.push((buffer, access)),
            }
        };
        node.for_each_read(&mut |id| touch(id, false));
        node.for_each_write(&mut |id| touch(id, true));
        if changed.iter().any(|(_, access)| access.written && !access.aligned) {
            return false;
        }
        group.accesses.extend(changed);
        group.calls += 1;
        group.end = number + 1;
        true
    }

    fn has_shape(&self, id: TensorId, sizes: &Dims) -> bool {
        self.layouts[id.index()].as_ref().is_some_and(|layout| layout.sizes == *sizes)
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
        let lifetimes: Vec<Lifetime> = private
            .iter()
            .map(|&buffer| {
                let (first, last) = self.ranges[buffer].expect("a node of the group uses it");
                let root = self.graph.buffers[buffer].root;
                Lifetime { bytes: self.tile as usize * self.graph.tensor(root).dtype.size(), first, last }
            })
            .collect();
        let assignment = offsets::assign(&lifetimes);
        let private = private.into_iter().zip(assignment.offsets).collect();
        Some(Group { nodes, sizes: open.sizes, tile: self.tile, private, bytes: assignment.bytes })
    }

    /// Whether a buffer is used by the group alone, each element after it was written.
    fn is_private(&self, buffer: usize, access: &Access, nodes: &Range<usize>) -> bool {
        let root = self.graph.buffers[buffer].root;
        let contiguous = self.layouts[root.index()].as_ref().is_some_and(Layout::is_contiguous);
        matches!(self.graph.buffers[buffer].kind, BufferKind::Internal)
            && access.made
            && access.aligned
            && contiguous
            && self.are_alike(root, access.tensor)
            && self.ranges[buffer].is_some_and(|(first, last)| nodes.start <= first && last < nodes.end)
            && !self.graph.outputs.iter().any(|output| self.graph.buffer_of(*output).index() == buffer)
            && !self.cleared.iter().any(|cleared| cleared.index() == buffer)
    }
}
