//! The stock library's pointwise operators and compositions, loaded as a user's spec is, against the compiled ones: values,
//! gradients, tangents and errors, bit by bit, at every sample in every dtype.

use std::sync::LazyLock;

use opsmith::autograd;
use opsmith_runtime::library::Library;
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::{DType, Result, Tensor, Value, boxed};
use opsmith_testing::calls::bits;
use opsmith_testing::samples::samples;

static LOADED: LazyLock<&'static Library> = LazyLock::new(|| {
    opsmith_loader::load_stock(&opsmith::LIBRARY).unwrap_or_else(|failure| panic!("{failure}"))
});

/// Each loaded operator beside the compiled one.
fn pairs() -> impl Iterator<Item = (&'static OpDef, &'static OpDef)> {
    let compiled =
        |loaded: &'static OpDef| (loaded, opsmith::LIBRARY.find(loaded.name).expect("a stock operator").0);
    LOADED.ops.iter().map(move |loaded| compiled(loaded))
}

/// The results of a call as text: dtypes, shapes, bytes, or the whole error.
fn outcome(results: Result<Vec<Value>>) -> String {
    match results {
        // Loops on devices are compiled ones alone.
        Err(error) => error
            .to_string()
            .lines()
            .map(|line| line.split("; CUDA: ").next().unwrap_or(line).to_owned() + "\n")
            .collect(),
        Ok(values) => {
            let mut text = String::new();
            for value in &values {
                match value {
                    Value::Tensor(tensor) => text += &of_tensor(tensor),
                    Value::Tensors(list) => list.iter().for_each(|tensor| text += &of_tensor(tensor)),
                    other => text += &format!("{other:?}\n"),
                }
            }
            text
        }
    }
}

fn of_tensor(tensor: &Tensor) -> String {
    format!("{} {:?} {:?}\n", tensor.dtype(), tensor.shape(), bits(tensor))
}

fn is_random(op: &OpDef) -> bool {
    !op.facts.deterministic || op.schema.args.iter().any(|arg| arg.ty.kind == ArgKind::Generator)
}

#[test]
fn values_are_the_same_bits() {
    let (mut wrong, mut calls) = (Vec::new(), 0);
    for (loaded, compiled) in pairs().filter(|(op, _)| !is_random(op)) {
        for dtype in DType::ALL {
            for args in samples(compiled, dtype) {
                let [a, b] = [loaded, compiled].map(|op| outcome(boxed::call_definition(op, &args, &[])));
                calls += 1;
                if a != b {
                    let cut = |text: &str| text.chars().take(300).collect::<String>();
                    wrong.push(format!(
                        "{} {dtype}:\n  loaded   {}\n  compiled {}",
                        loaded.name,
                        cut(&a),
                        cut(&b)
                    ));
                }
            }
        }
    }
    println!("{} operators, {calls} calls", LOADED.ops.len());
    assert!(
        wrong.is_empty(),
        "{} of {calls} calls differ\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}

/// Gradients of all tensors of a call that can have one.
fn gradients(op: &'static OpDef, args: &[Value]) -> Result<Vec<Value>> {
    let track = |tensor: &Tensor| match tensor.dtype().is_differentiable() {
        true => tensor.detach().requires_grad_(true).expect("a leaf"),
        false => tensor.clone(),
    };
    let args: Vec<Value> =
        args.iter().map(|value| opsmith_testing::calls::mapped(value, &mut |tensor| track(tensor))).collect();
    let results = boxed::call_definition(op, &args, &[])?;
    let outs: Vec<Tensor> = opsmith_testing::calls::tensors(&results);
    let mut roots = Vec::new();
    for out in outs.iter().filter(|out| out.requires_grad()) {
        roots.push((out.clone(), opsmith::ones_like(&out.detach())?));
    }
    for (root, start) in &roots {
        root.backward_with(Some(start), autograd::Options { retain_graph: true, ..Default::default() })?;
    }
    let leaves = opsmith_testing::calls::tensors(&args);
    Ok(leaves.iter().map(|leaf| leaf.grad().map_or(Value::None, Value::Tensor)).collect())
}

#[test]
fn gradients_are_the_same_bits() {
    let (mut wrong, mut calls) = (Vec::new(), 0);
    for (loaded, compiled) in pairs().filter(|(op, _)| !is_random(op)) {
        for dtype in [DType::F32, DType::F64, DType::C64, DType::BF16] {
            for args in samples(compiled, dtype) {
                let [a, b] = [loaded, compiled].map(|op| outcome(gradients(op, &args)));
                calls += 1;
                if a != b {
                    let cut = |text: &str| text.chars().take(300).collect::<String>();
                    wrong.push(format!(
                        "{} {dtype}:\n  loaded   {}\n  compiled {}",
                        loaded.name,
                        cut(&a),
                        cut(&b)
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {calls} calls differ\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}
