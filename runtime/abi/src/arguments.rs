//! Arguments of a call from C.
//!
//! In: values as the header has them. Out: arguments of an operator, with tensors over the caller's memory. They may not outlive
//! the call.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

use opsmith_core::abi::{self, ValueKind};
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::op::{ArgDef, ArgKind, OpDef};
use opsmith_runtime::{Arg, Complex64, DType, Device, Result, Scalar, Tensor, Value, internals};
use smallvec::SmallVec;

use crate::device::CallStream;
use crate::failure::{Failure, Outcome, mistake};
use crate::memory::over_on;
use crate::structures;

/// The address of elements of a tensor without elements: aligned, and never read.
const NOWHERE: usize = 64;

/// A list of a number of items.
///
/// # Safety
/// The pointer leads to so many items that live for `'a`, or is null.
pub unsafe fn list<'a, T>(items: *const T, count: i64, name: &str) -> Outcome<&'a [T]> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        Ok(_) if items.is_null() => mistake(format!("`{name}` is null, with {count} items")),
        // SAFETY: the caller's promise.
        Ok(count) => Ok(unsafe { std::slice::from_raw_parts(items, count) }),
        Err(_) => mistake(format!("`{name}` has the impossible length {count}")),
    }
}

/// A text that ends with a zero byte.
///
/// # Safety
/// The pointer leads to one that lives for `'a`, or is null.
pub unsafe fn text<'a>(text: *const c_char, name: &str) -> Outcome<&'a str> {
    if text.is_null() {
        return mistake(format!("`{name}` is null"));
    }
    // SAFETY: the caller's promise.
    match unsafe { CStr::from_ptr(text) }.to_str() {
        Ok(text) => Ok(text),
        Err(_) => mistake(format!("`{name}` is no text of UTF-8")),
    }
}

/// A tensor as the header describes it, checked.
pub struct Described<'a> {
    pub dtype: DType,
    pub sizes: &'a [i64],
    pub strides: Option<&'a [i64]>,
    device: (i32, i32),
    data: *mut u8,
}

/// Reads a description of a tensor.
///
/// # Safety
/// The pointer leads to a structure of the header, with lists as long as it says, which live for `'a`; or it is null.
pub unsafe fn describe<'a>(tensor: *const structures::Tensor, name: &str) -> Outcome<Described<'a>> {
    // SAFETY: the caller's promise.
    let Some(given) = (unsafe { tensor.as_ref() }) else {
        return mistake(format!("the tensor `{name}` is null"));
    };
    let Some(dtype) = abi::dtype(given.code, given.bits).filter(|_| given.lanes == 1) else {
        return mistake(format!(
            "the element type of `{name}` is not known: code {}, {} bits, {} lanes",
            given.code, given.bits, given.lanes
        ));
    };
    let rank = i64::from(given.ndim);
    // SAFETY: the caller's promise.
    let (sizes, strides) = unsafe {
        let strides = if given.strides.is_null() { None } else { Some(list(given.strides, rank, name)?) };
        (list(given.shape, rank, name)?, strides)
    };
    let data = given.data.cast::<u8>().wrapping_add(usize::try_from(given.byte_offset).unwrap_or(0));
    let data = if given.data.is_null() { std::ptr::null_mut() } else { data };
    Ok(Described { dtype, sizes, strides, device: (given.device_type, given.device_id), data })
}

/// The tensor over the memory of a description.
///
/// # Safety
/// As [`describe`]; the memory is valid for reads, and for writes if it is written, and the tensor is not used after the call. On a device
/// other code uses the memory in the stream, in which this thread is.
pub unsafe fn tensor(tensor: *const structures::Tensor, name: &str, stream: CallStream) -> Outcome<Tensor> {
    // SAFETY: the caller's promise.
    let given = unsafe { describe(tensor, name)? };
    let (kind, number) = given.device;
    let device = stream.device_of(kind, number, format_args!("the tensor `{name}`"))?;
    let is_empty = given.sizes.contains(&0);
    if given.data.is_null() && !is_empty {
        return mistake(format!("the tensor `{name}` has elements and no memory"));
    }
    let address = if is_empty { std::ptr::without_provenance_mut(NOWHERE) } else { given.data };
    if !address.addr().is_multiple_of(alignment(given.dtype)) {
        return mistake(format!("the memory of `{name}` is not aligned for {}", given.dtype));
    }
    let row_major;
    let strides = match given.strides {
        Some(strides) => strides,
        None => {
            row_major = contiguous_strides(given.sizes);
            &row_major[..]
        }
    };
    // SAFETY: the caller's promise.
    unsafe { over_on(device, address, given.sizes, strides, given.dtype, ()) }.map_err(Failure::Operator)
}

