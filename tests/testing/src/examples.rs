//! The programs in the documentation of operators: they run, and their output is recorded for the site.
//!
//! In: the documentation of a library, which has the program of each operator with the values in it. Out: findings, and with
//! `OPSMITH_RESULTS` the programs with their output.

use opsmith::{DType, Tensor, TensorOps, Value};
use opsmith_runtime::library::{Documentation, ExampleCall, ExampleTensor};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, Complex64, Error, boxed, random};

use crate::calls::{tensors, with_tensors};
use crate::results;

/// Runs the programs of a library's own operators.
///
/// # Panics
/// If one fails; the message has all that do.
pub fn assert_run(documentation: &'static Documentation) {
    let failed = run(documentation);
    assert!(failed.is_empty(), "{} examples:\n{}", failed.len(), failed.join("\n"));
}

/// Runs the programs of a library's own operators, and records them with their output; a text for each that fails.
pub fn run(documentation: &'static Documentation) -> Vec<String> {
    let mut failed = Vec::new();
    for (op, words) in std::iter::zip(documentation.library.ops, documentation.words) {
        let Some(example) = &words.example else { continue };
        match output(op, example) {
            Ok(output) => results::record_example(op, example.code, &output),
            Err(error) => failed.push(format!("{} ({}): {}\n{error}", op.name, op.location, example.code)),
        }
    }
    failed
}

/// The printed results of a program: those of its call with its values.
fn output(op: &'static OpDef, example: &ExampleCall) -> opsmith::Result<String> {
    let sample = &op.samples[example.sample];
    let values = DType::ALL.into_iter().find_map(|dtype| sample.values(op, dtype).ok());
    let values = values.ok_or_else(|| Error::value("no dtype has the values of its sample"))?;
    let made = example.tensors.iter().map(tensor).collect::<opsmith::Result<Vec<_>>>()?;
    if tensors(&values).len() != made.len() {
        return Err(Error::value("its program has other tensors than its sample"));
    }
    let values = with_tensors(&values, &made);
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    random::manual_seed(1);
    let found = boxed::functional(op, &args)?;
    Ok(found.iter().map(printed).collect::<Vec<_>>().join("\n"))
}

fn tensor(made: &ExampleTensor) -> opsmith::Result<Tensor> {
    if made.dtype.is_complex() {
        let numbers: Vec<Complex64> = made.numbers.iter().map(|x| Complex64::new(*x, x / 2.0)).collect();
        return Tensor::from_slice(&numbers, made.shape)?.to_dtype(made.dtype);
    }
    Tensor::from_slice(made.numbers, made.shape)?.to_dtype(made.dtype)
}

fn printed(value: &Value) -> String {
    match value {
        Value::Tensor(tensor) => tensor.to_string(),
        Value::Tensors(list) => list.iter().map(Tensor::to_string).collect::<Vec<_>>().join("\n"),
        other => format!("{other:?}"),
    }
}
