//! Products of `bfloat16` matrices by the instruction that multiplies neighbours of the inner dimension in pairs and adds
//! both products to an `f32` (AVX512-BF16).
//!
//! In: matrices with any strides. Out: `keep * out + scale * left * right`, each element rounded once. Operands are copied
//! to panels, block by block: for each pair of steps the elements of some rows, or columns, side by side. The instruction takes
//! elements below 2^-126 for zeros. Must not decide whether a product comes here.

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_dpbf16_ps, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_ps,
    _mm512_storeu_ps,
};

use opsmith_runtime::axes::Axis;
use opsmith_runtime::copy::copy_elements;
use opsmith_runtime::{Scratch, bf16, simd};

use super::blocked::{in_threads, oriented};
use super::halves::{BAND_COLUMNS, BLOCK, COLUMNS, DEPTH, ROWS};
use super::product::{Matrix, MatrixMut};

/// Elements of a register of sums.
const LANES: usize = ROWS / 3;
/// Pairs of all columns whose panels are made at a time.
const BAND: usize = 1 << 20;

/// Whether the processor has the instruction, and the environment admits it.
pub(in crate::cpu) fn is_supported() -> bool {
    // A build with debug assertions has no wide loops, but this one.
    (cfg!(debug_assertions) || simd::vector_bytes() == 64)
        && std::arch::is_x86_feature_detected!("avx512bf16")
        && std::arch::is_x86_feature_detected!("avx512f")
}

/// Writes `keep * out + scale * left * right`; without `keep`, `out` is not read. Blocks follow from the sizes alone, so that
/// each element is the same sum with any number of threads.
///
/// # Safety
/// The processor has the instruction ([`is_supported`]). Every element of `left` and `right` is valid for reads, and every element
/// of `out`, which has `left.rows` times `right.columns`, for reads and writes. `left.columns` equals `right.rows`.
pub(super) unsafe fn multiply(
    left: Matrix<bf16>,
    right: Matrix<bf16>,
    keep: Option<f32>,
    scale: f32,
    out: MatrixMut<bf16>,
) {
    let (left, right, out) = oriented(left, right, out);
    in_threads([ROWS, COLUMNS], left, right, out, &|left, right, out| {
        let product = Product { left, right, keep, scale, out };
        // SAFETY: the caller's promise, of rows or columns of the product.
        unsafe { product.compute() }
    });
}

/// A product, whole or some of its rows or columns.
struct Product {
    left: Matrix<bf16>,
    right: Matrix<bf16>,
    keep: Option<f32>,
    scale: f32,
    out: MatrixMut<bf16>,
}

/// Sums of a block that registers held, column by column.
type Tile = [[f32; ROWS]; COLUMNS];

impl Product {
    /// The loops over bands of columns, blocks of rows, and parts of the inner dimension.
    ///
    /// # Safety
    /// As [`multiply`].
    unsafe fn compute(&self) {
        let (rows, columns, inner) = (self.left.rows, self.right.columns, self.left.columns);
        let pairs = inner.div_ceil(2);
        let depth = pairs.div_ceil(inner.div_ceil(DEPTH).max(1)).max(1);
        let parts = pairs.div_ceil(depth).max(1);
        let band = (BAND / (parts * depth)).clamp(ROWS, BAND_COLUMNS).min(columns).next_multiple_of(COLUMNS);
        let mut packed_left = Scratch::<u32>::with_capacity(depth * rows.min(BLOCK).next_multiple_of(ROWS));
        let mut packed_right = Scratch::<u32>::with_capacity(parts * depth * band);
        let mut sums = Scratch::filled(0f32, if parts > 1 { BLOCK * band } else { 0 });
        let (packed_left, packed_right) = (packed_left.as_mut_ptr(), packed_right.as_mut_ptr());
        let part = |number: usize| (2 * number * depth, (2 * depth).min(inner - 2 * number * depth));
        for column in (0..columns).step_by(band) {
            let columns = band.min(columns - column);
            for number in 0..parts {
                let (first, steps) = part(number);
                let lines =
                    Lines::of_columns(Matrix { rows: steps, columns, ..self.right.at(first, column) });
                // SAFETY: the elements are the operand's, and there is room for all parts of a band.
                unsafe { lines.pack::<COLUMNS>(packed_right.add(number * depth * band), depth * COLUMNS) };
            }
            for row in (0..rows).step_by(BLOCK) {
                let rows = BLOCK.min(rows - row);
                for number in 0..parts {
                    let (first, steps) = part(number);
                    let lines = Lines::of_rows(Matrix { rows, columns: steps, ..self.left.at(row, first) });
                    let right = packed_right.wrapping_add(number * depth * band);
                    // SAFETY: the elements are the operand's, and there is room for a block's panels; both have whole ones.
                    unsafe {
                        lines.pack::<ROWS>(packed_left, depth * ROWS);
                        for_each_tile(
                            [rows, columns, steps.div_ceil(2)],
                            depth,
                            packed_left,
                            right,
                            |tile, place, size| {
                                let kept = (parts > 1).then(|| &mut sums[place[1] * BLOCK + place[0]..]);
                                let out = (number + 1 == parts)
                                    .then(|| self.out.at(row + place[0], column + place[1]));
                                self.finish(tile, size, number > 0, kept, out);
                            },
                        );
                    }
                }
            }
        }
    }

