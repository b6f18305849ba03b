//! Patches: the part of an input that a block of positions sees, copied so that strides and borders are gone.
//!
//! In: a window and sizes. Out: blocks of positions, and for each a copy of its input in the compute type, with zeros
//! for the border, in which a position's neighbour lies at the next place and every element of the window at a fixed
//! distance from its position. Rows and columns that a stride separates lie together: a stride of 2 makes two planes
//! of rows, one of the even and one of the odd ones. Must know no weights.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Scratch, View};

use super::columns::Sliding;
use crate::cpu::copy::{Plane, copy_plane};
use crate::window::MOST;

/// Elements of a patch, which stays in the second cache.
pub(in crate::cpu) const PATCH: usize = 1 << 16;
/// Elements that lie behind a patch, so that whole registers are read from its last place.
pub(super) const SLACK: usize = 64;

/// One of the two innermost dimensions: which remainders of the stride its window has, and how far it reaches.
struct Line {
    /// The distinct remainders of the window's elements, divided by the stride.
    phases: Scratch<i64>,
    /// The furthest element, in strides.
    reach: usize,
}

impl Line {
    fn new(sliding: &Sliding, dim: usize) -> Line {
        let mut line = Line { phases: Scratch::new(), reach: 0 };
        for element in 0..sliding.window.kernel[dim] {
            let phase = element * sliding.window.dilation[dim] % sliding.window.stride[dim];
            if !line.phases.contains(&phase) {
                line.phases.push(phase);
            }
            line.reach = line.place(sliding, dim, element).1;
        }
        line
    }

    /// The number of an element's phase, and its distance in strides.
    fn place(&self, sliding: &Sliding, dim: usize, element: i64) -> (usize, usize) {
        let (offset, stride) = (element * sliding.window.dilation[dim], sliding.window.stride[dim]);
        let phase = self.phases.iter().position(|&phase| phase == offset % stride);
        (phase.unwrap_or(0), (offset / stride) as usize)
    }
}

/// Positions that are computed together: rows of one plane along the first of three dimensions.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub plane: usize,
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

impl Block {
    pub fn positions(&self) -> usize {
        self.rows * self.columns
    }
}

/// How patches of all blocks are laid out: by the window's planes, the phases of rows, rows, the phases of columns.
pub(super) struct Patches {
    sliding: Sliding,
    lines: [Line; 2],
    /// Most rows and columns of positions in a block.
    rows: usize,
    columns: usize,
    /// Places from a row to the next, and from a phase of rows to the next.
    row: usize,
    phase: usize,
    /// Places of a channel.
    places: usize,
    /// The distance of each element of the window from its position, in places.
    taps: Scratch<usize>,
}

impl Patches {
    /// The layout for so many channels, if patches need no more memory than the columns that they replace.
    pub fn new(sliding: Sliding, channels: usize) -> Option<Patches> {
        let lines = [Line::new(&sliding, 1), Line::new(&sliding, 2)];
        let [_, high, wide] = sliding.output.map(|size| size as usize);
        let [down, across] = [&lines[0], &lines[1]].map(|line| line.phases.len());
        // Places of a patch of so many rows and columns of positions.
        let places = |rows: usize, columns: usize| {
            let of_rows = (rows + lines[0].reach).saturating_mul(down);
            let of_columns = (columns + lines[1].reach).saturating_mul(across);
            (sliding.window.kernel[0] as usize).saturating_mul(of_rows).saturating_mul(of_columns)
        };
        let fits = |rows, columns| places(rows, columns).saturating_mul(channels) <= PATCH;
        let columns = even_parts(wide, |columns| fits(1, columns));
        let rows = even_parts(high, |rows| fits(rows, columns));
        let of_columns = sliding.elements().saturating_mul(rows * columns);
        if places(rows, columns) > 2 * of_columns.max(SLACK) {
            return None;
        }
        let row = (columns + lines[1].reach) * across;
        let phase = (rows + lines[0].reach) * row;
        let mut taps = Scratch::new();
        let [depth, height, width] = sliding.window.kernel;
        for plane in 0..depth as usize {
            for b in 0..height {
                for c in 0..width {
                    let (row_phase, down) = lines[0].place(&sliding, 1, b);
                    let (column_phase, right) = lines[1].place(&sliding, 2, c);
                    let start = (plane * lines[0].phases.len() + row_phase) * phase + down * row;
                    taps.push(start + column_phase * (columns + lines[1].reach) + right);
                }
            }
        }
        let places = places(rows, columns);
        Some(Patches { sliding, lines, rows, columns, row, phase, places, taps })
    }

