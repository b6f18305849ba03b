//! Products of integers, which wrap.
//!
//! In: matrices with any strides. Out: `keep * out + scale * left * right`. Sums of a few rows and columns stay in registers.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::{Element, Scratch};

use super::product::{Matrix, MatrixMut, pack};
use crate::cpu::lanes::sum_terms;
use crate::cpu::simd::widest;

/// Rows whose sums are computed together.
pub(in crate::cpu) const ROWS: usize = 4;
/// Columns whose sums are computed together, and of a panel of the right operand: of `int64`, which has the fewest.
pub(in crate::cpu) const COLUMNS: usize = 32;

/// Writes `keep * out + scale * left * right`; without `keep`, `out` is not read.
///
/// # Safety
/// As [`Multiply::multiply`](super::Multiply::multiply).
pub(super) unsafe fn multiply<T: Arithmetic + Element<Compute = T>>(
    left: Matrix<T>,
    right: Matrix<T>,
    keep: Option<T>,
    scale: T,
    out: MatrixMut<T>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if right.columns < ROWS {
            return multiply_few(left, right, keep, scale, out);
        }
        match const { size_of::<T>() } {
            1 | 2 => multiply_by::<{ 4 * COLUMNS }, T>(left, right, keep, scale, out),
            4 => multiply_by::<{ 2 * COLUMNS }, T>(left, right, keep, scale, out),
            _ => multiply_by::<COLUMNS, T>(left, right, keep, scale, out),
        }
    }
}

/// As [`multiply`], of few columns, which would leave panels empty.
///
/// # Safety
/// As [`multiply`].
unsafe fn multiply_few<T: Arithmetic + Element<Compute = T>>(
    left: Matrix<T>,
    right: Matrix<T>,
    keep: Option<T>,
    scale: T,
    out: MatrixMut<T>,
) {
    // SAFETY: the caller's promise.
    let (rows, columns) = unsafe { (pack(left), pack(right.transposed())) };
    let inner = left.columns;
    let target = Shared(out.data);
    parallel::for_each_range_of(inner * right.columns, left.rows, |range| {
        let out = MatrixMut { data: target.at(0), ..out };
        for row in range {
            for column in 0..right.columns {
                let (a, b) = (&rows[row * inner..][..inner], &columns[column * inner..][..inner]);
                let [sum] = widest(
                    #[inline(always)]
                    move || sum_terms([a, b], |[a, b]| [Arithmetic::mul(a, b)]),
                );
                // SAFETY: the caller's promise; a row of the result is one thread's.
                unsafe { write(out.at(row, column).data, keep, scale, sum) };
            }
        }
    });
}

/// Writes `keep * target + scale * sum`.
///
/// # Safety
/// The target is valid for reads and writes.
unsafe fn write<T: Arithmetic>(target: *mut T, keep: Option<T>, scale: T, sum: T) {
    // SAFETY: the caller's promise.
    let target = unsafe { &mut *target };
    let kept = keep.map_or(T::ZERO, |keep| Arithmetic::mul(keep, *target));
    *target = Arithmetic::add(kept, Arithmetic::mul(scale, sum));
}

/// As [`multiply`], with panels of so many columns.
///
/// # Safety
/// As [`multiply`].
unsafe fn multiply_by<const WIDTH: usize, T: Arithmetic + Element<Compute = T>>(
    left: Matrix<T>,
    right: Matrix<T>,
    keep: Option<T>,
    scale: T,
    out: MatrixMut<T>,
) {
    // SAFETY: the caller's promise.
    let (rows, panels) = unsafe { (pack(left), panels_of::<WIDTH, T>(right)) };
    let (inner, columns) = (left.columns, right.columns);
    let target = Shared(out.data);
    let chunk = CHUNK.div_ceil((ROWS * inner * columns).max(1));
    parallel::for_each_range(left.rows.div_ceil(ROWS), chunk, |range| {
        let out = MatrixMut { data: target.at(0), ..out };
        for first in range.map(|block| block * ROWS) {
            let count = ROWS.min(left.rows - first);
            // The last block repeats its last row.
            let rows: [&[T]; ROWS] =
                std::array::from_fn(|row| &rows[(first + row.min(count - 1)) * inner..][..inner]);
            for column in (0..columns).step_by(WIDTH) {
                let panel = &panels[column * inner..][..WIDTH * inner];
                let mut sums = [[T::ZERO; WIDTH]; ROWS];
                let to = &mut sums;
                widest(
                    #[inline(always)]
                    move || match count {
                        1 => to[..1].copy_from_slice(&sums_of([rows[0]], panel.as_chunks().0)),
                        _ => *to = sums_of(rows, panel.as_chunks().0),
                    },
                );
                for (row, sums) in sums.iter().enumerate().take(count) {
                    for (lane, &sum) in sums.iter().enumerate().take(columns - column) {
                        // SAFETY: the caller's promise; a row of the result is one thread's.
                        unsafe { write(out.at(first + row, column + lane).data, keep, scale, sum) };
                    }
                }
            }
        }
    });
}

