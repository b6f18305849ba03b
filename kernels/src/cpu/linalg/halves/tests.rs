//! Products of 16-bit floats against sums of products, by each of their loops.

use super::*;
use crate::cpu::linalg::testing::{matrix, placed, small};

type Loops<T> = unsafe fn(Matrix<T>, Matrix<T>, Option<f32>, f32, MatrixMut<T>);

/// A product in every order of the three matrices, against sums of products.
fn check<T: Half>(multiply: Loops<T>, [rows, columns, inner]: [usize; 3]) {
    let room = |rows: usize, columns: usize| 2 * rows * columns + 1;
    let [a, b] = [small::<T>(room(rows, inner), 1), small(room(inner, columns), 2)];
    let before = small::<T>(room(rows, columns), 3);
    for orders in 0..64 {
        let left = matrix(&a, rows, inner, orders % 4);
        let right = matrix(&b, inner, columns, orders / 4 % 4);
        let keep = [None, Some(1.0), Some(-2.0)][orders % 3];
        let mut c = before.clone();
        let (start, [row_stride, column_stride]) = placed(rows, columns, orders / 16);
        let out = MatrixMut { data: c.as_mut_ptr().wrapping_add(start), row_stride, column_stride };
        // SAFETY: each matrix lies in memory that is large enough for any order.
        unsafe { multiply(left, right, keep, 0.5, out) };
        for row in 0..rows {
            for column in 0..columns {
                // SAFETY: the element is in the matrix's memory, which is large enough for any order.
                let number = |element: Matrix<T>| unsafe { *element.data }.to_compute();
                let sum: f32 =
                    (0..inner).map(|at| number(left.at(row, at)) * number(right.at(at, column))).sum();
                let at = (start as i64 + row as i64 * row_stride + column as i64 * column_stride) as usize;
                let kept = keep.map_or(0.0, |keep| keep * before[at].to_compute());
                let expected = T::from_compute(kept + 0.5 * sum);
                assert!(c[at] == expected, "{rows} {columns} {inner}, orders {orders}, keep {keep:?}");
            }
        }
    }
}

const SIZES: [[usize; 3]; 12] = [
    [1, 1, 3],
    [7, 5, 3],
    [5, 9, 0],
    [5, 6, 1],
    [16, 16, 16],
    [17, 9, 33],
    [3, 100, 7],
    [100, 3, 1025],
    [65, 66, 5],
    [49, 20, 1600],
    [5, 530, 20],
    [145, 7, 3100],
];

#[test]
fn products_of_any_size_and_order_are_exact() {
    for size in SIZES {
        check::<f16>(multiply, size);
        check::<bf16>(multiply, size);
        check::<bf16>(widened, size);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn pairs_of_any_size_and_order_are_exact() {
    if crate::cpu::linalg::pairs::is_supported() {
        SIZES.into_iter().for_each(|size| check::<bf16>(crate::cpu::linalg::pairs::multiply, size));
    }
}

#[test]
fn numbers_that_are_not_finite_stay_so() {
    let [large, infinite, nan] = [f32::MAX, f32::INFINITY, f32::NAN].map(bf16::from_f32);
    let one = bf16::from_f32(1.0);
    for (element, expected) in [(large, infinite), (infinite, infinite), (nan, nan)] {
        let (left, right, mut out) = (vec![element; 6 * 8], vec![one; 8 * 6], vec![one; 36]);
        let out_matrix = MatrixMut { data: out.as_mut_ptr(), row_stride: 6, column_stride: 1 };
        // SAFETY: the matrices lie in their vectors.
        unsafe { multiply(matrix(&left, 6, 8, 0), matrix(&right, 8, 6, 0), None, 1.0, out_matrix) };
        for result in out {
            assert_eq!(result.is_nan(), expected.is_nan());
            assert!(expected.is_nan() || result == expected, "{result} of {element}");
        }
    }
}
