//! First and second derivatives against differences, and `create_graph`.

use super::numeric::check_gradients;
use super::odd_ops::*;
use super::ops::*;
use super::{check_no_leak, gradient, leaf, values};
use crate::Complex64;
use crate::autograd::{Options, grad};
use crate::tensor::Tensor;

const CREATE: Options = Options { create_graph: true, retain_graph: true };
const RETAIN: Options = Options { create_graph: false, retain_graph: true };
const X: (&[f64], &[i64]) = (&[0.3, -0.7, 1.1, 0.9, -0.4, 0.6], &[2, 3]);
const ROW: (&[f64], &[i64]) = (&[0.5, -1.2, 0.8], &[3]);
const COLUMN: (&[f64], &[i64]) = (&[1.5, -0.2], &[2, 1]);

#[test]
fn elementwise_with_broadcasting() {
    check_gradients(&[X, ROW], |x| times(&x[0], &x[1]).unwrap());
    check_gradients(&[COLUMN, ROW], |x| exponential(&times(&x[0], &x[1]).unwrap()).unwrap());
    check_gradients(&[X, COLUMN], |x| squared(&plus(&exponential(&x[0]).unwrap(), &x[1]).unwrap()).unwrap());
}

#[test]
fn reductions_and_views() {
    check_gradients(&[X], |x| squared(&total(&exponential(&x[0]).unwrap()).unwrap()).unwrap());
    check_gradients(&[X, COLUMN], |x| times(&swap(&x[0]).unwrap(), &swap(&x[1]).unwrap()).unwrap());
    check_gradients(&[ROW, X], |x| times(&squared(&widen(&x[0], &[2, 3]).unwrap()).unwrap(), &x[1]).unwrap());
    check_gradients(&[X], |x| {
        exponential(&row(&swap(&squared(&x[0]).unwrap()).unwrap(), 1).unwrap()).unwrap()
    });
}

#[test]
fn lists_several_outputs_and_compositions() {
    check_gradients(&[ROW, ROW, ROW], |x| {
        dots(&[squared(&x[0]).unwrap(), x[1].clone()], &[x[2].clone(), x[1].clone()]).unwrap()
    });
    check_gradients(&[X], |x| {
        let [twice, thrice, _] = both(&squared(&x[0]).unwrap()).unwrap();
        times(&twice, &thrice).unwrap()
    });
    check_gradients(&[X], |x| cube(&cube(&x[0]).unwrap()).unwrap());
}

#[test]
fn third_order() {
    let a = leaf(&[0.5]);
    let mut derivative = exponential(&squared(&a).unwrap()).unwrap();
    for _ in 0..3 {
        derivative = grad(&[&derivative], &[&a], &[None], CREATE).unwrap().swap_remove(0).unwrap();
    }
    // The third derivative of exp(x²) is (12x + 8x³) exp(x²).
    let expected = (6.0 + 1.0) * f64::exp(0.25);
    assert!((values(&derivative)[0] - expected).abs() < 1e-12);
}

#[test]
fn a_complex_second_derivative() {
    // The gradient of |z²|² at z is conj-linear in the incoming gradient; its real part is checked.
    let z = Tensor::of(&[Complex64::new(0.5, -1.5)]).requires_grad_(true).unwrap();
    let one = Tensor::of(&[Complex64::new(1.0, 0.0)]);
    let w = times(&z, &z).unwrap();
    let size = times(&w, &conjugate(&w).unwrap()).unwrap();
    let first = grad(&[&size], &[&z], &[Some(&one)], CREATE).unwrap().swap_remove(0).unwrap();
    // 4 |z|² z
    let value = first.to_vec::<Complex64>().unwrap()[0];
    assert!((value - 4.0 * 2.5 * Complex64::new(0.5, -1.5)).norm() < 1e-12, "{value}");
    let second = grad(&[&first], &[&z], &[Some(&one)], Options::default()).unwrap().swap_remove(0).unwrap();
    // The gradient of Re(4 |z|² z) is 8 |z|² + 4 z².
    let z = Complex64::new(0.5, -1.5);
    let value = second.to_vec::<Complex64>().unwrap()[0];
    assert!((value - (8.0 * 2.5 + 4.0 * z * z)).norm() < 1e-12, "{value}");
}

#[test]
fn gradients_are_outside_the_graph_unless_it_was_asked_for() {
    let a = leaf(&[2.0]);
    let out = cube(&a).unwrap();
    out.backward_with(None, CREATE).unwrap();
    let first = a.grad().unwrap();
    assert!(first.requires_grad());
    a.zero_grad();
    out.backward_with(None, RETAIN).unwrap();
    assert!(!a.grad().unwrap().requires_grad());
    a.zero_grad();
    first.backward().unwrap();
    assert_eq!(gradient(&a), [12.0]);
}

#[test]
fn a_tracked_gradient_to_begin_with() {
    let (a, seed) = (leaf(&[3.0]), leaf(&[5.0]));
    let out = squared(&a).unwrap();
    let create = grad(&[&out], &[&a], &[Some(&seed)], CREATE).unwrap().swap_remove(0).unwrap();
    assert_eq!(values(grad(&[&create], &[&seed], &[None], CREATE).unwrap()[0].as_ref().unwrap()), [6.0]);
    let plain = grad(&[&out], &[&a], &[Some(&seed)], Options::default()).unwrap().swap_remove(0).unwrap();
    assert!(!plain.requires_grad());
    // A gradient that is the leaf's own new gradient stays differentiable, in memory of its own.
    let b = leaf(&[1.0]);
    plus(&b, &b.detach()).unwrap().backward_with(Some(&seed), CREATE).unwrap();
    let held = b.grad().unwrap();
    assert!(!held.shares_storage(&seed) && held.requires_grad());
    held.backward().unwrap();
    assert_eq!(gradient(&seed), [1.0]);
}

#[test]
fn higher_orders_make_no_cycles() {
    check_no_leak(|| {
        let a = leaf(&[0.5, 0.25]);
        let out = total(&exponential(&squared(&a).unwrap()).unwrap()).unwrap();
        let first = grad(&[&out], &[&a], &[None], CREATE).unwrap().swap_remove(0).unwrap();
        let norm = total(&squared(&first).unwrap()).unwrap();
        norm.backward_with(None, CREATE).unwrap();
        total(&a.grad().unwrap()).unwrap().backward_with(None, CREATE).unwrap();
    });
}
