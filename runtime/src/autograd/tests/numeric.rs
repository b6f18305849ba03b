//! Comparison of gradients with differences of function values.

use super::ops::{times, total};
use super::values;
use crate::autograd::{Options, grad, no_grad};
use crate::tensor::Tensor;

const STEP: f64 = 1e-5;

/// Checks the first and second derivatives of a function whose result has any shape, at the given
/// inputs.
#[track_caller]
pub fn check_gradients(inputs: &[(&[f64], &[i64])], function: impl Fn(&[Tensor]) -> Tensor) {
    let point: Vec<f64> = inputs.iter().flat_map(|(elements, _)| elements.iter().copied()).collect();
    let tensors = |point: &[f64]| -> Vec<Tensor> {
        let mut rest = point;
        let tensor = |(elements, shape): &(&[f64], &[i64])| {
            let (own, others) = rest.split_at(elements.len());
            rest = others;
            Tensor::from_slice(own, shape).unwrap().requires_grad_(true).unwrap()
        };
        inputs.iter().map(tensor).collect()
    };
    // Uneven weights, so that no error cancels.
    let weighted = |out: &Tensor, shift: usize| {
        let weights: Vec<f64> =
            (0..out.numel()).map(|i| 0.3 + ((i as usize * 7 + shift) % 11) as f64 * 0.17).collect();
        total(&times(out, &Tensor::from_slice(&weights, out.shape()).unwrap()).unwrap()).unwrap()
    };
    let value = |point: &[f64]| values(&no_grad(|| weighted(&function(&tensors(point)), 1)))[0];
    let gradients = |point: &[f64]| -> (Vec<Tensor>, Vec<Option<Tensor>>) {
        let inputs = tensors(point);
        let out = weighted(&function(&inputs), 1);
        let create = Options { create_graph: true, retain_graph: true };
        let found = grad(&[&out], &inputs.iter().collect::<Vec<_>>(), &[None], create).unwrap();
        (inputs, found)
    };
    let flat = |inputs: &[(&[f64], &[i64])], gradients: &[Option<Tensor>]| -> Vec<f64> {
        let part = |((elements, _), gradient): (&(&[f64], &[i64]), &Option<Tensor>)| match gradient {
            Some(gradient) => values(gradient),
            None => vec![0.0; elements.len()],
        };
        inputs.iter().zip(gradients).flat_map(part).collect()
    };
    compare("first", &flat(inputs, &gradients(&point).1), &differences(&point, value));

    let slope = |point: &[f64]| {
        let (_, found) = gradients(point);
        found.iter().flatten().enumerate().map(|(i, gradient)| values(&weighted(gradient, 3 + i))[0]).sum()
    };
    let (leaves, found) = gradients(&point);
    let mut sum: Option<Tensor> = None;
    for (i, gradient) in found.iter().flatten().enumerate() {
        let term = weighted(gradient, 3 + i);
        sum = Some(match sum {
            Some(sum) => super::ops::plus(&sum, &term).unwrap(),
            None => term,
        });
    }
    let expected = differences(&point, slope);
    match sum {
        Some(sum) if sum.requires_grad() => {
            let options = Options::default();
            let second = grad(&[&sum], &leaves.iter().collect::<Vec<_>>(), &[None], options).unwrap();
            compare("second", &flat(inputs, &second), &expected);
        }
        _ => compare("second", &vec![0.0; expected.len()], &expected),
    }
}

fn differences(point: &[f64], function: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut moved = point.to_vec();
    let mut difference = |index: usize| {
        moved[index] = point[index] + STEP;
        let above = function(&moved);
        moved[index] = point[index] - STEP;
        let below = function(&moved);
        moved[index] = point[index];
        (above - below) / (2.0 * STEP)
    };
    (0..point.len()).map(&mut difference).collect()
}

#[track_caller]
fn compare(order: &str, got: &[f64], expected: &[f64]) {
    let close = |(got, expected): (&f64, &f64)| (got - expected).abs() <= 1e-6 * (1.0 + expected.abs());
    assert!(
        got.len() == expected.len() && got.iter().zip(expected).all(close),
        "{order} derivative: got {got:?}, differences give {expected:?}"
    );
}
