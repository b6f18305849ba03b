//! Tensors saved by calls for backward: only those that formulas of the requested gradients read, none twice, and none
//! after backward.

use opsmith::{Result, Tensor, TensorOps};
use opsmith_testing::{checks, report};

const ELEMENTS: i64 = 1000;
/// The bytes of one tensor.
const ONE: usize = ELEMENTS as usize * 4;

fn plain() -> Tensor {
    opsmith::full([ELEMENTS], 0.5).unwrap()
}

fn tracked() -> Tensor {
    plain().requires_grad_(true).unwrap()
}

#[track_caller]
fn check(result: Result<Tensor>, bytes: usize) {
    let result = result.unwrap();
    let node = result.graph_node().expect("the result is part of a graph");
    assert_eq!(node.saved_bytes(), bytes);
    result.sum().unwrap().backward().unwrap();
    assert_eq!(node.saved_bytes(), 0, "backward frees what was saved");
}

#[test]
fn linear_calls_save_nothing() {
    check(tracked().add(&tracked()), 0);
    check(opsmith::sub(&tracked(), &plain()), 0);
    check(tracked().neg(), 0);
    check(tracked().mul(3.0), 0);
    check(tracked().reshape([10, 100]).and_then(|x| x.transpose(0, 1)), 0);
    check(opsmith::cat(&[tracked(), tracked()]), 0);
    check(tracked().cumsum(0), 0);
    check(tracked().mean(), 0);
}

#[test]
fn only_the_other_factor_is_saved() {
    check(tracked().mul(&plain()), ONE);
    check(plain().mul(&tracked()), ONE);
    check(tracked().mul(&tracked()), 2 * ONE);
    let x = tracked();
    check(x.mul(&x), ONE);
    let (matrix, other) = (tracked().reshape([10, 100]).unwrap(), plain().reshape([100, 10]).unwrap());
    check(opsmith::mm(&matrix, &other), ONE);
}

#[test]
fn results_are_saved_where_they_are_enough() {
    // One tensor each, and it is the result: a chain of them holds no more than its results.
    for call in [
        Tensor::tanh as fn(&Tensor) -> Result<Tensor>,
        Tensor::sigmoid,
        Tensor::exp,
        Tensor::relu,
        Tensor::sqrt,
    ] {
        let x = tracked();
        let result = call(&x).unwrap();
        let node = result.graph_node().unwrap();
        assert_eq!(node.saved_bytes(), ONE);
        drop(x);
        let next = call(&result).unwrap();
        assert_eq!(next.graph_node().unwrap().saved_bytes(), 2 * ONE);
    }
    let x = tracked();
    check(x.softmax(0), ONE);
}

#[test]
fn every_operator_frees_what_it_saved() {
    report(&opsmith::LIBRARY, checks::saved_memory).assert_right();
}
