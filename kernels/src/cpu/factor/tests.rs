//! Tests of factors: products of factors are the matrices again.

use num_complex::Complex64;

use super::matrix::Mat;
use super::number::{Field, Real};
use super::orthogonal::Reflected;
use super::*;
use crate::cpu::testing::{Array, scattered};

fn complex(count: usize) -> Vec<Complex64> {
    let parts: Vec<f64> = scattered(2 * count).collect();
    parts.chunks(2).map(|pair| Complex64::new(pair[0], pair[1])).collect()
}

fn matrix<T: Field>(rows: usize, columns: usize, elements: impl IntoIterator<Item = T>) -> Mat<T> {
    Mat { elements: elements.into_iter().collect(), rows, columns }
}

#[track_caller]
fn assert_near<T: Field<Size = f64>>(got: &Mat<T>, expected: &Mat<T>) {
    assert_eq!((got.rows, got.columns), (expected.rows, expected.columns));
    for (at, (got, expected)) in got.elements.iter().zip(&expected.elements).enumerate() {
        assert!((*got - *expected).size() < 1e-11, "element {at}: {got:?} instead of {expected:?}");
    }
}

fn stacked<T: Field>(array: &Array<T>, rows: usize, columns: usize) -> Mat<T> {
    matrix(rows, columns, array.to_vec())
}

fn array<T: Field>(of: &Mat<T>) -> Array<T> {
    Array::new(&[of.rows as i64, of.columns as i64], of.elements.iter().copied())
}

/// The operation on a matrix of more than one block, and on small ones, real and complex.
fn each(mut check: impl FnMut(usize, usize, bool)) {
    for (rows, columns) in [(1, 1), (3, 3), (5, 3), (3, 5), (70, 70), (70, 55), (50, 60), (0, 2), (2, 0)] {
        check(rows, columns, false);
        check(rows, columns, true);
    }
}

fn reflected_is_the_matrix<T: Field<Size = f64>>(a: &Mat<T>) {
    let reflected = Reflected::of(matrix(a.rows, a.columns, a.elements.iter().copied()));
    let short = a.rows.min(a.columns);
    for count in [short, a.rows] {
        let q = reflected.columns(count);
        assert_near(&q.times(&reflected.upper(count)), a);
        assert_near(&q.adjoint().times(&q), &Mat::identity(count, count));
    }
}

#[test]
fn orthogonal_factors() {
    each(|rows, columns, is_complex| {
        if is_complex {
            reflected_is_the_matrix(&matrix(rows, columns, complex(rows * columns)));
        } else {
            reflected_is_the_matrix(&matrix(rows, columns, scattered(rows * columns)));
        }
    });
}

fn solution_solves<T: Field<Size = f64>>(a: &Mat<T>, b: &Mat<T>) {
    for (left, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
        let right = if left { b.transposed().transposed() } else { b.transposed() };
        let factored = lu::Factors::of(a.transposed().transposed());
        let x = factored.solved(right.transposed().transposed(), left, adjoint);
        let system = if adjoint { a.adjoint() } else { a.transposed().transposed() };
        assert_near(&if left { system.times(&x) } else { x.times(&system) }, &right);
    }
}

#[test]
fn systems() {
    for size in [1, 4, 100] {
        let mut a = matrix(size, size, scattered(size * size));
        (0..size).for_each(|at| a.row_mut(at)[at] += 3.0);
        solution_solves(&a, &matrix(size, 3, scattered(3 * size)));
        let mut a = matrix(size, size, complex(size * size));
        (0..size).for_each(|at| a.row_mut(at)[at] += Complex64::new(3.0, 1.0));
        solution_solves(&a, &matrix(size, 3, complex(3 * size)));
    }
}

fn cholesky_is_the_matrix<T: Field<Size = f64>>(x: &Mat<T>) {
    let n = x.rows;
    let mut a = x.times(&x.adjoint());
    (0..n).for_each(|at| a.row_mut(at)[at] += T::UNIT);
    for upper in [false, true] {
        let mut factor = Array::zeros(&[n as i64, n as i64]);
        let mut info = Array::<i32>::zeros(&[]);
        cholesky_ex(array(&a).view(), upper, true, factor.view_mut(), info.view_mut()).unwrap();
        let factor = stacked(&factor, n, n);
        assert_near(
            &if upper { factor.adjoint().times(&factor) } else { factor.times(&factor.adjoint()) },
            &a,
        );
    }
}

#[test]
fn cholesky_factors() {
    for size in [1, 4, 110] {
        cholesky_is_the_matrix(&matrix(size, size, scattered(size * size)));
        cholesky_is_the_matrix(&matrix(size, size, complex(size * size)));
    }
    let negative = Array::new(&[2, 2], [1.0, 2.0, 2.0, 1.0]);
    let mut factor = Array::<f64>::zeros(&[2, 2]);
    let mut info = Array::<i32>::zeros(&[]);
    cholesky_ex(negative.view(), false, false, factor.view_mut(), info.view_mut()).unwrap();
    assert_eq!(info.to_vec(), [2]);
    assert!(cholesky_ex(negative.view(), false, true, factor.view_mut(), info.view_mut()).is_err());
}

