//! Tests of automatic differentiation, on operators defined by hand.

mod backends;
mod basics;
mod checkpoint;
mod custom;
mod higher;
mod hooks;
mod inplace;
mod numeric;
mod odd_ops;
pub(crate) mod ops;
mod programs;
mod threads;
mod timing;
mod view_ops;

use super::node::LIVE;
use crate::error::Result;
use crate::tensor::Tensor;

/// A leaf that requires a gradient.
fn leaf(elements: &[f64]) -> Tensor {
    Tensor::of(elements).requires_grad_(true).expect("floats can require a gradient")
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec().expect("the tests compute in f64")
}

fn gradient(tensor: &Tensor) -> Vec<f64> {
    values(&tensor.grad().expect("backward left a gradient"))
}

/// Checks the text of an error, as a user sees it.
#[track_caller]
fn check_error<T>(result: Result<T>, expected: &str) {
    match result {
        Ok(_) => panic!("expected the error\n{expected}"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

/// Checks that everything made inside is dropped at its end.
#[track_caller]
fn check_no_leak<R>(body: impl FnOnce() -> R) {
    let before = LIVE.get();
    body();
    assert_eq!(LIVE.get(), before, "nodes are still alive");
}
