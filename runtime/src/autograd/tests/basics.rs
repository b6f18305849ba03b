//! First-order gradients, the engine, and every error of the plain path.

use super::odd_ops::*;
use super::ops::*;
use super::{check_error, check_no_leak, gradient, leaf, values};
use crate::arg::Arg;
use crate::autograd::{Options, backward, grad, no_grad, record_results};
use crate::tensor::Tensor;
use crate::{Complex64, DType};

const RETAIN: Options = Options { retain_graph: true, create_graph: false };

#[test]
fn a_product_and_a_sum() {
    let (a, b) = (leaf(&[1.0, 2.0, 3.0]), leaf(&[4.0, 5.0, 6.0]));
    let loss = total(&times(&a, &b).unwrap()).unwrap();
    assert!(loss.requires_grad() && !loss.is_leaf() && a.is_leaf());
    loss.backward().unwrap();
    assert_eq!(gradient(&a), [4.0, 5.0, 6.0]);
    assert_eq!(gradient(&b), [1.0, 2.0, 3.0]);
}

#[test]
fn gradients_add_up_over_uses_and_passes() {
    let a = leaf(&[1.0, 2.0]);
    let loss = || total(&times(&plus(&a, &a).unwrap(), &a).unwrap()).unwrap();
    loss().backward().unwrap();
    assert_eq!(gradient(&a), [4.0, 8.0]);
    loss().backward().unwrap();
    assert_eq!(gradient(&a), [8.0, 16.0]);
    a.zero_grad();
    assert!(a.grad().is_none());
}

#[test]
fn a_shared_node_runs_once_with_the_whole_gradient() {
    // A diamond of depth 60 has 2^60 paths.
    let a = leaf(&[1.0]);
    let mut x = plus(&a, &a).unwrap();
    for _ in 0..60 {
        x = plus(&x, &x).unwrap();
    }
    x.backward().unwrap();
    assert_eq!(gradient(&a), [(1u64 << 61) as f64]);
}

#[test]
fn a_broadcast_input_gets_its_own_shape_and_dtype() {
    let a = Tensor::from_slice(&[1f32, 2.0], &[2, 1]).unwrap().requires_grad_(true).unwrap();
    let b = leaf(&[3.0, 4.0, 5.0]);
    total(&times(&a, &b).unwrap()).unwrap().backward().unwrap();
    let grad = a.grad().unwrap();
    assert_eq!((grad.shape(), grad.dtype()), (&[2, 1][..], DType::F32));
    assert_eq!(grad.to_vec::<f32>().unwrap(), [12.0, 12.0]);
    assert_eq!(gradient(&b), [3.0, 3.0, 3.0]);
}

#[test]
fn a_real_input_of_a_complex_call_gets_a_real_gradient() {
    let a = leaf(&[2.0]);
    let b = Tensor::of(&[Complex64::new(3.0, 4.0)]).requires_grad_(true).unwrap();
    let out = times(&a, &b).unwrap();
    out.backward_with(Some(&Tensor::of(&[Complex64::new(1.0, 1.0)])), Options::default()).unwrap();
    // grad * conj(b) = (1 + i)(3 - 4i) = 7 - i
    assert_eq!(gradient(&a), [7.0]);
    assert_eq!(b.grad().unwrap().to_vec::<Complex64>().unwrap(), [Complex64::new(2.0, 2.0)]);
}

#[test]
fn attributes_results_and_views_are_there_for_formulas() {
    let a = Tensor::from_slice(&[0.0, 1.0, 2.0, 3.0], &[2, 2]).unwrap().requires_grad_(true).unwrap();
    let b = Tensor::from_slice(&[1.0, 10.0, 100.0, 1000.0], &[2, 2]).unwrap();
    let out = times(&swap(&exponential(&scaled(&a, 0.5).unwrap()).unwrap()).unwrap(), &b).unwrap();
    total(&out).unwrap().backward().unwrap();
    let expected =
        [(0.0, 1.0), (1.0, 100.0), (2.0, 10.0), (3.0, 1000.0)].map(|(x, w)| 0.5 * f64::exp(0.5 * x) * w);
    for (got, expected) in gradient(&a).iter().zip(expected) {
        assert!((got - expected).abs() < 1e-9, "{got} {expected}");
    }
}

