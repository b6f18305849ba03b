//! The signature: kinds of the graph's inputs and outputs.
//!
//! In: specifications as JSON unions, and the graph. Out: inputs with their kinds; outputs, and writes to weights.

use opsmith_core::DType;
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use serde_json::Value as Json;

use super::arguments::{argument, name_of, plain, text, union};
use super::{Scope, tensors};
use crate::errors::unsupported;
use crate::model::{Argument, Input, InputKind, Output, TensorSpec, WeightKind};
use crate::outputs::OutputRole;
use crate::schema;

/// The inputs of a graph with `count` of them.
pub(super) fn inputs(
    signature: &schema::Signature,
    graph: &schema::Graph,
    count: usize,
) -> Result<Vec<Input>> {
    if signature.input_specs.len() != count {
        let text = format!("the graph has {count} inputs, and the signature {}", signature.input_specs.len());
        return Err(Error::io(text).with_help("the program is damaged: save it again"));
    }
    let specs = signature.input_specs.iter().zip(&graph.inputs);
    specs.enumerate().map(|(number, (spec, given))| input(number, spec, given, graph)).collect()
}

fn input(number: usize, spec: &Json, given: &Json, graph: &schema::Graph) -> Result<Input> {
    let read = |problem: String| Error::io(format!("input {number} cannot be read: {problem}"));
    let (kind, value) = union(spec).map_err(read)?;
    let name = name_of(given).map_err(read)?.unwrap_or("").to_owned();
    let field = |field: &str| {
        let found = value.get(field).ok_or_else(|| format!("`{field}` is missing"));
        found.and_then(text).map(str::to_owned).map_err(read)
    };
    let meta = || -> Result<Option<TensorSpec>> {
        let meta = graph.tensor_values.get(&name);
        meta.map(|meta| tensors::spec(meta).map_err(read)).transpose()
    };
    let weight =
        |name: String, kind| Ok(InputKind::Weight { name, aliases: Vec::new(), kind, spec: meta()? });
    let kind = match kind {
        "parameter" => weight(field("parameter_name")?, WeightKind::Parameter),
        // Buffers are persistent unless the module says otherwise.
        "buffer" => match value.get("persistent").and_then(Json::as_bool) {
            Some(false) => weight(field("buffer_name")?, WeightKind::Constant),
            _ => weight(field("buffer_name")?, WeightKind::Buffer),
        },
        "tensor_constant" => weight(field("tensor_constant_name")?, WeightKind::Constant),
        "user_input" => {
            let (kind, value) = union(value.get("arg").unwrap_or(value)).map_err(read)?;
            match kind {
                "as_tensor" => meta()?
                    .map(InputKind::Tensor)
                    .ok_or_else(|| read(format!("there is no shape of `{name}`"))),
                "as_sym_int" if value.get("as_name").is_some() => Ok(InputKind::Number(DType::I64)),
                "as_sym_float" if value.get("as_name").is_some() => Ok(InputKind::Number(DType::F64)),
                "as_sym_bool" if value.get("as_name").is_some() => Ok(InputKind::Number(DType::Bool)),
                "as_sym_int" | "as_sym_bool" | "as_sym_float" => {
                    let (kind, value) = union(value).map_err(read)?;
                    plain(kind, value).map(InputKind::Value).map_err(read)
                }
                "as_custom_obj" => {
                    Err(unsupported(format!("input {number}, which is no tensor (`{kind}`),"))
                        .with_help("export the program with this input as a tensor"))
                }
                kind => plain(kind, value).map(InputKind::Value).map_err(read),
            }
        }
        "constant_input" => {
            let (kind, value) = union(value.get("value").unwrap_or(value)).map_err(read)?;
            plain(kind, value).map(InputKind::Value).map_err(read)
        }
        "token" => Ok(InputKind::Value(Value::None)),
        kind => Err(unsupported(format!("input {number}, of kind `{kind}`,"))),
    };
    Ok(Input { name, kind: kind? })
}

/// The outputs of the graph; results of the function have these paths.
pub(super) fn outputs(
    signature: &schema::Signature,
    inputs: &[Input],
    scope: &Scope,
    paths: Vec<Option<String>>,
) -> Result<Vec<Output>> {
    let mut paths = paths.into_iter();
    let specs = signature.output_specs.iter().enumerate();
    specs
        .map(|(number, spec)| {
            let mut output = output(number, spec, inputs, scope)?;
            if let Output::User { role: OutputRole::Result, name, .. } = &mut output {
                *name = paths.next().flatten();
            }
            Ok(output)
        })
        .collect()
}

fn output(number: usize, spec: &Json, inputs: &[Input], scope: &Scope) -> Result<Output> {
    let read = |problem: String| Error::io(format!("output {number} cannot be read: {problem}"));
    let (kind, value) = union(spec).map_err(read)?;
    let arg = value.get("arg").ok_or_else(|| read("`arg` is missing".to_owned()))?;
    // Some specifications have a name, others an argument.
    let slot = || {
        let name = match arg.get("name") {
            Some(name) => text(name).map(Some),
            None => name_of(arg),
        };
        let name = name.and_then(|name| name.ok_or_else(|| "it is no tensor".to_owned()));
        name.and_then(|name| scope.find(name)).map_err(read)
    };
    let field = |field: &str| {
        let found = value.get(field).ok_or_else(|| format!("`{field}` is missing"));
        found.and_then(text).map_err(read)
    };
    let written = |is: &dyn Fn(&Input) -> bool, name: &str| {
        let input = inputs.iter().position(is);
        input.ok_or_else(|| read(format!("it writes to `{name}`, which is no input")))
    };
    let weight = |name: &str| {
        let is =
            |input: &Input| matches!(&input.kind, InputKind::Weight { name: known, .. } if known == name);
        written(&is, name)
    };
    let gradient = |name: &str| {
        let of = field(name)?.to_owned();
        let value = Argument::Slot(slot()?);
        Ok(Output::User { value, role: OutputRole::Gradient { of }, name: None })
    };
    match kind {
        "token" => Ok(Output::Token),
        "user_output" => {
            let value = argument(scope, arg).map_err(read)?;
            Ok(Output::User { value, role: OutputRole::Result, name: None })
        }
        "loss_output" => {
            Ok(Output::User { value: Argument::Slot(slot()?), role: OutputRole::Loss, name: None })
        }
        "gradient_to_parameter" => gradient("parameter_name"),
        "gradient_to_user_input" => gradient("user_input_name"),
        "buffer_mutation" => Ok(Output::Write { input: weight(field("buffer_name")?)?, value: slot()? }),
        "parameter_mutation" => {
            Ok(Output::Write { input: weight(field("parameter_name")?)?, value: slot()? })
        }
        "user_input_mutation" => {
            let name = field("user_input_name")?;
            Ok(Output::Write { input: written(&|input| input.name == name, name)?, value: slot()? })
        }
        kind => Err(unsupported(format!("output {number}, of kind `{kind}`,"))),
    }
}
