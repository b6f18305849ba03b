//! Arguments of nodes in `graph.json`: their form there, written and read.
//!
//! In: arguments of the graph, or of a file, which is not trusted. Out: the other of the two, or an error.

use opsmith_core::DType;
use opsmith_runtime::arg::{MemoryFormat, MemoryLayout, Value};
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic;
use opsmith_runtime::lists::{ListItem, OwnedLists, Text};
use opsmith_runtime::scalar::Scalar;
use serde::{Deserialize, Serialize};

use super::format::Size;
use super::save;
use crate::ir::{self, SymbolicScalar, TensorId};
use crate::plan::verify::malformed;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Argument {
    Tensor(TensorId),
    Tensors(Vec<TensorId>),
    OptionalTensors(Vec<Option<TensorId>>),
    None,
    Bool(bool),
    Int(i64),
    /// Text, which represents every float exactly.
    Float(String),
    Scalar(Number),
    Str(String),
    Ints(Vec<i64>),
    Floats(Vec<String>),
    Bools(Vec<bool>),
    Scalars(Vec<Number>),
    Strs(Vec<String>),
    Dtypes(Vec<String>),
    ListsOfBools(Vec<Vec<bool>>),
    ListsOfInts(Vec<Vec<i64>>),
    ListsOfFloats(Vec<Vec<String>>),
    ListsOfScalars(Vec<Vec<Number>>),
    ListsOfStrs(Vec<Vec<String>>),
    ListsOfDtypes(Vec<Vec<String>>),
    Dtype(String),
    Device(String),
    MemoryFormat(String),
    Strided,
    Size(Size),
    Sizes(Vec<Size>),
    ScalarOfSize(SymbolicScalar<Size>),
    FloatOfSize(SymbolicScalar<Size>),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Number {
    Bool(bool),
    Int(i64),
    Float(String),
    Complex(String, String),
}

/// The form of an argument in a file.
///
/// # Errors
/// If it is a random generator, or an attribute with a tensor.
pub(super) fn write(arg: &ir::Argument) -> Result<Argument> {
    let scalar = |value: &SymbolicScalar| value.map(|value| Ok::<_, Error>(save::size(value)));
    Ok(match arg {
        ir::Argument::Tensor(id) => Argument::Tensor(*id),
        ir::Argument::Tensors(ids) => Argument::Tensors(ids.clone()),
        ir::Argument::OptionalTensors(ids) => Argument::OptionalTensors(ids.clone()),
        ir::Argument::Int(value) => Argument::Size(save::size(value)),
        ir::Argument::Ints(list) => Argument::Sizes(list.iter().map(save::size).collect()),
        ir::Argument::Scalar(value) => Argument::ScalarOfSize(scalar(value)?),
        ir::Argument::Float(value) => Argument::FloatOfSize(scalar(value)?),
        ir::Argument::Value(value) => match value {
            Value::None => Argument::None,
            Value::Bool(value) => Argument::Bool(*value),
            Value::Int(value) => Argument::Int(*value),
            Value::Float(value) => Argument::Float(float(*value)),
            Value::Scalar(value) => Argument::Scalar(number(*value)),
            Value::Str(value) => Argument::Str(value.clone()),
            Value::Ints(list) => Argument::Ints(list.clone()),
            Value::Floats(list) => Argument::Floats(list.iter().copied().map(float).collect()),
            Value::Bools(list) => Argument::Bools(list.clone()),
            Value::Scalars(list) => Argument::Scalars(list.iter().copied().map(number).collect()),
            Value::Strs(list) => Argument::Strs(list.iter().map(|text| text.to_string()).collect()),
            Value::DTypes(list) => {
                Argument::Dtypes(list.iter().map(|dtype| dtype.name().to_owned()).collect())
            }
            Value::Lists(lists) => match &**lists {
                OwnedLists::Bool(rows) => Argument::ListsOfBools(rows.to_vecs()),
                OwnedLists::Int(rows) => Argument::ListsOfInts(rows.to_vecs()),
                OwnedLists::Float(rows) => Argument::ListsOfFloats(rows.map(|value| float(*value)).to_vecs()),
                OwnedLists::Scalar(rows) => {
                    Argument::ListsOfScalars(rows.map(|value| number(*value)).to_vecs())
                }
                OwnedLists::Str(rows) => Argument::ListsOfStrs(rows.map(Text::to_string).to_vecs()),
                OwnedLists::DType(rows) => {
                    Argument::ListsOfDtypes(rows.map(|dtype| dtype.name().to_owned()).to_vecs())
                }
            },
            Value::DType(dtype) => Argument::Dtype(dtype.name().to_owned()),
            Value::Device(device) => Argument::Device(device.to_string()),
            Value::MemoryFormat(format) => Argument::MemoryFormat(format_name(*format).to_owned()),
            Value::MemoryLayout(_) => Argument::Strided,
            Value::Generator(_) => {
                return Err(Error::graph("a random generator other than the default one cannot be saved")
                    .with_help("draw from the default generator, or make the numbers an input"));
            }
            Value::Tensor(_) | Value::Tensors(_) | Value::OptionalTensors(_) => {
                return Err(Error::graph("an attribute holds a tensor"));
            }
        },
    })
}

/// Rust's shortest text that parses to the same float.
fn float(value: f64) -> String {
    format!("{value:?}")
}

fn number(value: Scalar) -> Number {
    match value {
        Scalar::Bool(value) => Number::Bool(value),
        Scalar::Int(value) => Number::Int(value),
        Scalar::Float(value) => Number::Float(float(value)),
        Scalar::Complex(value) => Number::Complex(float(value.re), float(value.im)),
    }
}

fn format_name(format: MemoryFormat) -> &'static str {
    match format {
        MemoryFormat::Contiguous => "contiguous_format",
        MemoryFormat::Preserve => "preserve_format",
        MemoryFormat::ChannelsLast => "channels_last",
        MemoryFormat::ChannelsLast3d => "channels_last_3d",
    }
}