#[test]
fn several_outputs_of_which_some_have_no_gradient() {
    let a = leaf(&[1.0, -2.0]);
    let [twice, thrice, sign] = both(&a).unwrap();
    assert!(twice.requires_grad() && thrice.requires_grad() && !sign.requires_grad());
    total(&thrice).unwrap().backward_with(None, RETAIN).unwrap();
    assert_eq!(gradient(&a), [3.0, 3.0]);
    a.zero_grad();
    let ones = Tensor::of(&[1.0, 1.0]);
    backward(&[&twice, &thrice], &[Some(&ones), Some(&ones)], Options::default()).unwrap();
    assert_eq!(gradient(&a), [5.0, 5.0]);
}

#[test]
fn lists_get_a_gradient_for_each_tracked_tensor() {
    let (a, b) = (leaf(&[1.0, 2.0]), Tensor::of(&[3.0, 4.0]));
    let (v, w) = (Tensor::of(&[5.0, 6.0]), leaf(&[7.0, 8.0]));
    total(&dots(&[a.clone(), b.clone()], &[v.clone(), w.clone()]).unwrap()).unwrap().backward().unwrap();
    assert_eq!(gradient(&a), [5.0, 6.0]);
    assert_eq!(gradient(&w), [3.0, 4.0]);
    assert!(b.grad().is_none() && v.grad().is_none());
}

#[test]
fn a_composition_records_what_it_is_made_of() {
    let a = leaf(&[2.0]);
    let out = cube(&a).unwrap();
    out.backward().unwrap();
    assert_eq!(gradient(&a), [12.0]);
    assert_eq!(values(&no_grad(|| cube(&a)).unwrap()), [8.0]);
}

#[test]
fn a_result_that_is_the_argument_itself_leaves_the_argument_alone() {
    check_no_leak(|| {
        let a = leaf(&[2.0]);
        let out = itself(&a).unwrap();
        assert!(a.is_leaf() && !out.is_leaf() && out.shares_storage(&a));
        out.backward().unwrap();
        assert_eq!(gradient(&a), [1.0]);
    });
}

#[test]
fn results_without_a_derivative_are_not_tracked() {
    let a = leaf(&[2.0]);
    assert!(!step(&a).unwrap().requires_grad());
    assert!(!position(&a).unwrap().requires_grad());
    assert!(!no_grad(|| times(&a, &a)).unwrap().requires_grad());
    assert!(!a.detach().requires_grad());
}

#[test]
fn an_undefined_gradient_stops_the_pass() {
    let a = leaf(&[2.0]);
    undefined(&a).unwrap().backward().unwrap();
    assert!(a.grad().is_none());
    let out = plus(&undefined(&a).unwrap(), &a).unwrap();
    out.backward().unwrap();
    assert_eq!(gradient(&a), [1.0]);
}

#[test]
fn gradients_of_given_inputs_leave_leaves_alone() {
    let (a, b) = (leaf(&[2.0]), leaf(&[3.0]));
    let middle = times(&a, &b).unwrap();
    let out = times(&middle, &a).unwrap();
    let unused = leaf(&[1.0]);
    let grads = grad(&[&out], &[&middle, &a, &unused, &a], &[None], RETAIN).unwrap();
    let grads: Vec<_> = grads.iter().map(|grad| grad.as_ref().map(values)).collect();
    assert_eq!(grads, [Some(vec![2.0]), Some(vec![12.0]), None, Some(vec![12.0])]);
    assert!(a.grad().is_none() && b.grad().is_none());
    // Formulas off the path to the inputs do not run.
    let barred = plus(&unfinished(&b).unwrap(), &a).unwrap();
    assert_eq!(values(grad(&[&barred], &[&a], &[None], RETAIN).unwrap()[0].as_ref().unwrap()), [1.0]);
}

#[test]
fn several_roots_are_one_pass() {
    let a = leaf(&[3.0]);
    let middle = times(&a, &a).unwrap();
    let (x, y) = (scaled(&middle, 2.0).unwrap(), middle.clone());
    // The second root lies on the way of the first.
    backward(&[&x, &y], &[None, None], Options::default()).unwrap();
    assert_eq!(gradient(&a), [18.0]);
}

