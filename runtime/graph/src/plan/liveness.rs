//! Liveness and buffer assignment.
//!
//! In: a graph, the sizes of its buffers, and the schedule level of each node. Out: a [`BufferAssignment`]: for each
//! buffer its live range, and its location: a caller's memory, a constant, a result, or the arena. Allocates nothing,
//! so that a graph's memory can be shown without a run.

use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::layout::Layout;

use super::fusion::Fusion;
use super::lent::{Room, lend};
use super::offsets::{self, Lifetime};
use super::reuse::Reuse;
use super::times::Times;
use crate::ir::{BufferId, BufferKind, Graph, TensorId};

/// The location of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BufferLocation {
    /// Unused.
    Nowhere,
    /// In an input, memory of the caller.
    Input,
    /// In a constant.
    Constant,
    /// In an output, memory given to the caller.
    Result,
    /// In the arena of a device.
    Arena {
        /// The device of the arena.
        device: Device,
        /// Offset in bytes.
        offset: usize,
    },
    /// In an output's memory, until that is written.
    Lent {
        /// The output's buffer.
        result: usize,
        /// Offset in bytes.
        offset: usize,
    },
    /// In memory of a tile of a fused group.
    Tile {
        /// Offset in bytes.
        offset: usize,
    },
    /// In registers of a fused group's kernel.
    Register,
}

/// Memory of a device for all private buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arena {
    pub device: Device,
    /// Its size.
    pub bytes: usize,
    /// Lower bound of its size.
    pub lower_bound: usize,
}

/// The locations and live ranges of all buffers.
pub(crate) struct BufferAssignment {
    pub locations: Vec<BufferLocation>,
    /// The first and last level at which each buffer is live.
    pub live_ranges: Vec<Option<(usize, usize)>>,
    /// The buffer whose memory a buffer reuses, if any.
    pub shares: Vec<Option<usize>>,
    pub written: Vec<bool>,
    /// An arena for each device that has a buffer in one.
    pub arenas: Vec<Arena>,
}

/// The live ranges of buffers.
pub(crate) struct Liveness {
    /// The first and last level that uses each buffer.
    pub live_ranges: Vec<Option<(usize, usize)>>,
    /// The first node that uses each buffer.
    pub(super) first_nodes: Vec<Option<usize>>,
    /// Number of nodes that use each buffer at its last level.
    pub(super) at_last: Vec<usize>,
    written: Vec<bool>,
    /// Whether an output is a tensor over the buffer.
    pub(super) is_result: Vec<bool>,
    /// Whether it exists for a tile of a fused group, or in its registers, alone.
    is_tile: Vec<bool>,
}

impl Liveness {
    pub fn of(graph: &Graph, levels: &[usize]) -> Liveness {
        let count = graph.buffers.len();
        let mut liveness = Liveness {
            live_ranges: vec![None; count],
            first_nodes: vec![None; count],
            at_last: vec![0; count],
            written: vec![false; count],
            is_result: vec![false; count],
            is_tile: vec![false; count],
        };
        // The last node that used a buffer, so that each node is counted once.
        let mut counted = vec![usize::MAX; count];
        for (number, node) in graph.nodes.iter().enumerate() {
            let level = levels[number];
            let Liveness { live_ranges, first_nodes, at_last, written, .. } = &mut liveness;
            let mut touch = |id: TensorId| {
                let buffer = graph.buffer_of(id).index();
                if std::mem::replace(&mut counted[buffer], number) == number {
                    return;
                }
                first_nodes[buffer].get_or_insert(number);
                let range = live_ranges[buffer].get_or_insert((level, level));
                if level > range.1 {
                    at_last[buffer] = 0;
                }
                *range = (range.0.min(level), range.1.max(level));
                at_last[buffer] += usize::from(level == range.1);
            };
            node.for_each_read(&mut touch);
            node.for_each_write(&mut touch);
            node.for_each_write(&mut |id| written[graph.buffer_of(id).index()] = true);
        }
        for output in &graph.outputs {
            liveness.is_result[graph.buffer_of(*output).index()] = true;
        }
        liveness
    }

    pub(super) fn in_arena(&self, graph: &Graph, buffer: usize) -> bool {
        self.is_private(graph, buffer) && !self.is_result[buffer]
    }

    /// Whether it is in an arena or a result.
    pub(super) fn is_private(&self, graph: &Graph, buffer: usize) -> bool {
        matches!(graph.buffers[buffer].kind, BufferKind::Internal)
            && !self.is_tile[buffer]
            && self.live_ranges[buffer].is_some()
    }
}