    /// Places of a channel.
    pub fn places(&self) -> usize {
        self.places
    }

    /// The distance of each element of the window from its position, in places.
    pub fn taps(&self) -> &[usize] {
        &self.taps
    }

    /// Places from a row of positions to the next.
    pub fn row(&self) -> usize {
        self.row
    }

    /// The lines that are multiplied for a block: its positions, or, where they are nearly as many, all places of their rows, so
    /// that lines lie one after the other and are not copied.
    pub fn grid(&self, block: &Block) -> Grid {
        let places = (block.rows - 1) * self.row + block.columns;
        if places <= block.positions() + block.positions() / 8 {
            Grid { width: self.row, lines: places }
        } else {
            Grid { width: block.columns, lines: block.positions() }
        }
    }

    /// As [`grid`](Self::grid), of one channel, whose places are not worth copying: all places of the rows and, so many places
    /// apart, the rows that are computed apart, if that takes fewer registers of so many lanes.
    pub fn grid_of_one_channel(&self, block: &Block, lanes: usize) -> (Grid, usize) {
        let places = (block.rows - 1) * self.row + block.columns;
        let together = places.div_ceil(lanes) <= block.rows * block.columns.div_ceil(lanes);
        (Grid { width: self.row, lines: places }, if together { usize::MAX } else { self.row })
    }

    /// Most positions of a block.
    pub fn most(&self) -> usize {
        self.rows * self.columns
    }

    /// The number of blocks of a sample.
    pub fn blocks(&self) -> usize {
        let [planes, high, wide] = self.sliding.output.map(|size| size as usize);
        planes * high.div_ceil(self.rows) * wide.div_ceil(self.columns)
    }

    /// One of the blocks.
    pub fn block(&self, number: usize) -> Block {
        let [_, high, wide] = self.sliding.output.map(|size| size as usize);
        let (down, across) = (high.div_ceil(self.rows), wide.div_ceil(self.columns));
        let (row, column) = (number / across % down * self.rows, number % across * self.columns);
        Block {
            plane: number / (across * down),
            row,
            rows: self.rows.min(high - row),
            column,
            columns: self.columns.min(wide - column),
        }
    }

    /// Copies a block's part of an input. An element goes `channel` times the number of its channel plus `place` times
    /// the number of its place from the patch's start; the patch has room for all of them. With `has_border`, the patch is that of
    /// the same block of other channels, and its zeros stay.
    pub fn fill<T: Element<Compute: Arithmetic>>(
        &self,
        block: &Block,
        input: &Planes<'_, T>,
        patch: &mut [T::Compute],
        steps: [usize; 2],
        has_border: bool,
    ) {
        let window = &self.sliding.window;
        let first = |dim: usize, position: usize| window.start(dim, position as i64);
        let [_, height, width] = self.sliding.input;
        for plane in 0..window.kernel[0] {
            let z = first(0, block.plane) + plane * window.dilation[0];
            for (down, phase) in self.lines[0].phases.iter().enumerate() {
                let start = (plane as usize * self.lines[0].phases.len() + down) * self.phase;
                for row in 0..block.rows + self.lines[0].reach {
                    let y = first(1, block.row + row) + phase;
                    let inside = (0..self.sliding.input[0]).contains(&z) && (0..height).contains(&y);
                    if has_border && !inside {
                        continue;
                    }
                    for (across, phase) in self.lines[1].phases.iter().enumerate() {
                        let x = first(2, block.column) + phase;
                        let size = if inside { width } else { i64::MIN };
                        let count = block.columns + self.lines[1].reach;
                        let wide = self.columns + self.lines[1].reach;
                        let start = (start + row * self.row + across * wide) * steps[1];
                        let target = Rows { data: &mut patch[start..], steps, count, has_border };
                        input.copy_rows([z, y, x], [size, window.stride[MOST - 1]], target);
                    }
                }
            }
        }
    }
}

/// Lines of a block, row by row.
pub(super) struct Grid {
    /// Lines of a row, of which the first are the positions.
    pub width: usize,
    pub lines: usize,
}

