//! Gradients, tangents, and data of tests for them, as JSON.

use opsmith_core::Backend;
use serde_json::{Map, Value, json};

use super::expression;
use opsmith_codegen::analysis::reads::{ReadValue, reads};
use opsmith_codegen::model::{
    Derivative, Fill, Forward, ForwardFormula, Model, Op, Sample, SampleTensor, SampleValue, Tolerance,
    ToleranceOf,
};

/// A backward formula, and the values that a recorded call saves for it.
pub(super) fn backward(derivative: &Derivative, op: &Op, model: &Model) -> Value {
    let Derivative { arguments, formula, text, backends, derived } = derivative;
    let saves: Vec<Value> = reads(formula)
        .values
        .into_iter()
        .map(|place| match place {
            ReadValue::Arg(index) => json!({ "argument": op.args[index].name }),
            ReadValue::Result(index) => json!({ "result": index }),
        })
        .collect();
    let backends: Vec<&str> =
        Backend::ALL.into_iter().filter(|backend| backends.contains(*backend)).map(Backend::key).collect();
    json!({
        "of": arguments.iter().map(|index| op.args[*index].name.as_str()).collect::<Vec<_>>(),
        "text": text,
        "formula": expression(formula, op, model),
        "saves": saves,
        "backends": backends,
        "derived": derived,
    })
}

/// The rule of forward mode.
pub(super) fn forward(forward: &Forward, op: &Op, model: &Model) -> Value {
    match forward {
        Forward::None => Value::Null,
        Forward::Formulas(formulas) => {
            let formulas: Vec<Value> = formulas
                .iter()
                .map(|ForwardFormula { output, terms, text }| {
                    json!({
                        "output": output,
                        "text": text,
                        "terms": terms.iter().map(|term| expression(term, op, model)).collect::<Vec<_>>(),
                    })
                })
                .collect();
            json!({ "by": forward.word(), "formulas": formulas })
        }
        Forward::ElementWise { declared } => json!({ "by": forward.word(), "declared": declared }),
        Forward::Linear | Forward::Composition | Forward::View | Forward::Transposed => {
            json!({ "by": forward.word() })
        }
    }
}

/// Argument values for tests.
pub(super) fn sample(sample: &Sample, op: &Op) -> Value {
    let Sample { args, text } = sample;
    let args: Map<String, Value> =
        args.iter().map(|(index, value)| (op.args[*index].name.clone(), sample_value(value))).collect();
    json!({ "text": text, "arguments": args })
}

fn sample_value(value: &SampleValue) -> Value {
    match value {
        SampleValue::None => Value::Null,
        SampleValue::Bool(value) => json!(value),
        SampleValue::Int(value) => json!(value),
        SampleValue::Float(value) => json!(value),
        SampleValue::Complex(re, im) => json!({"complex": [re, im]}),
        SampleValue::Str(text) => json!(text),
        SampleValue::DType(dtype) => json!(dtype.name()),
        SampleValue::List(items) => items.iter().map(sample_value).collect(),
        SampleValue::Tensor(tensor) => sample_tensor(tensor),
        SampleValue::Tensors(tensors) => {
            tensors.iter().map(|tensor| tensor.as_ref().map(sample_tensor)).collect()
        }
    }
}

fn sample_tensor(tensor: &SampleTensor) -> Value {
    let SampleTensor { shape, fill } = tensor;
    let elements = match fill {
        Fill::Between(low, high) => json!({ "between": [low, high] }),
        Fill::Integers(low, high) => json!({ "integers": [low, high] }),
        Fill::Mask => json!("mask"),
        Fill::Numbers(numbers) => json!({ "numbers": numbers }),
        Fill::Places(places) => json!({ "places": places }),
    };
    json!({ "shape": shape, "elements": elements })
}

/// A tolerance of tests.
pub(super) fn tolerance(tolerance: &Tolerance) -> Value {
    let Tolerance { of, allow, reason } = tolerance;
    let of = match of {
        ToleranceOf::DType(dtype) => json!({ "dtype": dtype.name() }),
        ToleranceOf::Check(check) => json!({ "check": check.name() }),
    };
    json!({ "of": of, "allow": allow, "reason": reason })
}
