//! Blocked products against sums of products, with every set of innermost loops.

use super::*;

/// Small whole numbers, so that every order of adding them up gives the same.
fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|at| ((at * 31 + seed * 17 + at / 7) % 9) as f64 - 4.0).collect()
}

/// Where a matrix starts in its memory, and its strides: row-major, column-major, with gaps, or backwards.
fn placed(rows: usize, columns: usize, order: usize) -> (usize, i64, i64) {
    let last = (rows * columns).saturating_sub(1);
    match order {
        0 => (0, columns as i64, 1),
        1 => (0, 1, rows as i64),
        2 => (0, 2 * columns as i64, 2),
        _ => (last, -(columns as i64), -1),
    }
}

fn matrix(data: &[f64], rows: usize, columns: usize, order: usize) -> Matrix<f64> {
    let (start, row_stride, column_stride) = placed(rows, columns, order);
    Matrix { data: data[start..].as_ptr(), rows, columns, row_stride, column_stride }
}

/// A product with one set of loops, in every order of the three matrices, against sums of products.
fn check(kernels: &Kernels<f64>, [rows, columns, inner]: [usize; 3]) {
    let room = |rows: usize, columns: usize| 2 * rows * columns;
    let [a, b] = [numbers(room(rows, inner), 1), numbers(room(inner, columns), 2)];
    let before = numbers(room(rows, columns), 3);
    for orders in 0..64 {
        let left = matrix(&a, rows, inner, orders % 4);
        let right = matrix(&b, inner, columns, orders / 4 % 4);
        let keep = [None, Some(1.0), Some(-2.0)][orders % 3];
        let mut c = before.clone();
        let (start, row_stride, column_stride) = placed(rows, columns, orders / 16);
        let out = MatrixMut { data: c.as_mut_ptr().wrapping_add(start), row_stride, column_stride };
        // SAFETY: each matrix lies in memory that is large enough for any order.
        unsafe { multiply_with(Some(kernels), left, right, keep, 3.0, out) };
        for row in 0..rows {
            for column in 0..columns {
                // SAFETY: the element is in the matrix's memory, which is large enough for any order.
                let product = |at| unsafe { *left.at(row, at).data * *right.at(at, column).data };
                let sum: f64 = (0..inner).map(product).sum();
                let at = (start as i64 + row as i64 * row_stride + column as i64 * column_stride) as usize;
                let expected = keep.map_or(0.0, |keep| keep * before[at]) + 3.0 * sum;
                assert_eq!(c[at], expected, "{rows} {columns} {inner}, orders {orders}, keep {keep:?}");
            }
        }
    }
}

#[test]
fn blocks_of_any_size_and_order_are_exact() {
    let sizes = [
        [1, 1, 3],
        [7, 5, 3],
        [16, 16, 16],
        [17, 9, 33],
        [3, 100, 7],
        [100, 3, 7],
        [65, 66, 3],
        [20, 20, 530],
        [13, 70, 600],
        [3200, 3, 4],
    ];
    for kernels in f64::all_kernels() {
        sizes.into_iter().for_each(|size| check(kernels, size));
    }
}
