//! Arguments of nodes: JSON unions with one key, the kind.
//!
//! In: JSON. Out: typed arguments, in which names are values of the block. Errors are sentences without a place, which
//! the caller knows.

use opsmith_runtime::Complex64;
use opsmith_runtime::arg::{MemoryLayout, Value};
use opsmith_runtime::device::Device;
use opsmith_runtime::scalar::Scalar;
use serde::Deserialize;
use serde_json::Value as Json;

use super::{Scope, inner_block, tensors};
use crate::model::{Argument, Binding, Number, Slot};

/// A complex number.
#[derive(Deserialize)]
struct Complex {
    real: Json,
    imag: Json,
}

/// The only entry of a union: its kind and value.
pub(super) fn union(json: &Json) -> Result<(&str, &Json), String> {
    match json.as_object().map(|object| (object.len(), object.iter().next())) {
        Some((1, Some((kind, value)))) => Ok((kind, value)),
        _ => Err("it is no object with one key, the kind".to_owned()),
    }
}

/// The name of a value in an argument; `None` for a constant.
pub(super) fn name_of(json: &Json) -> Result<Option<&str>, String> {
    let (kind, value) = union(json)?;
    Ok(match kind {
        "as_tensor" | "as_custom_obj" => Some(text(value.get("name").unwrap_or(value))?),
        "as_sym_int" | "as_sym_bool" | "as_sym_float" => value.get("as_name").and_then(Json::as_str),
        _ => None,
    })
}

/// A typed argument.
pub(super) fn argument(scope: &Scope, json: &Json) -> Result<Argument, String> {
    let (kind, value) = union(json)?;
    Ok(match kind {
        "as_tensor" => Argument::Slot(tensor(scope, value)?),
        "as_tensors" => Argument::Tensors(list(value, |item| tensor(scope, item))?),
        "as_optional_tensor" => match optional_tensor(scope, value)? {
            Some(slot) => Argument::Slot(slot),
            None => Argument::Value(Value::None),
        },
        "as_optional_tensors" => Argument::OptionalTensors(list(value, |item| optional_tensor(scope, item))?),
        "as_sym_int" | "as_sym_bool" | "as_sym_float" => number(scope, value)?,
        "as_sym_ints" => Argument::Numbers(list(value, |item| size(scope, item))?),
        "as_graph" => inner_block(scope, value.get("graph").ok_or("a graph is missing")?)?,
        kind => Argument::Value(plain(kind, value)?),
    })
}

/// The values that a result becomes.
pub(super) fn binding(scope: &mut Scope, json: &Json) -> Result<Binding, String> {
    let (kind, value) = union(json)?;
    let name = |item: &Json| {
        item.get("name")
            .ok_or("a tensor has no name".to_owned())
            .and_then(|name| text(name).map(str::to_owned))
    };
    Ok(match kind {
        "as_tensor" => Binding::One(scope.define(&name(value)?)),
        "as_tensors" => {
            let names = list(value, name)?;
            Binding::List(names.iter().map(|name| scope.define(name)).collect())
        }
        "as_optional_tensors" => {
            let names = list(value, |item| match union(item)? {
                ("as_tensor", item) => name(item).map(Some),
                _ => Ok(None),
            })?;
            let define = |name: &Option<String>| match name {
                Some(name) => scope.define(name),
                None => scope.anonymous(),
            };
            Binding::List(names.iter().map(define).collect())
        }
        "as_sym_int" | "as_sym_bool" | "as_sym_float" => match value.get("as_name") {
            Some(name) => Binding::One(scope.define(text(name)?)),
            None => Binding::None,
        },
        "as_none" | "as_int" | "as_bool" | "as_float" => Binding::None,
        kind => return Err(format!("results of kind `{kind}` are not supported")),
    })
}

/// An argument without values of the block.
pub(super) fn plain(kind: &str, value: &Json) -> Result<Value, String> {
    Ok(match kind {
        "as_none" => Value::None,
        "as_bool" => Value::Bool(truth(value)?),
        "as_int" => Value::Int(integer(value)?),
        "as_float" => Value::Float(float(value)?),
        "as_complex" => {
            let Complex { real, imag } = Complex::deserialize(value).map_err(|error| error.to_string())?;
            Value::Scalar(Scalar::Complex(Complex64::new(float(&real)?, float(&imag)?)))
        }
        "as_string" | "as_operator" => Value::Str(text(value)?.to_owned()),
        "as_bools" => Value::Bools(list(value, truth)?),
        "as_ints" => Value::Ints(list(value, integer)?),
        "as_floats" => Value::Floats(list(value, float)?),
        "as_strings" => Value::Strs(list(value, |item| text(item).map(|text| text.to_owned().into()))?),
        "as_scalar_type" => Value::DType(tensors::dtype(integer(value)?)?),
        "as_memory_format" => match tensors::memory_format(integer(value)?)? {
            Some(format) => Value::MemoryFormat(format),
            None => Value::None,
        },
        "as_layout" => {
            tensors::strided(integer(value)?)?;
            Value::MemoryLayout(MemoryLayout::Strided)
        }
        // The replay puts the device of the run in its place.
        "as_device" => Value::Device(Device::CPU),
        "as_sym_floats" | "as_sym_bools" => {
            return Err(format!("lists of kind `{kind}` are not supported"));
        }
        kind => return Err(format!("arguments of kind `{kind}` are not supported")),
    })
}

fn tensor(scope: &Scope, value: &Json) -> Result<Slot, String> {
    scope.find(text(value.get("name").ok_or("a tensor has no name")?)?)
}

fn optional_tensor(scope: &Scope, value: &Json) -> Result<Option<Slot>, String> {
    match union(value)? {
        ("as_tensor", value) => tensor(scope, value).map(Some),
        ("as_none", _) => Ok(None),
        (kind, _) => Err(format!("an optional tensor is of kind `{kind}`")),
    }
}

fn number(scope: &Scope, value: &Json) -> Result<Argument, String> {
    let (kind, value) = union(value)?;
    match kind {
        "as_name" => Ok(Argument::Slot(scope.find(text(value)?)?)),
        kind => plain(kind, value).map(Argument::Value),
    }
}

fn size(scope: &Scope, value: &Json) -> Result<Number, String> {
    match union(value)? {
        ("as_name", value) => Ok(Number::Slot(scope.find(text(value)?)?)),
        (_, value) => integer(value).map(Number::Int),
    }
}

fn list<'a, T>(value: &'a Json, item: impl FnMut(&'a Json) -> Result<T, String>) -> Result<Vec<T>, String> {
    value.as_array().ok_or("it is no list")?.iter().map(item).collect()
}

fn truth(value: &Json) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("{value} is no truth value"))
}

fn integer(value: &Json) -> Result<i64, String> {
    value.as_i64().ok_or_else(|| format!("{value} is no integer of 64 bits"))
}

/// A float; JSON has no infinities, so that they are text.
fn float(value: &Json) -> Result<f64, String> {
    match value.as_str() {
        Some("Infinity") => Ok(f64::INFINITY),
        Some("-Infinity") => Ok(f64::NEG_INFINITY),
        Some("NaN") => Ok(f64::NAN),
        _ => value.as_f64().ok_or_else(|| format!("{value} is no number")),
    }
}

pub(super) fn text(value: &Json) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("{value} is no text"))
}
