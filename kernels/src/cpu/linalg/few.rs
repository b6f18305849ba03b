//! Products of a matrix whose rows are contiguous with few columns, as of a layer's weight with a small batch.
//!
//! In: a left matrix of contiguous rows, a right one of at most [`FEW`] columns. Out: `keep * out + scale * left * right`.
//! Each row is read once, and of the operands only the few columns are packed: in blocks, the whole left matrix would be.

use opsmith_runtime::Scratch;
use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::simd::vector_bytes;

use super::product::{Matrix, MatrixMut};
use crate::cpu::simd::widest;

/// Most columns: with more, products in blocks are as fast, measured with AVX-512 and 1024 rows of 1024. With narrower
/// vectors, whose registers hold fewer sums, that is so beyond [`TOGETHER`].
pub(in crate::cpu) const FEW: usize = 8;
/// Least length of a row: in shorter ones, the sum of partial sums takes as long as they do.
pub(in crate::cpu) const LEAST: usize = 64;

/// Columns whose sums stay in registers.
pub(in crate::cpu) const TOGETHER: usize = 4;
/// Rows that are read together.
pub(in crate::cpu) const ROWS: usize = 2;
/// Partial sums of each: one of the widest registers of `f32`.
pub(in crate::cpu) const LANES: usize = 16;

/// Whether a product is one of these. A single column is a product with a vector.
pub(super) fn fits<T>(left: &Matrix<T>, right: &Matrix<T>) -> bool {
    let most = if vector_bytes() == 64 { FEW } else { TOGETHER };
    left.column_stride == 1 && (2..=most).contains(&right.columns) && left.columns >= LEAST
}

/// Writes the product of matrices that [`fits`] admits.
///
/// # Safety
/// As [`blocked::multiply`](super::blocked::multiply).
pub(super) unsafe fn multiply<T: Arithmetic>(
    left: Matrix<T>,
    right: Matrix<T>,
    keep: Option<T>,
    scale: T,
    out: MatrixMut<T>,
) {
    let inner = left.columns;
    let mut packed = Scratch::with_capacity(inner * right.columns);
    for column in 0..right.columns {
        // SAFETY: the caller's promise.
        packed.extend((0..inner).map(|at| unsafe { *right.at(at, column).data }));
    }
    let write = |row: usize, column: usize, sum: T| {
        let target = out.at(row, column).data;
        // SAFETY: the caller's promise.
        unsafe {
            let kept = keep.map_or(T::ZERO, |keep| Arithmetic::mul(keep, *target));
            *target = Arithmetic::add(kept, Arithmetic::mul(scale, sum));
        }
    };
    for first in (0..left.rows).step_by(ROWS) {
        // SAFETY: the caller's promise; a row is contiguous. The last one may be read twice.
        let rows: [&[T]; ROWS] = std::array::from_fn(|number| unsafe {
            let row = (first + number).min(left.rows - 1);
            std::slice::from_raw_parts(left.at(row, 0).data, inner)
        });
        for (number, columns) in packed.chunks(TOGETHER * inner).enumerate() {
            let column = |at: usize| &columns[at * inner..][..inner];
            let sums = match columns.len() / inner {
                1 => dots(rows, [column(0)]),
                2 => dots(rows, [column(0), column(1)]),
                3 => dots(rows, [column(0), column(1), column(2)]),
                _ => dots(rows, [column(0), column(1), column(2), column(3)]),
            };
            for (row, sums) in (first..left.rows).zip(sums) {
                for (at, sum) in sums.into_iter().take(columns.len() / inner).enumerate() {
                    write(row, number * TOGETHER + at, sum);
                }
            }
        }
    }
}

/// The sums of the lanes of two halves.
#[inline(always)]
fn halved<T: Arithmetic, const N: usize, const HALF: usize>(sums: &[T; N]) -> [T; HALF] {
    const { assert!(N == 2 * HALF) };
    let mut halves = [T::ZERO; HALF];
    for lane in 0..HALF {
        halves[lane] = Arithmetic::add(sums[lane], sums[lane + HALF]);
    }
    halves
}

/// The sums of products of each row with each column.
fn dots<T: Arithmetic, const N: usize>(rows: [&[T]; ROWS], columns: [&[T]; N]) -> [[T; TOGETHER]; ROWS] {
    let mut sums = [[T::ZERO; TOGETHER]; ROWS];
    let lanes = widest(
        #[inline(always)]
        move || {
            let mut lanes = [[[T::ZERO; LANES]; N]; ROWS];
            let rows = rows.map(|row| row.as_chunks::<LANES>().0);
            let columns = columns.map(|column| column.as_chunks::<LANES>().0);
            for at in 0..rows[0].len() {
                for row in 0..ROWS {
                    for column in 0..N {
                        for lane in 0..LANES {
                            let product = Arithmetic::mul(rows[row][at][lane], columns[column][at][lane]);
                            lanes[row][column][lane] = Arithmetic::add(lanes[row][column][lane], product);
                        }
                    }
                }
            }
            // Added up outside: of sums that are added up here, the compiler holds one lane at a time.
            lanes
        },
    );
    for row in 0..ROWS {
        let rest = rows[row].as_chunks::<LANES>().1;
        for column in 0..N {
            let ends = rest.iter().zip(columns[column].as_chunks::<LANES>().1);
            let halves: [T; LANES / 2] = halved(&lanes[row][column]);
            let quarters: [T; LANES / 4] = halved(&halves);
            let [a, b] = halved(&quarters);
            let start = Arithmetic::add(a, b);
            sums[row][column] = ends.fold(start, |sum, (&a, &b)| Arithmetic::add(sum, Arithmetic::mul(a, b)));
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::super::testing::check_product;
    use super::*;
    use crate::cpu::linalg::blocked;

    #[test]
    fn products_with_few_columns_are_exact() {
        for size in [[1, 2, 64], [2, 3, 65], [7, 4, 80], [5, 5, 100], [6, 8, 127], [33, 7, 64]] {
            // SAFETY: each matrix lies in memory that is large enough for any order.
            check_product::<f32>(size, |left, right, keep, scale, out| unsafe {
                // Any number of columns, whatever vectors this processor has.
                match left.column_stride {
                    1 => multiply(left, right, keep, scale, out),
                    _ => blocked::multiply(left, right, keep, scale, out),
                }
            });
        }
    }
}
