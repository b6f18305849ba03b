//! Static data of signatures: arguments with their defaults, results, samples.
//!
//! In: the checked model. Out: the same as the runtime has it, for as long as the program lives.

use opsmith_codegen::model::{Arg, Default, Fill, Kind, Op, Output, SampleTensor, SampleValue, Ty};
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::Result;
use opsmith_runtime::op::{ArgDef, ArgType, DefaultValue, ReturnDef};
use opsmith_runtime::sample::{self, Sample};

use crate::item::{self, Item, defect};

/// A text for as long as the program lives.
pub fn text(text: &str) -> &'static str {
    text.to_owned().leak()
}

/// A list for as long as the program lives.
pub fn list<T>(items: impl IntoIterator<Item = T>) -> &'static [T] {
    items.into_iter().collect::<Vec<T>>().leak()
}

fn arg_type(ty: &Ty) -> Result<ArgType> {
    let kind =
        ty.kind.argument().ok_or_else(|| defect("the type of an argument", &Item::Several(Vec::new())))?;
    Ok(ArgType { kind, optional: ty.optional })
}

/// An argument of a signature.
///
/// # Errors
/// If no argument has its type.
pub fn argument(arg: &Arg) -> Result<ArgDef> {
    Ok(ArgDef {
        default: arg.default.as_ref().map(|default| default_value(default, &arg.ty)).transpose()?,
        keyword_only: arg.keyword_only,
        aliases: list(arg.aliases.iter().map(|alias| text(alias))),
        constraints: list(arg.constraints.iter().cloned()),
        value: arg.value,
        ..ArgDef::new(text(&arg.name), arg_type(&arg.ty)?)
    })
}

/// A result of a signature.
///
/// # Errors
/// If no result has its type.
pub fn result(output: &Output) -> Result<ReturnDef> {
    Ok(ReturnDef { name: output.name.as_deref().map(text), ty: arg_type(&output.ty)? })
}

/// A default. A number is of the kind that it was written as, also where any number is taken.
fn default_value(default: &Default, ty: &Ty) -> Result<DefaultValue> {
    Ok(match default {
        Default::None => DefaultValue::None,
        Default::Bool(value) => DefaultValue::Bool(*value),
        Default::Int(value) => DefaultValue::Int(*value),
        Default::Float(value) => DefaultValue::Float(*value),
        Default::Str(value) => DefaultValue::Str(text(value)),
        Default::DType(dtype) => DefaultValue::DType(*dtype),
        Default::MemoryFormat(format) => DefaultValue::MemoryFormat(*format),
        Default::List(items) => match &*Box::leak(Box::new(default_list(items, &ty.kind)?)) {
            Value::Ints(list) => DefaultValue::Ints(list),
            Value::Floats(list) => DefaultValue::Floats(list),
            Value::Bools(list) => DefaultValue::Bools(list),
            Value::Scalars(list) => DefaultValue::Scalars(list),
            Value::Strs(list) => DefaultValue::Strs(list),
            Value::DTypes(list) => DefaultValue::DTypes(list),
            Value::Lists(lists) => DefaultValue::Lists(lists.borrow()),
            other => return Err(defect("a list", &other.clone().into())),
        },
    })
}

fn default_list(items: &[Default], kind: &Kind) -> Result<Value> {
    let inside = kind.item().unwrap_or_else(|| Ty::new(Kind::None));
    let items = items.iter().map(|item| {
        Ok(Item::One(match item {
            Default::List(items) => default_list(items, &inside.kind)?,
            Default::Bool(value) => Value::Bool(*value),
            Default::Int(value) => Value::Int(*value),
            Default::Float(value) => Value::Float(*value),
            Default::Str(text) => Value::Str(text.clone()),
            Default::DType(dtype) => Value::DType(*dtype),
            Default::MemoryFormat(format) => Value::MemoryFormat(*format),
            Default::None => Value::None,
        }))
    });
    let items = items.map(|item| item.and_then(|item| item.converted(&inside)));
    item::list(items.collect::<Result<_>>()?, kind)
}

/// The samples of an operator.
pub fn samples(op: &Op) -> &'static [Sample] {
    list(op.samples.iter().map(|sample| {
        let args =
            sample.args.iter().map(|(index, value)| (text(&op.args[*index].name), sample_value(value)));
        Sample::new(text(&sample.text), list(args))
    }))
}

fn sample_value(value: &SampleValue) -> sample::SampleValue {
    use sample::SampleValue as To;
    match value {
        SampleValue::None => To::None,
        SampleValue::Bool(value) => To::Bool(*value),
        SampleValue::Int(value) => To::Int(*value),
        SampleValue::Float(value) => To::Float(*value),
        SampleValue::Complex(real, imaginary) => To::Complex(*real, *imaginary),
        SampleValue::Str(value) => To::Str(text(value)),
        SampleValue::DType(dtype) => To::DType(*dtype),
        SampleValue::List(items) => To::List(list(items.iter().map(sample_value))),
        SampleValue::Tensor(tensor) => To::Tensor(sample_tensor(tensor)),
        SampleValue::Tensors(items) => {
            To::Tensors(list(items.iter().map(|item| item.as_ref().map(sample_tensor))))
        }
    }
}

fn sample_tensor(tensor: &SampleTensor) -> sample::SampleTensor {
    use sample::Fill as To;
    let fill = match &tensor.fill {
        Fill::Between(low, high) => To::Between(*low, *high),
        Fill::Integers(low, high) => To::Integers(*low, *high),
        Fill::Mask => To::Mask,
        Fill::Numbers(values) => To::Numbers(list(values.iter().copied())),
        Fill::Places(values) => To::Places(list(values.iter().copied())),
    };
    sample::SampleTensor { shape: list(tensor.shape.iter().copied()), fill }
}
