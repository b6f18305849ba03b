//! Matrices in all orders, for tests of products.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Scalar};

use super::product::{Matrix, MatrixMut};

/// Small whole numbers, so that every order of adding them up gives the same.
pub(super) fn small<T: Element>(count: usize, seed: usize) -> Vec<T> {
    let number = |at: usize| ((at * 31 + seed * 17 + at / 7) % 9) as i64 - 4;
    (0..count).map(|at| T::from_scalar(Scalar::Int(number(at)))).collect()
}

/// Where a matrix starts in its memory, and its strides: row-major, column-major, with gaps, or backwards.
fn placed(rows: usize, columns: usize, order: usize) -> (usize, [i64; 2]) {
    match order {
        0 => (0, [columns as i64, 1]),
        1 => (0, [1, rows as i64]),
        2 => (0, [2 * columns as i64, 2]),
        _ => ((rows * columns).saturating_sub(1), [-(columns as i64), -1]),
    }
}

/// The matrix in that order, in memory that is large enough for any.
fn matrix<T>(data: &[T], rows: usize, columns: usize, order: usize) -> Matrix<T> {
    let (start, [row_stride, column_stride]) = placed(rows, columns, order);
    Matrix { data: data[start..].as_ptr(), rows, columns, row_stride, column_stride }
}

/// A product in every order of the three matrices, `keep * out + 3 * left * right`, against sums of products.
pub(super) fn check_product<T: Element<Compute: Arithmetic>>(
    [rows, columns, inner]: [usize; 3],
    multiply: impl Fn(Matrix<T>, Matrix<T>, Option<T::Compute>, T::Compute, MatrixMut<T>),
) {
    let room = |rows: usize, columns: usize| 2 * rows * columns + 1;
    let [a, b] = [small::<T>(room(rows, inner), 1), small(room(inner, columns), 2)];
    let before = small::<T>(room(rows, columns), 3);
    let whole = |number: i64| T::Compute::from_scalar(Scalar::Int(number));
    for orders in 0..64 {
        let left = matrix(&a, rows, inner, orders % 4);
        let right = matrix(&b, inner, columns, orders / 4 % 4);
        let keep = [None, Some(1), Some(-2)][orders % 3].map(whole);
        let mut c = before.clone();
        let (start, [row_stride, column_stride]) = placed(rows, columns, orders / 16);
        let out = MatrixMut { data: c.as_mut_ptr().wrapping_add(start), row_stride, column_stride };
        multiply(left, right, keep, whole(3), out);
        for row in 0..rows {
            for column in 0..columns {
                // SAFETY: the element is in the matrix's memory, which is large enough for any order.
                let number = |element: Matrix<T>| unsafe { *element.data }.to_compute();
                let product = |at| Arithmetic::mul(number(left.at(row, at)), number(right.at(at, column)));
                let sum = (0..inner).map(product).fold(T::Compute::ZERO, Arithmetic::add);
                let at = (start as i64 + row as i64 * row_stride + column as i64 * column_stride) as usize;
                let kept =
                    keep.map_or(T::Compute::ZERO, |keep| Arithmetic::mul(keep, before[at].to_compute()));
                let expected = T::from_compute(Arithmetic::add(kept, Arithmetic::mul(whole(3), sum)));
                let is_equal = c[at].to_compute().equal(expected.to_compute());
                assert!(is_equal, "{rows} {columns} {inner}, orders {orders}, keep {keep:?}: {:?}", c[at]);
            }
        }
    }
}