/// The alignment of elements: that of their parts, if they are complex.
fn alignment(dtype: DType) -> usize {
    if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() }
}

/// Reads a value; `None` for a default.
///
/// # Safety
/// The value is one of the header, and all that it leads to is valid during the call.
pub unsafe fn read(def: &ArgDef, given: &structures::Value, stream: CallStream) -> Outcome<Option<Value>> {
    let (name, count, payload) = (def.name, given.count, given.payload);
    let Some(kind) = ValueKind::from_number(given.kind) else {
        return mistake(format!("`{name}` has a value of the unknown kind {}", given.kind));
    };
    // SAFETY: the field of the union is that of the kind, and the caller's promise.
    let value = unsafe {
        match kind {
            ValueKind::Default => return Ok(None),
            ValueKind::None => Value::None,
            ValueKind::Tensor => Value::Tensor(tensor(payload.tensor, name, stream)?),
            ValueKind::Tensors => tensors(list(payload.tensors, count, name)?, def, stream)?,
            ValueKind::Bool => Value::Bool(payload.integer != 0),
            ValueKind::Int => Value::Int(payload.integer),
            ValueKind::Float => Value::Float(payload.real),
            ValueKind::Complex => {
                let [real, imaginary] = payload.parts;
                Value::Scalar(Scalar::Complex(Complex64::new(real, imaginary)))
            }
            ValueKind::Text => {
                let bytes = list(payload.text.cast::<u8>(), count, name)?;
                match std::str::from_utf8(bytes) {
                    Ok(text) => Value::Str(text.to_owned()),
                    Err(_) => return mistake(format!("`{name}` is no text of UTF-8")),
                }
            }
            ValueKind::Ints => Value::Ints(list(payload.integers, count, name)?.to_vec()),
            ValueKind::Floats => Value::Floats(list(payload.reals, count, name)?.to_vec()),
            ValueKind::Bools => {
                Value::Bools(list(payload.truths, count, name)?.iter().map(|truth| *truth != 0).collect())
            }
            ValueKind::Texts => {
                let texts = list(payload.texts, count, name)?.iter();
                let one = |item: &*const c_char| text(*item, name).map(|text| Cow::Owned(text.to_owned()));
                Value::Strs(texts.map(one).collect::<Outcome<_>>()?)
            }
        }
    };
    Ok(Some(value))
}

/// A list of tensors, of which some may be absent where the argument allows it.
///
/// # Safety
/// As [`tensor`], of each item.
unsafe fn tensors(items: &[*const structures::Tensor], def: &ArgDef, stream: CallStream) -> Outcome<Value> {
    // SAFETY: the caller's promise.
    let one = |item: &*const structures::Tensor| unsafe { tensor(*item, def.name, stream) };
    if def.ty.kind != ArgKind::OptionalTensors {
        return Ok(Value::Tensors(items.iter().map(one).collect::<Outcome<_>>()?));
    }
    let optional = |item: &*const structures::Tensor| (!item.is_null()).then(|| one(item)).transpose();
    Ok(Value::OptionalTensors(items.iter().map(optional).collect::<Outcome<_>>()?))
}

/// The arguments of a call by position; `None` for a default.
pub type Given = SmallVec<[Option<Value>; 8]>;

