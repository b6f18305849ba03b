//! In-place calls and views: the gradients of the functional form, or an error.

use super::numeric::check_gradients;
use super::odd_ops::*;
use super::ops::*;
use super::view_ops::{pairs, windows};
use super::{check_error, check_no_leak, gradient, leaf, values};
use crate::autograd::{is_enabled, no_grad};
use crate::tensor::Tensor;

const X: (&[f64], &[i64]) = (&[0.3, -0.7, 1.1, 0.9, -0.4, 0.6], &[2, 3]);
const ROW: (&[f64], &[i64]) = (&[0.5, -1.2, 0.8], &[3]);

/// A tensor that is no leaf, with the elements of the leaf.
fn copy(a: &Tensor) -> Tensor {
    scaled(a, 1.0).unwrap()
}

#[test]
fn a_target_that_is_no_leaf_is_rewired() {
    check_gradients(&[X, ROW], |inputs| {
        let x = copy(&inputs[0]);
        let before = plus(&x, &inputs[1]).unwrap();
        plus_(&x, &inputs[1]).unwrap();
        times(&before, &times(&x, &inputs[0]).unwrap()).unwrap()
    });
}

#[test]
fn what_a_formula_reads_of_the_target_is_saved_before() {
    // squared_ reads its input, exponential_ its result, times_ both operands.
    check_gradients(&[X, ROW], |inputs| {
        let x = copy(&inputs[0]);
        squared_(&x).unwrap();
        times_(&x, &inputs[1]).unwrap();
        times_(&x, &x).unwrap();
        exponential_(&x).unwrap();
        x
    });
}

#[test]
fn an_operand_that_shares_memory_with_the_target() {
    check_gradients(&[X], |inputs| {
        let x = copy(&inputs[0]);
        times_(&row(&x, 0).unwrap(), &row(&x, 1).unwrap()).unwrap();
        x
    });
}

#[test]
fn an_untracked_target_becomes_tracked() {
    check_gradients(&[ROW], |inputs| {
        let x = Tensor::of(&[1.0, 2.0, 3.0]);
        times_(&x, &inputs[0]).unwrap();
        assert!(!is_enabled() || x.requires_grad() && !x.is_leaf());
        squared(&x).unwrap()
    });
}

#[test]
fn a_composition_in_place() {
    check_gradients(&[X], |inputs| {
        let x = copy(&inputs[0]);
        cube_(&x).unwrap();
        cube_(&row(&x, 1).unwrap()).unwrap();
        x
    });
}

#[test]
fn a_call_without_derivative_cuts_the_target_off() {
    let a = leaf(&[2.0, -3.0]);
    let x = copy(&a);
    step_(&x).unwrap();
    assert!(!x.requires_grad());
    check_gradients(&[X], |inputs| {
        let x = copy(&inputs[0]);
        step_(&row(&x, 0).unwrap()).unwrap();
        squared(&x).unwrap()
    });
}

#[test]
fn a_view_changes_its_base() {
    check_gradients(&[X, ROW], |inputs| {
        let x = copy(&inputs[0]);
        times_(&row(&x, 1).unwrap(), &inputs[1]).unwrap();
        squared(&x).unwrap()
    });
    check_gradients(&[X, ROW], |inputs| {
        let x = copy(&inputs[0]);
        let column = row(&swap(&x).unwrap(), 2).unwrap();
        exponential_(&column).unwrap();
        times(&times(&x, &x).unwrap(), &inputs[1]).unwrap()
    });
}

#[test]
fn a_view_of_an_untracked_base_changes_its_base() {
    check_gradients(&[ROW], |inputs| {
        let base = Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
        let (first, second) = (row(&base, 0).unwrap(), row(&base, 1).unwrap());
        let transposed = swap(&base).unwrap();
        times_(&first, &inputs[0]).unwrap();
        assert!([&base, &second, &transposed].iter().all(|tensor| tensor.requires_grad() == is_enabled()));
        assert!(!is_enabled() || !base.is_leaf() && !transposed.is_leaf());
        let sum = plus(&squared(&base).unwrap(), &second).unwrap();
        plus(&sum, &squared(&row(&swap(&transposed).unwrap(), 0).unwrap()).unwrap()).unwrap()
    });
}

