//! One recorded call through the boxed call and, if it was differentiated, through autograd.

use std::panic::{AssertUnwindSafe, catch_unwind};

use opsmith::autograd::{self, Options};
use opsmith::{DType, Device, MemoryFormat, Scalar, Tensor, Value};
use opsmith_runtime::{Complex64, with_dtype};

use super::compare::scalar_difference;
use super::{Case, Gradients, Recorded, Tensors, Tolerance, difference};

/// Operators that add up many elements, by parts of their names: the recording library compares their `float32` results
/// less strictly.
const SUMS: &[&str] = &[
    "sum",
    "mean",
    "prod",
    "var",
    "std",
    "norm",
    "mm",
    "mv",
    "dot",
    "matmul",
    "linear",
    "softmax",
    "conv",
    "cdist",
    "pdist",
    "pool",
    "embedding_bag",
    "fft",
    "grid_sampler",
    "scatter",
    "index_put",
    "col2im",
    "linalg",
    "cholesky",
    "inverse",
    "det",
    "matrix_power",
];

/// Operators whose order of equal elements is unspecified in the recording library, with the position of the argument
/// `dim` and of the index result, which is right if the elements at its indices are equal.
const UNORDERED: &[(&str, usize, usize)] = &[("sort", 1, 1), ("topk", 2, 1), ("argsort", 1, 0)];

/// Runs a case; the error describes the difference from the recorded result.
///
/// # Errors
/// If the call fails, panics, or its results differ.
pub fn run_case(name: &str, case: &Case, tensors: &Tensors, device: Device) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| run(name, case, tensors, device))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(format!("panicked: {text}"))
    })
}

fn run(name: &str, case: &Case, tensors: &Tensors, device: Device) -> Result<(), String> {
    let mut inputs = Inputs { tensors, device, tracked: case.gradients.is_some(), floats: Vec::new() };
    let mut value = |recorded: &Recorded| value(recorded, &mut inputs);
    let args: Vec<Value> = case.args.iter().map(&mut value).collect::<Result<_, _>>()?;
    let kwargs: Vec<(&str, Value)> = case
        .kwargs
        .iter()
        .map(|(name, recorded)| Ok((name.as_str(), value(recorded)?)))
        .collect::<Result<_, String>>()?;
    let results = match (opsmith::call(name, &args, &kwargs), &case.raises) {
        (Err(_), Some(_)) => return Ok(()),
        // A device refuses elements where its results are read.
        (Ok(results), Some(_)) if device != Device::CPU && !are_readable(&results) => return Ok(()),
        (Ok(_), Some(error)) => return Err(format!("an error is expected: {error}")),
        (results, None) => results.map_err(|error| error.to_string())?,
    };
    let results = flatten(results);
    if results.len() != case.outputs.len() {
        return Err(format!("{} results expected, {} given", case.outputs.len(), results.len()));
    }
    let sums = SUMS.iter().any(|part| name.contains(part));
    for (index, (got, expected)) in results.iter().zip(&case.outputs).enumerate() {
        if let Some(difference) = compare(got, expected, tensors, sums)? {
            let unordered =
                UNORDERED.iter().find(|(unordered, _, result)| *unordered == name && *result == index);
            if let Some(&(_, dim, _)) = unordered
                && names_equal_elements(dim, &args, &kwargs, got, expected, tensors)?
            {
                continue;
            }
            return Err(format!("result {index}, {difference}"));
        }
    }
    match &case.gradients {
        Some(gradients) => run_backward(gradients, &results, &inputs, sums),
        None => Ok(()),
    }
}

fn is_readable(tensor: &Tensor) -> bool {
    with_dtype!(tensor.dtype(), T => tensor.to_vec::<T>().is_ok())
}

/// Whether the host can read all tensors among results.
fn are_readable(results: &[Value]) -> bool {
    results.iter().all(|result| match result {
        Value::Tensor(tensor) => is_readable(tensor),
        Value::Tensors(tensors) => tensors.iter().all(is_readable),
        _ => true,
    })
}

