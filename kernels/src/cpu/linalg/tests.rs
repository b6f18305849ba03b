//! Products of matrices with all kinds of strides, against loops over indices.

use opsmith_runtime::{Complex64, bf16, f16};

use super::*;
use crate::cpu::testing::{Array, assert_close, scattered};

fn matrix(rows: i64, columns: i64) -> Array<f64> {
    Array::new(&[rows, columns], scattered((rows * columns) as usize))
}

fn naive(left: &Array<f64>, right: &Array<f64>) -> Vec<f64> {
    let (rows, inner, columns) = (left.sizes[0], left.sizes[1], right.sizes[1]);
    (0..rows)
        .flat_map(|row| (0..columns).map(move |column| (row, column)))
        .map(|(row, column)| (0..inner).map(|k| left.at(&[row, k]) * right.at(&[k, column])).sum())
        .collect()
}

#[test]
fn matrices_of_any_strides() {
    let pairs = [
        (matrix(3, 4), matrix(4, 5)),
        (matrix(4, 3).permuted(&[1, 0]), matrix(5, 4).permuted(&[1, 0])),
        (matrix(33, 70).reversed(1), matrix(70, 17).reversed(0)),
        (matrix(20, 30).halved(1), matrix(15, 40).halved(1)),
        (Array::new(&[6], scattered(6)).repeated(5), matrix(6, 1)),
        (matrix(1, 6), Array::new(&[1], [0.5]).repeated(6)),
        (matrix(3, 0), matrix(0, 2)),
    ];
    for (left, right) in pairs {
        let expected = naive(&left, &right);
        let sizes = [left.sizes[0], right.sizes[1]];
        let mut out = Array::new(&sizes, vec![f64::NAN; (sizes[0] * sizes[1]) as usize]);
        mm(left.view(), right.view(), out.view_mut()).unwrap();
        assert_close(&out.to_vec(), &expected, 1e-12);
        let turned = Array::zeros(&[sizes[1], sizes[0]]).permuted(&[1, 0]);
        let dense = Array::zeros(&sizes);
        for mut out in
            [turned.clone(), turned.reversed(0), dense.clone().reversed(0).reversed(1), dense.reversed(1)]
        {
            mm(left.view(), right.view(), out.view_mut()).unwrap();
            assert_close(&out.to_vec(), &expected, 1e-12);
        }
    }
}

