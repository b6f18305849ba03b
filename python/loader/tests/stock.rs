//! The stock library's pointwise operators and compositions, loaded as a user's spec is, against the compiled ones: values,
//! gradients, tangents and errors, bit by bit, at every sample; and their graphs against their calls.

use std::sync::LazyLock;

use opsmith::autograd::{Options, jvp};
use opsmith_runtime::library::Library;
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::{DType, Result, Tensor, Value, boxed};
use opsmith_testing::calls::{bits, mapped, resized, tensors};
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

/// Compares the loaded operators with the compiled ones in calls of some dtypes.
fn compare(
    dtypes: &[DType],
    arguments: impl Fn(&[Value]) -> Vec<Value>,
    run: impl Fn(&'static OpDef, &[Value]) -> Result<Vec<Value>>,
) {
    let (mut wrong, mut calls) = (Vec::new(), 0);
    for (loaded, compiled) in pairs().filter(|(op, _)| !is_random(op)) {
        for dtype in dtypes {
            for args in samples(compiled, *dtype) {
                let args = arguments(&args);
                let [a, b] = [loaded, compiled].map(|op| outcome(run(op, &args)));
                calls += 1;
                if a != b {
                    let cut = |text: &str| text.chars().take(300).collect::<String>();
                    let (name, a, b) = (loaded.name, cut(&a), cut(&b));
                    wrong.push(format!("{name} {dtype}:\n  loaded   {a}\n  compiled {b}"));
                }
            }
        }
    }
    assert!(calls > 400 * dtypes.len(), "{calls} calls of {} operators", LOADED.ops.len());
    let shown = wrong[..wrong.len().min(40)].join("\n");
    assert!(wrong.is_empty(), "{} of {calls} calls differ\n{shown}", wrong.len());
}

fn call(op: &'static OpDef, args: &[Value]) -> Result<Vec<Value>> {
    boxed::call_definition(op, args, &[])
}

#[test]
fn values_are_the_same_bits() {
    compare(&DType::ALL, <[Value]>::to_vec, call);
}

/// The same elements, with the dimensions of memory in the opposite order.
fn reversed(tensor: &Tensor) -> Tensor {
    let dims: Vec<i64> = (0..tensor.dim() as i64).rev().collect();
    let turned = opsmith::permute(tensor, &dims).and_then(|turned| opsmith::contiguous(&turned));
    turned.and_then(|turned| opsmith::permute(&turned, &dims)).expect("a view of a copy")
}

#[test]
fn elements_at_other_strides_are_the_same_bits() {
    let turned = |args: &[Value]| -> Vec<Value> {
        args.iter().map(|value| mapped(value, &mut |tensor| reversed(tensor))).collect()
    };
    compare(&[DType::F32, DType::F16, DType::I32, DType::C64, DType::Bool], turned, call);
}

#[test]
fn elements_of_many_blocks_are_the_same_bits() {
    // Sizes of 1 stay, so that operands still broadcast.
    let grown = |args: &[Value]| -> Vec<Value> {
        let grow = |tensor: &Tensor| match tensor.dim() {
            2 => resized(tensor, |size| if size == 1 { 1 } else { size * 23 })
                .unwrap_or_else(|_| tensor.clone()),
            _ => tensor.clone(),
        };
        args.iter().map(|value| mapped(value, &mut |tensor| grow(tensor))).collect()
    };
    compare(&[DType::F32, DType::BF16, DType::I64], grown, call);
}

/// Gradients of all tensors of a call that can have one.
fn gradients(op: &'static OpDef, args: &[Value]) -> Result<Vec<Value>> {
    let track = |tensor: &Tensor| match tensor.dtype().is_differentiable() {
        true => tensor.detach().requires_grad_(true).expect("a leaf"),
        false => tensor.clone(),
    };
    let args: Vec<Value> = args.iter().map(|value| mapped(value, &mut |tensor| track(tensor))).collect();
    let results = call(op, &args)?;
    for out in tensors(&results).iter().filter(|out| out.requires_grad()) {
        let start = opsmith::ones_like(&out.detach())?;
        out.backward_with(Some(&start), Options { retain_graph: true, ..Default::default() })?;
    }
    Ok(tensors(&args).iter().map(|leaf| leaf.grad().map_or(Value::None, Value::Tensor)).collect())
}

const DIFFERENTIABLE: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::BF16];

#[test]
fn gradients_are_the_same_bits() {
    compare(&DIFFERENTIABLE, <[Value]>::to_vec, gradients);
}

/// Tangents of all results, for tangents of all tensors that can have one.
fn tangents(op: &'static OpDef, args: &[Value]) -> Result<Vec<Value>> {
    let all = tensors(args);
    let moving: Vec<&Tensor> = all.iter().filter(|tensor| tensor.dtype().is_differentiable()).collect();
    let run = |inputs: &[Tensor]| {
        let mut next = inputs.iter();
        let mut place = |tensor: &Tensor| match tensor.dtype().is_differentiable() {
            true => next.next().expect("an input for each tensor").clone(),
            false => tensor.clone(),
        };
        let args: Vec<Value> = args.iter().map(|value| mapped(value, &mut place)).collect();
        let results = tensors(&call(op, &args)?);
        Ok(results.into_iter().filter(|result| result.dtype().is_differentiable()).collect())
    };
    let directions: Vec<Tensor> = moving.iter().map(|tensor| opsmith::cos(tensor)).collect::<Result<_>>()?;
    let directions: Vec<&Tensor> = directions.iter().collect();
    let (values, tangents) = jvp(run, &moving, &directions)?;
    let tangents = tangents.into_iter().map(|tangent| tangent.map_or(Value::None, Value::Tensor));
    Ok(values.into_iter().map(Value::Tensor).chain(tangents).collect())
}

#[test]
fn tangents_are_the_same_bits() {
    compare(&DIFFERENTIABLE, <[Value]>::to_vec, tangents);
}

#[test]
fn graphs_are_the_same_bits() {
    for op in pairs().map(|(loaded, _)| loaded).filter(|op| !is_random(op)) {
        let report = opsmith_testing::checks::graphs(op);
        assert!(report.wrong.is_empty(), "{}: {}", op.name, report.wrong.join("\n"));
    }
}
