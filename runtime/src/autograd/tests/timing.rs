//! Costs of recording and backward. Prints, asserts nothing: run in release with `cargo test --release -p
//! opsmith-runtime timing -- --ignored --nocapture`. For a profiler, `CASE` selects the lines that contain a text and
//! `RUNS` sets the number of runs.

use std::hint::black_box;
use std::time::Instant;

use super::leaf;
use super::ops::*;
use crate::autograd::no_grad;
use crate::tensor::Tensor;

/// Prints the best of several runs, in nanoseconds a call.
fn time(name: &str, calls: u32, mut body: impl FnMut()) {
    if std::env::var("CASE").is_ok_and(|case| !name.contains(&case)) {
        return;
    }
    let runs = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(400);
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        for _ in 0..calls {
            body();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    println!("{name:<45} {best:>10.1} ns");
}

#[test]
#[ignore = "prints timings; worth reading only in release"]
fn timing() {
    let (x, y) = (Tensor::of(&[1.0]), Tensor::of(&[2.0]));
    let (a, b) = (leaf(&[1.0]), leaf(&[2.0]));
    time("untracked call", 1_000, || drop(black_box(times(&x, &y).unwrap())));
    time("tracked call under no_grad", 1_000, || drop(black_box(no_grad(|| times(&a, &b)).unwrap())));
    time("recorded call, nothing saved", 1_000, || drop(black_box(plus(&a, &b).unwrap())));
    time("recorded call, one saved", 1_000, || drop(black_box(times(&a, &y).unwrap())));
    time("recorded call, two saved", 1_000, || drop(black_box(times(&a, &b).unwrap())));
    time("100 multiplications, forward and backward", 20, || {
        let mut product = times(&a, &y).unwrap();
        for _ in 1..100 {
            product = times(&product, &y).unwrap();
        }
        product.backward().unwrap();
        a.zero_grad();
    });
    time("100 multiplications, forward only", 20, || {
        let mut product = times(&a, &y).unwrap();
        for _ in 1..100 {
            product = times(&product, &y).unwrap();
        }
        black_box(product);
    });
    let (a, b) = (leaf(&[1.0, 2.0, 3.0, 4.0]), leaf(&[5.0, 6.0, 7.0, 8.0]));
    time("(a * b).sum(), 4 elements, forward and backward", 200, || {
        total(&times(&a, &b).unwrap()).unwrap().backward().unwrap();
        a.zero_grad();
        b.zero_grad();
    });
}