#[test]
fn narrow_products_of_any_steps() {
    // Each step of each operand, of dimensions with one element too, where it may be any.
    let spaced = |sizes: [i64; 2], steps: [i64; 2]| {
        let elements: Vec<_> = (1..).map(|number| Complex64::new(f64::from(number), 0.5)).take(64).collect();
        let mut array = Array::new(&[64], elements);
        (array.sizes, array.strides) = (sizes.into_iter().collect(), steps.into_iter().collect());
        array
    };
    let all_steps = [1i64, 2, 6].into_iter().flat_map(|a| [1i64, 2, 6].map(|b| [a, b]));
    for (rows, inner, columns) in [(1, 3, 1), (1, 3, 2), (2, 3, 1), (1, 1, 1), (1, 2, 1), (2, 2, 2)] {
        for left_steps in all_steps.clone() {
            for right_steps in all_steps.clone() {
                let left = spaced([rows, inner], left_steps);
                let right = spaced([inner, columns], right_steps);
                let at = |array: &Array<Complex64>, place: [i64; 2]| array.at(&place);
                for out_steps in
                    all_steps.clone().filter(|steps| rows == 1 || columns == 1 || steps[0] != steps[1])
                {
                    let mut out = spaced([rows, columns], out_steps);
                    mm(left.view(), right.view(), out.view_mut()).unwrap();
                    for row in 0..rows {
                        for column in 0..columns {
                            let products = (0..inner).map(|k| at(&left, [row, k]) * at(&right, [k, column]));
                            let steps = format!("{left_steps:?} {right_steps:?} {out_steps:?}");
                            assert_eq!(at(&out, [row, column]), products.sum::<Complex64>(), "{steps}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn addition_reads_the_bias_only_if_it_counts() {
    let (left, right) = (matrix(2, 3), matrix(3, 2));
    let product = naive(&left, &right);
    let bias = Array::new(&[2], [1.0, 10.0]);
    let mut out = Array::zeros(&[2, 2]);
    let (beta, alpha) = (Scalar::Float(0.5), Scalar::Int(2));
    addmm(bias.view(), left.view(), right.view(), beta, alpha, out.view_mut()).unwrap();
    let expected: Vec<f64> = product.iter().enumerate().map(|(i, x)| 2.0 * x + [0.5, 5.0][i % 2]).collect();
    assert_close(&out.to_vec(), &expected, 1e-12);
    let nan = Array::new(&[1], [f64::NAN]);
    addmm(nan.view(), left.view(), right.view(), Scalar::Int(0), Scalar::Int(1), out.view_mut()).unwrap();
    assert_close(&out.to_vec(), &product, 1e-12);
    let (left, right) = (matrix(2, 0), matrix(0, 2));
    addmm(bias.view(), left.view(), right.view(), Scalar::Int(3), Scalar::Int(1), out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [3.0, 30.0, 3.0, 30.0]);
}

#[test]
fn stacks_multiply_matrix_by_matrix() {
    let left = matrix(2, 3).repeated(4);
    let right = Array::new(&[3, 4, 5], scattered(60)).permuted(&[1, 0, 2]);
    let mut out = Array::zeros(&[4, 2, 5]);
    bmm(left.view(), right.view(), out.view_mut()).unwrap();
    for batch in 0..4 {
        for row in 0..2 {
            for column in 0..5 {
                let expected: f64 =
                    (0..3).map(|k| left.at(&[batch, row, k]) * right.at(&[batch, k, column])).sum();
                assert_close(&[out.at(&[batch, row, column])], &[expected], 1e-12);
            }
        }
    }
}

#[test]
fn other_element_types() {
    let left = Array::new(&[2, 2], [1i32, 2, 3, i32::MAX]);
    let right = Array::new(&[2, 2], [1i32, 0, 1, 2]).permuted(&[1, 0]);
    let mut out = Array::zeros(&[2, 2]);
    mm(left.view(), right.view(), out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [1, 5, 3, 1]);

    let ones = |count: i64| vec![1.0f32; count as usize];
    let left = Array::new(&[1, 3000], ones(3000).into_iter().map(f16::from_f32));
    let mut out = Array::zeros(&[1, 1]);
    mm(left.view(), left.clone().permuted(&[1, 0]).view(), out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [f16::from_f32(3000.0)]);
    let left = Array::new(&[1, 512], ones(512).into_iter().map(bf16::from_f32));
    let mut out = Array::zeros(&[1, 1]);
    mm(left.view(), left.clone().permuted(&[1, 0]).view(), out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [bf16::from_f32(512.0)]);
}

#[test]
fn vectors() {
    let left = matrix(3, 4).reversed(0);
    let vector = Array::new(&[8], scattered(8)).halved(0);
    let mut out = Array::zeros(&[3]);
    mv(left.view(), vector.view(), out.view_mut()).unwrap();
    let expected: Vec<f64> =
        (0..3).map(|row| (0..4).map(|k| left.at(&[row, k]) * vector.at(&[k])).sum()).collect();
    assert_close(&out.to_vec(), &expected, 1e-12);

    let long = Array::new(&[10_001], scattered(10_001)).reversed(0);
    let mut out = Array::zeros(&[]);
    dot(long.view(), long.view(), out.view_mut()).unwrap();
    assert_close(&out.to_vec(), &[long.to_vec().iter().map(|x| x * x).sum()], 1e-12);

    let i = Array::new(&[1], [Complex64::I]);
    let mut out = Array::zeros(&[]);
    vdot(i.view(), i.view(), out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [Complex64::ONE]);
}

#[test]
fn complex_matrices_of_any_strides() {
    let matrix = |rows: i64, columns: i64| {
        let parts: Vec<f64> = scattered(2 * (rows * columns) as usize).collect();
        let numbers: Vec<_> = parts.chunks(2).map(|pair| Complex64::new(pair[0], pair[1])).collect();
        Array::new(&[rows, columns], numbers)
    };
    let pairs = [
        (matrix(3, 4), matrix(4, 5)),
        (matrix(33, 70).reversed(1), matrix(17, 70).permuted(&[1, 0])),
        (matrix(30, 9).permuted(&[1, 0]), matrix(30, 40).halved(1)),
        (matrix(1, 6), matrix(6, 7)),
        (matrix(5, 2), matrix(2, 4)),
    ];
    let (beta, alpha) = (Complex64::new(0.5, -1.0), Complex64::new(0.0, 2.0));
    for (left, right) in pairs {
        let sizes = [left.sizes[0], right.sizes[1]];
        let bias = matrix(sizes[0], sizes[1]);
        let mut expected = Vec::new();
        for (row, column) in (0..sizes[0]).flat_map(|row| (0..sizes[1]).map(move |column| (row, column))) {
            let product = |k: i64| left.at(&[row, k]) * right.at(&[k, column]);
            let sum: Complex64 = (0..left.sizes[1]).map(product).sum();
            expected.push(beta * bias.at(&[row, column]) + alpha * sum);
        }
        let mut row_major = Array::zeros(&sizes);
        let mut column_major = Array::zeros(&[sizes[1], sizes[0]]).permuted(&[1, 0]);
        for out in [&mut row_major, &mut column_major] {
            let (beta, alpha) = (Scalar::Complex(beta), Scalar::Complex(alpha));
            addmm(bias.view(), left.view(), right.view(), beta, alpha, out.view_mut()).unwrap();
            for (found, expected) in out.to_vec().iter().zip(&expected) {
                assert!((found - expected).norm() < 1e-12, "{found} in place of {expected}");
            }
        }
    }
    let infinite = Array::new(&[3, 3], vec![Complex64::new(f64::INFINITY, 0.0); 9]);
    let ones = Array::new(&[3, 3], vec![Complex64::ONE; 9]);
    let mut out = Array::zeros(&[3, 3]);
    mm(infinite.view(), ones.view(), out.view_mut()).unwrap();
    assert!(out.to_vec().iter().all(|x| x.re == f64::INFINITY));
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let mut out = Array::zeros(&[2, 2]);
    let error = mm(matrix(2, 3).view(), matrix(4, 2).view(), out.view_mut()).unwrap_err();
    assert_eq!(error.message(), "operands of the shapes (2, 3) and (4, 2) cannot be multiplied");
    let mut out = Array::zeros(&[]);
    assert!(dot(matrix(1, 3).view(), matrix(1, 3).view(), out.view_mut()).is_err());
}

/// Products of rows that stay where they are, by each set of loops, against sums of products.
fn check_unpacked<T: innermost::Blocked + Multiply<Compute = T> + PartialEq>() {
    let steps = [0, 3, 200, 77, 131, 40, 9];
    for kernels in T::all_kernels() {
        let left = testing::small::<T>(200 + 150 + kernels.rows, 1);
        for (rows, columns) in [(1, 1), (5, 3), (kernels.rows, 4), (130, 5), (150, 6), (7, 13)] {
            let right = testing::small::<T>(steps.len() * columns, 2);
            let mut panels = opsmith_runtime::Scratch::new();
            let matrix = row_major(&right, steps.len(), columns);
            // SAFETY: the elements are the vector's.
            unsafe { kernels.append_right(matrix, &mut panels) };
            for adds in [false, true] {
                let before = testing::small::<T>(rows * columns, 3);
                let mut out = before.clone();
                let target = MatrixMut { data: out.as_mut_ptr(), row_stride: 1, column_stride: rows as i64 };
                // SAFETY: a panel's rows lie in the vector from each step's place on.
                unsafe {
                    let (left, right) = (left.as_ptr(), panels.as_ptr());
                    kernels.multiply_unpacked([rows, columns], &steps, left, right, adds, target);
                }
                for (at, sum) in out.iter().enumerate() {
                    let (row, column) = (at % rows, at / rows);
                    let start = if adds { before[at] } else { T::ZERO };
                    let expected = steps.iter().enumerate().fold(start, |sum, (step, place)| {
                        Arithmetic::add(
                            sum,
                            Arithmetic::mul(left[place + row], right[step * columns + column]),
                        )
                    });
                    assert!(*sum == expected, "{rows} rows, {columns} columns, {row} {column}");
                }
            }
        }
    }
}

#[test]
fn rows_that_stay_where_they_are() {
    check_unpacked::<f32>();
    check_unpacked::<f64>();
}
