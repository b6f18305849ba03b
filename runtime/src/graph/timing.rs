//! What graphs cost beside their kernels. Prints, asserts nothing: run in release with
//! `cargo test --release -p opsmith-runtime graph::timing -- --ignored --nocapture`.

use std::hint::black_box;
use std::time::Instant;

use super::{Graph, InputSpec, Passes};
use crate::autograd::tests::ops::plus;
use crate::error::Result;
use crate::tensor::Tensor;

/// Prints the best of several runs, in nanoseconds a node.
fn time<R>(name: &str, nodes: usize, runs: usize, mut body: impl FnMut() -> R) {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        black_box(body());
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    println!("{name:<45} {:>10.1} ns a node, {:>10.3} ms", best / nodes as f64, best / 1e6);
}

fn chain(x: &Tensor, length: usize) -> Result<Tensor> {
    (0..length).try_fold(x.clone(), |sum, _| plus(&sum, x))
}

#[test]
#[ignore = "prints timings; worth reading only in release"]
fn timing() {
    let x = Tensor::of(&[1.0]);
    let graph = Graph::trace(|x: &[Tensor]| chain(&x[0], 1000), [&x]).unwrap();
    let mut outputs = Vec::new();
    time("run 1,000 nodes", 1000, 3000, || graph.run_into(&[&x], &mut outputs).unwrap());
    time("the same, eager", 1000, 3000, || chain(&x, 1000).unwrap());
    let optimised = graph.optimize(&Passes::all());
    time("run 1,000 nodes, optimised", 1000, 3000, || optimised.run_into(&[&x], &mut outputs).unwrap());
    time("trace 10,000 nodes", 10_000, 40, || Graph::trace(|x: &[Tensor]| chain(&x[0], 10_000), [&x]));
    let spec = InputSpec::new(crate::DType::F64, ["n".into()]);
    let symbolic = Graph::trace(|x: &[Tensor]| chain(&x[0], 10_000), [spec]).unwrap();
    time("infer 10,000 nodes", 10_000, 40, || symbolic.check_at(&[("n", 8)]).unwrap());
    time("infer and place 10,000 buffers", 10_000, 40, || symbolic.memory_at(&[("n", 8)]).unwrap());
    time("optimise 10,000 nodes", 10_000, 10, || symbolic.optimize(&Passes::all()));
}