impl BufferAssignment {
    /// Assigns the buffers of a graph; the `cleared` ones are live from the start.
    ///
    /// # Errors
    /// If the size of a live buffer is unknown, or their sum cannot be addressed.
    pub fn new(
        graph: &Graph,
        layouts: &[Option<Layout>],
        levels: &[usize],
        fusion: &Fusion,
        cleared: &[BufferId],
    ) -> Result<BufferAssignment> {
        check_total(graph, layouts)?;
        let mut liveness = Liveness::of(graph, levels);
        fusion.private().for_each(|(buffer, _)| liveness.is_tile[buffer] = true);
        for buffer in cleared {
            if let Some(range) = &mut liveness.live_ranges[buffer.index()] {
                range.0 = 0;
            }
        }
        let mut times = Times::new(graph, levels, &liveness.live_ranges);
        cleared.iter().for_each(|buffer| times.keep(buffer.index(), liveness.live_ranges[buffer.index()]));
        let reuse = Reuse::new(graph, &liveness, times, layouts, levels);
        let count = graph.buffers.len();
        let mut locations: Vec<BufferLocation> = (0..count)
            .map(|buffer| match graph.buffers[buffer].kind {
                BufferKind::Input(_) => BufferLocation::Input,
                BufferKind::Constant(_) => BufferLocation::Constant,
                BufferKind::Internal if liveness.is_result[buffer] => BufferLocation::Result,
                BufferKind::Internal => BufferLocation::Nowhere,
            })
            .collect();
        fusion.private().for_each(|(buffer, offset)| {
            locations[buffer] =
                offset.map_or(BufferLocation::Register, |offset| BufferLocation::Tile { offset });
        });
        for (buffer, result) in reuse.results.iter().enumerate() {
            if let Some(result) = *result {
                locations[buffer] = BufferLocation::Lent { result, offset: 0 };
            }
        }
        let placed = |buffer: &usize| {
            liveness.in_arena(graph, *buffer)
                && reuse.shares[*buffer].is_none()
                && reuse.results[*buffer].is_none()
        };
        let mut left: Vec<usize> = (0..count).filter(placed).collect();
        let mut arenas = Vec::new();
        while let Some(&first) = left.first() {
            let device = device_of(graph, first);
            let (here, others): (Vec<usize>, Vec<usize>) =
                left.into_iter().partition(|buffer| device_of(graph, *buffer) == device);
            left = others;
            arenas.push(place(graph, layouts, &reuse, device, &here, &mut locations)?);
        }
        for buffer in 0..count {
            if reuse.shares[buffer].is_some() {
                locations[buffer] = locations[reuse.firsts[buffer]];
            }
        }
        Ok(BufferAssignment {
            locations,
            live_ranges: liveness.live_ranges,
            shares: reuse.shares,
            written: liveness.written,
            arenas,
        })
    }
}

/// Places the buffers of a device: in the memory of results before these are written, and in an arena.
fn place(
    graph: &Graph,
    layouts: &[Option<Layout>],
    reuse: &Reuse,
    device: Device,
    here: &[usize],
    locations: &mut [BufferLocation],
) -> Result<Arena> {
    let lifetimes = here.iter().map(|&buffer| {
        let (first, last) = reuse.live_ranges[buffer].expect("only buffers that are needed are in an arena");
        Ok(Lifetime { bytes: bytes(graph, layouts, buffer)?, first, last })
    });
    let lifetimes = lifetimes.collect::<Result<Vec<_>>>()?;
    let results: Vec<usize> = (0..locations.len())
        .filter(|&buffer| locations[buffer] == BufferLocation::Result)
        .filter(|&buffer| device_of(graph, buffer) == device)
        .collect();
    let rooms = results.iter().filter_map(|&buffer| {
        let until = reuse.live_ranges[buffer]?.0.min(reuse.taken_from[buffer]);
        Some(bytes(graph, layouts, buffer).map(|bytes| Room { bytes, until }))
    });
    let lent = lend(&lifetimes, &rooms.collect::<Result<Vec<_>>>()?);
    let mut kept = Vec::with_capacity(here.len());
    for ((&buffer, lent), lifetime) in here.iter().zip(lent).zip(lifetimes) {
        match lent {
            Some((room, offset)) => {
                locations[buffer] = BufferLocation::Lent { result: results[room], offset };
            }
            None => kept.push((buffer, lifetime)),
        }
    }
    let lifetimes: Vec<Lifetime> = kept.iter().map(|(_, lifetime)| *lifetime).collect();
    let offsets = offsets::assign(&lifetimes);
    for ((buffer, _), &offset) in kept.iter().zip(&offsets.offsets) {
        locations[*buffer] = BufferLocation::Arena { device, offset };
    }
    Ok(Arena { device, bytes: offsets.bytes, lower_bound: offsets::lower_bound(&lifetimes) })
}

/// The device of a buffer.
pub(super) fn device_of(graph: &Graph, buffer: usize) -> Device {
    graph.tensor(graph.buffers[buffer].root).device
}

/// Rejects sizes for which the sum of all buffers' bytes overflows.
fn check_total(graph: &Graph, layouts: &[Option<Layout>]) -> Result<()> {
    let sizes = graph.buffers.iter().filter_map(|buffer| {
        let layout = layouts[buffer.root.index()].as_ref()?;
        Some(layout.numel() as usize * graph.tensor(buffer.root).dtype.size() + offsets::ALIGNMENT)
    });
    let total = sizes.into_iter().try_fold(0usize, usize::checked_add);
    match total.filter(|total| isize::try_from(*total).is_ok()) {
        Some(_) => Ok(()),
        None => Err(Error::memory("the graph's tensors have more bytes than can be addressed")
            .with_help("run it with smaller sizes")),
    }
}

/// The size of a buffer in bytes.
///
/// # Errors
/// If its size is unknown.
pub(crate) fn bytes(graph: &Graph, layouts: &[Option<Layout>], buffer: usize) -> Result<usize> {
    let root = graph.buffers[buffer].root;
    let layout = layouts[root.index()]
        .as_ref()
        .ok_or_else(|| Error::graph(format!("the size of tensor {} is not known", root.0)))?;
    Ok(layout.numel() as usize * graph.tensor(root).dtype.size())
}