/// The sums of some rows and the columns of a panel.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
fn sums_of<const WIDTH: usize, const R: usize, T: Arithmetic>(
    rows: [&[T]; R],
    panel: &[[T; WIDTH]],
) -> [[T; WIDTH]; R] {
    let mut sums = [[T::ZERO; WIDTH]; R];
    for step in 0..panel.len() {
        for row in 0..R {
            let factor = rows[row][step];
            for lane in 0..WIDTH {
                sums[row][lane] =
                    Arithmetic::add(sums[row][lane], Arithmetic::mul(factor, panel[step][lane]));
            }
        }
    }
    sums
}

/// A matrix in panels of columns, the elements of a row in a panel one after the other; zeros stand for missing columns.
///
/// # Safety
/// Every element is valid for reads.
unsafe fn panels_of<const WIDTH: usize, T: Arithmetic>(matrix: Matrix<T>) -> Scratch<T> {
    let mut panels = Scratch::with_capacity(matrix.rows * matrix.columns.next_multiple_of(WIDTH));
    for first in (0..matrix.columns).step_by(WIDTH) {
        for row in 0..matrix.rows {
            let (start, count) = (matrix.at(row, first), WIDTH.min(matrix.columns - first));
            if matrix.column_stride == 1 {
                // SAFETY: the caller's promise.
                let row = unsafe { std::slice::from_raw_parts(start.data, count) };
                panels.extend_mapped(row, |element| *element);
            } else {
                // SAFETY: the caller's promise.
                panels.extend_from_fn(count, |column| unsafe { *start.at(0, column).data });
            }
            panels.extend_from_fn(WIDTH - count, |_| T::ZERO);
        }
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::super::mm;
    use crate::cpu::testing::Array;
    use opsmith_runtime::parallel;

    #[test]
    fn products_of_any_size_in_threads() {
        for [rows, inner, columns] in [
            [1, 1, 1],
            [1, 40, 70],
            [70, 300, 1],
            [5, 33, 3],
            [4, 3, 32],
            [5, 7, 33],
            [3, 0, 2],
            [130, 90, 70],
            [8, 200, 31],
        ] {
            let a = Array::new(&[rows, inner], (0..rows * inner).map(|x| x * 7919 % 1013 - 500));
            let b =
                Array::new(&[columns, inner], (0..inner * columns).map(|x| x * x % 997)).permuted(&[1, 0]);
            let expected: Vec<i64> = (0..rows * columns)
                .map(|at| (0..inner).map(|k| a.at(&[at / columns, k]) * b.at(&[k, at % columns])).sum())
                .collect();
            for threads in [1, 2, 5] {
                parallel::set_num_threads(threads).unwrap();
                let mut out = Array::<i64>::zeros(&[rows, columns]);
                mm(a.view(), b.view(), out.view_mut()).unwrap();
                assert_eq!(out.to_vec(), expected, "{rows} {inner} {columns} {threads}");
                let mut out = Array::<i64>::zeros(&[columns, rows]).permuted(&[1, 0]);
                mm(a.view(), b.view(), out.view_mut()).unwrap();
                assert_eq!(out.to_vec(), expected, "{rows} {inner} {columns} {threads}");
            }
        }
    }
}
