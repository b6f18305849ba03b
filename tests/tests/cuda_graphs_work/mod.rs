//! The work of the tests of graphs on devices, each part in a process of its own.

pub mod composed;
pub mod fused;
pub mod recorded;
pub mod regions;

use opsmith::{DType, Device, Generator, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, Pass, Passes};

pub const DEVICE: Device = Device::cuda(0);

pub fn numbers(shape: &[i64], seed: u64) -> Tensor {
    opsmith::rand_generator(shape, Some(&Generator::new(seed))).unwrap().sub(0.5).unwrap()
}

pub fn moved(tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().map(|tensor| tensor.to_device(DEVICE).unwrap()).collect()
}

pub fn bits(tensor: &Tensor) -> Vec<u64> {
    let here = tensor.to_device(Device::CPU).unwrap().to_dtype(DType::F64).unwrap();
    here.contiguous().unwrap().to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

pub fn all_bits(tensors: &[Tensor]) -> Vec<Vec<u64>> {
    tensors.iter().map(bits).collect()
}

/// The fused graph of a function on the device, after a check that it, and the graph without fusion, give the bits of eager calls.
#[track_caller]
pub fn fused(function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor]) -> Graph {
    let inputs = moved(inputs);
    let eager = all_bits(&function(&inputs).unwrap());
    let traced = Graph::trace(&function, &inputs).unwrap();
    let separate = traced.optimize(&Passes::all().without(Pass::Fusion));
    assert!(separate.memory().unwrap().kernels.is_empty());
    let graph = traced.optimize(&Passes::all());
    for graph in [&separate, &graph] {
        let mut outputs = Vec::new();
        // Once to warm up, once recorded, once replayed.
        for _ in 0..3 {
            graph.run_into(&inputs, &mut outputs).unwrap();
            assert!(all_bits(&outputs) == eager, "{}", graph.describe());
        }
    }
    graph
}

/// The numbers of nodes of each kernel, views among them.
pub fn kernels(graph: &Graph) -> Vec<usize> {
    graph.memory().unwrap().kernels.iter().map(ExactSizeIterator::len).collect()
}
