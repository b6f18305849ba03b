//! Tiles of a fused group: where each begins, and the tensors over its elements.
//!
//! In: a group and the plan's tensors. Out: a [`Tiled`] step: calls over the tensors of one tile, and lanes, each with
//! such tensors and memory for intermediate results, so that several threads run tiles at once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use opsmith_runtime::device::Device;
use opsmith_runtime::error::Result;
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::layout::{Dims, Layout};
use opsmith_runtime::parallel;
use opsmith_runtime::storage::Storage;
use opsmith_runtime::tensor::Tensor;

use super::fusion::{Fusion, Group};
use super::rows::Rows;
use super::{Builder, Step, StepArg};
use crate::ir::{BufferKind, TensorId};

/// A group's calls, for tile after tile.
pub(crate) struct Tiled {
    /// The calls. Their tensors are positions in `operands`.
    pub steps: Vec<Step>,
    pub operands: Vec<Operand>,
    pub tiles: Tiles,
    lanes: Vec<Mutex<Lane>>,
    /// The storage of tensors over memory of callers between runs.
    nowhere: Storage,
}

/// A tensor that the calls use.
pub(crate) struct Operand {
    /// The tensor of all tiles.
    pub tensor: TensorId,
    /// Its location.
    home: Home,
    /// Its strides in the dimensions of [`Tiles`], 0 where it is broadcast.
    strides: Dims,
    /// A row: its sizes and strides; of a tensor that is the same for all rows, its own.
    row: (Dims, Dims),
    /// Whether it has rows.
    has_rows: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    /// In memory of a tile, at an offset in bytes.
    Tile(usize),
    /// In memory of the plan, or in a constant.
    Plan,
    /// In memory of a caller, which changes from run to run.
    Caller,
}

/// How rows are divided: by all dimensions before `cut`, and by ranges along that one.
pub(crate) struct Tiles {
    sizes: Dims,
    cut: usize,
    /// Positions along `cut` in a tile; the last one may have less.
    length: i64,
    /// Dimensions of size 1 before the others in a tile, so that it has as many dimensions as the whole.
    before: usize,
}

/// The tensors of one tile, by operand, and of a last tile with fewer elements.
pub(crate) struct Lane {
    full: Vec<Tensor>,
    rest: Vec<Tensor>,
}

impl Tiles {
    /// Tiles of at most so many rows, which have an index of a shape each.
    fn new(sizes: Dims, tile: i64) -> Tiles {
        let (mut cut, mut inner) = (sizes.len() - 1, 1);
        while cut > 0 && inner * sizes[cut] <= tile {
            inner *= sizes[cut];
            cut -= 1;
        }
        let length = (tile / inner).clamp(1, sizes[cut]);
        Tiles { sizes, cut, length, before: 0 }
    }

    /// Number of tiles.
    pub fn count(&self) -> usize {
        (self.sizes[..self.cut].iter().product::<i64>() * self.ranges()) as usize
    }

    fn ranges(&self) -> i64 {
        (self.sizes[self.cut] + self.length - 1) / self.length
    }

    /// Positions along the cut dimension in the last tile, if it has less than others.
    fn rest(&self) -> Option<i64> {
        Some(self.sizes[self.cut] % self.length).filter(|rest| *rest > 0)
    }

    /// The shape of the rows of a tile with so many positions along the cut dimension.
    fn shape(&self, length: i64) -> Dims {
        let before = std::iter::repeat_n(1, self.before);
        before.chain([length]).chain(self.sizes[self.cut + 1..].iter().copied()).collect()
    }

    /// The layout of an operand's elements in such a tile, from their first.
    fn layout(&self, length: i64, operand: &Operand) -> Layout {
        let (row_sizes, row_strides) = &operand.row;
        if !operand.has_rows {
            return Layout { sizes: row_sizes.clone(), strides: row_strides.clone(), offset: 0 };
        }
        let (mut sizes, steps) = (self.shape(length), &operand.strides[self.cut..]);
        sizes.extend_from_slice(row_sizes);
        let before = std::iter::repeat_n(steps[0].saturating_mul(length), self.before);
        Layout { sizes, strides: before.chain(steps.iter().chain(row_strides).copied()).collect(), offset: 0 }
    }

