//! Tiles of a walk: for operands that do not all have their neighbours along the same axis.
//!
//! In: axes in bytes, in memory order, and the size of each operand's elements. Out: tiles of two axes, small enough for a
//! cache, so that every operand is visited whole cache lines at a time. Where all operands have the same order, a tile is one
//! row, or some short ones. Tiles have numbers, so that a walk can be cut anywhere. Must know no tensor.

use std::ops::Range;

use super::{Axes, Axis, Walk, count};

/// Bytes of an operand in a tile that is copied to a block: of a transposed operand, each of 128 columns has 256 neighbouring
/// bytes there, of others each row 512 if elements have four. A shorter row is not worth the latency of its first cache line.
pub const TILE_BYTES: usize = 32768;

/// Most columns of a tile, unless it has few rows.
const COLUMNS: i64 = 128;

/// Most elements of a row that is alone in its tile, so that several threads share a walk of few long rows.
const LONGEST: i64 = 1 << 15;

/// Rows of elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile<const N: usize> {
    /// Position of the first element in each operand.
    pub start: [i64; N],
    /// Elements of a row.
    pub row: Axis<N>,
    /// The rows: several if an operand is transposed, or if they are short.
    pub rows: Axis<N>,
}

/// The tiles of a walk.
#[derive(Clone, Debug)]
pub struct Tiles<const N: usize> {
    /// The first positions of all tiles.
    starts: Axes<N>,
    /// All elements along both axes of a tile.
    row: Axis<N>,
    rows: Axis<N>,
    /// Most of them in one tile.
    width: i64,
    height: i64,
}

impl<const N: usize> Axis<N> {
    /// The first positions of parts of so many elements.
    fn in_parts(&self, length: i64) -> Axis<N> {
        Axis { size: (self.size + length - 1) / length, steps: self.steps.map(|own| own * length) }
    }
}

impl<const N: usize> Tiles<N> {
    /// The rows of a walk, whole or, if they are long, in several parts; as many short ones together as `area` elements are.
    pub fn of_rows(mut axes: Axes<N>, area: usize) -> Tiles<N> {
        if has_no_elements(&axes) {
            return Tiles::none();
        }
        let row = axes.pop().unwrap_or(Axis { size: 1, steps: [0; N] });
        let (mut rows, mut height) = (Axis { size: 1, steps: [0; N] }, 1);
        let width = row.size.min(LONGEST);
        if row.size > width {
            axes.push(row.in_parts(width));
        } else if 2 * row.size <= area as i64
            && let Some(outer) = axes.pop()
        {
            (rows, height) = (outer, (area as i64 / row.size).clamp(1, outer.size));
            axes.push(outer.in_parts(height));
        }
        Tiles { starts: axes, width, height, row, rows }
    }

    /// The tiles, of at most `area` elements, of a walk over operands whose elements have these sizes. An area of less than a
    /// row of a tile leaves whole rows.
    pub fn new(mut axes: Axes<N>, sizes: [usize; N], area: usize) -> Tiles<N> {
        if has_no_elements(&axes) {
            return Tiles::none();
        }
        let Some(across) = transposed(&axes, sizes).filter(|_| area as i64 >= COLUMNS) else {
            let area = area.max(unmoved_area(axes.last(), sizes));
            return Tiles::of_rows(axes, area);
        };
        let mut rows = axes.remove(across);
        let Some(mut row) = axes.pop() else { return Tiles::of_rows(axes, area) };
        let neighbours = |axis: &Axis<N>| {
            std::iter::zip(axis.steps, sizes).filter(|&(step, size)| step == size as i64).count()
        };
        // Along the axis of most operands, the fewest are moved.
        if neighbours(&rows) > neighbours(&row) {
            std::mem::swap(&mut rows, &mut row);
        }
        let area = area as i64;
        let width = (area / rows.size).max(COLUMNS).min(row.size);
        let height = (area / width).clamp(1, rows.size);
        let mut steps = [(rows, height), (row, width)];
        // Of two operands, the one that is read decides.
        if N == 2 {
            steps.reverse();
        }
        for (axis, step) in steps {
            axes.push(axis.in_parts(step));
        }
        Tiles { starts: axes, row, rows, width, height }
    }

    /// The tiles of a walk over nothing.
    fn none() -> Tiles<N> {
        let one = Axis { size: 1, steps: [0; N] };
        Tiles { starts: Axes::from_iter([Axis { size: 0, ..one }]), row: one, rows: one, width: 1, height: 1 }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        count(&self.starts)
    }

    /// Calls `body` for the tiles of these numbers.
    #[inline]
    pub fn for_each(&self, numbers: Range<usize>, mut body: impl FnMut(&Tile<N>)) {
        let walk = Walk::starting_at(&self.starts, numbers.start);
        let mut tile = Tile { start: [0; N], row: self.row, rows: self.rows };
        if self.rows.size == 1 && self.width == self.row.size {
            for start in walk.take(numbers.len()) {
                tile.start = start;
                body(&tile);
            }
            return;
        }
        let (down, along) =
            ((self.rows.size + self.height - 1) / self.height, (self.row.size + self.width - 1) / self.width);
        for (number, start) in (numbers.start as i64..).zip(walk.take(numbers.len())) {
            let (row, column) = if N == 2 {
                (number % down, number / down % along)
            } else {
                (number / along % down, number % along)
            };
            let (row, column) = (row * self.height, column * self.width);
            tile.start = start;
            tile.row.size = self.width.min(self.row.size - column);
            tile.rows.size = self.height.min(self.rows.size - row);
            body(&tile);
        }
    }
}

