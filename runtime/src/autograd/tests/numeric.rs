//! Comparison of gradients with differences of function values.

use super::ops::{plus, times, total};
use super::values;
use crate::autograd::{Options, grad, no_grad};
use crate::error::Result;
use crate::tensor::Tensor;

const STEP: f64 = 1e-5;

/// An input: its elements and shape.
pub type Input<'a> = (&'a [f64], &'a [i64]);

/// Checks the first and second derivatives of a function whose result has any shape, at the given
/// inputs.
#[track_caller]
pub fn check_gradients(inputs: &[Input<'_>], function: impl Fn(&[Tensor]) -> Tensor) {
    try_check_gradients(inputs, |inputs| Ok(function(inputs))).unwrap_or_else(|error| panic!("{error}"));
}

/// As [`check_gradients`], for a function that may fail, in one of its passes or backward.
#[track_caller]
pub fn try_check_gradients(
    inputs: &[Input<'_>],
    function: impl Fn(&[Tensor]) -> Result<Tensor>,
) -> Result<()> {
    let point: Vec<f64> = inputs.iter().flat_map(|(elements, _)| elements.iter().copied()).collect();
    let value = |point: &[f64]| -> Result<f64> {
        Ok(values(&no_grad(|| weighted(&function(&leaves(inputs, point))?, 1))?)[0])
    };
    let slope = |point: &[f64]| -> Result<Slope> {
        let leaves = leaves(inputs, point);
        let out = weighted(&function(&leaves)?, 1)?;
        if !out.requires_grad() {
            let none = vec![None; leaves.len()];
            return Ok(Slope { leaves, gradients: none, sum: None });
        }
        let create = Options { create_graph: true, retain_graph: true };
        let found = grad(&[&out], &leaves.iter().collect::<Vec<_>>(), &[None], create)?;
        let mut sum: Option<Tensor> = None;
        for (index, gradient) in found.iter().enumerate() {
            if let Some(gradient) = gradient {
                let term = weighted(gradient, 3 + index)?;
                sum = Some(match sum {
                    Some(sum) => plus(&sum, &term)?,
                    None => term,
                });
            }
        }
        Ok(Slope { leaves, gradients: found, sum })
    };
    let flat = |gradients: &[Option<Tensor>]| -> Vec<f64> {
        let part = |((elements, _), gradient): (&Input<'_>, &Option<Tensor>)| match gradient {
            Some(gradient) => values(gradient),
            None => vec![0.0; elements.len()],
        };
        inputs.iter().zip(gradients).flat_map(part).collect()
    };
    let Slope { leaves, gradients, sum } = slope(&point)?;
    compare("first", &flat(&gradients), &differences(&point, value)?);

    let number = |point: &[f64]| Ok(slope(point)?.sum.map_or(0.0, |sum| values(&sum)[0]));
    let expected = differences(&point, number)?;
    let second = match sum {
        Some(sum) if sum.requires_grad() => {
            grad(&[&sum], &leaves.iter().collect::<Vec<_>>(), &[None], Options::default())?
        }
        _ => vec![None; leaves.len()],
    };
    compare("second", &flat(&second), &expected);
    Ok(())
}

/// First derivatives at a point.
struct Slope {
    leaves: Vec<Tensor>,
    gradients: Vec<Option<Tensor>>,
    /// An uneven sum of the gradients, to be differentiated again.
    sum: Option<Tensor>,
}

/// The inputs with other elements, as leaves.
fn leaves(inputs: &[Input<'_>], point: &[f64]) -> Vec<Tensor> {
    let mut rest = point;
    let leaf = |(elements, shape): &Input<'_>| {
        let (own, others) = rest.split_at(elements.len());
        rest = others;
        Tensor::from_slice(own, shape).unwrap().requires_grad_(true).unwrap()
    };
    inputs.iter().map(leaf).collect()
}

/// The sum of a tensor's elements with uneven weights, so that no errors cancel.
fn weighted(out: &Tensor, shift: usize) -> Result<Tensor> {
    let weights: Vec<f64> =
        (0..out.numel() as usize).map(|i| 0.3 + ((i * 7 + shift) % 11) as f64 * 0.17).collect();
    total(&times(out, &Tensor::from_slice(&weights, out.shape())?)?)
}

/// Central differences of a function of several numbers; by the first one alone, where the function is interpreted.
fn differences(point: &[f64], function: impl Fn(&[f64]) -> Result<f64>) -> Result<Vec<f64>> {
    let mut moved = point.to_vec();
    let difference = |index: usize| {
        moved[index] = point[index] + STEP;
        let above = function(&moved)?;
        moved[index] = point[index] - STEP;
        let below = function(&moved)?;
        moved[index] = point[index];
        Ok((above - below) / (2.0 * STEP))
    };
    (0..compared(point.len())).map(difference).collect()
}

/// Of so many derivatives, those that are compared.
fn compared(count: usize) -> usize {
    if cfg!(miri) { count.min(1) } else { count }
}

#[track_caller]
fn compare(order: &str, got: &[f64], expected: &[f64]) {
    let close = |(got, expected): (&f64, &f64)| (got - expected).abs() <= 1e-6 * (1.0 + expected.abs());
    assert!(
        compared(got.len()) == expected.len() && got.iter().zip(expected).all(close),
        "{order} derivative: got {got:?}, differences give {expected:?}"
    );
}
