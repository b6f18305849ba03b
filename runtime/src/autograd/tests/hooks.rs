//! Hooks, retained gradients, modes and anomaly detection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use super::odd_ops::*;
use super::ops::*;
use super::{check_error, check_no_leak, gradient, leaf, values};
use crate::autograd::{
    Options, detect_anomaly, enable_grad, grad, inference, is_enabled, no_grad, set_enabled,
};
use crate::error::Error;
use crate::tensor::Tensor;

const RETAIN: Options = Options { retain_graph: true, create_graph: false };

#[test]
fn a_tensor_hook_sees_the_whole_gradient_and_may_replace_it() {
    let a = leaf(&[3.0]);
    let middle = times(&a, &a).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let handle = middle
        .register_hook(move |gradient| {
            log.lock().unwrap().extend(values(gradient));
            Ok(Some(scaled(gradient, 10.0)?))
        })
        .unwrap();
    let out = plus(&middle, &scaled(&middle, 4.0).unwrap()).unwrap();
    out.backward_with(None, RETAIN).unwrap();
    assert_eq!(*seen.lock().unwrap(), [5.0]);
    assert_eq!(gradient(&a), [300.0]);
    // A gradient requested by name is the one after the hook.
    assert_eq!(values(grad(&[&out], &[&middle], &[None], RETAIN).unwrap()[0].as_ref().unwrap()), [50.0]);
    handle.remove();
    handle.remove();
    a.zero_grad();
    out.backward().unwrap();
    assert_eq!(gradient(&a), [30.0]);
}

#[test]
fn a_hook_on_a_leaf_runs_before_it_adds() {
    let a = leaf(&[1.0]);
    a.register_hook(|gradient| Ok(Some(scaled(gradient, 2.0)?))).unwrap();
    plus(&a, &a).unwrap().backward().unwrap();
    assert_eq!(gradient(&a), [4.0]);
}

#[test]
fn node_hooks_run_before_and_after() {
    let (a, b) = (leaf(&[2.0]), leaf(&[5.0]));
    let out = times(&a, &b).unwrap();
    let node = out.graph_node().unwrap();
    assert_eq!(format!("{node:?} {:?}", node.inputs()), "<times> [Some(<leaf>), Some(<leaf>)]");
    assert!(node.inputs()[0].as_ref().unwrap().same(&a.graph_node().unwrap()));
    node.before_backward(|gradients| {
        gradients[0] = Some(scaled(gradients[0].as_ref().unwrap(), 3.0)?);
        Ok(())
    });
    node.after_backward(|inputs, outputs| {
        assert_eq!(values(outputs[0].as_ref().unwrap()), [3.0]);
        inputs[1] = None;
        Ok(())
    });
    let added = Arc::new(Mutex::new(Vec::new()));
    let log = added.clone();
    let weak = a.downgrade();
    a.graph_node().unwrap().after_backward(move |_, gradients| {
        log.lock().unwrap().extend(values(gradients[0].as_ref().unwrap()));
        assert_eq!(gradient(&weak.upgrade().unwrap()), [15.0]);
        Ok(())
    });
    out.backward().unwrap();
    assert_eq!(gradient(&a), [15.0]);
    assert!(b.grad().is_none());
    assert_eq!(*added.lock().unwrap(), [15.0]);
}

#[test]
fn a_hook_can_stop_a_gradient() {
    let a = leaf(&[2.0]);
    let out = times(&a, &a).unwrap();
    out.graph_node().unwrap().before_backward(|gradients| {
        gradients[0] = None;
        Ok(())
    });
    out.backward().unwrap();
    assert!(a.grad().is_none());
}

#[test]
fn what_a_hook_returns_is_checked() {
    let a = leaf(&[2.0]);
    let out = times(&a, &a).unwrap();
    let handle = out.register_hook(|_| Ok(Some(Tensor::of(&[1.0, 2.0])))).unwrap();
    check_error(
        out.backward_with(None, RETAIN),
        "the gradient that a hook returned has the shape (2), the tensor (1)\n  in a hook before backward of `times`",
    );
    handle.remove();
    out.register_hook(|_| Err(Error::value("no"))).unwrap();
    check_error(out.backward(), "no\n  in a hook before backward of `times`");
    check_error(
        Tensor::of(&[1.0]).register_hook(|_| Ok(None)),
        "a hook needs a tensor that is part of a graph, this one is not\n  help: call requires_grad_(true) on it, or compute it from such a tensor",
    );
}