/// Whether both results are indices of equal elements, `position` being that of the argument `dim`.
fn names_equal_elements(
    position: usize,
    args: &[Value],
    kwargs: &[(&str, Value)],
    got: &Value,
    expected: &Recorded,
    tensors: &Tensors,
) -> Result<bool, String> {
    let named = kwargs.iter().find(|(key, _)| *key == "dim").map(|(_, value)| value);
    let dim = args.get(position).or(named).cloned().unwrap_or(Value::Int(-1));
    let on_host = |value: &Value| match value {
        Value::Tensor(tensor) => tensor.to_device(Device::CPU).map(Value::Tensor),
        other => Ok(other.clone()),
    };
    let pick = |places: Value| {
        let operands = [on_host(&args[0]), Ok(dim.clone()), on_host(&places)];
        let operands =
            operands.into_iter().collect::<Result<Vec<Value>, _>>().map_err(|error| error.to_string())?;
        let picked = opsmith::call("gather", &operands, &[]);
        let first = picked.map_err(|error| error.to_string())?.swap_remove(0);
        first.into_tensor().map_err(|error| error.to_string())
    };
    let expected = Value::Tensor(tensors.get(expected)?);
    let (got, expected) = (pick(got.clone())?, pick(expected)?);
    Ok(difference(&got, &expected, Tolerance::new(expected.dtype(), false)).is_none())
}

fn run_backward(
    gradients: &Gradients,
    results: &[Value],
    inputs: &Inputs<'_>,
    sums: bool,
) -> Result<(), String> {
    let Inputs { tensors, device, floats: inputs, .. } = inputs;
    let cotangents: Vec<Tensor> = gradients
        .cotangents
        .iter()
        .map(|recorded| tensors.on(recorded, *device))
        .collect::<Result<_, _>>()?;
    let mut outputs: Vec<&Tensor> = Vec::new();
    for &position in &gradients.of_outputs {
        match results.get(position) {
            Some(Value::Tensor(tensor)) => outputs.push(tensor),
            _ => return Err(format!("result {position} is not a tensor")),
        }
    }
    if let Some(position) = outputs.iter().position(|output| !output.requires_grad()) {
        // No gradient: right only if none is expected.
        if gradients.of_inputs.iter().all(|expected| *expected == Recorded::None) {
            return Ok(());
        }
        return Err(format!("result {} has no gradient", gradients.of_outputs[position]));
    }
    let starts: Vec<Option<&Tensor>> = cotangents.iter().map(Some).collect();
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let found = autograd::grad(&outputs, &inputs, &starts, Options::default())
        .map_err(|error| format!("backward: {error}"))?;
    for (index, (got, expected)) in found.iter().zip(&gradients.of_inputs).enumerate() {
        let difference = match (got, expected) {
            (None, Recorded::None) => None,
            (Some(got), Recorded::None) => zero_difference(got),
            (None, expected) => {
                let expected = tensors.get(expected)?;
                zero_difference(&expected).map(|_| "a gradient is expected, none flows".to_owned())
            }
            (Some(got), expected) => {
                let expected = tensors.get(expected)?;
                difference(got, &expected, Tolerance::new(expected.dtype(), sums))
            }
        };
        if let Some(difference) = difference {
            return Err(format!("gradient of input {index}, {difference}"));
        }
    }
    Ok(())
}

/// No gradient and a gradient of zeros are equivalent.
fn zero_difference(tensor: &Tensor) -> Option<String> {
    let zeros = Tensor::scalar(0.0, tensor.dtype());
    let is_zero = |value: &f64| *value == 0.0;
    let values = tensor.to_vec::<f64>().ok()?;
    (!values.iter().all(is_zero)).then(|| format!("no gradient is expected, got one unlike {zeros}"))
}

fn compare(
    got: &Value,
    expected: &Recorded,
    tensors: &Tensors,
    sums: bool,
) -> Result<Option<String>, String> {
    Ok(match (got, expected) {
        (Value::Tensor(got), Recorded::Tensor { .. }) => {
            let expected = tensors.get(expected)?;
            difference(got, &expected, Tolerance::new(expected.dtype(), sums))
        }
        // A result that was not requested is absent there, and empty here.
        (Value::Tensor(got), Recorded::None) if got.numel() == 0 => None,
        (Value::None, Recorded::None) => None,
        (got, expected) => match (scalar(got), recorded_scalar(expected)) {
            (Some(got), Some(expected)) => scalar_difference(got, expected),
            _ => Some(format!("expected {expected}, got {}", got.as_arg().kind())),
        },
    })
}

