//! Products of 16-bit floats against sums of products, by each of their loops.

use opsmith_runtime::{bf16, f16};

use super::*;
use crate::cpu::linalg::product::row_major;
use crate::cpu::linalg::testing::check_product;
use crate::cpu::testing::Array;

type Loops<T> = unsafe fn(Matrix<T>, Matrix<T>, Option<f32>, f32, MatrixMut<T>);

fn check<T: Half>(multiply: Loops<T>, size: [usize; 3]) {
    // SAFETY: each matrix lies in memory that is large enough for any order.
    check_product::<T>(size, |left, right, keep, scale, out| unsafe {
        multiply(left, right, keep, scale, out)
    });
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
        unsafe { multiply(row_major(&left, 6, 8), row_major(&right, 8, 6), None, 1.0, out_matrix) };
        for result in out {
            assert_eq!(result.is_nan(), expected.is_nan());
            assert!(expected.is_nan() || result == expected, "{result} of {element}");
        }
    }
}

#[test]
fn few_lines_are_the_same_sums_in_threads() {
    for (lines, inner) in [(1, 1), (3, 2), (4, 7), (9, 64), (70, 1025), (1030, 300)] {
        let numbers = |count: i64| (0..count).map(|x| bf16::from_f32((x * 7919 % 255 - 127) as f32 / 64.0));
        let many = Array::new(&[lines, inner], numbers(lines * inner));
        for few in 1..=FEW_LINES as i64 {
            let right = Array::new(&[few, inner], numbers(few * inner)).permuted(&[1, 0]);
            let mut first: Option<Vec<bf16>> = None;
            for threads in [1, 2, 5] {
                parallel::set_num_threads(threads).unwrap();
                let mut out = Array::<bf16>::zeros(&[lines, few]);
                crate::cpu::linalg::mm(many.view(), right.view(), out.view_mut()).unwrap();
                assert_eq!(
                    first.get_or_insert_with(|| out.to_vec()),
                    &out.to_vec(),
                    "{lines} {inner} {threads}"
                );
                for (at, got) in (0..).zip(out.to_vec()) {
                    let terms = (0..inner)
                        .map(|k| many.at(&[at / few, k]).to_f64() * right.at(&[k, at % few]).to_f64());
                    let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                    assert!((got.to_f64() - sum).abs() <= sum.abs() / 250.0 + size * 1e-5);
                }
            }
        }
    }
}