#[test]
fn a_view_follows_every_change_of_its_base() {
    check_gradients(&[X, ROW], |inputs| {
        let x = copy(&inputs[0]);
        let (first, turned) = (row(&x, 0).unwrap(), swap(&x).unwrap());
        squared_(&x).unwrap();
        let early = squared(&plus(&first, &inputs[1]).unwrap()).unwrap();
        squared_(&first).unwrap();
        times_(&x, &inputs[1]).unwrap();
        times_(&row(&turned, 0).unwrap(), &Tensor::of(&[2.0, 3.0])).unwrap();
        plus(&plus(&swap(&turned).unwrap(), &early).unwrap(), &first).unwrap()
    });
}

#[test]
fn a_view_without_a_formula_and_with_overlap() {
    // `widen` has a formula, so go through `row` of an expanded copy for the plain case, and add
    // the overlapping gradients of a view taken by layout alone.
    check_gradients(&[ROW], |inputs| {
        let wide = windows(&inputs[0]).unwrap();
        squared(&wide).unwrap()
    });
    check_gradients(&[X], |inputs| squared(&row(&swap(&inputs[0]).unwrap(), 1).unwrap()).unwrap());
}

#[test]
fn a_view_of_an_expanded_tensor_needs_a_formula() {
    let a = leaf(&[1.0, 2.0]);
    let wide = widen(&a, &[3, 2]).unwrap();
    check_error(
        total(&row(&wide, 1).unwrap()).unwrap().backward(),
        "a view was taken of a tensor that shows one element at several indices, and its layout does not say which of them it shows\n  in backward: the gradient of a view of shape (2)\n  help: copy the expanded tensor before taking the view",
    );
}

#[test]
fn an_empty_view() {
    let a = Tensor::from_slice::<f64>(&[], &[2, 0]).unwrap().requires_grad_(true).unwrap();
    total(&row(&a, 1).unwrap()).unwrap().backward().unwrap();
    assert_eq!(a.grad().unwrap().shape(), [2, 0]);
}

#[test]
fn a_stale_saved_tensor_is_found_through_views() {
    let a = leaf(&[1.0, 2.0]);
    let x = copy(&a);
    let out = total(&squared(&x).unwrap()).unwrap();
    squared_(&x).unwrap();
    check_error(
        out.backward(),
        "`squared` saved its argument `self` for backward, and its memory was changed in place since, last by `squared_` (version 1, saved at 0)\n  in backward: the gradient of `self` of `squared` (tests.yaml:1)\n  help: use the functional form of the call that changed it, or give it a copy",
    );
    let matrix = Tensor::from_slice(&[1.0, 2.0], &[1, 2]).unwrap().requires_grad_(true).unwrap();
    let x = copy(&matrix);
    let out = total(&squared(&x).unwrap()).unwrap();
    no_grad(|| plus_(&row(&x, 0).unwrap(), &x.detach())).unwrap_err();
    no_grad(|| squared_(&row(&x, 0).unwrap())).unwrap();
    assert!(out.backward().unwrap_err().to_string().contains("last by `squared_`"));
}

#[test]
fn views_made_unrecorded_are_not_changed_recorded() {
    let w = leaf(&[2.0, 3.0, 4.0]);
    let base = Tensor::from_slice(&[1.0; 6], &[2, 3]).unwrap();
    let view = no_grad(|| row(&base, 0)).unwrap();
    check_error(
        times_(&view, &w),
        "times_: self is a view that was made while nothing was recorded, so its base would not notice a recorded change\n  self: float64 (3)\n  other: float64 (3)\n  help: take the view where operators are recorded, or change it under no_grad",
    );
    times_(&view, &Tensor::of(&[5.0])).unwrap();
    assert_eq!(values(&base), [5.0, 5.0, 5.0, 1.0, 1.0, 1.0]);
}

#[test]
fn a_leaf_that_is_a_view_of_a_changed_base() {
    let base = Tensor::from_slice(&[1.0, 2.0], &[2, 1]).unwrap();
    let part = row(&base, 0).unwrap().requires_grad_(true).unwrap();
    times_(&base, &leaf(&[3.0])).unwrap();
    check_error(
        times(&part, &part),
        "times: a leaf that requires a gradient is a view, and its base was changed in place\n  self: float64 (1)\n  other: float64 (1)\n  help: make the leaf of a copy, or change its base under no_grad",
    );
}

