//! Segments that are computed again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::numeric::check_gradients;
use super::ops::*;
use super::{check_error, check_no_leak, gradient, leaf, values};
use crate::allocator::live_bytes;
use crate::autograd::{Options, checkpoint, no_grad};
use crate::random::default_generator;
use crate::tensor::Tensor;

const RETAIN: Options = Options { retain_graph: true, create_graph: false };

#[test]
fn gradients_are_those_without_it() {
    let x: (&[f64], &[i64]) = (&[0.3, -0.7, 1.1, 0.9, -0.4, 0.6], &[2, 3]);
    let row: (&[f64], &[i64]) = (&[0.5, -1.2, 0.8], &[3]);
    check_gradients(&[x, row], |inputs| {
        let captured = inputs[1].clone();
        let segment = move |inputs: &[Tensor]| {
            let hidden = exponential(&times(&inputs[0], &captured)?)?;
            let hidden = plus(&hidden, &hidden)?;
            squared_(&super::ops::row(&hidden, 0)?)?;
            Ok(vec![times(&hidden, &swap(&swap(&hidden)?)?)?])
        };
        let middle = squared(&inputs[0]).unwrap();
        times(&checkpoint(&[&middle], segment).unwrap()[0], &inputs[1]).unwrap()
    });
}

#[test]
#[cfg_attr(miri, ignore = "interprets a million exponentials")]
fn the_function_runs_again_once_and_the_memory_is_not_held() {
    check_no_leak(|| {
        let runs = Arc::new(AtomicUsize::new(0));
        let count = runs.clone();
        let a = leaf(&vec![0.0; 1 << 16]);
        let before = live_bytes();
        let out = checkpoint(&[&a], move |inputs| {
            count.fetch_add(1, Ordering::Relaxed);
            let mut x = exponential(&inputs[0])?;
            for _ in 0..10 {
                x = exponential(&scaled(&x, 0.1)?)?;
            }
            Ok(vec![total(&x)?])
        })
        .unwrap()
        .swap_remove(0);
        // Other tests allocate at the same time, but none as much as one of the eleven results.
        assert!(live_bytes() < before + (5 << 19), "{} bytes are held", live_bytes() - before);
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        out.backward_with(None, RETAIN).unwrap();
        out.backward().unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        check_error(
            out.backward(),
            "backward went through `exponential` a second time, but the first pass freed what the call had saved (result)\n  in backward: the gradient of `self` of `exponential` (tests.yaml:1)\n  help: pass `retain_graph: true` to every pass but the last",
        );
    });
}

#[test]
fn segments_nest() {
    let a = leaf(&[0.5]);
    let inner = |inputs: &[Tensor]| Ok(vec![squared(&exponential(&inputs[0])?)?]);
    let out = checkpoint(&[&a], move |inputs| {
        let middle = squared(&inputs[0])?;
        let inside = checkpoint(&[&middle], inner)?.swap_remove(0);
        Ok(vec![squared(&inside)?])
    });
    out.unwrap()[0].backward().unwrap();
    // exp(x²)⁴ has the derivative 8x exp(4x²).
    assert!((gradient(&a)[0] - 4.0 * f64::exp(1.0)).abs() < 1e-12);
}

#[test]
fn random_numbers_are_drawn_again() {
    let a = leaf(&[1.0; 8]);
    let drawn = |inputs: &[Tensor]| {
        let mut noise = [0.0; 8];
        default_generator().fill(&crate::random::Uniform::<f64>::new(), &mut noise);
        Ok(vec![times(&squared(&inputs[0])?, &Tensor::of(&noise))?])
    };
    let out = checkpoint(&[&a], drawn).unwrap().swap_remove(0);
    total(&out).unwrap().backward().unwrap();
    let twice: Vec<f64> = values(&out).iter().map(|x| 2.0 * x).collect();
    assert_eq!(gradient(&a), twice);
}

#[test]
fn another_result_the_second_time_is_an_error() {
    let a = leaf(&[1.0]);
    let hidden = Tensor::of(&[2.0]);
    let captured = hidden.clone();
    let out =
        checkpoint(&[&a], move |inputs| Ok(vec![exponential(&times(&inputs[0], &captured.detach())?)?]));
    no_grad(|| squared_(&hidden)).unwrap();
    check_error(
        out.unwrap()[0].backward(),
        "a checkpointed function did not compute the same again: where `exponential` saved its result, it saved other elements\n  in backward: the gradient of `self` of `exponential` (tests.yaml:1)\n  help: make it depend only on its inputs and on tensors that stay as they are until backward",
    );
    let runs = Arc::new(AtomicUsize::new(0));
    let out = checkpoint(&[&a], move |inputs| {
        Ok(vec![if runs.fetch_add(1, Ordering::Relaxed) == 0 {
            exponential(&inputs[0])?
        } else {
            inputs[0].clone()
        }])
    });
    check_error(
        out.unwrap()[0].backward(),
        "a checkpointed function did not compute the same again: where `exponential` saved its result, nothing was saved\n  in backward: the gradient of `self` of `exponential` (tests.yaml:1)\n  help: make it depend only on its inputs and on tensors that stay as they are until backward",
    );
    // An input or a leaf that was changed is found by its version, as without a checkpoint.
    let b = leaf(&[3.0]);
    let out = checkpoint(&[&b], |inputs| Ok(vec![squared(&inputs[0])?])).unwrap().swap_remove(0);
    no_grad(|| squared_(&b)).unwrap();
    check_error(
        out.backward(),
        "`squared` saved its argument `self` for backward, and its memory was changed in place since, last by `squared_` (version 1, saved at 0)\n  in backward: the gradient of `self` of `squared` (tests.yaml:1)\n  help: use the functional form of the call that changed it, or give it a copy",
    );
}

#[test]
fn a_chain_of_segments_drops() {
    check_no_leak(|| {
        let mut x = leaf(&[1.0]);
        for _ in 0..if cfg!(miri) { 20 } else { 20_000 } {
            let previous = x.clone();
            x = checkpoint(&[], move |_| Ok(vec![exponential(&scaled(&previous, 0.1)?)?]))
                .unwrap()
                .swap_remove(0);
        }
    });
}
