//! The innermost loop of products of pairs whose left operand stays where it lies, as [`unpacked`](super::unpacked) of floats.
//!
//! In: pairs of `bfloat16` neighbours of the inner dimension, as words of memory, at a place for each step, and panels of
//! the right operand. Out: sums in `f32`. Must not decide whether a product comes here.

use std::arch::x86_64::{
    __m512bh, __m512i, _mm512_add_ps, _mm512_dpbf16_ps, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_set1_epi32, _mm512_setzero_ps, _mm512_storeu_ps,
};

use super::product::MatrixMut;

/// Sums of a register.
const LANES: usize = 16;
/// Registers of rows.
const REGISTERS: usize = 4;
/// Rows of the largest block that registers hold.
pub(in crate::cpu) const ROWS: usize = REGISTERS * LANES;
/// Columns of that block, and of a panel of the right operand.
pub(in crate::cpu) const COLUMNS: usize = 6;

/// Writes the sums of so many rows and columns over all steps, or adds them to `out`, whose rows are neighbours: of the rows from
/// each step's place after `left` on, and the columns of the panels `right`.
///
/// # Safety
/// The processor has the instruction ([`is_supported`](super::pairs::is_supported)). [`ROWS`] pairs are valid for reads from each
/// block's place of each step on, panels have all columns for each step; the sums are valid for writes, and for reads if they
/// are added to.
pub(in crate::cpu) unsafe fn multiply(
    [rows, columns]: [usize; 2],
    steps: &[usize],
    left: *const u32,
    right: *const u32,
    adds: bool,
    out: MatrixMut<f32>,
) {
    for column in (0..columns).step_by(COLUMNS) {
        let panel = right.wrapping_add(column * steps.len());
        let width = COLUMNS.min(columns - column);
        for row in (0..rows).step_by(ROWS) {
            let sizes = [ROWS.min(rows - row), width];
            let (left, out) = (left.wrapping_add(row), out.at(row, column));
            // SAFETY: the caller's promise.
            unsafe {
                match width {
                    1 => sum::<1>(sizes, steps, left, panel, adds, out),
                    2 => sum::<2>(sizes, steps, left, panel, adds, out),
                    3..=4 => sum::<4>(sizes, steps, left, panel, adds, out),
                    _ => sum::<COLUMNS>(sizes, steps, left, panel, adds, out),
                }
            }
        }
    }
}

/// The sums of one block.
///
/// # Safety
/// As [`multiply`], of at most `C` columns.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn sum<const C: usize>(
    [rows, columns]: [usize; 2],
    steps: &[usize],
    left: *const u32,
    right: *const u32,
    adds: bool,
    out: MatrixMut<f32>,
) {
    let mut sums = [[_mm512_setzero_ps(); REGISTERS]; C];
    for (step, place) in steps.iter().enumerate() {
        // SAFETY: the caller's promise; the two types are bits of one register.
        unsafe {
            let (left, right) = (left.add(*place), right.add(step * COLUMNS));
            let mut registers: [__m512bh; REGISTERS] = std::mem::zeroed();
            for (number, register) in registers.iter_mut().enumerate() {
                let from = left.add(number * LANES).cast();
                *register = std::mem::transmute::<__m512i, __m512bh>(_mm512_loadu_si512(from));
            }
            for (column, sums) in sums.iter_mut().enumerate() {
                let pair = _mm512_set1_epi32(right.add(column).read().cast_signed());
                let pair = std::mem::transmute::<__m512i, __m512bh>(pair);
                for (sum, register) in sums.iter_mut().zip(registers) {
                    *sum = _mm512_dpbf16_ps(*sum, register, pair);
                }
            }
        }
    }
    for (column, sums) in sums.iter().enumerate().take(columns) {
        let target = out.at(0, column).data;
        let mut tile = [0f32; ROWS];
        // SAFETY: the caller's promise; a tile has room for the registers.
        unsafe {
            for (number, sum) in sums.iter().enumerate() {
                if rows == ROWS {
                    let target = target.add(number * LANES);
                    let old = if adds { _mm512_loadu_ps(target) } else { _mm512_setzero_ps() };
                    _mm512_storeu_ps(target, _mm512_add_ps(old, *sum));
                } else {
                    _mm512_storeu_ps(tile.as_mut_ptr().add(number * LANES), *sum);
                }
            }
            if rows < ROWS {
                for (row, sum) in tile.iter().enumerate().take(rows) {
                    let old = if adds { *target.add(row) } else { 0.0 };
                    target.add(row).write(old + sum);
                }
            }
        }
    }
}