#[test]
fn a_leaf_can_be_the_root() {
    let a = leaf(&[3.0]);
    let given = Tensor::of(&[5.0]);
    a.backward_with(Some(&given), Options::default()).unwrap();
    assert_eq!(gradient(&a), [5.0]);
    assert!(!a.grad().unwrap().shares_storage(&given));
}

#[test]
fn gradients_of_leaves_share_no_memory() {
    let (a, b) = (leaf(&[1.0]), leaf(&[2.0]));
    let given = Tensor::of(&[1.0]);
    plus(&a, &b).unwrap().backward_with(Some(&given), Options::default()).unwrap();
    let (ga, gb) = (a.grad().unwrap(), b.grad().unwrap());
    assert!(!ga.shares_storage(&gb) && !ga.shares_storage(&given) && !gb.shares_storage(&given));
    // An expanded gradient gets memory for each element.
    let c = leaf(&[1.0, 2.0]);
    total(&c).unwrap().backward().unwrap();
    assert!(c.grad().unwrap().is_contiguous());
}

#[test]
fn an_untracked_tensor_has_nothing_to_do_backward() {
    check_error(
        Tensor::of(&[1.0]).backward(),
        "backward needs a tensor that is part of a graph, this one is not\n  help: compute it from tensors on which requires_grad_(true) was called, outside no_grad",
    );
    let a = leaf(&[1.0]);
    let b = Tensor::of(&[1.0]);
    check_error(
        grad(&[&times(&a, &b).unwrap()], &[&a, &b], &[None], Options::default()),
        "input 1 is not part of a graph, so it has no gradient\n  help: call requires_grad_(true) on it before it is used",
    );
}

#[test]
fn backward_needs_a_gradient_to_begin_with() {
    let a = leaf(&[1.0, 2.0]);
    let out = times(&a, &a).unwrap();
    check_error(
        out.backward(),
        "backward of a tensor of shape (2) needs the gradient to begin with; only for one element it is 1\n  help: reduce the tensor to one element, for instance to its sum, or use backward_with",
    );
    check_error(
        cast(&row(&out.detach(), 0).unwrap(), DType::C128).unwrap().requires_grad_(true).unwrap().backward(),
        "backward of a complex128 tensor needs the gradient to begin with; only for a real one it is 1\n  help: reduce the tensor to a real number, for instance its magnitude, or use backward_with",
    );
    check_error(
        out.backward_with(Some(&Tensor::of(&[1.0])), Options::default()),
        "the gradient has the shape (1), the output (2)",
    );
    check_error(
        out.backward_with(Some(&Tensor::of(&[1f32, 1.0])), Options::default()),
        "the gradient is float32, the output float64",
    );
    check_error(
        backward(&[&out], &[], Options::default()),
        "0 gradients were given for 1 outputs\n  help: give one for each output, or None",
    );
}

#[test]
fn going_back_twice_needs_a_retained_graph() {
    let a = leaf(&[2.0]);
    let out = times(&a, &a).unwrap();
    out.backward_with(None, RETAIN).unwrap();
    out.backward().unwrap();
    assert_eq!(gradient(&a), [8.0]);
    check_error(
        out.backward(),
        "backward went through `times` a second time, but the first pass freed what the call had saved (argument `other`)\n  in backward: the gradient of `self` of `times` (tests.yaml:1)\n  help: pass `retain_graph: true` to every pass but the last",
    );
    let out = exponential(&a).unwrap();
    out.backward().unwrap();
    check_error(
        out.backward(),
        "backward went through `exponential` a second time, but the first pass freed what the call had saved (result)\n  in backward: the gradient of `self` of `exponential` (tests.yaml:1)\n  help: pass `retain_graph: true` to every pass but the last",
    );
    // A call that saved nothing can be gone through again.
    let out = plus(&a, &a).unwrap();
    out.backward().unwrap();
    out.backward().unwrap();
}