fn has_no_elements<const N: usize>(axes: &[Axis<N>]) -> bool {
    axes.iter().any(|axis| axis.size == 0)
}

/// Most elements of a tile of which no operand is moved to a block, and so as many as one call has some work with: those of rows
/// whose elements are neighbours, or one.
fn unmoved_area<const N: usize>(row: Option<&Axis<N>>, sizes: [usize; N]) -> usize {
    let moved = |(step, size): (i64, usize)| step != 0 && step != size as i64;
    let any = row.is_none_or(|row| std::iter::zip(row.steps, sizes).any(moved));
    if any { 0 } else { LONGEST as usize / 2 }
}

/// Cache lines that are multiples of so many bytes apart share few places of a cache. Others stay in it from one row to the
/// next, if they are not more than [`MANY`], and rows are faster than tiles.
const ALIASING: i64 = 512;

/// Cache lines that are half of a first cache.
const MANY: i64 = 256;

/// The axis, besides the last, along which an operand has its neighbours that has them elsewhere along the last, in too many
/// cache lines for a cache.
fn transposed<const N: usize>(axes: &[Axis<N>], sizes: [usize; N]) -> Option<usize> {
    let (row, outer) = axes.split_last()?;
    (0..outer.len()).rev().find(|&axis| {
        (0..N).any(|operand| {
            let (size, along) = (sizes[operand] as i64, row.steps[operand]);
            let distant = along.abs() > size && (along % ALIASING == 0 || row.size > MANY);
            size > 0 && outer[axis].steps[operand] == size && distant
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::{axes, in_memory_order};
    use super::*;

    /// Every position of a walk with tiles, row by row, from the tiles of all numbers taken in two parts.
    fn positions<const N: usize>(tiles: &Tiles<N>) -> Vec<[i64; N]> {
        let (mut all, middle) = (Vec::new(), tiles.count() / 2);
        for numbers in [0..middle, middle..tiles.count()] {
            tiles.for_each(numbers, |tile| {
                for row in 0..tile.rows.size {
                    for element in 0..tile.row.size {
                        all.push(std::array::from_fn(|operand| {
                            tile.start[operand]
                                + row * tile.rows.steps[operand]
                                + element * tile.row.steps[operand]
                        }));
                    }
                }
            });
        }
        all
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code, interpreted for a million positions")]
    fn tiles_visit_every_position_once() {
        for sizes in [
            [2, 3, 5],
            [1, 256, 130],
            [2, 128, 400],
            [3, 3072, 2],
            [2, 4, 5000],
            [1, 1, 70_001],
            [1, 3, 40_000],
        ] {
            check_two(sizes);
            let [_, rows, columns] = sizes;
            let whole = in_memory_order(axes(
                &sizes,
                [&[rows * columns * 4, columns * 4, 4], &[rows * columns * 4, 4, rows * 4], &[0, 0, 4]],
                |_| true,
            ));
            let mut expected: Vec<_> = Walk::new(&whole).collect();
            for tiles in [
                Tiles::new(whole.clone(), [4; 3], 2048),
                Tiles::of_rows(whole.clone(), 1),
                Tiles::of_rows(whole.clone(), 2048),
            ] {
                let mut all = positions(&tiles);
                all.sort_unstable();
                expected.sort_unstable();
                assert_eq!(all, expected);
                tiles.for_each(0..tiles.count(), |tile| {
                    let moved = tile.row.steps.iter().any(|step| ![0, 4].contains(step));
                    assert!(!moved || tile.rows.size == 1 || tile.rows.size * tile.row.size <= 2048);
                });
            }
        }
    }

    fn check_two([first, rows, columns]: [i64; 3]) {
        let strides: [&[i64]; 2] = [&[rows * columns, columns, 1], &[rows * columns, 1, rows]];
        let whole = in_memory_order(axes(&[first, rows, columns], strides, |_| true));
        let mut all = positions(&Tiles::new(whole.clone(), [1; 2], 1000));
        let mut expected: Vec<_> = Walk::new(&whole).collect();
        all.sort_unstable();
        expected.sort_unstable();
        assert_eq!(all, expected);
    }

    #[test]
    fn a_walk_over_nothing_has_no_tiles() {
        for sizes in [[0, 5], [5, 0], [0, 0], [0, 5000], [5000, 0]] {
            let whole = axes(&sizes, [&[4, 4096], &[20_480, 4]], |_| true);
            for tiles in [Tiles::new(whole.clone(), [4; 2], 2048), Tiles::of_rows(whole.clone(), 2048)] {
                assert_eq!(tiles.count(), 0);
                tiles.for_each(0..0, |_| panic!("there is none"));
            }
        }
    }

    #[test]
    fn operands_of_one_order_have_rows() {
        let strides: &[i64] = &[400, 4];
        for others in [strides, &[4, 0], &[0, 4], &[-4, 4]] {
            let tiles =
                Tiles::new(in_memory_order(axes(&[90, 100], [strides, others], |_| true)), [4; 2], 2048);
            tiles.for_each(0..tiles.count(), |tile| assert_eq!(tile.row.steps, [4, others[1]]));
        }
        // Two of three in the other order: the first is moved.
        let tiles = Tiles::new(axes(&[128, 128], [&[512, 4], &[4, 512], &[4, 512]], |_| true), [4; 3], 2048);
        tiles.for_each(0..1, |tile| assert_eq!(tile.row.steps, [512, 4, 4]));
    }
}