/// Checks the number of values.
///
/// # Safety
/// The values are those of the header, and valid during the call.
pub unsafe fn values<'a>(
    op: &OpDef,
    values: *const structures::Value,
    count: i64,
) -> Outcome<&'a [structures::Value]> {
    // SAFETY: the caller's promise.
    let values = unsafe { list(values, count, "arguments")? };
    if values.len() != op.schema.args.len() {
        return mistake(format!(
            "{} arguments were given, the signature has {}: {}",
            values.len(),
            op.schema.args.len(),
            op.schema.text
        ));
    }
    Ok(values)
}

/// Reads the arguments of a call.
///
/// # Safety
/// The values are those of the header, and valid during the call; no tensor of the result is used after it.
pub unsafe fn read_all(
    op: &OpDef,
    given: *const structures::Value,
    count: i64,
    stream: CallStream,
) -> Outcome<Given> {
    // SAFETY: the caller's promise.
    let given = unsafe { values(op, given, count)? };
    // SAFETY: the caller's promise.
    op.schema.args.iter().zip(given).map(|(def, value)| unsafe { read(def, value, stream) }).collect()
}

/// The arguments by name, as calls by name take them.
pub fn by_name(op: &'static OpDef, given: Given) -> Vec<(String, Value)> {
    let names = op.schema.args.iter().map(|def| def.name.to_owned());
    names.zip(given).filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Passes arguments in the order of the signature to a function, converted where a call by name would.
///
/// # Errors
/// If the arguments do not fit, and errors of the function.
pub fn with_bound<R>(
    op: &'static OpDef,
    given: &Given,
    function: impl FnOnce(&[Arg<'_>]) -> Result<R>,
) -> Result<R> {
    let plain: Option<SmallVec<[Arg<'_>; 8]>> =
        op.schema.args.iter().zip(given).map(|(def, value)| plain(def, value.as_ref())).collect();
    if let Some(args) = plain {
        return function(&args);
    }
    let named: Vec<(&str, Value)> = op
        .schema
        .args
        .iter()
        .zip(given)
        .filter_map(|(def, value)| Some((def.name, value.clone()?)))
        .collect();
    internals::with_bound(op, &[], &named, function)
}

/// An argument that needs no conversion.
fn plain<'a>(def: &ArgDef, value: Option<&'a Value>) -> Option<Arg<'a>> {
    let Some(value) = value else { return def.default.map(|default| default.as_arg(def.ty)) };
    Some(match (def.ty.kind, value) {
        (_, Value::None) if def.ty.optional => Arg::None,
        (ArgKind::Tensor, Value::Tensor(tensor)) => Arg::Tensor(tensor),
        (ArgKind::Tensors, Value::Tensors(list)) => Arg::Tensors(list),
        (ArgKind::OptionalTensors, Value::OptionalTensors(list)) => Arg::OptionalTensors(list),
        (ArgKind::Bool, Value::Bool(value)) => Arg::Bool(*value),
        (ArgKind::Int, Value::Int(value)) => Arg::Int(*value),
        (ArgKind::Float, Value::Float(value)) => Arg::Float(*value),
        (ArgKind::Scalar, Value::Scalar(value)) => Arg::Scalar(*value),
        (ArgKind::Scalar, Value::Bool(value)) => Arg::Scalar(Scalar::Bool(*value)),
        (ArgKind::Scalar, Value::Int(value)) => Arg::Scalar(Scalar::Int(*value)),
        (ArgKind::Scalar, Value::Float(value)) => Arg::Scalar(Scalar::Float(*value)),
        (ArgKind::Ints(None), Value::Ints(list)) => Arg::Ints(list),
        (ArgKind::Floats, Value::Floats(list)) => Arg::Floats(list),
        (ArgKind::Bools(None), Value::Bools(list)) => Arg::Bools(list),
        (ArgKind::Device, Value::Str(name)) => Arg::Device(Device::from_name(name)?),
        _ => return None,
    })
}

/// The tensors among arguments.
pub fn tensors_of(given: &Given) -> SmallVec<[Tensor; 4]> {
    let mut found = SmallVec::new();
    for value in given.iter().flatten() {
        value.as_arg().for_each_tensor(|tensor| found.push(tensor.clone()));
    }
    found
}