#[test]
fn a_saved_tensor_that_was_changed_is_an_error() {
    let (a, b) = (leaf(&[2.0]), Tensor::of(&[3.0]));
    let out = times(&a, &b).unwrap();
    plus_(&b, &b).unwrap();
    check_error(
        out.backward(),
        "`times` saved its argument `other` for backward, and its memory was changed in place since, last by `plus_` (version 1, saved at 0)\n  in backward: the gradient of `self` of `times` (tests.yaml:1)\n  help: use the functional form of the call that changed it, or give it a copy",
    );
    let out = exponential(&a).unwrap();
    let mut alias = out.detach();
    crate::call::invoke_out(&PLUS, &[(&b).into(), (&b).into()], &mut [&mut alias]).unwrap();
    check_error(
        out.backward(),
        "`exponential` saved its result for backward, and its memory was changed in place since, last by `plus.out` (version 1, saved at 0)\n  in backward: the gradient of `self` of `exponential` (tests.yaml:1)\n  help: use the functional form of the call that changed it, or give it a copy",
    );
    // The formula of a sum reads neither operand.
    let c = Tensor::of(&[3.0]);
    let out = plus(&a, &c).unwrap();
    plus_(&c, &c).unwrap();
    out.backward().unwrap();
}

#[test]
fn only_what_a_needed_formula_reads_is_saved() {
    // The gradient of `a` reads `b`, that of `b` reads `a`; `b` needs none, so `a` may change.
    let (a, b) = (leaf(&[2.0]), Tensor::of(&[3.0]));
    let out = times(&a, &b).unwrap();
    no_grad(|| plus_(&a, &b)).unwrap();
    out.backward().unwrap();
    assert_eq!(gradient(&a), [3.0]);
}

#[test]
fn what_a_graph_keeps_is_counted_once_and_freed() {
    let a = leaf(&[1.0; 100]);
    let power = exponential(&a).unwrap();
    let loss = total(&times(&times(&power, &power).unwrap(), &a).unwrap()).unwrap();
    let node = loss.graph_node().unwrap();
    // The result of `exponential`, its square, and the leaf.
    assert_eq!(node.saved_bytes(), 3 * 800);
    loss.backward().unwrap();
    assert_eq!(node.saved_bytes(), 0);
}

#[test]
fn which_tensors_can_require_a_gradient() {
    check_error(
        Tensor::of(&[1i64]).requires_grad_(true),
        "a tensor of dtype int64 cannot require a gradient\n  help: only floating-point and complex tensors can",
    );
    let a = leaf(&[1.0]);
    let out = times(&a, &a).unwrap();
    check_error(
        out.requires_grad_(false),
        "a tensor that was computed from tracked ones always requires a gradient\n  help: use detach() for the same elements outside the graph",
    );
    let before = times(&a, &a).unwrap();
    a.set_requires_grad(false).unwrap();
    assert!(!a.requires_grad() && a.is_leaf());
    // A leaf that was frozen meanwhile gets no gradient.
    before.backward().unwrap();
    assert!(a.grad().is_none());
    assert!(!times(&a, &a).unwrap().requires_grad());
    check_error(a.set_grad(Some(Tensor::of(&[1.0, 2.0]))), "the gradient has the shape (2), the tensor (1)");
    check_error(a.set_grad(Some(Tensor::of(&[1f32]))), "the gradient is float32, the tensor float64");
}