fn scalar(value: &Value) -> Option<Scalar> {
    Some(match value {
        Value::Bool(value) => Scalar::Bool(*value),
        Value::Int(value) => Scalar::Int(*value),
        Value::Float(value) => Scalar::Float(*value),
        Value::Scalar(value) => *value,
        _ => return None,
    })
}

fn recorded_scalar(value: &Recorded) -> Option<Scalar> {
    Some(match value {
        Recorded::Bool(value) => Scalar::Bool(*value),
        Recorded::Int(value) => Scalar::Int(*value),
        Recorded::Float(value) => Scalar::Float(*value),
        Recorded::Complex(re, im) => Scalar::Complex(Complex64::new(*re, *im)),
        _ => return None,
    })
}

fn flatten(results: Vec<Value>) -> Vec<Value> {
    let mut flat = Vec::new();
    for result in results {
        match result {
            Value::Tensors(tensors) => flat.extend(tensors.into_iter().map(Value::Tensor)),
            other => flat.push(other),
        }
    }
    flat
}

/// The tensors of a call.
struct Inputs<'a> {
    tensors: &'a Tensors,
    /// The device of the call.
    device: Device,
    /// Whether the call is to be differentiated.
    tracked: bool,
    /// The floating-point tensors so far, which are tracked if the call is.
    floats: Vec<Tensor>,
}

/// A recorded argument in the form of the boxed call.
fn value(recorded: &Recorded, inputs: &mut Inputs<'_>) -> Result<Value, String> {
    Ok(match recorded {
        Recorded::None => Value::None,
        Recorded::Tensor { .. } => Value::Tensor(input(recorded, inputs)?),
        Recorded::Bool(value) => Value::Bool(*value),
        Recorded::Int(value) => Value::Int(*value),
        Recorded::Float(value) => Value::Float(*value),
        Recorded::Complex(re, im) => Value::Scalar(Scalar::Complex(Complex64::new(*re, *im))),
        Recorded::Str(text) => Value::Str(text.clone()),
        Recorded::DType(name) => {
            Value::DType(DType::from_name(name).ok_or_else(|| format!("unknown dtype {name}"))?)
        }
        Recorded::MemoryFormat(name) => Value::MemoryFormat(
            MemoryFormat::from_name(name).ok_or_else(|| format!("unknown memory format {name}"))?,
        ),
        Recorded::Layout(_) => Value::MemoryLayout(opsmith_runtime::MemoryLayout::Strided),
        Recorded::List(items) => list(items, inputs)?,
    })
}

fn list(items: &[Recorded], inputs: &mut Inputs<'_>) -> Result<Value, String> {
    let all = |fits: fn(&Recorded) -> bool| items.iter().all(fits);
    if all(|item| matches!(item, Recorded::Int(_))) {
        return Ok(Value::Ints(
            items.iter().filter_map(|item| recorded_scalar(item).map(Scalar::to_i64)).collect(),
        ));
    }
    if all(|item| matches!(item, Recorded::Bool(_))) {
        return Ok(Value::Bools(
            items.iter().filter_map(|item| recorded_scalar(item).map(Scalar::to_bool)).collect(),
        ));
    }
    if all(|item| matches!(item, Recorded::Int(_) | Recorded::Float(_))) {
        return Ok(Value::Floats(
            items.iter().filter_map(|item| recorded_scalar(item).map(Scalar::to_f64)).collect(),
        ));
    }
    let mut tensor = |item: &Recorded| match item {
        Recorded::None => Ok(None),
        item => input(item, inputs).map(Some),
    };
    let found: Vec<Option<Tensor>> = items.iter().map(&mut tensor).collect::<Result<_, _>>()?;
    Ok(match found.iter().cloned().collect::<Option<Vec<Tensor>>>() {
        Some(found) => Value::Tensors(found),
        None => Value::OptionalTensors(found),
    })
}

fn input(recorded: &Recorded, inputs: &mut Inputs<'_>) -> Result<Tensor, String> {
    let tensor = inputs.tensors.on(recorded, inputs.device)?;
    if tensor.dtype().is_float() {
        if inputs.tracked {
            tensor.set_requires_grad(true).map_err(|error| error.to_string())?;
        }
        inputs.floats.push(tensor.clone());
    }
    Ok(tensor)
}
