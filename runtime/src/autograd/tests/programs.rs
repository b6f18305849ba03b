//! Random programs of views and in-place calls: their gradients are right, or there is an error.

use super::numeric::{Input, try_check_gradients};
use super::odd_ops::*;
use super::ops::*;
use super::values;
use super::view_ops::windows;
use crate::autograd::{is_enabled, no_grad};
use crate::error::{ErrorKind, Result};
use crate::random::{Generator, Integers};
use crate::tensor::Tensor;

/// A source of small numbers.
struct Choices(Generator);

impl Choices {
    fn below(&mut self, count: usize) -> usize {
        let mut number = [0];
        self.0.fill(&Integers::new(0, count as i64).unwrap(), &mut number);
        number[0] as usize
    }

    fn of<'a>(&mut self, tensors: &'a [Tensor]) -> &'a Tensor {
        &tensors[self.below(tensors.len())]
    }
}

/// Runs the program with the given number on two leaves; returns a sum over all its tensors.
fn run(program: u64, inputs: &[Tensor]) -> Result<Tensor> {
    let mut choose = Choices(Generator::new(program));
    let constant = Tensor::from_slice(&[0.9, 1.1, -0.8, 0.7], &[2, 2])?;
    let mut tensors = vec![scaled(&inputs[0], 1.0)?, constant, scaled(&inputs[1], 1.0)?];
    let mut result = squared(&inputs[1])?;
    for _ in 0..3 + choose.below(8) {
        let picked = choose.of(&tensors).clone();
        let other = choose.of(&tensors).clone();
        match choose.below(9) {
            0 if picked.dim() == 2 => tensors.push(swap(&picked)?),
            1 if picked.dim() == 2 => {
                tensors.push(row(&picked, choose.below(picked.shape()[0] as usize) as i64)?)
            }
            2 if picked.dim() == 1 => tensors.push(windows(&picked)?),
            3 => times_(&picked, &other)?,
            4 => plus_(&picked, &other)?,
            5 => squared_(&picked)?,
            6 => cube_(&picked)?,
            7 => tensors.push(plus(&picked, &other)?),
            _ => result = plus(&result, &times(&picked, &picked)?)?,
        }
    }
    for tensor in &tensors {
        result = plus(&result, tensor)?;
    }
    Ok(result)
}

#[test]
fn gradients_of_programs_are_right_or_an_error() {
    let inputs: [Input<'_>; 2] = [(&[0.5, -0.6, 0.7, 0.4], &[2, 2]), (&[0.8, -0.3], &[2])];
    let (mut right, mut refused) = (0, 0);
    let programs = if cfg!(miri) { 3 } else { 300 };
    for program in 0..programs {
        // Differences of large numbers are inaccurate.
        let leaves = inputs.map(|(elements, shape)| Tensor::from_slice(elements, shape).unwrap());
        if run(program, &leaves).is_ok_and(|result| values(&result).iter().any(|x| x.abs() > 20.0)) {
            continue;
        }
        match try_check_gradients(&inputs, |inputs| run(program, inputs)) {
            Ok(()) => right += 1,
            Err(error) => {
                let expected =
                    matches!(error.kind(), ErrorKind::Autograd | ErrorKind::Aliasing | ErrorKind::Shape);
                assert!(expected, "program {program}: {error}");
                refused += 1;
            }
        }
    }
    // Enough programs must pass for the test to be meaningful.
    assert!(programs < 300 || right > 100 && refused > 50, "{right} were right, {refused} refused");
}

#[test]
fn recording_does_not_change_what_programs_compute() {
    for program in 0..if cfg!(miri) { 5 } else { 200 } {
        let leaves = [Tensor::from_slice(&[0.5, -0.6, 0.7, 0.4], &[2, 2]).unwrap(), Tensor::of(&[0.8, -0.3])];
        let plain = no_grad(|| run(program, &leaves));
        leaves.iter().for_each(|leaf| leaf.set_requires_grad(true).unwrap());
        let recorded = run(program, &leaves);
        assert!(is_enabled());
        match (plain, recorded) {
            (Ok(plain), Ok(recorded)) => assert_eq!(values(&plain), values(&recorded), "program {program}"),
            (Err(plain), Err(recorded)) => {
                assert_eq!(plain.message(), recorded.message(), "program {program}")
            }
            (plain, recorded) => panic!("program {program}: {plain:?} unrecorded, {recorded:?} recorded"),
        }
    }
}
