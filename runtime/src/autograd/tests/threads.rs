//! Graphs and tensors shared between threads.

use super::ops::*;
use super::{gradient, leaf};
use crate::autograd::{GraphNode, HookHandle, Options};
use crate::tensor::Tensor;

#[test]
fn what_users_hold_can_be_sent_and_shared() {
    fn check<T: Send + Sync>() {}
    check::<Tensor>();
    check::<GraphNode>();
    check::<HookHandle>();
    check::<super::super::node::Node>();
}

#[test]
fn passes_through_a_shared_part_at_the_same_time() {
    let a = leaf(&[2.0]);
    let shared = exponential(&squared(&a).unwrap()).unwrap();
    const THREADS: usize = 8;
    const PASSES: usize = if cfg!(miri) { 3 } else { 50 };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..PASSES {
                    // Parts recorded in different threads meet in one graph.
                    let own = times(&shared, &shared.detach()).unwrap();
                    own.backward_with(None, Options { retain_graph: true, create_graph: false }).unwrap();
                }
            });
        }
    });
    let one = 4.0 * f64::exp(4.0) * f64::exp(4.0);
    let expected = one * (THREADS * PASSES) as f64;
    assert!((gradient(&a)[0] - expected).abs() < 1e-9 * expected);
}

#[test]
fn a_graph_grows_through_several_threads() {
    let a = leaf(&[1.0]);
    let mut x = a.clone();
    for _ in 0..20 {
        x = std::thread::spawn(move || scaled(&plus(&x, &x).unwrap(), 0.5).unwrap()).join().unwrap();
    }
    // This thread's clock is behind those of the others.
    let sum = plus(&x, &a).unwrap();
    sum.backward().unwrap();
    assert_eq!(gradient(&a), [2.0]);
}

#[test]
fn graphs_are_dropped_in_other_threads() {
    let a = leaf(&[1.0]);
    let mut x = plus(&a, &a).unwrap();
    for _ in 0..if cfg!(miri) { 50 } else { 10_000 } {
        x = plus(&x, &x).unwrap();
    }
    let (first, second) = (x.clone(), x);
    let threads = [first, second].map(|tensor| std::thread::spawn(move || drop(tensor)));
    for thread in threads {
        thread.join().unwrap();
    }
}