#[test]
fn in_place_and_out_forms_of_leaves_are_refused() {
    let (a, b) = (leaf(&[1.0]), Tensor::of(&[2.0]));
    check_error(
        plus_(&a, &b),
        "plus_: self is a leaf that requires a gradient, so it cannot be changed in place while operators are recorded\n  self: float64 (1)\n  other: float64 (1)\n  help: do it under no_grad (an optimizer step), or on a copy",
    );
    let matrix = Tensor::from_slice(&[1.0, 2.0], &[2, 1]).unwrap().requires_grad_(true).unwrap();
    check_error(
        plus_(&swap(&matrix).unwrap(), &b),
        "plus_: self is a view of a leaf that requires a gradient, so it cannot be changed in place while operators are recorded\n  self: float64 (1, 2)\n  other: float64 (1)\n  help: do it under no_grad (an optimizer step), or on a copy",
    );
    check_error(
        plus_(&widen(&b, &[2]).unwrap(), &b),
        "plus_: self shows one memory location at several indices (strides [0])\n  self: float64 (2)\n  other: float64 (1)\n  help: an expanded tensor cannot be written to; make a copy of it first",
    );
    let mut out = Tensor::of(&[0.0]);
    check_error(
        crate::call::invoke_out(&PLUS, &[(&a).into(), (&b).into()], &mut [&mut out]),
        "plus.out: an input is part of a graph, and the out form is not recorded\n  self: float64 (1)\n  other: float64 (1)\n  help: use the functional form `plus`, or call the out form under no_grad",
    );
    let mut out = a.clone();
    check_error(
        crate::call::invoke_out(&PLUS, &[(&b).into(), (&b).into()], &mut [&mut out]),
        "plus.out: out is part of a graph, and the out form is not recorded\n  self: float64 (1)\n  other: float64 (1)\n  help: use the functional form `plus`, or call the out form under no_grad",
    );
    no_grad(|| plus_(&a, &b)).unwrap();
    assert_eq!(values(&a), [3.0]);
}

#[test]
fn a_wrong_formula_is_named() {
    let a = leaf(&[1.0, 2.0, 3.0]);
    let out = total(&misshapen(&a).unwrap()).unwrap();
    check_error(
        out.backward(),
        "the formula for `self` of `misshapen` gave a gradient of shape (2), but the input has the shape (3)\n  in backward: the gradient of `self` of `misshapen` (tests.yaml:1)\n  help: correct the formula: only broadcast dimensions are summed back for it",
    );
    check_error(
        total(&unfinished(&a).unwrap()).unwrap().backward(),
        "the derivative of `unfinished` is not implemented: nobody needed it\n  in backward: the gradient of `self` of `unfinished` (tests.yaml:1)",
    );
}

#[test]
fn a_library_without_roles_is_named() {
    let a = Tensor::of(&[1f32]).requires_grad_(true).unwrap();
    check_error(
        orphaned(&a).unwrap().backward(),
        "the library `bare` has no operators for the autograd engine to add and convert gradients with\n  in backward: the gradient of `self` of `orphaned` (tests.yaml:1)\n  help: give three operators of the spec `role: accumulate`, `role: sum_to` and `role: cast`, or build on a library that has them",
    );
}

#[test]
fn nothing_of_a_graph_stays_alive() {
    check_no_leak(|| {
        let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
        let loss = total(&exponential(&times(&a, &b).unwrap()).unwrap()).unwrap();
        loss.backward_with(None, Options { create_graph: true, retain_graph: true }).unwrap();
        let unused = times(&loss, &loss).unwrap();
        drop(unused);
        let again = total(&a.grad().unwrap()).unwrap();
        again.backward().unwrap();
    });
}

#[test]
fn a_graph_of_a_million_nodes_runs_and_drops() {
    check_no_leak(|| {
        let (a, one) = (leaf(&[1.0]), Tensor::of(&[1.0]));
        let mut x = plus(&a, &one).unwrap();
        for _ in 1..if cfg!(miri) { 50 } else { 1_000_000 } {
            x = plus(&x, &one).unwrap();
        }
        x.backward().unwrap();
        assert_eq!(gradient(&a), [1.0]);
    });
}

#[test]
fn a_call_is_recorded_from_its_results_without_running() {
    let x = leaf(&[0.0, 1.0]);
    // Elements that the operator would not compute show that the formula reads them.
    let mut results = [Tensor::of(&[5.0, 7.0])];
    assert!(record_results(&EXPONENTIAL, &[Arg::Tensor(&x)], &mut results).unwrap());
    assert!(results[0].requires_grad());
    backward(&[&results[0]], &[Some(&Tensor::of(&[1.0, 2.0]))], Options::default()).unwrap();
    assert_eq!(gradient(&x), [5.0, 14.0]);

    let constant = Tensor::of(&[1.0]);
    let mut results = [Tensor::of(&[1.0])];
    assert!(!record_results(&EXPONENTIAL, &[Arg::Tensor(&constant)], &mut results).unwrap());
    assert!(!results[0].requires_grad());
}