/// The argument of a file, whose sizes a function reads.
///
/// # Errors
/// If a name or number of it is none, and errors of the function.
pub(super) fn read(arg: &Argument, size: impl Fn(&Size) -> Result<symbolic::Size>) -> Result<ir::Argument> {
    let scalar = |value: &SymbolicScalar<Size>| value.map(|value| size(value));
    let value = match arg {
        Argument::Tensor(id) => return Ok(ir::Argument::Tensor(*id)),
        Argument::Tensors(list) => return Ok(ir::Argument::Tensors(list.clone())),
        Argument::OptionalTensors(list) => {
            return Ok(ir::Argument::OptionalTensors(list.clone()));
        }
        Argument::Size(value) => return Ok(ir::Argument::Int(size(value)?)),
        Argument::Sizes(list) => {
            let sizes = list.iter().map(size).collect::<Result<_>>()?;
            return Ok(ir::Argument::Ints(sizes));
        }
        Argument::ScalarOfSize(value) => return Ok(ir::Argument::Scalar(scalar(value)?)),
        Argument::FloatOfSize(value) => return Ok(ir::Argument::Float(scalar(value)?)),
        Argument::None => Value::None,
        Argument::Bool(value) => Value::Bool(*value),
        Argument::Int(value) => Value::Int(*value),
        Argument::Float(text) => Value::Float(read_float(text)?),
        Argument::Scalar(value) => Value::Scalar(read_number(value)?),
        Argument::Str(value) => Value::Str(value.clone()),
        Argument::Ints(list) => Value::Ints(list.clone()),
        Argument::Floats(list) => {
            Value::Floats(list.iter().map(|text| read_float(text)).collect::<Result<_>>()?)
        }
        Argument::Bools(list) => Value::Bools(list.clone()),
        Argument::Scalars(list) => Value::Scalars(list.iter().map(read_number).collect::<Result<_>>()?),
        Argument::Strs(list) => Value::Strs(list.iter().cloned().map(Into::into).collect()),
        Argument::Dtypes(list) => Value::DTypes(list.iter().map(|name| dtype(name)).collect::<Result<_>>()?),
        Argument::ListsOfBools(rows) => lists(rows, |value| Ok(*value))?,
        Argument::ListsOfInts(rows) => lists(rows, |value| Ok(*value))?,
        Argument::ListsOfFloats(rows) => lists(rows, |text| read_float(text))?,
        Argument::ListsOfScalars(rows) => lists(rows, read_number)?,
        Argument::ListsOfStrs(rows) => lists(rows, |text| Ok(Text::from(text.clone())))?,
        Argument::ListsOfDtypes(rows) => lists(rows, |name| dtype(name))?,
        Argument::Dtype(name) => Value::DType(dtype(name)?),
        Argument::Device(name) => Value::Device(device(name)?),
        Argument::MemoryFormat(name) => Value::MemoryFormat(
            MemoryFormat::from_name(name)
                .ok_or_else(|| malformed(format!("there is no memory format {name:?}")))?,
        ),
        Argument::Strided => Value::MemoryLayout(MemoryLayout::Strided),
    };
    Ok(ir::Argument::Value(value))
}

/// The dtype of a name.
pub(super) fn dtype(name: &str) -> Result<DType> {
    DType::from_name(name).ok_or_else(|| malformed(format!("there is no dtype {name:?}")))
}

/// The device of a name.
pub(super) fn device(name: &str) -> Result<Device> {
    Device::from_name(name).ok_or_else(|| malformed(format!("there is no device {name:?}")))
}

/// Rows of items as an argument.
fn lists<T, U: ListItem>(rows: &[Vec<T>], item: impl Fn(&T) -> Result<U>) -> Result<Value> {
    let rows: Result<Vec<Vec<U>>> = rows.iter().map(|row| row.iter().map(&item).collect()).collect();
    Ok(Value::Lists(Box::new(U::own(rows?.into()))))
}

fn read_float(text: &str) -> Result<f64> {
    text.parse().map_err(|_| malformed(format!("{text:?} is no number")))
}

fn read_number(number: &Number) -> Result<Scalar> {
    Ok(match number {
        Number::Bool(value) => Scalar::Bool(*value),
        Number::Int(value) => Scalar::Int(*value),
        Number::Float(text) => Scalar::Float(read_float(text)?),
        Number::Complex(re, im) => {
            Scalar::Complex(opsmith_runtime::Complex64::new(read_float(re)?, read_float(im)?))
        }
    })
}
