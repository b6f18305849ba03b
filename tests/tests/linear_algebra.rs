//! Factors of matrices: products that are the matrix again, and gradients of functions that do not depend on the signs and
//! phases of vectors, against differences, first and second order.

use opsmith::runtime::autograd::{self, Options};
use opsmith::{Result, Tensor};
use opsmith_tests::gradcheck::weights;

const STEP: f64 = 1e-5;

fn slopes(x: &Tensor, f: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Vec<f64>> {
    let elements = x.to_vec::<f64>()?;
    (0..elements.len())
        .map(|at| {
            let value = |by: f64| -> Result<f64> {
                let mut moved = elements.clone();
                moved[at] += by;
                Ok(f(&Tensor::from_slice(&moved, x.shape())?)?.item()?.to_f64())
            };
            Ok((value(STEP)? - value(-STEP)?) / (2.0 * STEP))
        })
        .collect()
}

fn gradient(x: &Tensor, f: &dyn Fn(&Tensor) -> Result<Tensor>, create_graph: bool) -> Result<Tensor> {
    let options = Options { create_graph, ..Options::default() };
    let mut found = autograd::grad(&[&f(x)?], &[x], &[None], options)?;
    Ok(found.remove(0).expect("the function depends on its argument"))
}

fn fresh(x: &Tensor) -> Result<Tensor> {
    Tensor::from_slice(&x.to_vec::<f64>()?, x.shape())
}

#[track_caller]
fn assert_close(what: &str, found: &Tensor, slopes: &[f64]) {
    let found = found.to_vec::<f64>().unwrap();
    for (at, (found, slope)) in found.iter().zip(slopes).enumerate() {
        assert!(
            (found - slope).abs() < 1e-5 * (1.0 + slope.abs()),
            "{what}: element {at} is {found}, not {slope}"
        );
    }
}

#[track_caller]
fn check(what: &str, x: &Tensor, f: &dyn Fn(&Tensor) -> Result<Tensor>) {
    let first = |x: &Tensor| gradient(&fresh(x)?.requires_grad_(true)?, f, false);
    assert_close(what, &first(x).unwrap(), &slopes(x, f).unwrap());
    let along = |x: &Tensor| -> Result<Tensor> {
        let gradient = first(x)?;
        opsmith::sum(&opsmith::mul(&gradient, &weights(gradient.shape(), 11))?)
    };
    let second = |x: &Tensor| -> Result<Tensor> {
        let x = fresh(x)?.requires_grad_(true)?;
        let gradient = gradient(&x, f, true)?;
        let total = opsmith::sum(&opsmith::mul(&gradient, &weights(gradient.shape(), 11))?)?;
        let mut found = autograd::grad(&[&total], &[&x], &[None], Options::default())?;
        found.remove(0).map_or_else(|| opsmith::zeros_like(&x), Ok)
    };
    assert_close(&format!("{what}, twice"), &second(x).unwrap(), &slopes(x, &along).unwrap());
}

/// A matrix of full rank with distinct singular values.
fn matrix(shape: &[i64]) -> Tensor {
    let count = shape.iter().product::<i64>();
    let numbers: Vec<f64> = (0..count).map(|at| (1.7 * (at * at) as f64 + 0.3).sin()).collect();
    Tensor::from_slice(&numbers, shape).unwrap()
}

/// The sum of the elements, each with a weight of its own.
fn weighed(x: &Tensor) -> Result<Tensor> {
    opsmith::sum(&opsmith::mul(x, &weights(x.shape(), 7))?)
}

fn adjoint(x: &Tensor) -> Result<Tensor> {
    opsmith::transpose(x, -2, -1)
}

/// The matrices as complex ones, with an imaginary part that is not symmetric.
fn complex(x: &Tensor) -> Result<Tensor> {
    opsmith::complex(x, &opsmith::mul(&opsmith::flip(x, [-1])?, 0.5)?)
}

fn hermitian(x: &Tensor) -> Result<Tensor> {
    opsmith::add(x, &opsmith::conj(&adjoint(x)?)?)
}

fn positive(x: &Tensor) -> Result<Tensor> {
    let square = opsmith::matmul(x, &opsmith::conj(&adjoint(x)?)?)?;
    opsmith::add(&square, &opsmith::eye(x.shape()[x.dim() - 1])?)
}

/// A function of both parts.
fn parts(x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        return weighed(x);
    }
    opsmith::add(&weighed(&opsmith::real(x)?)?, &opsmith::mul(&weighed(&opsmith::imag(x)?)?, 0.3)?)
}

fn both(what: &str, x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) {
    check(what, x, &f);
    check(&format!("{what}, complex"), x, &|x| f(&complex(x)?));
}

