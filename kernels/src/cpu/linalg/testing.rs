//! Matrices in all orders, for tests of products.

use opsmith_runtime::{Element, Scalar};

use super::product::Matrix;

/// Small whole numbers, so that every order of adding them up gives the same.
pub(super) fn small<T: Element>(count: usize, seed: usize) -> Vec<T> {
    let number = |at: usize| ((at * 31 + seed * 17 + at / 7) % 9) as i64 - 4;
    (0..count).map(|at| T::from_scalar(Scalar::Int(number(at)))).collect()
}

/// Where a matrix starts in its memory, and its strides: row-major, column-major, with gaps, or backwards.
pub(super) fn placed(rows: usize, columns: usize, order: usize) -> (usize, [i64; 2]) {
    match order {
        0 => (0, [columns as i64, 1]),
        1 => (0, [1, rows as i64]),
        2 => (0, [2 * columns as i64, 2]),
        _ => ((rows * columns).saturating_sub(1), [-(columns as i64), -1]),
    }
}

/// The matrix in that order, in memory that is large enough for any.
pub(super) fn matrix<T>(data: &[T], rows: usize, columns: usize, order: usize) -> Matrix<T> {
    let (start, [row_stride, column_stride]) = placed(rows, columns, order);
    Matrix { data: data[start..].as_ptr(), rows, columns, row_stride, column_stride }
}