    /// Adds a tile to the sums that are kept, if there are some, and writes the result if it is the last.
    ///
    /// # Safety
    /// The result has so many rows and columns, valid for reads and writes.
    unsafe fn finish(
        &self,
        tile: &mut Tile,
        [rows, columns]: [usize; 2],
        adds: bool,
        mut kept: Option<&mut [f32]>,
        out: Option<MatrixMut<bf16>>,
    ) {
        simd::widest(
            #[inline(always)]
            move || {
                for (column, sums) in tile.iter_mut().enumerate().take(columns) {
                    if let Some(kept) = &mut kept {
                        for (kept, sum) in kept[column * BLOCK..][..rows].iter_mut().zip(&mut *sums) {
                            *sum += if adds { *kept } else { 0.0 };
                            *kept = *sum;
                        }
                    }
                    let Some(out) = out.map(|out| out.at(0, column)) else { continue };
                    for (row, sum) in sums.iter().enumerate().take(rows) {
                        // SAFETY: the caller's promise.
                        let target = unsafe { &mut *out.data.offset(row as isize * out.row_stride as isize) };
                        let kept = self.keep.map_or(0.0, |keep| keep * target.to_f32());
                        *target = bf16::from_f32(kept + self.scale * sum);
                    }
                }
            },
        );
    }
}

/// Calls `finish` with the sums of each tile of a block, its first row and column, and its numbers of them.
///
/// # Safety
/// The processor has the instruction; the panels, `depth` pairs long, have rows and columns for so many pairs.
unsafe fn for_each_tile(
    [rows, columns, pairs]: [usize; 3],
    depth: usize,
    left: *const u32,
    right: *const u32,
    mut finish: impl FnMut(&mut Tile, [usize; 2], [usize; 2]),
) {
    let mut tile = [[0f32; ROWS]; COLUMNS];
    for column in (0..columns).step_by(COLUMNS) {
        let right = right.wrapping_add(column / COLUMNS * depth * COLUMNS);
        for row in (0..rows).step_by(ROWS) {
            let left = left.wrapping_add(row / ROWS * depth * ROWS);
            let height = ROWS.min(rows - row);
            // SAFETY: the caller's promise.
            unsafe {
                match height.div_ceil(LANES) {
                    1 => sum_pairs::<1>(pairs, left, right, &mut tile),
                    2 => sum_pairs::<2>(pairs, left, right, &mut tile),
                    _ => sum_pairs::<3>(pairs, left, right, &mut tile),
                }
            }
            finish(&mut tile, [row, column], [height, COLUMNS.min(columns - column)]);
        }
    }
}

/// The innermost loop: sums of `R` registers of rows.
///
/// # Safety
/// The processor has the instruction, and panels have so many pairs.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn sum_pairs<const R: usize>(pairs: usize, left: *const u32, right: *const u32, tile: &mut Tile) {
    let mut sums = [[_mm512_setzero_ps(); R]; COLUMNS];
    for pair in 0..pairs {
        // SAFETY: the pair is one of the panels'; the two types are bits of one register.
        unsafe {
            let mut rows: [__m512bh; R] = std::mem::zeroed();
            for (register, rows) in rows.iter_mut().enumerate() {
                let from = left.add(pair * ROWS + register * LANES);
                *rows = std::mem::transmute::<__m512i, __m512bh>(_mm512_loadu_si512(from.cast()));
            }
            for (column, sums) in sums.iter_mut().enumerate() {
                let element = _mm512_set1_epi32(right.add(pair * COLUMNS + column).read().cast_signed());
                let element = std::mem::transmute::<__m512i, __m512bh>(element);
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = _mm512_dpbf16_ps(*sum, row, element);
                }
            }
        }
    }
    for (column, sums) in tile.iter_mut().zip(&sums) {
        for (register, sum) in sums.iter().enumerate() {
            let sum: __m512 = *sum;
            // SAFETY: a column of the tile has room for three registers.
            unsafe { _mm512_storeu_ps(column.as_mut_ptr().add(register * LANES), sum) };
        }
    }
}