/// The largest number of parts' items that fits, such that all parts are about as large; 1 if none fits.
fn even_parts(count: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut least, mut most) = (1, count.max(1));
    while least < most {
        let middle = (least + most).div_ceil(2);
        match fits(middle) {
            true => least = middle,
            false => most = middle - 1,
        }
    }
    count.div_ceil(count.div_ceil(least).max(1)).max(1)
}

/// A row of each channel in a patch.
struct Rows<'a, C> {
    data: &'a mut [C],
    /// Elements from a channel to the next, and from a place to the next.
    steps: [usize; 2],
    /// Places of a row.
    count: usize,
    /// Whether those outside of the input are zeros.
    has_border: bool,
}

impl<C: Copy> Rows<'_, C> {
    /// Fills some places of all channels.
    fn fill(&mut self, channels: usize, places: std::ops::Range<usize>, value: C) {
        let [channel, place] = self.steps;
        if places.is_empty() {
            return;
        }
        if channel == 1 && channels == place {
            return self.data[places.start * place..places.end * place].fill(value);
        }
        for number in 0..channels {
            for at in places.clone() {
                self.data[number * channel + at * place] = value;
            }
        }
    }
}

/// The channels of a sample that belong together, with any strides.
#[derive(Clone, Copy)]
pub(super) struct Planes<'a, T> {
    view: View<'a, T>,
    offset: i64,
    pub channels: usize,
    /// Elements from a channel to the next, and along three dimensions.
    strides: [i64; MOST + 1],
}

impl<'a, T: Element> Planes<'a, T> {
    /// Some channels of a sample of `(samples, channels, places…)`.
    pub fn new(view: View<'a, T>, sample: usize, first: usize, channels: usize) -> Planes<'a, T> {
        let strides = strides(view.strides());
        let offset = sample as i64 * view.strides()[0] + first as i64 * strides[0];
        Planes { view, offset, channels, strides }
    }

    /// Copies every `stride`-th element of a row of each channel, of which the first may lie before the row's start, to the
    /// places of a patch; zeros for those before the start and from `size` on.
    fn copy_rows(&self, [z, y, x]: [i64; MOST], [size, stride]: [i64; 2], mut target: Rows<'_, T::Compute>)
    where
        T::Compute: Arithmetic,
    {
        let until = |end: i64| {
            let places = (end.saturating_sub(x).max(0) as u64).div_ceil(stride as u64);
            places.min(target.count as u64) as usize
        };
        let (first, end) = (until(0), until(size));
        let end = end.max(first);
        if !target.has_border {
            target.fill(self.channels, 0..first, T::Compute::ZERO);
            target.fill(self.channels, end..target.count, T::Compute::ZERO);
        }
        if first == end {
            return;
        }
        let [of_channel, of_plane, of_row, of_column] = self.strides;
        let start = self.offset + z * of_plane + y * of_row + (x + first as i64 * stride) * of_column;
        let [channel, place] = target.steps;
        let to = target.data[first * place..].as_mut_ptr();
        let to = Plane { data: to, steps: [channel as i64, place as i64] };
        let from = self.view.as_ptr().wrapping_offset(start as isize);
        let from = Plane { data: from, steps: [of_channel, stride * of_column] };
        assert!(
            (self.channels - 1) * channel + (end - 1) * place < target.data.len(),
            "rows lie in their patch"
        );
        // SAFETY: the places from the first to the end lie in the rows of the input, and those of all channels in the patch.
        unsafe { copy_plane([self.channels, end - first], to, from, |element| element.to_compute()) };
    }

    /// Copies the positions of a block on the side of results: a row for each channel.
    pub fn copy_block(&self, block: &Block, rows: &mut [T::Compute])
    where
        T::Compute: Arithmetic,
    {
        let steps = [block.positions(), 1];
        for row in 0..block.rows {
            let place = [block.plane as i64, (block.row + row) as i64, block.column as i64];
            let data = &mut rows[row * block.columns..];
            let target = Rows { data, steps, count: block.columns, has_border: false };
            self.copy_rows(place, [(block.column + block.columns) as i64, 1], target);
        }
    }
}

/// The strides of channels and of three places, of which those that are missing are 0.
pub(super) fn strides(all: &[i64]) -> [i64; MOST + 1] {
    let mut strides = [0; MOST + 1];
    let places = all.len() - 2;
    strides[0] = all[1];
    strides[MOST + 1 - places..].copy_from_slice(&all[2..]);
    strides
}
