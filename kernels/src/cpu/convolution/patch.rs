//! Patches: the part of an input that a block of positions sees, copied so that strides and borders are gone.
//!
//! In: a window and sizes. Out: blocks of positions, and for each a copy of its input in the compute type, with zeros
//! for the border, in which a position's neighbour lies at the next place and every element of the window at a fixed
//! distance from its position. Rows and columns that a stride separates lie together: a stride of 2 makes two planes
//! of rows, one of the even and one of the odd ones. Must know no weights.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Scratch, View};

use super::columns::Sliding;
use crate::cpu::simd;
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
        let places = self.span(block);
        if places <= block.positions() + block.positions() / 8 {
            Grid { width: self.row, lines: places }
        } else {
            Grid { width: block.columns, lines: block.positions() }
        }
    }

    /// Places of a block from its first position to behind its last one.
    pub fn span(&self, block: &Block) -> usize {
        (block.rows - 1) * self.row + block.columns
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
        let [depth, height, width] = self.sliding.input;
        let reach = self.lines[1].reach;
        for (across, phase) in self.lines[1].phases.iter().enumerate() {
            let x = first(2, block.column) + phase;
            let seen = Seen::new(x, [width, window.stride[MOST - 1]], block.columns + reach);
            let row_start = across * (self.columns + reach);
            simd::widest_over::<T, _>(
                #[inline(always)]
                || {
                    for plane in 0..window.kernel[0] {
                        let z = first(0, block.plane) + plane * window.dilation[0];
                        for (down, phase) in self.lines[0].phases.iter().enumerate() {
                            let start = (plane as usize * self.lines[0].phases.len() + down) * self.phase;
                            for row in 0..block.rows + self.lines[0].reach {
                                let y = first(1, block.row + row) + phase;
                                let is_inside = (0..depth).contains(&z) && (0..height).contains(&y);
                                if has_border && !is_inside {
                                    continue;
                                }
                                let seen = if is_inside { seen } else { seen.of_border() };
                                let data = &mut patch[(start + row * self.row + row_start) * steps[1]..];
                                input.copy_rows([z, y], seen, Rows { data, steps, has_border });
                            }
                        }
                    }
                },
            );
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
    /// Whether those outside of the input are zeros.
    has_border: bool,
}

impl<C: Copy> Rows<'_, C> {
    /// Fills some places of all channels.
    #[inline(always)]
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

/// The places of a row in a patch, and the elements of the input that they see.
#[derive(Clone, Copy)]
struct Seen {
    /// The first place that sees an element, and the first one after these.
    first: usize,
    end: usize,
    /// Places of the row.
    count: usize,
    /// The element of the first place, and elements from a place to the next.
    element: i64,
    stride: i64,
}

impl Seen {
    /// Of so many places, the first of which sees element `x`, which may lie before the row's start.
    fn new(x: i64, [width, stride]: [i64; 2], count: usize) -> Seen {
        let until = |end: i64| {
            let places = (end.saturating_sub(x).max(0) as u64).div_ceil(stride as u64);
            places.min(count as u64) as usize
        };
        let first = until(0);
        Seen { first, end: until(width).max(first), count, element: x + first as i64 * stride, stride }
    }

    /// The same of a row in the border.
    fn of_border(self) -> Seen {
        Seen { first: 0, end: 0, ..self }
    }
}

/// Copies `count` elements, `step` apart, to places that are `to_step` apart, in the compute type.
///
/// # Safety
/// The elements are valid for reads and the places for writes, and they do not overlap.
#[inline(always)]
unsafe fn compute_row<T: Element>(
    from: *const T,
    step: isize,
    to: *mut T::Compute,
    to_step: isize,
    count: usize,
) {
    if const { T::DTYPE as u8 == T::Compute::DTYPE as u8 } && (step, to_step) == (1, 1) {
        // SAFETY: the caller's promise; a dtype has one element type, so that both types are the same.
        return unsafe { std::ptr::copy_nonoverlapping(from.cast(), to, count) };
    }
    for number in 0..count as isize {
        // SAFETY: the caller's promise.
        unsafe { to.offset(number * to_step).write((*from.offset(number * step)).to_compute()) };
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

    /// Copies a row of each channel to the places of a patch that it is seen from; zeros for those in the border.
    #[inline(always)]
    fn copy_rows(&self, [z, y]: [i64; 2], seen: Seen, mut target: Rows<'_, T::Compute>)
    where
        T::Compute: Arithmetic,
    {
        let Seen { first, end, count, element, stride } = seen;
        if !target.has_border {
            target.fill(self.channels, 0..first, T::Compute::ZERO);
            target.fill(self.channels, end..count, T::Compute::ZERO);
        }
        if first == end {
            return;
        }
        let [of_channel, of_plane, of_row, of_column] = self.strides;
        let [channel, place] = target.steps;
        assert!(
            (self.channels - 1) * channel + (end - 1) * place < target.data.len(),
            "rows lie in their patch"
        );
        let start = self.offset + z * of_plane + y * of_row + element * of_column;
        let step = stride * of_column;
        for number in 0..self.channels {
            let to = target.data[number * channel + first * place..].as_mut_ptr();
            let from = self.view.as_ptr().wrapping_offset((start + number as i64 * of_channel) as isize);
            // SAFETY: the places from the first to the end lie in the rows of the input, and those of all channels in the patch.
            unsafe {
                match (step, place) {
                    (1, 1) => compute_row(from, 1, to, 1, end - first),
                    (2, 1) => compute_row(from, 2, to, 1, end - first),
                    _ => compute_row(from, step as isize, to, place as isize, end - first),
                }
            }
        }
    }

    /// Copies the positions of a block on the side of results: a row for each channel.
    pub fn copy_block(&self, block: &Block, rows: &mut [T::Compute])
    where
        T::Compute: Arithmetic,
    {
        let steps = [block.positions(), 1];
        for row in 0..block.rows {
            let place = [block.plane as i64, (block.row + row) as i64];
            let data = &mut rows[row * block.columns..];
            let width = (block.column + block.columns) as i64;
            let seen = Seen::new(block.column as i64, [width, 1], block.columns);
            self.copy_rows(place, seen, Rows { data, steps, has_border: false });
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
