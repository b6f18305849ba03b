//! Lines along one dimension of several views of one shape, and tiles of neighbouring lines.
//!
//! In: sizes and, for each of N views, strides. Out: the dimension of the lines and those that they are repeated over, or the
//! tiles that together hold every line.

use opsmith_runtime::axes::{Axes, Axis, Walk, axes, count, in_memory_order};
use opsmith_runtime::parallel;

use super::lanes::LANES;

/// The dimension a kernel works along, as size and step in each view, and the dimensions it is
/// repeated over, those with the smallest steps in the first view last. A scalar is one line of one
/// element.
pub(crate) fn lines<const N: usize>(sizes: &[i64], strides: [&[i64]; N], dim: usize) -> (Axis<N>, Axes<N>) {
    let line = match sizes.get(dim) {
        Some(&size) => Axis { size, steps: strides.map(|strides| strides[dim]) },
        None => Axis { size: 1, steps: [1; N] },
    };
    (line, in_memory_order(axes(sizes, strides, |other| other != dim)))
}

/// Neighbouring lines along one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<const N: usize> {
    /// Position of the first line's first element in each view.
    pub start: [i64; N],
    /// Elements of a line.
    pub line: Axis<N>,
    /// Lines.
    pub lane: Axis<N>,
}

/// Lines shorter than this are worth working on side by side.
pub(crate) const SHORT: i64 = 16;

/// Calls `body` for tiles that together hold every line along `dim`, in several threads if that takes long, each with a
/// state of its own from `state`.
///
/// Where the elements of a line are farther apart in the first view than neighbouring lines, a tile
/// has up to `near` of these, so that a cache line of memory is visited once. So it has where lines
/// are short, which leaves longer loops over lanes. Otherwise it has up to `far`.
pub(crate) fn for_each_tile<S, const N: usize>(
    sizes: &[i64],
    strides: [&[i64]; N],
    dim: usize,
    near: usize,
    far: usize,
    state: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, Tile<N>) + Sync,
) {
    tiles(sizes, strides, dim, [near, far], &|tiles| {
        let mut state = state();
        tiles.for_each(|tile| body(&mut state, tile));
    });
}

fn tiles<const N: usize>(
    sizes: &[i64],
    strides: [&[i64]; N],
    dim: usize,
    [near, far]: [usize; 2],
    body: &(dyn Fn(&mut dyn Iterator<Item = Tile<N>>) + Sync),
) {
    let (line, mut outer) = lines(sizes, strides, dim);
    let lane = outer.pop().unwrap_or(Axis { size: 1, steps: [0; N] });
    let is_near =
        lane.steps[0].abs() < line.steps[0].abs() || (line.size < SHORT && lane.size >= 2 * line.size);
    // Each thread has a tile, unless it would be too narrow for vectors.
    let of_row = parallel::num_threads().div_ceil(count(&outer).max(1));
    let for_all = (lane.size as usize).div_ceil(of_row).next_multiple_of(LANES);
    let width = if is_near { near } else { far }.min(for_all).max(1);
    let across = (lane.size as usize).div_ceil(width);
    let width = width as i64;
    let elements = line.size.max(1).saturating_mul(width.min(lane.size).max(1));
    parallel::for_each_range_of(elements as usize, count(&outer) * across, |range| {
        let mut walk = Walk::starting_at(&outer, range.start / across);
        let mut start = [0; N];
        let mut tiles = range.clone().map(|number| {
            let first = (number % across) as i64 * width;
            if first == 0 || number == range.start {
                start = walk.next().unwrap_or(start);
            }
            let start = std::array::from_fn(|view| start[view] + first * lane.steps[view]);
            let lane = Axis { size: (lane.size - first).min(width), ..lane };
            Tile { start, line, lane }
        });
        body(&mut tiles);
    });
}
