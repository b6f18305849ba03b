//! Products with bias and activation in graphs: one request to the library.

use opsmith::{DType, Device, GeluOptions, LinearOptions, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec, NodeKind, Pass, Passes};

use super::{DEVICE, all_bits, moved, numbers};

fn calls(graph: &Graph) -> Vec<&'static str> {
    let is_call = |kind: &&NodeKind| matches!(kind, NodeKind::Call { .. });
    graph.nodes().iter().map(|node| &node.kind).filter(is_call).map(NodeKind::name).collect()
}

/// The requests that the library of products has computed.
fn requests() -> u64 {
    let all = opsmith::cuda::libraries().unwrap();
    all.iter().find(|library| library.name == "cublaslt").unwrap().computed
}

fn with_pass(graph: &Graph) -> Graph {
    graph.optimize(&Passes::all().with(Pass::ComposedOperators))
}

/// Two layers of a network on rows of vectors.
fn layers(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let hidden = opsmith::linear_with(&x[0], &x[1], LinearOptions::new().bias(&x[2]))?;
    let hidden = hidden.gelu_with(GeluOptions::new().approximate("tanh"))?;
    Ok(vec![x[4].addmm(&hidden.reshape([-1, 24])?, &x[3])?.relu()?])
}

fn inputs(rows: i64) -> Vec<Tensor> {
    let shapes: [&[i64]; 5] = [&[rows, 3, 16], &[24, 16], &[24], &[24, 8], &[8]];
    // Sixteenths, whose products and sums are exact, so that one order of sums is as good as another.
    let exact = |tensor: Tensor| tensor.mul(8.0).unwrap().round().unwrap().div(16.0).unwrap();
    moved(&shapes.iter().zip(1..).map(|(shape, seed)| exact(numbers(shape, seed))).collect::<Vec<_>>())
}

pub fn composed() {
    let five = inputs(5);
    let specs = five.iter().enumerate().map(|(number, input)| {
        let first = if number == 0 { "rows".into() } else { input.shape()[0].into() };
        let others = input.shape()[1..].iter().map(|size| (*size).into());
        InputSpec::new(DType::F32, std::iter::once(first).chain(others).collect::<Vec<_>>()).on(DEVICE)
    });
    let traced = Graph::trace(layers, specs.collect::<Vec<_>>()).unwrap();
    let separate = traced.optimize(&Passes::all());
    assert_eq!(calls(&separate), ["addmm", "gelu", "addmm", "relu"], "{}", separate.describe());
    let graph = with_pass(&traced);
    assert_eq!(calls(&graph), ["_addmm_activation"; 2], "{}", graph.describe());
    for rows in [5, 2, 1] {
        let inputs = inputs(rows);
        let before = requests();
        let found = graph.run(&inputs).unwrap();
        assert_eq!(requests() - before, 2);
        let kernels = opsmith::cuda::loaded_kernels(0).unwrap();
        assert!(rows != 5 || kernels.iter().all(|kernel| !kernel.name.contains("loop.cuh")), "{kernels:?}");
        let expected = separate.run(&inputs).unwrap();
        agree(&found[0], &expected[0]);
    }
    without_bias();
    exact();
    others();
    saved(&graph);
}

#[track_caller]
fn agree(found: &Tensor, expected: &Tensor) {
    assert_eq!(found.shape(), expected.shape());
    let difference = found.sub(expected).unwrap().abs().unwrap().max().unwrap();
    let largest = expected.abs().unwrap().max().unwrap();
    let (difference, largest) = (difference.item().unwrap().to_f64(), largest.item().unwrap().to_f64());
    assert!(difference <= 2e-6 * largest, "{difference} of {largest}");
}

/// With `relu` nothing is rounded on the way, so bits are those of separate calls.
fn exact() {
    let function = |x: &[Tensor]| Ok(vec![x[2].addmm(&x[0], &x[1])?.relu()?, x[0].addmm(&x[0], &x[0])?]);
    let inputs = moved(&[numbers(&[16, 16], 1), numbers(&[16, 16], 2), numbers(&[16], 3)]);
    let traced = Graph::trace(function, &inputs).unwrap();
    let graph = with_pass(&traced);
    assert_eq!(calls(&graph), ["_addmm_activation", "addmm"], "{}", graph.describe());
    assert_eq!(all_bits(&graph.run(&inputs).unwrap()), all_bits(&function(&inputs).unwrap()));
}

