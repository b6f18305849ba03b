//! Losses of classes: against their definition, and their gradients against differences, for every way to
//! reduce, with and without weights, for classes that do not count and for scores of several places.

use opsmith::{Tensor, Value};
use opsmith_tests::gradcheck::{Call, first_order, second_order, weights};

const IGNORED: i64 = -100;

fn scores(shape: &[i64]) -> Tensor {
    weights(shape, 3)
}

fn positive(count: i64) -> Tensor {
    let numbers: Vec<f64> = (0..count).map(|at| 0.5 + 0.3 * at as f64).collect();
    Tensor::from_slice(&numbers, &[count]).unwrap()
}

/// Scores with a class for each of their targets: vectors, matrices and more.
fn cases() -> Vec<(Tensor, Tensor)> {
    let targets = |numbers: &[i64], shape: &[i64]| Tensor::from_slice(numbers, shape).unwrap();
    vec![
        (scores(&[3]), targets(&[2], &[])),
        (scores(&[4, 3]), targets(&[2, 0, IGNORED, 1], &[4])),
        (scores(&[2, 3, 2]), targets(&[0, 2, IGNORED, 1], &[2, 2])),
        (scores(&[1, 2, 2, 2]), targets(&[0, 1, 1, 0], &[1, 2, 2])),
    ]
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec().unwrap()
}

#[test]
fn a_loss_is_the_weighted_score_of_its_class() {
    for (scores, target) in cases() {
        let classes = if scores.dim() == 1 { scores.shape()[0] } else { scores.shape()[1] };
        for weight in [None, Some(positive(classes))] {
            let places: usize = scores.shape().iter().skip(2).product::<i64>() as usize;
            let (x, w) = (numbers(&scores), weight.as_ref().map_or(vec![1.0; classes as usize], numbers));
            let (mut losses, mut total) = (Vec::new(), 0.0);
            for (number, class) in target.to_vec::<i64>().unwrap().into_iter().enumerate() {
                if class == IGNORED {
                    losses.push(0.0);
                    continue;
                }
                let (sample, place) = (number / places, number % places);
                losses.push(
                    -w[class as usize] * x[(sample * classes as usize + class as usize) * places + place],
                );
                total += w[class as usize];
            }
            let sum: f64 = losses.iter().sum();
            for (reduction, expected) in [(0, losses.clone()), (1, vec![sum / total]), (2, vec![sum])] {
                let (found, _) =
                    opsmith::nll_loss_forward(&scores, &target, weight.as_ref(), reduction, IGNORED).unwrap();
                let found = numbers(&found);
                assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() < 1e-12,
                        "reduction {reduction}: {found}, not {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn gradients_of_every_reduction() {
    for (scores, target) in cases() {
        let classes = if scores.dim() == 1 { scores.shape()[0] } else { scores.shape()[1] };
        for weight in [Value::None, Value::Tensor(positive(classes))] {
            for reduction in [0i64, 1, 2] {
                let args = vec![
                    Value::Tensor(scores.clone()),
                    Value::Tensor(target.clone()),
                    weight.clone(),
                    reduction.into(),
                    IGNORED.into(),
                ];
                let call = Call::new("nll_loss_forward", args);
                assert_eq!(first_order(&call), Ok(()), "reduction {reduction}");
                assert_eq!(second_order(&call), Ok(()), "reduction {reduction}");
            }
        }
    }
}

#[test]
fn a_class_that_does_not_exist_is_refused() {
    let target = Tensor::from_slice(&[0i64, 3], &[2]).unwrap();
    let error = opsmith::nll_loss(&scores(&[2, 3]), &target).unwrap_err().to_string();
    assert!(error.contains("class 3 is not one of 3"), "{error}");
}

/// At a width of 0 the loss is the distance, also where there is none.
#[test]
fn a_loss_without_a_smooth_part_is_the_distance() {
    let (x, y) = (Tensor::of(&[1f64, 2.0, 3.0]), Tensor::of(&[1f64, 0.0, 3.5]));
    let arguments = [(&x).into(), (&y).into(), Value::Int(0), Value::Float(0.0)];
    let loss = opsmith::call("smooth_l1_loss", &arguments, &[]).unwrap().remove(0).into_tensor().unwrap();
    assert_eq!(numbers(&loss), [0.0, 2.0, 0.5]);
}