#[test]
fn gradients_of_cholesky_factors() {
    let x = matrix(&[2, 3, 3]);
    both("lower", &x, |x| parts(&opsmith::linalg_cholesky(&positive(x)?)?));
    both("upper", &x, |x| {
        let options = opsmith::LinalgCholeskyOptions::new().upper(true);
        parts(&opsmith::linalg_cholesky_with(&positive(x)?, options)?)
    });
}

#[test]
fn gradients_of_eigenvectors() {
    let x = matrix(&[3, 3]);
    both("eigenvalues", &x, |x| weighed(&opsmith::linalg_eigvalsh(&hermitian(x)?)?));
    both("a function of a matrix", &x, |x| {
        let (values, vectors) = opsmith::linalg_eigh(&hermitian(x)?)?;
        let scaled = opsmith::mul(&vectors, &opsmith::exp(&values)?)?;
        parts(&opsmith::matmul(&scaled, &opsmith::conj(&adjoint(&vectors)?)?)?)
    });
}

#[test]
fn gradients_of_singular_vectors() {
    for shape in [[3, 3], [4, 2], [2, 4]] {
        let x = matrix(&shape);
        both("values", &x, |x| weighed(&opsmith::linalg_svdvals(x)?));
        both("the nearest unitary matrix", &x, |x| {
            let options = opsmith::LinalgSvdOptions::new().full_matrices(false);
            let (u, _, vh) = opsmith::linalg_svd_with(x, options)?;
            parts(&opsmith::matmul(&u, &vh)?)
        });
        both("a function of the singular values", &x, |x| {
            let options = opsmith::LinalgSvdOptions::new().full_matrices(false);
            let (u, s, vh) = opsmith::linalg_svd_with(x, options)?;
            parts(&opsmith::matmul(&opsmith::mul(&u, &opsmith::sin(&s)?)?, &vh)?)
        });
    }
}

#[test]
fn gradients_of_orthogonal_factors() {
    for shape in [[3, 3], [4, 2], [2, 4]] {
        let x = matrix(&shape);
        both("both factors", &x, |x| {
            let (q, r) = opsmith::linalg_qr(x)?;
            opsmith::add(&parts(&q)?, &parts(&opsmith::mul(&r, 0.5)?)?)
        });
        both("the upper factor", &x, |x| parts(&opsmith::linalg_qr(x)?.1));
    }
}

#[test]
fn gradients_of_solutions_and_determinants() {
    let shift = |x: &Tensor| opsmith::add(x, &opsmith::mul(&opsmith::eye(3)?, 2.0)?);
    let x = matrix(&[2, 3, 3]);
    both("inverse", &x, |x| parts(&opsmith::linalg_inv(&shift(x)?)?));
    both("determinant", &x, |x| parts(&opsmith::linalg_det(&shift(x)?)?));
    both("its logarithm", &x, |x| {
        let (sign, logarithm) = opsmith::linalg_slogdet(&shift(x)?)?;
        opsmith::add(&parts(&sign)?, &weighed(&logarithm)?)
    });
    both("solution", &x, |x| parts(&opsmith::linalg_solve(&shift(x)?, x)?));
    // Where the determinant is 0, its gradient is that of the cofactors.
    let singular = Tensor::from_slice(&[1.0, 2.0, 2.0, 4.0], &[2, 2]).unwrap();
    let singular = singular.requires_grad_(true).unwrap();
    let found = gradient(&singular, &|x| opsmith::linalg_det(x), false).unwrap();
    assert_close("cofactors", &found, &[4.0, -2.0, -2.0, 1.0]);
}

#[test]
fn gradients_of_norms() {
    let x = matrix(&[2, 3, 4]);
    for ord in [1.0, 2.0, -2.0, f64::INFINITY] {
        check("norm", &x, &|x| weighed(&opsmith::linalg_matrix_norm(x, ord)?));
    }
    check("nuclear norm", &x, &|x| weighed(&opsmith::nuclear_norm_dim(x, [0, 2])?));
}

#[test]
fn factors_of_larger_matrices_are_the_matrix() {
    let x = matrix(&[2, 60, 50]);
    let is_same = |found: Result<Tensor>| {
        let difference =
            opsmith::amax(&opsmith::abs(&opsmith::sub(&found.unwrap(), &x).unwrap()).unwrap()).unwrap();
        assert!(difference.item().unwrap().to_f64() < 1e-11);
    };
    let (u, s, vh) = opsmith::linalg_svd(&x).unwrap();
    let narrow = opsmith::narrow(&u, -1, 0, 50).unwrap();
    is_same(opsmith::matmul(&opsmith::mul(&narrow, &opsmith::unsqueeze(&s, -2).unwrap()).unwrap(), &vh));
    let (q, r) = opsmith::linalg_qr(&x).unwrap();
    is_same(opsmith::matmul(&q, &r));
}