/// Rows of a left operand, or columns of a right one, over the inner dimension.
struct Lines {
    data: *const bf16,
    count: usize,
    length: usize,
    /// Elements from a line to the next, and along a line.
    line: i64,
    step: i64,
}

impl Lines {
    fn of_rows(matrix: Matrix<bf16>) -> Lines {
        let Matrix { data, rows, columns, row_stride, column_stride } = matrix;
        Lines { data, count: rows, length: columns, line: row_stride, step: column_stride }
    }

    fn of_columns(matrix: Matrix<bf16>) -> Lines {
        Lines::of_rows(matrix.transposed())
    }

    /// Copies the lines into panels of `WIDTH` lines and `panel` pairs, which are filled up with zeros.
    ///
    /// # Safety
    /// Every element is valid for reads, and the target has room for whole panels.
    unsafe fn pack<const WIDTH: usize>(&self, target: *mut u32, panel: usize) {
        for (number, first) in (0..self.count).step_by(WIDTH).enumerate() {
            let count = WIDTH.min(self.count - first);
            let data = self.data.wrapping_offset(first as isize * self.line as isize);
            let lines = Lines { data, count, ..*self };
            let target = target.wrapping_add(number * panel);
            // SAFETY: the caller's promise.
            unsafe {
                if count < WIDTH {
                    target.write_bytes(0, self.length.div_ceil(2) * WIDTH);
                }
                if self.step == 1 {
                    lines.pack_neighbours::<WIDTH>(target)
                } else {
                    lines.pack_apart::<WIDTH>(target)
                }
            }
        }
    }

    /// Copies lines whose own elements are neighbours, so that pairs are moved.
    ///
    /// # Safety
    /// As [`pack`](Self::pack), of one panel.
    unsafe fn pack_neighbours<const WIDTH: usize>(&self, target: *mut u32) {
        let pairs = self.length / 2;
        let along = Axis { size: pairs as i64, steps: [4 * WIDTH as i64, 4] };
        let across = Axis { size: self.count as i64, steps: [4, 2 * self.line] };
        let axes = [along, across].into_iter().filter(|axis| axis.size != 1).collect();
        // SAFETY: the caller's promise; a pair's address needs no alignment.
        unsafe {
            if pairs > 0 {
                copy_elements(axes, 4, target.cast(), self.data.cast());
            }
            if self.length % 2 == 1 {
                for line in 0..self.count {
                    let last = self.data.offset(line as isize * self.line as isize).add(self.length - 1);
                    target.add(pairs * WIDTH + line).write(u32::from(last.read().to_bits()));
                }
            }
        }
    }

    /// Copies lines whose elements lie apart.
    ///
    /// # Safety
    /// As [`pack`](Self::pack), of one panel.
    unsafe fn pack_apart<const WIDTH: usize>(&self, target: *mut u32) {
        let Lines { data, count, length, line, step } = *self;
        simd::widest(
            #[inline(always)]
            move || {
                for pair in 0..length.div_ceil(2) {
                    let low = data.wrapping_offset(2 * pair as isize * step as isize);
                    let has_high = 2 * pair + 1 < length;
                    // The last of an odd number stands for both, and counts once.
                    let (high, mask) =
                        if has_high { (low.wrapping_offset(step as isize), u32::MAX) } else { (low, 0xffff) };
                    let target = target.wrapping_add(pair * WIDTH);
                    let join = |low: u16, high: u16| (u32::from(low) | u32::from(high) << 16) & mask;
                    // SAFETY: the caller's promise.
                    unsafe {
                        // A loop of known steps and length uses vectors.
                        if line == 1 && count == WIDTH {
                            let low = low.cast::<[u16; WIDTH]>().read_unaligned();
                            let high = high.cast::<[u16; WIDTH]>().read_unaligned();
                            for at in 0..WIDTH {
                                target.add(at).write(join(low[at], high[at]));
                            }
                            continue;
                        }
                        for at in 0..count {
                            let [low, high] = [low, high]
                                .map(|start| start.offset(at as isize * line as isize).read().to_bits());
                            target.add(at).write(join(low, high));
                        }
                    }
                }
            },
        );
    }
}