#[test]
fn a_base_that_is_cut_off_and_declared_a_leaf_is_followed() {
    let base = Tensor::from_slice(&[1.0, 2.0], &[2, 1]).unwrap();
    let view = row(&base, 1).unwrap();
    times_(&base, &leaf(&[3.0])).unwrap();
    step_(&base).unwrap();
    assert!(!base.requires_grad() && !view.requires_grad());
    base.set_requires_grad(true).unwrap();
    assert!(view.requires_grad() && !view.is_leaf());
    squared(&view).unwrap().backward().unwrap();
    assert_eq!(gradient(&base), [0.0, 2.0]);
}

#[test]
fn in_place_calls_make_no_cycles() {
    check_no_leak(|| {
        let a = leaf(&[1.0, 2.0]);
        let x = copy(&a);
        let y = times(&x, &x).unwrap();
        plus_(&x, &y).unwrap();
        let base = Tensor::from_slice(&[1.0; 4], &[2, 2]).unwrap();
        let view = row(&base, 0).unwrap();
        times_(&view, &x).unwrap();
        times_(&base, &base).unwrap();
        exponential_(&view).unwrap();
    });
}

#[test]
fn a_change_without_tracked_tensors_leaves_no_trace() {
    let base = Tensor::from_slice(&[1.0; 4], &[2, 2]).unwrap();
    squared_(&row(&base, 0).unwrap()).unwrap();
    assert!(!base.requires_grad() && base.is_leaf());
    let a = leaf(&[1.0]);
    no_grad(|| squared_(&a)).unwrap();
    assert!(a.is_leaf() && a.requires_grad());
}

#[test]
fn a_result_that_is_the_argument_is_a_view_of_it() {
    check_gradients(&[X], |inputs| {
        let x = copy(&inputs[0]);
        let same = itself(&x).unwrap();
        squared_(&same).unwrap();
        times(&x, &same).unwrap()
    });
    check_error(
        squared_(&itself(&leaf(&[1.0])).unwrap()),
        "squared_: self is a view of a leaf that requires a gradient, so it cannot be changed in place while operators are recorded\n  self: float64 (1)\n  help: do it under no_grad (an optimizer step), or on a copy",
    );
}

#[test]
fn a_refused_call_is_not_named_as_the_writer() {
    let (a, b) = (leaf(&[2.0]), Tensor::of(&[3.0]));
    let out = times(&a, &b).unwrap();
    squared_(&b).unwrap();
    plus_(&b, &Tensor::of(&[1.0, 2.0])).unwrap_err();
    assert!(out.backward().unwrap_err().message().contains("last by `squared_` (version 1, saved at 0)"));
}

#[test]
fn a_view_that_was_cut_off_can_be_changed_again() {
    let a = leaf(&[1.0, -2.0, 3.0, 4.0]);
    let base = scaled(&pairs(&a).unwrap(), 1.0).unwrap();
    let view = row(&base, 0).unwrap();
    let other = row(&base, 1).unwrap();
    step_(&view).unwrap();
    assert!(base.requires_grad() && other.requires_grad() && !view.requires_grad() && view.is_leaf());
    times_(&view, &Tensor::of(&[5.0])).unwrap();
    assert!(!view.requires_grad());
    times_(&view, &row(&other, 0).unwrap()).unwrap();
    assert!(view.requires_grad() && !view.is_leaf());
    total(&base).unwrap().backward().unwrap();
    // base = [[5 a[2], 0], [a[2], a[3]]]
    assert_eq!(gradient(&a), [0.0, 0.0, 6.0, 1.0]);
}

#[test]
fn a_view_of_a_base_that_was_cut_off_is_constant() {
    let a = leaf(&[1.0, -2.0, 3.0, 4.0]);
    let base = scaled(&pairs(&a).unwrap(), 1.0).unwrap();
    let view = row(&base, 0).unwrap();
    assert!(view.requires_grad());
    step_(&base).unwrap();
    assert!(!view.requires_grad() && view.is_leaf());
    assert!(!squared(&view).unwrap().requires_grad());
}
