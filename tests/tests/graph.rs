//! Graph mode against eager mode: for every operator and every sample.

use opsmith::{DType, Result, Tensor, Value};
use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::graph::{Graph, InputSpec};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, dispatch};
use opsmith_tests::samples::{repeatable, samples};

/// The bytes of every element in row-major order.
fn bits(tensor: &Tensor) -> Vec<u8> {
    opsmith_runtime::with_dtype!(tensor.dtype(), T => {
        let values = tensor.to_vec::<T>().unwrap();
        // SAFETY: plain numbers, all of whose bytes are initialised.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values.as_slice())) }.to_vec()
    })
}

/// The tensors among some arguments.
fn tensors(args: &[Value]) -> Vec<Tensor> {
    let mut found = Vec::new();
    args.iter().for_each(|value| value.as_arg().for_each_tensor(|tensor| found.push(tensor.clone())));
    found
}

/// The arguments with other tensors in place of theirs.
fn with_tensors(args: &[Value], tensors: &[Tensor]) -> Vec<Value> {
    let mut left = tensors.iter().cloned();
    let mut next = || left.next().expect("as many as there are");
    let replaced = args.iter().map(|value| match value {
        Value::Tensor(_) => Value::Tensor(next()),
        Value::Tensors(list) => Value::Tensors(list.iter().map(|_| next()).collect()),
        Value::OptionalTensors(list) => {
            Value::OptionalTensors(list.iter().map(|tensor| tensor.as_ref().map(|_| next())).collect())
        }
        other => other.clone(),
    });
    replaced.collect()
}

fn call(op: &'static OpDef, args: &[Value]) -> Result<Vec<Tensor>> {
    let args: Vec<Arg<'_>> = args.iter().map(Value::as_arg).collect();
    Ok(dispatch::invoke(op, &args)?.into_vec())
}

/// What is different about two results.
fn difference(graph: &[Tensor], eager: &[Tensor]) -> Option<String> {
    if graph.len() != eager.len() {
        return Some(format!("{} outputs in place of {}", graph.len(), eager.len()));
    }
    graph.iter().zip(eager).enumerate().find_map(|(number, (graph, eager))| {
        if (graph.dtype(), graph.shape(), graph.strides()) != (eager.dtype(), eager.shape(), eager.strides())
        {
            return Some(format!(
                "output {number} is {} {:?} {:?} in place of {} {:?} {:?}",
                graph.dtype(),
                graph.shape(),
                graph.strides(),
                eager.dtype(),
                eager.shape(),
                eager.strides()
            ));
        }
        (bits(graph) != bits(eager)).then(|| format!("output {number} is {graph} in place of {eager}"))
    })
}

#[test]
fn every_sample_gives_the_same_bits() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for op in opsmith::LIBRARY.all_ops() {
        // How many elements these have is known when they have run.
        let required = op.schema.args.iter().any(|arg| arg.value == ValueUse::Required);
        if op.host.is_some() || required {
            continue;
        }
        for dtype in [DType::F64, DType::F32, DType::C128] {
            for (number, args) in samples(op, dtype).into_iter().enumerate() {
                let Ok(eager) = repeatable(op, || call(op, &args)) else { continue };
                let inputs = tensors(&args);
                let specs: Vec<InputSpec> = inputs.iter().map(InputSpec::from).collect();
                let graph = Graph::trace(|inputs: &[Tensor]| call(op, &with_tensors(&args, inputs)), &specs);
                let result = graph.and_then(|graph| repeatable(op, || graph.run(&inputs)));
                let found = match result {
                    Ok(outs) => difference(&outs, &eager),
                    Err(error) => Some(error.to_string()),
                };
                count += 1;
                wrong.extend(found.map(|found| format!("{} {dtype} sample {number}: {found}", op.name)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}