    /// Whether a tile has fewer elements than others.
    fn is_rest(&self, tile: usize) -> bool {
        self.rest().is_some() && (tile as i64 + 1) % self.ranges() == 0
    }

    /// Elements from a tensor's first one to its first in a tile.
    fn offset(&self, tile: usize, strides: &[i64]) -> i64 {
        let tile = tile as i64;
        let (mut before, range) = (tile / self.ranges(), tile % self.ranges());
        let mut offset = range * self.length * strides[self.cut];
        for dim in (0..self.cut).rev() {
            offset += before % self.sizes[dim] * strides[dim];
            before /= self.sizes[dim];
        }
        offset
    }
}

/// A shape and strides for it with neighbouring dimensions joined wherever every tensor steps through them as one.
fn joined(sizes: &[i64], strides: &[Dims]) -> (Dims, Vec<Dims>) {
    let (mut joined, mut steps): (Dims, Vec<Dims>) = (Dims::new(), vec![Dims::new(); strides.len()]);
    for dim in (0..sizes.len()).filter(|&dim| sizes[dim] != 1) {
        let continues = |(strides, steps): (&Dims, &Dims)| {
            steps.last().is_some_and(|step| *step == strides[dim] * sizes[dim])
        };
        let joins = !joined.is_empty() && strides.iter().zip(&steps).all(continues);
        match joined.last_mut() {
            Some(size) if joins => *size *= sizes[dim],
            _ => joined.push(sizes[dim]),
        }
        for (steps, strides) in steps.iter_mut().zip(strides) {
            if joins {
                steps.pop();
            }
            steps.push(strides[dim]);
        }
    }
    (joined, steps)
}

/// A tensor's strides in a shape that it broadcasts to.
fn broadcast_strides(layout: &Layout, sizes: &[i64]) -> Dims {
    let missing = sizes.len() - layout.sizes.len();
    let own = layout.sizes.iter().zip(&layout.strides);
    let own = own.zip(&sizes[missing..]).map(|((own, stride), size)| if own == size { *stride } else { 0 });
    std::iter::repeat_n(0, missing).chain(own).collect()
}

/// A tensor as calls of a group see it, with the shape that it is broadcast to and whether it has rows. It has none where calls
/// by lines read it as it is.
type Key = (TensorId, Dims, bool);

