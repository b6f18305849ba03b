//! Blocked products against sums of products, with every set of innermost loops.

use super::super::testing::{matrix, placed, small};
use super::*;

/// A product with one set of loops, in every order of the three matrices, against sums of products.
fn check(kernels: &Kernels<f64>, [rows, columns, inner]: [usize; 3]) {
    let room = |rows: usize, columns: usize| 2 * rows * columns;
    let [a, b] = [small::<f64>(room(rows, inner), 1), small(room(inner, columns), 2)];
    let before = small::<f64>(room(rows, columns), 3);
    for orders in 0..64 {
        let left = matrix(&a, rows, inner, orders % 4);
        let right = matrix(&b, inner, columns, orders / 4 % 4);
        let keep = [None, Some(1.0), Some(-2.0)][orders % 3];
        let mut c = before.clone();
        let (start, [row_stride, column_stride]) = placed(rows, columns, orders / 16);
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
