//! Losses of classes: against their definition, and their gradients against differences, for every way to
//! reduce, with and without weights, for classes that do not count and for scores of several places.

use opsmith::{CtcLossOptions, Reduction, Tensor, TensorOps, Value};
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

/// The losses of connectionist temporal classification by definition: of all paths of classes, those count that give the
/// labels when repetitions and then blanks are left out.
fn losses_of_paths(log_probs: &Tensor, labels: &[&[i64]], times: &[i64], blank: i64) -> Vec<f64> {
    let x = numbers(log_probs);
    let &[_, samples, classes] = log_probs.shape() else { panic!("{:?}", log_probs.shape()) };
    let label_of = |path: usize, time: i64| (path / (classes as usize).pow(time as u32)) as i64 % classes;
    let loss = |sample: usize| {
        let steps = times[sample];
        let paths = 0..(classes as usize).pow(steps as u32);
        let likelihoods = paths.map(|path| {
            let mut found = Vec::new();
            let (mut last, mut logarithm) = (blank, 0.0);
            for time in 0..steps {
                let class = label_of(path, time);
                logarithm += x[(time * samples * classes + sample as i64 * classes + class) as usize];
                if class != blank && class != last {
                    found.push(class);
                }
                last = class;
            }
            if found == labels[sample] { logarithm.exp() } else { 0.0 }
        });
        -likelihoods.sum::<f64>().ln()
    };
    (0..samples as usize).map(loss).collect()
}

fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < tolerance, "{found} is not {expected}");
    }
}

#[test]
fn ctc_sums_all_paths_that_give_the_labels() {
    let log_probs = weights(&[4, 3, 3], 5).log_softmax(2).unwrap();
    for (blank, labels) in [(0, [&[1, 2][..], &[1, 1], &[]]), (2, [&[1][..], &[0, 0], &[0, 1, 0, 1]])] {
        let lengths: Vec<i64> = labels.iter().map(|labels| labels.len() as i64).collect();
        let times = [4, 3, 4];
        let expected = losses_of_paths(&log_probs, &labels, &times, blank);
        let joined = labels.concat();
        let longest = joined.len() as i64;
        let joined = Tensor::from_slice(&joined, &[longest]).unwrap();
        // A row has anything behind its labels.
        let row =
            |labels: &&[i64]| labels.iter().copied().chain(std::iter::repeat(99)).take(5).collect::<Vec<_>>();
        let rows = Tensor::from_slice(&labels.iter().flat_map(row).collect::<Vec<_>>(), &[3, 5]).unwrap();
        for targets in [&joined, &rows] {
            let loss = |reduction| {
                let options = CtcLossOptions::new().blank(blank).reduction(reduction);
                numbers(&log_probs.ctc_loss_with(targets, times, &lengths, options).unwrap())
            };
            assert_close(&loss(Reduction::None), &expected, 1e-12);
            assert_close(&loss(Reduction::Sum), &[expected.iter().sum()], 1e-12);
            let shares = expected.iter().zip(&lengths).map(|(loss, length)| loss / (*length).max(1) as f64);
            assert_close(&loss(Reduction::Mean), &[shares.sum::<f64>() / 3.0], 1e-12);
        }
    }
}

#[test]
fn ctc_has_the_gradient_of_scores_before_a_log_softmax() {
    let targets = Tensor::from_slice(&[1i64, 2, 2], &[3]).unwrap();
    let loss = |scores: &Tensor| {
        let options = CtcLossOptions::new().reduction(Reduction::Sum);
        scores.log_softmax(2)?.ctc_loss_with(&targets, [5, 4], [2, 1], options)
    };
    let scores = weights(&[5, 2, 4], 9).requires_grad_(true).unwrap();
    loss(&scores).unwrap().backward().unwrap();
    let found = numbers(&scores.grad().unwrap());
    let plain = numbers(&scores.detach());
    let at = |place: usize, step: f64| {
        let mut moved = plain.clone();
        moved[place] += step;
        numbers(&loss(&Tensor::from_slice(&moved, scores.shape()).unwrap()).unwrap())[0]
    };
    let differences: Vec<f64> =
        (0..plain.len()).map(|place| (at(place, 1e-5) - at(place, -1e-5)) / 2e-5).collect();
    assert_close(&found, &differences, 1e-8);
}

#[test]
fn ctc_of_labels_that_need_more_time_is_infinite_or_zero() {
    let log_probs = weights(&[2, 1, 3], 4).log_softmax(2).unwrap().requires_grad_(true).unwrap();
    // Between two equal labels is a blank.
    let targets = Tensor::from_slice(&[1i64, 1], &[1, 2]).unwrap();
    let loss = |options| log_probs.ctc_loss_with(&targets, [2], [2], options).unwrap();
    assert_eq!(numbers(&loss(CtcLossOptions::new()).detach()), [f64::INFINITY]);
    let zero = loss(CtcLossOptions::new().zero_infinity(true));
    assert_eq!(numbers(&zero.detach()), [0.0]);
    zero.backward().unwrap();
    assert_eq!(numbers(&log_probs.grad().unwrap()), [0.0; 6]);
    // One sample without a dimension of its own.
    let alone = log_probs.detach().squeeze_dim(1).unwrap();
    let label = Tensor::from_slice(&[2i64], &[1]).unwrap();
    let options = || CtcLossOptions::new().reduction(Reduction::None);
    let with = log_probs.detach().ctc_loss_with(&label, [2], [1], options()).unwrap();
    let without = alone.ctc_loss_with(&label, [2], [1], options()).unwrap();
    assert_eq!((with.shape(), without.shape()), (&[1][..], &[][..]));
    assert_eq!(numbers(&with), numbers(&without));
}

#[test]
fn ctc_refuses_labels_and_lengths_that_do_not_fit() {
    let log_probs = weights(&[4, 1, 3], 4);
    let message = |targets: &[i64], times: i64, labels: i64, blank: i64| {
        let targets = Tensor::from_slice(targets, &[targets.len() as i64]).unwrap();
        let options = CtcLossOptions::new().blank(blank);
        log_probs.ctc_loss_with(&targets, [times], [labels], options).unwrap_err().to_string()
    };
    assert!(message(&[3], 4, 1, 0).contains("label 3 of sample 0 is not one of 3 classes"));
    assert!(message(&[1], 4, 1, 3).contains("the blank 3 is not one of 3 classes"));
    assert!(message(&[1], 5, 1, 0).contains("a sample has 5 times, and there are 4"));
    assert!(message(&[1], 4, 2, 0).contains("the samples have 2 labels, and there are 1"));
}