impl Builder<'_> {
    /// The step of a group. Groups run one at a time, and share the memory of tiles, one storage for each lane.
    pub(super) fn tiled(&mut self, group: &Group, memory: &[Storage]) -> Result<Tiled> {
        let mut keys: Vec<Key> = Vec::new();
        let mut positions: HashMap<Key, TensorId> = HashMap::new();
        let mut steps = Vec::new();
        for node in &self.graph.nodes[group.nodes.clone()] {
            let Some(mut step) = self.step(node)? else { continue };
            let rows = Rows::of(self.graph, &self.bound.layouts, node);
            let mut local = |id: &mut TensorId, is_output: bool| {
                let own = &self.plan.tensors[id.index()].layout().sizes;
                let key = match &rows {
                    Some(rows) if rows.by_lines => {
                        (*id, own.clone(), is_output || own.len() == rows.sizes.len())
                    }
                    rows => (*id, rows.as_ref().map_or(own, |rows| &rows.sizes).clone(), true),
                };
                *id = *positions.entry(key.clone()).or_insert_with(|| {
                    keys.push(key);
                    TensorId(keys.len() as u32 - 1)
                });
            };
            for arg in &mut step.args {
                if let StepArg::Tensor(id) = arg {
                    local(id, false);
                }
            }
            step.outs.iter_mut().for_each(|id| local(id, true));
            steps.push(step);
        }
        let (sizes, operands) = self.operands(group, keys);
        let mut tiles = Tiles::new(sizes, group.rows);
        if group.by_lines {
            tiles.before = group.outer.len() - (tiles.sizes.len() - tiles.cut);
        }
        let lanes = memory
            .iter()
            .map(|memory| {
                let tensors = |length| self.tile_tensors(&operands, &tiles, length, memory);
                let rest = tiles.rest().map_or_else(Vec::new, tensors);
                Mutex::new(Lane { full: tensors(tiles.length), rest })
            })
            .collect();
        Ok(Tiled { steps, operands, tiles, lanes, nowhere: self.plan.nowhere.clone() })
    }

    /// The sizes that tiles divide, and the operands over them.
    fn operands(&self, group: &Group, keys: Vec<Key>) -> (Dims, Vec<Operand>) {
        let rank = group.outer.len();
        let mut outer: Vec<Dims> = Vec::new();
        let mut rows: Vec<(Dims, Dims)> = Vec::new();
        for (id, sizes, has_rows) in &keys {
            let strides = broadcast_strides(self.plan.tensors[id.index()].layout(), sizes);
            if *has_rows {
                outer.push(strides[..rank].into());
                rows.push((sizes[rank..].into(), strides[rank..].into()));
            } else {
                outer.push(Dims::from_elem(0, rank));
                rows.push((sizes.clone(), strides));
            }
        }
        let (sizes, outer) = joined(&group.outer, &outer);
        let operands = keys
            .into_iter()
            .zip(outer.into_iter().zip(rows))
            .map(|((tensor, _, has_rows), (strides, row))| {
                let home = self.home(group, tensor);
                Operand { tensor, home, strides, row, has_rows }
            })
            .collect();
        (sizes, operands)
    }

    fn home(&self, group: &Group, tensor: TensorId) -> Home {
        let buffer = self.graph.buffer_of(tensor);
        let of_caller = |tensors: &Vec<TensorId>| tensors.contains(&tensor);
        if let Ok(position) = group.private.binary_search_by_key(&buffer.index(), |(private, _)| *private) {
            Home::Tile(group.private[position].1.unwrap_or(0))
        } else if matches!(self.graph.buffers[buffer.index()].kind, BufferKind::Input(_))
            || self.plan.results.iter().any(|result| of_caller(&result.tensors))
        {
            Home::Caller
        } else {
            Home::Plan
        }
    }

    fn tile_tensors(
        &self,
        operands: &[Operand],
        tiles: &Tiles,
        length: i64,
        memory: &Storage,
    ) -> Vec<Tensor> {
        let tensor = |operand: &Operand| {
            let whole = &self.plan.tensors[operand.tensor.index()];
            let mut layout = tiles.layout(length, operand);
            let storage = match operand.home {
                // The buffer is row-major: rows of a tile lie one after the other, as in the whole.
                Home::Tile(offset) => {
                    layout.offset = (offset / whole.dtype().size()) as i64 + whole.layout().offset;
                    memory
                }
                Home::Plan | Home::Caller => &self.plan.nowhere,
            };
            // SAFETY: the memory of a tile has room for the group's private buffers, whose elements are written before they
            // are read; the others are pointed at a tile before they are used.
            unsafe { Tensor::from_parts(storage.clone(), layout, whole.dtype(), whole.device()) }
        };
        operands.iter().map(tensor).collect()
    }
}

/// Memory for tiles of the largest group, for each thread that may run one; none without groups.
pub(super) fn tile_memory(fusion: &Fusion) -> Result<Vec<Storage>> {
    let on_host = fusion.groups.iter().any(|group| group.links.is_none());
    let lanes = if on_host { parallel::num_threads() } else { 0 };
    (0..lanes).map(|_| Storage::on(Device::CPU, fusion.tile_bytes())).collect()
}

