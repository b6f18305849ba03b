//! Registration records: the JSON that the other framework writes for a custom operator.
//!
//! In: the text of a record, and the kernel it is for. Out: a [`Declaration`]. The fields are `op_name`,
//! `inputs` and `outputs` (`name`, `paramType`), `attr` (`name`, `type`, `value` or `defaultValue`, or
//! neither for one that calls give), `dtype_format` (rows of a dtype and a format for each input and
//! output) and `target`. A record without inputs and outputs is for an operator of any inputs. Operands that a
//! kernel here cannot get are refused; none is dropped.

use opsmith_core::{Backend, DType};
use opsmith_runtime::error::{Error, Result};
use serde::Deserialize;
use serde_json::Value as Json;

use super::attributes::{AttrType, AttrValue};
use super::declare::Declaration;
use super::dtypes;
use super::signature::{Attribute, InputKind};

#[derive(Deserialize)]
struct Record {
    op_name: String,
    #[serde(default)]
    inputs: Vec<Tensor>,
    #[serde(default)]
    outputs: Vec<Tensor>,
    #[serde(default)]
    attr: Vec<Attr>,
    #[serde(default)]
    dtype_format: Vec<Vec<(String, String)>>,
    #[serde(default)]
    target: Option<String>,
}

#[derive(Deserialize)]
struct Tensor {
    name: String,
    #[serde(default, rename = "paramType")]
    kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attr {
    name: String,
    #[serde(default, rename = "type")]
    ty: Option<String>,
    #[serde(default)]
    value: Option<Json>,
    #[serde(default)]
    default_value: Option<Json>,
}

impl Declaration {
    /// A declaration from a registration record, for a kernel `FILE:FUNCTION`. Several records may have one
    /// name, so the operator is not found by name, unless [`Declaration::listed`] says so.
    ///
    /// # Errors
    /// If the text is no record, or a field asks for a feature that does not exist here; the error names the field.
    pub fn from_record(kernel: impl Into<String>, record: &str) -> Result<Declaration> {
        let record: Record = serde_json::from_str(record).map_err(|error| {
            Error::argument(format!("this is no registration record: {error}")).with_help(
                "a record is a JSON object with op_name, inputs, outputs, attr, dtype_format and target",
            )
        })?;
        let name = record.op_name.clone();
        read(kernel.into(), record).map_err(|error| error.in_op(name, Vec::new()))
    }
}

fn read(kernel: String, record: Record) -> Result<Declaration> {
    let mut declaration = Declaration::new(record.op_name, kernel).unlisted();
    if record.inputs.is_empty() && record.outputs.is_empty() {
        declaration = declaration.any_tensors();
    }
    for input in record.inputs {
        let kind = match input.kind.as_deref() {
            None | Some("required") => InputKind::Required,
            Some("optional") => InputKind::Optional,
            Some("dynamic") => InputKind::Dynamic,
            Some(other) => {
                return Err(unknown("paramType", &input.name, other, "required, optional, dynamic"));
            }
        };
        declaration = declaration.input_of_kind(input.name, kind);
    }
    for output in record.outputs {
        declaration = match output.kind.as_deref() {
            None | Some("required") => declaration.output(output.name),
            Some("dynamic") => declaration.dynamic_output(output.name),
            Some(other) => return Err(unknown("paramType", &output.name, other, "required, dynamic")),
        };
    }
    for attr in record.attr {
        declaration = declaration.any_attribute(attribute(attr)?);
    }
    for row in &record.dtype_format {
        declaration = declaration.combination(row.iter().map(column).collect::<Result<_>>()?);
    }
    match record.target.as_deref() {
        None | Some("CPU") => Ok(declaration.target(Backend::Cpu)),
        Some("GPU" | "CUDA") => Ok(declaration.target(Backend::Cuda)),
        Some(other) => Err(Error::device(format!("the record is for the target {other}"))
            .with_help("kernels run on CPU and GPU here")),
    }
}

/// A dtype and a format. Tensors here are row-major, which most names of formats mean unless
/// they permute.
fn column((dtype, format): &(String, String)) -> Result<Option<DType>> {
    if !matches!(format.as_str(), "" | "DefaultFormat" | "ND" | "NCHW" | "NCDHW") {
        return Err(Error::value(format!("`dtype_format` has the format {format}"))
            .with_help("tensors here are row-major: DefaultFormat"));
    }
    match dtype.as_str() {
        "" | "None" | "none" => Ok(None),
        name => dtypes::of_name(name).map(Some).ok_or_else(|| {
            Error::dtype(format!("`dtype_format` has the dtype {name}, which no tensor here can have"))
        }),
    }
}

fn attribute(attr: Attr) -> Result<Attribute> {
    let declared = match attr.ty.as_deref() {
        None | Some("all") => None,
        Some("int") => Some(AttrType::Int),
        Some("float") => Some(AttrType::Float),
        Some("bool") => Some(AttrType::Bool),
        Some("str") => Some(AttrType::Str),
        Some("listInt" | "listBool") => Some(AttrType::Ints),
        Some("listFloat") => Some(AttrType::Floats),
        Some(other) => {
            return Err(unknown(
                "type",
                &attr.name,
                other,
                "int, float, bool, str, listInt, listFloat, listBool, all",
            ));
        }
    };
    // Where type and value disagree, the value counts: records exist that call an integer float. Kernels
    // that read an integer as a float get one.
    let typed = |json: Json| -> Result<AttrValue> {
        let value = value(&json).ok_or_else(|| {
            Error::value(format!(
                "the attribute `{}` has the value {json}, which no attribute can have",
                attr.name
            ))
        })?;
        Ok(match (declared, value) {
            (Some(AttrType::Bool), AttrValue::Int(value @ (0 | 1))) => AttrValue::Bool(value == 1),
            (_, value) => value,
        })
    };
    let value = attr.value.clone().map(typed).transpose()?;
    let default = attr.default_value.clone().map(typed).transpose()?;
    let known = value.as_ref().or(default.as_ref()).map(AttrValue::ty).or(declared);
    let ty = known.ok_or_else(|| {
        Error::value(format!("the attribute `{}` has neither a value nor a type", attr.name))
            .with_help("calls give its value, so its `type` must say what it is")
    })?;
    Ok(Attribute { name: attr.name, ty, value, default })
}

/// The value of a JSON text. Numbers in a list are floats if one of them is.
fn value(json: &Json) -> Option<AttrValue> {
    Some(match json {
        Json::Bool(value) => AttrValue::Bool(*value),
        Json::Number(value) => match value.as_i64() {
            Some(value) => AttrValue::Int(value),
            None => AttrValue::Float(value.as_f64()?),
        },
        Json::String(value) => AttrValue::Str(value.clone()),
        Json::Array(list) if list.iter().any(Json::is_array) => {
            let lists: Vec<AttrValue> = list.iter().map(value).collect::<Option<_>>()?;
            if lists.iter().any(|list| matches!(list, AttrValue::Floats(_))) {
                let floats = |list: AttrValue| match list.into_type(AttrType::Floats) {
                    Ok(AttrValue::Floats(list)) => Some(list),
                    _ => None,
                };
                AttrValue::FloatLists(lists.into_iter().map(floats).collect::<Option<Vec<_>>>()?.into())
            } else {
                let ints = |list| if let AttrValue::Ints(list) = list { Some(list) } else { None };
                AttrValue::IntLists(lists.into_iter().map(ints).collect::<Option<Vec<_>>>()?.into())
            }
        }
        Json::Array(list) if list.iter().all(|item| item.is_i64() || item.is_boolean()) => {
            let item = |item: &Json| item.as_i64().or(item.as_bool().map(i64::from));
            AttrValue::Ints(list.iter().map(item).collect::<Option<_>>()?)
        }
        Json::Array(list) => AttrValue::Floats(list.iter().map(Json::as_f64).collect::<Option<_>>()?),
        Json::Null | Json::Object(_) => return None,
    })
}

fn unknown(field: &str, name: &str, given: &str, known: &str) -> Error {
    Error::argument(format!("`{name}` has the {field} `{given}`")).with_help(format!("it can be: {known}"))
}

impl AttrValue {
    /// The value that a text stands for: as JSON (`1`, `0.5`, `true`, `[1, 2]`, `"text"`), or
    /// else the text itself.
    pub fn parse(text: &str) -> AttrValue {
        let json = serde_json::from_str(text).ok();
        json.as_ref().and_then(value).unwrap_or_else(|| AttrValue::Str(text.to_owned()))
    }
}