#[test]
fn a_panicking_hook_poisons_nothing() {
    let a = leaf(&[2.0]);
    let middle = times(&a, &a).unwrap();
    let out = times(&middle, &a).unwrap();
    let handle = middle.register_hook(|_| panic!("a defect of the user's")).unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| out.backward_with(None, RETAIN)));
    assert!(result.is_err());
    assert!(is_enabled());
    handle.remove();
    a.zero_grad();
    out.backward().unwrap();
    assert_eq!(gradient(&a), [12.0]);
}

#[test]
fn a_retained_gradient_stays_in_its_tensor() {
    let a = leaf(&[3.0]);
    let middle = times(&a, &a).unwrap();
    middle.retain_grad().unwrap();
    middle.retain_grad().unwrap();
    let out = scaled(&middle, 2.0).unwrap();
    out.backward_with(None, RETAIN).unwrap();
    assert_eq!(gradient(&middle), [2.0]);
    out.backward().unwrap();
    assert_eq!(gradient(&middle), [4.0]);
    // An in-place call gives the tensor a new edge; the gradient is that of its new value.
    let x = scaled(&a, 1.0).unwrap();
    x.retain_grad().unwrap();
    squared_(&x).unwrap();
    scaled(&x, 7.0).unwrap().backward().unwrap();
    assert_eq!(gradient(&x), [7.0]);
}

#[test]
fn hooks_are_dropped_with_their_graph() {
    let token = Arc::new(());
    check_no_leak(|| {
        let a = leaf(&[1.0]);
        let out = times(&a, &a).unwrap();
        let held = token.clone();
        let _handle = out
            .register_hook(move |_| {
                let _ = &held;
                Ok(None)
            })
            .unwrap();
        out.retain_grad().unwrap();
        out.backward().unwrap();
    });
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn modes_nest_and_come_back_after_a_panic() {
    let a = leaf(&[1.0]);
    no_grad(|| {
        assert!(!is_enabled());
        enable_grad(|| assert!(times(&a, &a).unwrap().requires_grad()));
        assert!(!set_enabled(true) && set_enabled(false));
    });
    inference(|| {
        assert!(!set_enabled(true));
        enable_grad(|| assert!(!times(&a, &a).unwrap().requires_grad()));
    });
    let _ = catch_unwind(|| no_grad(|| panic!("inside")));
    assert!(is_enabled());
    assert!(std::thread::spawn(is_enabled).join().unwrap());
}

#[test]
fn an_anomaly_names_the_call() {
    let a = leaf(&[1.0]);
    // A frame of its own, whatever the compiler does with that of the test.
    #[inline(never)]
    fn poisoned_total(a: &Tensor) -> Tensor {
        let bad = poison(&times(a, a).unwrap()).unwrap();
        total(&bad).unwrap()
    }
    let loss = detect_anomaly(|| poisoned_total(&a));
    loss.backward_with(None, RETAIN).unwrap();
    let error = detect_anomaly(|| loss.backward()).unwrap_err();
    assert_eq!(error.message(), "the gradient of `self` of `poison` is NaN");
    let note = &error.notes()[0];
    assert!(note.starts_with("`poison` was called in\n"), "{note}");
    assert!(note.contains("poisoned_total"), "{note}");
}

#[test]
fn an_anomaly_names_the_first_result_that_was_nan() {
    let a = leaf(&[f64::INFINITY]);
    let loss = detect_anomaly(|| {
        let nan = plus(&a, &scaled(&a, -1.0).unwrap()).unwrap();
        total(&squared(&exponential(&nan).unwrap()).unwrap()).unwrap()
    });
    let error = detect_anomaly(|| loss.backward()).unwrap_err();
    assert_eq!(error.message(), "the gradient of `self` of `squared` is NaN");
    assert!(error.notes()[1].starts_with("the first result that was NaN is that of `plus`, called in\n"));
    let unknown = squared(&leaf(&[f64::NAN])).unwrap();
    check_error(
        detect_anomaly(|| unknown.backward()),
        "the gradient of `self` of `squared` is NaN\n  help: run the forward pass inside detect_anomaly too, to see where the call was made",
    );
}
