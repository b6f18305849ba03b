//! Derived gradients where slopes are a convention: at equal numbers, at NaN, at infinities. Expressions equivalent to
//! a stock operator must agree with it; its gradients are compared with PyTorch's.

use opsmith::autograd::Options;
use opsmith::{Result, Tensor};

const NUMBERS: [f64; 7] = [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

/// The gradients of a function of two numbers at every pair.
fn slopes(function: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> [Vec<f64>; 2] {
    let pairs = || NUMBERS.iter().flat_map(|&a| NUMBERS.iter().map(move |&b| (a, b)));
    let leaf = |values: Vec<f64>| {
        let shape = [values.len() as i64];
        Tensor::from_slice(&values, &shape).unwrap().requires_grad_(true).unwrap()
    };
    let (a, b) = (leaf(pairs().map(|(a, _)| a).collect()), leaf(pairs().map(|(_, b)| b).collect()));
    let out = function(&a, &b).unwrap();
    let start = opsmith::ones_like(&out.detach()).unwrap();
    out.backward_with(Some(&start), Options::default()).unwrap();
    [a, b].map(|input| input.grad().unwrap().to_vec::<f64>().unwrap())
}

#[test]
fn expressions_of_one_function_share_out_gradients_as_its_operator_does() {
    use crate as own;
    assert_eq!(slopes(own::larger), slopes(opsmith::maximum), "maximum");
    assert_eq!(slopes(own::smaller), slopes(opsmith::minimum), "minimum");
    assert_eq!(slopes(own::larger_number), slopes(opsmith::fmax), "fmax");
    assert_eq!(slopes(own::smaller_number), slopes(opsmith::fmin), "fmin");
}