/// A layer without a bias, and a product of matrices.
fn without_bias() {
    let layers = |x: &[Tensor]| {
        let hidden = opsmith::linear(&x[0], &x[1])?.gelu_with(GeluOptions::new().approximate("tanh"))?;
        Ok(vec![hidden.reshape([-1, 24])?.mm(&x[3])?.relu()?])
    };
    let inputs = inputs(5);
    let traced = Graph::trace(layers, &inputs).unwrap();
    let separate = traced.optimize(&Passes::all());
    assert_eq!(calls(&separate), ["mm", "gelu", "mm", "relu"], "{}", separate.describe());
    let graph = with_pass(&traced);
    assert_eq!(calls(&graph), ["_mm_activation"; 2], "{}", graph.describe());
    let before = requests();
    let found = graph.run(&inputs).unwrap();
    assert_eq!(requests() - before, 2);
    agree(&found[0], &separate.run(&inputs).unwrap()[0]);
}

/// Calls that are not the composition, or whose results are needed, stay.
fn others() {
    type Function = fn(&[Tensor]) -> Result<Vec<Tensor>>;
    let functions: [(Function, &[&str]); 6] = [
        // Another form of the activation.
        (|x| Ok(vec![x[0].addmm(&x[0], &x[1])?.gelu()?]), &["addmm", "gelu"]),
        (|x| Ok(vec![x[0].mm(&x[1])?.gelu()?]), &["mm", "gelu"]),
        // The product is needed.
        (
            |x| {
                let product = x[0].addmm(&x[0], &x[1])?;
                Ok(vec![product.relu()?, product])
            },
            &["addmm", "relu"],
        ),
        (
            |x| {
                let product = x[0].addmm(&x[0], &x[1])?;
                product.relu()?.mul(&product).map(|result| vec![result])
            },
            &["addmm", "relu", "mul"],
        ),
        // It is changed in between.
        (
            |x| {
                let product = x[0].addmm(&x[0], &x[1])?;
                product.mul_(2.0)?;
                Ok(vec![product.relu()?])
            },
            &["addmm", "mul", "relu"],
        ),
        // A part of it is read.
        (|x| Ok(vec![x[0].addmm(&x[0], &x[1])?.narrow(0, 0, 4)?.relu()?]), &["addmm", "relu"]),
    ];
    let inputs = moved(&[numbers(&[8, 8], 4), numbers(&[8, 8], 5)]);
    for (function, expected) in functions {
        let graph = with_pass(&Graph::trace(function, &inputs).unwrap());
        let names: Vec<&str> = calls(&graph).iter().filter_map(|name| name.split('.').next()).collect();
        assert_eq!(names, expected, "{}", graph.describe());
        assert_eq!(all_bits(&graph.run(&inputs).unwrap()), all_bits(&function(&inputs).unwrap()));
    }
    // The host has no kernel of the operator.
    let host: Vec<Tensor> = inputs.iter().map(|input| input.to_device(Device::CPU).unwrap()).collect();
    let function = |x: &[Tensor]| Ok(vec![x[0].addmm(&x[0], &x[1])?.relu()?]);
    let graph = with_pass(&Graph::trace(function, &host).unwrap());
    assert_eq!(calls(&graph), ["addmm", "relu"]);
}

/// The call is saved as any other.
fn saved(graph: &Graph) {
    let folder = std::env::temp_dir().join(format!("opsmith-composed-{}", std::process::id()));
    graph.save(&folder).unwrap();
    let loaded = Graph::load(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    let (loaded, inputs) = (loaded.unwrap(), inputs(4));
    assert_eq!(calls(&loaded), calls(graph));
    assert_eq!(all_bits(&loaded.run(&inputs).unwrap()), all_bits(&graph.run(&inputs).unwrap()));
}
