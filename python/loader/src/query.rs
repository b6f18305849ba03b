//! Results of queries of values in a spec's expressions: sizes, dtypes, lengths, presence.
//!
//! In: a value, or the facts of a tensor whose elements are not at hand. Out: a value.

use opsmith_codegen::model::expr::Query;
use opsmith_runtime::arg::{MemoryLayout, Value};
use opsmith_runtime::autograd::TensorMeta;
use opsmith_runtime::error::Result;
use opsmith_runtime::{DType, Scalar, checked};

use crate::item::{Item, defect};

/// The answer about a tensor of which only the facts are known; `None` if it needs more.
pub fn of_meta(query: Query, meta: &TensorMeta, args: &[Item]) -> Result<Option<Value>> {
    Ok(Some(match query {
        Query::Sizes => Value::Ints(meta.sizes.to_vec()),
        Query::Size => Value::Int(checked::size(&meta.sizes, dimension(args)?)?),
        Query::Dim => Value::Int(meta.sizes.len() as i64),
        Query::Numel => Value::Int(meta.sizes.iter().product()),
        Query::DType => Value::DType(meta.dtype),
        Query::Device => Value::Device(meta.device),
        Query::IsComplex | Query::IsFloat | Query::IsInt => Value::Bool(is_of_kind(query, meta.dtype)),
        _ => return Ok(None),
    }))
}

fn dimension(args: &[Item]) -> Result<i64> {
    checked::item(args, 0)?.int()
}

fn is_of_kind(query: Query, dtype: DType) -> bool {
    match query {
        Query::IsComplex => dtype.is_complex(),
        Query::IsFloat => dtype.is_float(),
        _ => dtype.is_int(),
    }
}

/// The answer about a value.
///
/// # Errors
/// If an optional value is absent that has to be there, or there is no such dimension.
pub fn answer(query: Query, base: &Item, args: &[Item]) -> Result<Item> {
    let value = match base {
        Item::One(value) => value,
        several => return Err(defect("one value", several)),
    };
    if let Value::Tensor(tensor) = value {
        if let Some(answer) = of_meta(query, &TensorMeta::of(tensor), args)? {
            return Ok(answer.into());
        }
        match query {
            Query::Strides => return Ok(Value::Ints(tensor.strides().to_vec()).into()),
            Query::StorageOffset => return Ok(Value::Int(tensor.layout().offset).into()),
            Query::IsContiguous => return Ok(Value::Bool(tensor.is_contiguous()).into()),
            _ => {}
        }
    }
    Ok(Item::One(match query {
        Query::Layout => Value::MemoryLayout(MemoryLayout::Strided),
        Query::IsSome => Value::Bool(!base.is_none()),
        Query::IsNone => Value::Bool(base.is_none()),
        Query::Unwrap => checked::present((!base.is_none()).then(|| value.clone()))?,
        Query::UnwrapOr if base.is_none() => return checked::item(args, 0).cloned(),
        Query::UnwrapOr => value.clone(),
        Query::Len => Value::Int(length(base)?),
        Query::IsComplex | Query::IsFloat | Query::IsInt => {
            let dtype = match value {
                Value::DType(dtype) => *dtype,
                _ => base.scalar()?.dtype(),
            };
            Value::Bool(is_of_kind(query, dtype))
        }
        Query::Conj => match value {
            Value::Scalar(number) => Value::Scalar(number.conj()),
            real => real.clone(),
        },
        Query::IsZero => Value::Bool(match value {
            Value::Float(value) => *value == 0.0,
            _ => !base.scalar()?.to_bool(),
        }),
        Query::Contains => Value::Bool(contains(base, checked::item(args, 0)?)?),
        Query::Concat => concat(value, checked::item(args, 0)?, base)?,
        Query::SizesAlong => {
            let Value::Tensors(tensors) = value else { return Err(defect("a list of tensors", base)) };
            let shapes = tensors.iter().map(|tensor| tensor.shape());
            Value::Ints(opsmith_runtime::infer::sizes_along(shapes, dimension(args)?)?.to_vec())
        }
        _ => return Err(defect("a tensor", base)),
    }))
}

fn length(base: &Item) -> Result<i64> {
    let length = match base {
        Item::One(Value::Tensors(list)) => list.len(),
        Item::One(Value::OptionalTensors(list)) => list.len(),
        Item::One(Value::Ints(list)) => list.len(),
        Item::One(Value::Floats(list)) => list.len(),
        Item::One(Value::Bools(list)) => list.len(),
        Item::One(Value::Scalars(list)) => list.len(),
        Item::One(Value::Strs(list)) => list.len(),
        Item::One(Value::DTypes(list)) => list.len(),
        Item::One(Value::Lists(lists)) => lists.borrow().len(),
        Item::One(Value::Str(text)) => text.len(),
        other => return Err(defect("a list", other)),
    };
    Ok(length as i64)
}

fn contains(base: &Item, wanted: &Item) -> Result<bool> {
    let positions = 0..length(base)?;
    for position in positions {
        if equal(&base.at(position)?, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn concat(first: &Value, second: &Item, base: &Item) -> Result<Value> {
    Ok(match (first, second) {
        (Value::Tensors(first), Item::One(Value::Tensors(second))) => {
            Value::Tensors([&first[..], second].concat())
        }
        (Value::Ints(first), Item::One(Value::Ints(second))) => Value::Ints([&first[..], second].concat()),
        _ => return Err(defect("a list", base)),
    })
}

/// Whether two values are the same.
///
/// # Errors
/// If they cannot be compared.
pub fn equal(a: &Item, b: &Item) -> Result<bool> {
    let (Item::One(left), Item::One(right)) = (a, b) else { return Err(defect("one value", a)) };
    Ok(match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Ints(a), Value::Ints(b)) => a == b,
        (Value::Floats(a), Value::Floats(b)) => a == b,
        (Value::Bools(a), Value::Bools(b)) => a == b,
        (Value::Strs(a), Value::Strs(b)) => a == b,
        (Value::DTypes(a), Value::DTypes(b)) => a == b,
        (Value::DType(a), Value::DType(b)) => a == b,
        (Value::Device(a), Value::Device(b)) => a == b,
        (Value::MemoryFormat(a), Value::MemoryFormat(b)) => a == b,
        (Value::MemoryLayout(a), Value::MemoryLayout(b)) => a == b,
        (Value::None, Value::None) => true,
        (Value::None, _) | (_, Value::None) => false,
        _ => same_number(a.scalar()?, b.scalar()?),
    })
}

fn same_number(a: Scalar, b: Scalar) -> bool {
    a.to_complex() == b.to_complex()
}