impl Tiled {
    /// A lane that no other thread uses.
    pub fn lane(&self) -> MutexGuard<'_, Lane> {
        let free = self.lanes.iter().find_map(|lane| match lane.try_lock() {
            Ok(lane) => Some(lane),
            Err(TryLockError::Poisoned(lane)) => Some(lane.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        // More threads than there were when the plan was made.
        free.unwrap_or_else(|| self.lanes[0].lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tensors of a tile.
    pub fn point_at<'a>(&self, lane: &'a mut Lane, tile: usize, whole: &[Tensor]) -> &'a [Tensor] {
        let tensors = if self.tiles.is_rest(tile) { &mut lane.rest } else { &mut lane.full };
        for (tensor, operand) in tensors.iter_mut().zip(&self.operands) {
            if !matches!(operand.home, Home::Tile(_)) {
                let whole = &whole[operand.tensor.index()];
                let offset = whole.layout().offset + self.tiles.offset(tile, &operand.strides);
                let moved = offset - tensor.layout().offset;
                // SAFETY: the tile's elements are some of the whole tensor's.
                unsafe { tensor.point_at(whole.storage(), moved) }
            }
        }
        tensors
    }

    /// Releases memory of callers.
    pub fn let_go(&self) {
        for lane in &self.lanes {
            let mut lane = lane.lock().unwrap_or_else(PoisonError::into_inner);
            let Lane { full, rest } = &mut *lane;
            for tensors in [full, rest] {
                for (tensor, operand) in tensors.iter_mut().zip(&self.operands) {
                    if operand.home == Home::Caller {
                        let offset = tensor.layout().offset;
                        // SAFETY: the tensor is pointed at a tile before its elements are used.
                        unsafe { tensor.point_at(&self.nowhere, -offset) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use opsmith_runtime::layout::contiguous_strides;

    use super::*;

    fn dims(numbers: &[i64]) -> Dims {
        numbers.into()
    }

    #[test]
    fn dimensions_join_where_all_tensors_agree() {
        let strides = [dims(&[12, 4, 1]), dims(&[0, 0, 0])];
        assert_eq!(joined(&[2, 3, 4], &strides), (dims(&[24]), vec![dims(&[1]), dims(&[0])]));
        let row = [dims(&[12, 4, 1]), dims(&[0, 0, 1])];
        assert_eq!(joined(&[2, 3, 4], &row), (dims(&[6, 4]), vec![dims(&[4, 1]), dims(&[0, 1])]));
        let column = [dims(&[12, 4, 1]), dims(&[3, 1, 0])];
        assert_eq!(joined(&[2, 3, 4], &column), (dims(&[6, 4]), vec![dims(&[4, 1]), dims(&[1, 0])]));
        let transposed = [dims(&[4, 4, 1]), dims(&[7, 1, 3])];
        assert_eq!(joined(&[3, 1, 4], &transposed), (dims(&[3, 4]), vec![dims(&[4, 1]), dims(&[7, 3])]));
    }

    /// Each element is in one tile, whose offsets are those of its elements.
    #[test]
    fn tiles_cover_a_shape_once() {
        let shapes: [&[i64]; 6] =
            [&[20_000], &[5, 3000, 7], &[3, 2, 10_000], &[100_000, 2], &[2, 9000], &[8193]];
        for (sizes, tile) in shapes.into_iter().flat_map(|sizes| [(sizes, 8192i64), (sizes, 5), (sizes, 1)]) {
            let tiles = Tiles::new(dims(sizes), tile);
            let strides = contiguous_strides(sizes);
            let mut seen = vec![0; sizes.iter().product::<i64>() as usize];
            for number in 0..tiles.count() {
                let length = if tiles.is_rest(number) { tiles.rest().unwrap() } else { tiles.length };
                let elements: i64 = tiles.shape(length).iter().product();
                assert!(elements <= tile);
                let start = tiles.offset(number, &strides);
                // A tile of a row-major tensor lies in one piece.
                seen[start as usize..][..elements as usize].iter_mut().for_each(|count| *count += 1);
            }
            assert!(seen.iter().all(|count| *count == 1), "{sizes:?} by {tile}");
        }
    }
}
