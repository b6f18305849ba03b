//! Messages of a model that is written: attributes and tensors.
//!
//! In: names and values. Out: messages.

use bytes::Bytes;
use opsmith_graph::Argument;
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::Result;
use opsmith_runtime::infer::symbolic::Size;
use opsmith_runtime::scalar::Scalar;
use opsmith_runtime::tensor::Tensor;

use crate::errors::unsupported;
use crate::libraries::run;
use crate::proto::{AttributeProto, TensorProto, attribute_kind as kind};
use crate::tensors;

/// The attribute of an argument; `None` if it is left out.
///
/// # Errors
/// If it depends on sizes, or is of a kind that no attribute has.
pub(crate) fn attribute(name: &str, argument: &Argument) -> Result<Option<AttributeProto>> {
    let value = match argument {
        Argument::Value(value) => value,
        Argument::Int(size) => match size.known() {
            Some(number) => return Ok(Some(int_attribute(name, number))),
            None => return Err(unsupported(format!("`{name}`, which depends on sizes"))),
        },
        Argument::Ints(sizes) => match sizes.iter().map(Size::known).collect() {
            Some(numbers) => return Ok(Some(ints_attribute(name, numbers))),
            None => return Err(unsupported(format!("`{name}`, which depends on sizes"))),
        },
        _ => return Err(unsupported(format!("`{name}`, which depends on sizes"))),
    };
    Ok(Some(match value {
        Value::None => return Ok(None),
        Value::Bool(truth) | Value::Scalar(Scalar::Bool(truth)) => int_attribute(name, i64::from(*truth)),
        Value::Int(number) | Value::Scalar(Scalar::Int(number)) => int_attribute(name, *number),
        Value::Float(number) | Value::Scalar(Scalar::Float(number)) => float_attribute(name, *number),
        Value::Str(text) => text_attribute(name, text),
        Value::DType(dtype) => text_attribute(name, dtype.name()),
        Value::Ints(numbers) => ints_attribute(name, numbers.clone()),
        Value::Bools(truths) => ints_attribute(name, truths.iter().map(|truth| i64::from(*truth)).collect()),
        Value::Floats(numbers) => AttributeProto {
            name: name.to_owned(),
            kind: kind::FLOATS,
            floats: numbers.iter().map(|number| *number as f32).collect(),
            ..AttributeProto::default()
        },
        // The host, and the layouts that every tensor has.
        Value::Device(_) | Value::MemoryFormat(_) | Value::MemoryLayout(_) => return Ok(None),
        other => return Err(unsupported(format!("`{name}`, {},", other.as_arg().kind()))),
    }))
}

pub(crate) fn int_attribute(name: &str, number: i64) -> AttributeProto {
    AttributeProto { name: name.to_owned(), kind: kind::INT, i: Some(number), ..AttributeProto::default() }
}

pub(crate) fn ints_attribute(name: &str, ints: Vec<i64>) -> AttributeProto {
    AttributeProto { name: name.to_owned(), kind: kind::INTS, ints, ..AttributeProto::default() }
}

pub(crate) fn float_attribute(name: &str, number: f64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        kind: kind::FLOAT,
        f: Some(number as f32),
        ..AttributeProto::default()
    }
}

pub(crate) fn text_attribute(name: &str, text: &str) -> AttributeProto {
    let s = Some(Bytes::copy_from_slice(text.as_bytes()));
    AttributeProto { name: name.to_owned(), kind: kind::STRING, s, ..AttributeProto::default() }
}

/// A tensor with its elements.
///
/// # Errors
/// If it cannot be copied.
pub(crate) fn message(name: &str, tensor: &Tensor) -> Result<TensorProto> {
    let own = run!("clone", run!("contiguous", tensor)?)?;
    let bytes = own.numel() as usize * own.dtype().size();
    // SAFETY: a contiguous tensor of its own on the host has as many bytes, which live until they are copied.
    let raw = unsafe { std::slice::from_raw_parts(own.data_ptr(), bytes) };
    Ok(TensorProto {
        name: name.to_owned(),
        dims: own.shape().to_vec(),
        data_type: tensors::code(own.dtype()),
        raw_data: Some(Bytes::copy_from_slice(raw)),
        ..TensorProto::default()
    })
}
