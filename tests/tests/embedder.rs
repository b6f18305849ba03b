//! The program that the runtime is part of, asked between the steps of long calls.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use opsmith::{DType, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec};
use opsmith_programs::{Program, ProgramSize};
use opsmith_runtime::embedder::{self, Embedder};
use opsmith_runtime::{Error, Result};

/// Whether calls are to end.
static STOPPED: AtomicBool = AtomicBool::new(false);

fn poll() -> Result<()> {
    if STOPPED.load(Ordering::Relaxed) { Err(Error::value("the test ends the call")) } else { Ok(()) }
}

/// Repeats a call until the question that ends it comes, and then finds that the call works as before.
fn ends(case: &str, call: impl Fn() -> Result<()>) {
    call().unwrap();
    STOPPED.store(true, Ordering::Relaxed);
    let since = Instant::now();
    let error = loop {
        if let Err(error) = call() {
            break error;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{case} never asks");
    };
    STOPPED.store(false, Ordering::Relaxed);
    assert_eq!(error.message(), "the test ends the call", "{case}");
    call().unwrap();
}

fn chain(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut y = x[0].clone();
    for _ in 0..100 {
        y = y.sin()?;
    }
    Ok(vec![y])
}

#[test]
fn an_error_of_the_program_ends_a_call_between_two_steps() {
    assert!(embedder::set(Embedder { poll, sleep: std::thread::sleep }));
    assert!(!embedder::set(Embedder { poll, sleep: std::thread::sleep }), "only the first is kept");
    let x = Tensor::of(&[1.0f32, 2.0]);

    let graph = Graph::trace(chain, [&x]).unwrap();
    ends("a graph", || graph.run(&[&x]).map(drop));

    let mut graph = Graph::trace(|x: &[Tensor]| Ok([x[0].sin()?, x[0].cos()?]), [&x]).unwrap();
    graph.set_threads(2);
    ends("a graph of two threads", || graph.run(&[&x]).map(drop));

    let loops = |x: &[Tensor]| {
        let start = [x[0].clone(), Tensor::scalar(0i64, DType::I64)];
        opsmith_graph::while_loop(
            &start,
            |state| state[1].lt(1000),
            |state| Ok(vec![state[0].sin()?, (&state[1] + 1)?]),
        )
    };
    let graph = Graph::trace(loops, [&x]).unwrap();
    ends("a loop", || graph.run(&[&x]).map(drop));

    let scans = |x: &[Tensor]| {
        let (state, _) = opsmith_graph::scan(&[opsmith::zeros([3])?], &[x[0].clone()], |state, part| {
            let sum = (&state[0] + &part[0])?;
            Ok((vec![sum.clone()], vec![sum]))
        })?;
        Ok([state[0].clone()])
    };
    let graph = Graph::trace(scans, [InputSpec::new(DType::F32, ["n".into(), 3.into()])]).unwrap();
    let rows = opsmith::ones([1000, 3]).unwrap();
    ends("a scan", || graph.run(&[&rows]).map(drop));

    let leaf = Tensor::of(&[1.0f32, 2.0]).requires_grad_(true).unwrap();
    ends("a backward pass", || chain(std::slice::from_ref(&leaf))?[0].sum()?.backward());

    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let program = Program::load(data.join("programs/convnet.pt2")).unwrap();
    let inputs = example(&program);
    ends("an exported program", || program.run(&inputs).map(drop));
    ends("its operators one by one", || program.call(&inputs).map(drop));
    let program = Program::load(data.join("onnx/mlp.onnx")).unwrap();
    let inputs = example(&program);
    ends("operators of a model of ONNX one by one", || program.call(&inputs).map(drop));
}

/// Ones of the sizes that a program takes, 2 for those that may differ.
fn example(program: &Program) -> Vec<Tensor> {
    let inputs = program.inputs().iter().map(|input| {
        let size = |size: &ProgramSize| if let ProgramSize::Fixed(size) = size { *size } else { 2 };
        let sizes: Vec<i64> = input.sizes.iter().map(size).collect();
        opsmith::ones(sizes).unwrap()
    });
    inputs.collect()
}