fn eigenvectors_are<T: Field<Size = f64, Real = f64>>(x: &Mat<T>) {
    let n = x.rows;
    let mut a = x.adjoint();
    a.elements.iter_mut().zip(&x.elements).for_each(|(target, element)| *target += *element);
    let mut values = Array::<f64>::zeros(&[n as i64]);
    let mut vectors = Array::zeros(&[n as i64, n as i64]);
    eigh(array(&a).view(), "L", true, values.view_mut(), vectors.view_mut()).unwrap();
    let values = values.to_vec();
    assert!(values.is_sorted());
    let vectors = stacked(&vectors, n, n);
    let mut scaled = vectors.adjoint();
    for (row, value) in values.iter().enumerate() {
        scaled.row_mut(row).iter_mut().for_each(|element| *element = *element * T::of(*value));
    }
    assert_near(&vectors.times(&scaled), &a);
    assert_near(&vectors.adjoint().times(&vectors), &Mat::identity(n, n));
}

#[test]
fn eigenvalues() {
    for size in [0, 1, 2, 5, 40] {
        eigenvectors_are(&matrix(size, size, scattered(size * size)));
        eigenvectors_are(&matrix(size, size, complex(size * size)));
    }
    eigenvectors_are(&Mat::<f64>::zeros(3, 3));
    eigenvectors_are(&Mat::<Complex64>::identity(3, 3));
    eigenvectors_are(&matrix(3, 3, [1.0; 9]));
}

fn singular_factors_are<T: Field<Size = f64, Real = f64>>(a: &Mat<T>) {
    let (m, n) = (a.rows, a.columns);
    let short = m.min(n);
    for (left, right) in [(short, short), (m, n)] {
        let mut u = Array::zeros(&[m as i64, left as i64]);
        let mut s = Array::<f64>::zeros(&[short as i64]);
        let mut vh = Array::zeros(&[right as i64, n as i64]);
        svd(array(a).view(), true, u.view_mut(), s.view_mut(), vh.view_mut()).unwrap();
        let values = s.to_vec();
        assert!(values.windows(2).all(|pair| pair[0] >= pair[1] && pair[1] >= 0.0));
        let (u, vh) = (stacked(&u, m, left), stacked(&vh, right, n));
        let mut scaled = Mat::zeros(left, n);
        for (row, value) in values.iter().enumerate() {
            for (target, element) in scaled.row_mut(row).iter_mut().zip(vh.row(row)) {
                *target = *element * T::of(*value);
            }
        }
        assert_near(&u.times(&scaled), a);
        assert_near(&u.adjoint().times(&u), &Mat::identity(left, left));
        assert_near(&vh.times(&vh.adjoint()), &Mat::identity(right, right));
    }
}

#[test]
fn singular_values() {
    each(|rows, columns, is_complex| {
        if is_complex {
            singular_factors_are(&matrix(rows, columns, complex(rows * columns)));
        } else {
            singular_factors_are(&matrix(rows, columns, scattered(rows * columns)));
        }
    });
    singular_factors_are(&Mat::<f64>::zeros(4, 2));
    singular_factors_are(&matrix(3, 4, [1.0; 12]));
    singular_factors_are(&matrix(40, 30, (0..1200).map(|at| f64::from(at / 30 % 3 * (at % 30 % 2)))));
    singular_factors_are(&Mat::<Complex64>::identity(3, 2));
    let wide = Array::new(&[1, 2], [f64::NAN, 1.0]);
    let (mut u, mut s, mut vh) = (Array::zeros(&[1, 1]), Array::zeros(&[1]), Array::zeros(&[1, 2]));
    assert!(svd(wide.view(), true, u.view_mut(), s.view_mut(), vh.view_mut()).is_err());
}

#[test]
fn determinants() {
    let a = Array::new(&[2, 2, 2], [0.0, 1.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
    let mut result = Array::<f64>::zeros(&[2]);
    let (mut lu, mut pivots) = (Array::zeros(&[2, 2, 2]), Array::<i32>::zeros(&[2, 2]));
    det(a.view(), result.view_mut(), lu.view_mut(), pivots.view_mut()).unwrap();
    assert_eq!(result.to_vec()[0], -1.0);
    assert!((result.to_vec()[1] + 2.0).abs() < 1e-15);
    let singular = Array::new(&[2, 2], [1.0, 2.0, 2.0, 4.0]);
    let mut minors = Array::<f64>::zeros(&[2, 2]);
    cofactors(singular.view(), minors.view_mut()).unwrap();
    let expected = matrix(2, 2, [4.0, -2.0, -2.0, 1.0]);
    assert_near(&stacked(&minors, 2, 2), &expected);
    assert!(f64::EPSILON < f64::rounded(1.0));
}
