//! Arguments of calls, from Python to the runtime.
//!
//! In: any object. Out: the value of the runtime that it stands for, by its own type alone; the runtime converts it to the
//! type of a signature. Arrays of NumPy and of other libraries become tensors without a copy where they can.

use num_complex::Complex64;
use opsmith_runtime::error::Error;
use opsmith_runtime::lists::{Lists, Text};
use opsmith_runtime::{DType, Scalar, Tensor, Value};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyRange, PyString, PyTuple, PyType};

use crate::construct;
use crate::errors::raise;
use crate::random::PyGenerator;
use crate::tensor::{PyTensor, tensor_of};
use crate::types::{PyDType, PyDevice, PyMemoryFormat, read_dtype};

/// Deepest nesting of lists: deeper ones have no type, and a list may be in itself.
const DEEPEST: usize = 8;

/// The value that an object stands for.
pub fn read(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    read_nested(object, 0)
}

/// As [`read`]; `None` for an object that is no value, such as a dict.
pub fn attempt(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    attempt_nested(object, 0)
}

fn read_nested(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    attempt_nested(object, depth)?.ok_or_else(|| unreadable(object))
}

fn attempt_nested(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Option<Value>> {
    own(object, depth)?.map_or_else(|| foreign(object), |value| Ok(Some(value)))
}

/// The value of an object of Python's types or of ours.
fn own(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Option<Value>> {
    if let Some(tensor) = tensor_of(object) {
        return Ok(Some(Value::Tensor(tensor.clone())));
    }
    if object.is_none() {
        return Ok(Some(Value::None));
    }
    if let Some(number) = number(object)? {
        return Ok(Some(match number {
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Int(value) => Value::Int(value),
            Scalar::Float(value) => Value::Float(value),
            complex => Value::Scalar(complex),
        }));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Some(Value::Str(text.to_cow()?.into_owned())));
    }
    if object.cast::<PyList>().is_ok() || object.cast::<PyTuple>().is_ok() || object.cast::<PyRange>().is_ok()
    {
        if depth == DEEPEST {
            return Err(unreadable(object));
        }
        let items = object
            .try_iter()?
            .map(|item| read_nested(&item?, depth + 1))
            .collect::<PyResult<Vec<Value>>>()?;
        return list(items).map(Some).ok_or_else(|| mixed(object));
    }
    if let Ok(dtype) = object.cast::<PyDType>() {
        return Ok(Some(Value::DType(dtype.get().0)));
    }
    if let Ok(device) = object.cast::<PyDevice>() {
        return Ok(Some(Value::Device(device.get().0)));
    }
    if let Ok(format) = object.cast::<PyMemoryFormat>() {
        return Ok(Some(Value::MemoryFormat(format.get().0)));
    }
    let generator = object.cast::<PyGenerator>();
    Ok(generator.ok().map(|generator| Value::Generator(generator.get().0.clone())))
}

/// A value of an object that is none of ours: an array, a number or an element type of another library.
fn foreign(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if let Ok(subclass) = object.cast::<PyTensor>() {
        return Ok(Some(Value::Tensor(subclass.get().0.clone())));
    }
    if is_dtype_like(object) {
        return read_dtype(object).map(|dtype| Some(Value::DType(dtype)));
    }
    if let Some(text) = torch_text(object)? {
        return Ok(Some(Value::Str(text)));
    }
    if construct::is_numpy_number(object) {
        let item = object.call_method0("item")?;
        return match number(&item)? {
            Some(_) => own(&item, 0),
            None => Ok(None),
        };
    }
    if construct::is_array(object)? {
        return construct::shared(object).map(|tensor| Some(Value::Tensor(tensor)));
    }
    if object.hasattr("__index__")? {
        return integer(&object.call_method0("__index__")?).map(|value| Some(Value::Int(value)));
    }
    if object.hasattr("__float__")? {
        return Ok(Some(Value::Float(object.call_method0("__float__")?.extract()?)));
    }
    if object.hasattr("__complex__")? {
        let value = complex(&object.call_method0("__complex__")?)?;
        return Ok(Some(Value::Scalar(Scalar::Complex(value))));
    }
    Ok(None)
}

/// The name of one of PyTorch's objects for element types, devices, formats and layouts.
fn torch_text(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let class = object.get_type();
    let is_torch = class.module().is_ok_and(|module| module.to_cow().is_ok_and(|module| module == "torch"));
    if !is_torch || !matches!(&*class.name()?.to_cow()?, "dtype" | "device" | "memory_format" | "layout") {
        return Ok(None);
    }
    let text = object.str()?;
    let text = text.to_cow()?;
    Ok(Some(text.strip_prefix("torch.").unwrap_or(&text).to_owned()))
}

fn is_dtype_like(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    let module = class.module().map(|module| module.to_string()).unwrap_or_default();
    object.cast::<PyType>().is_ok()
        || module.starts_with("numpy.dtypes")
        || module.starts_with("ml_dtypes")
            && object.hasattr("itemsize").unwrap_or(false)
            && !object.hasattr("ndim").unwrap_or(true)
}

/// The number that an object of Python's own types stands for.
pub fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Some(Scalar::Float(value.value())));
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Some(Scalar::Bool(value.is_true())));
    }
    if object.cast::<PyInt>().is_ok() {
        return integer(object).map(|value| Some(Scalar::Int(value)));
    }
    if object.cast::<PyComplex>().is_ok() {
        return complex(object).map(|value| Some(Scalar::Complex(value)));
    }
    Ok(None)
}

fn complex(object: &Bound<'_, PyAny>) -> PyResult<Complex64> {
    Ok(Complex64::new(object.getattr("real")?.extract()?, object.getattr("imag")?.extract()?))
}

/// The integer of an `int`, of 64 bits.
pub fn integer(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    object.extract().map_err(|error| match object.call_method0("bit_length") {
        Ok(bits) => PyOverflowError::new_err(format!(
            "an integer of {bits} bits is beyond int64\n  help: give a float; `opsmith.tensor(data, dtype=\"uint64\")` takes 64 bits \
             without a sign"
        )),
        Err(_) => error,
    })
}

/// The name of an object's class.
pub fn class_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().qualname().map(|name| name.to_string()).unwrap_or_default()
}

#[cold]
fn unreadable(object: &Bound<'_, PyAny>) -> PyErr {
    let class = class_name(object);
    let (is_list, is_iterable) =
        (object.is_instance_of::<PyList>(), object.hasattr("__iter__").unwrap_or(false));
    let error = Error::argument(format!(
        "an argument of type `{class}` is no tensor, number, text, element type, device or list of these"
    ));
    let error = match (is_list, is_iterable) {
        (true, _) => {
            error.with_help(format!("lists have at most {DEEPEST} levels here; make a tensor of it"))
        }
        (_, true) => error.with_help("make a list of its items"),
        _ => error,
    };
    raise(object.py(), error)
}

/// The error of a list whose items have no common kind.
#[cold]
fn mixed(object: &Bound<'_, PyAny>) -> PyErr {
    let mut kinds: Vec<String> = Vec::new();
    for item in object.try_iter().into_iter().flatten().flatten() {
        let kind = format!("`{}`", class_name(&item));
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let error = Error::argument(format!(
        "a `{}` with items of the types {} is no list of tensors, of numbers, of texts, or of lists of these",
        class_name(object),
        kinds.join(", ")
    ));
    raise(object.py(), error.with_help("give items of one kind; of tensors, a list of one level"))
}

/// A list of values as one value; `None` if they have no common type.
fn list(items: Vec<Value>) -> Option<Value> {
    fn all<T>(items: &[Value], get: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
        items.iter().map(get).collect()
    }
    let int = |value: &Value| if let Value::Int(value) = value { Some(*value) } else { None };
    let bool = |value: &Value| if let Value::Bool(value) = value { Some(*value) } else { None };
    let float = |value: &Value| match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    };
    let text =
        |value: &Value| if let Value::Str(value) = value { Some(Text::from(value.clone())) } else { None };
    let dtype = |value: &Value| if let Value::DType(value) = value { Some(*value) } else { None };
    let tensor = |value: &Value| if let Value::Tensor(value) = value { Some(value.clone()) } else { None };
    let optional = |value: &Value| match value {
        Value::None => Some(None),
        value => tensor(value).map(Some),
    };
    if let Some(list) = all(&items, int) {
        return Some(Value::Ints(list));
    }
    all(&items, bool)
        .map(Value::Bools)
        .or_else(|| all(&items, float).map(Value::Floats))
        .or_else(|| all(&items, tensor).map(Value::Tensors))
        .or_else(|| all(&items, scalar).map(Value::Scalars))
        .or_else(|| all(&items, text).map(Value::Strs))
        .or_else(|| all(&items, dtype).map(Value::DTypes))
        .or_else(|| all(&items, optional).map(Value::OptionalTensors))
        .or_else(|| lists(&items))
}

fn scalar(value: &Value) -> Option<Scalar> {
    match value {
        Value::Int(value) => Some(Scalar::Int(*value)),
        Value::Float(value) => Some(Scalar::Float(*value)),
        Value::Bool(value) => Some(Scalar::Bool(*value)),
        Value::Scalar(value) => Some(*value),
        _ => None,
    }
}

/// Lists of lists of one type; an empty row has every type.
fn lists(items: &[Value]) -> Option<Value> {
    fn rows<T: Clone + 'static>(items: &[Value], get: impl Fn(&Value) -> Option<Vec<T>>) -> Option<Lists<T>> {
        let rows: Option<Vec<Vec<T>>> = items
            .iter()
            .map(|row| match row {
                Value::Ints(list) if list.is_empty() => Some(Vec::new()),
                row => get(row),
            })
            .collect();
        rows.map(Lists::from_iter)
    }
    let ints = |row: &Value| if let Value::Ints(list) = row { Some(list.clone()) } else { None };
    let floats = |row: &Value| match row {
        Value::Floats(list) => Some(list.clone()),
        Value::Ints(list) => Some(list.iter().map(|value| *value as f64).collect()),
        _ => None,
    };
    let bools = |row: &Value| if let Value::Bools(list) = row { Some(list.clone()) } else { None };
    let texts = |row: &Value| if let Value::Strs(list) = row { Some(list.clone()) } else { None };
    let dtypes = |row: &Value| if let Value::DTypes(list) = row { Some(list.clone()) } else { None };
    let numbers = |row: &Value| match row {
        Value::Scalars(list) => Some(list.clone()),
        Value::Floats(list) => Some(list.iter().map(|value| Scalar::Float(*value)).collect()),
        Value::Ints(list) => Some(list.iter().map(|value| Scalar::Int(*value)).collect()),
        _ => None,
    };
    rows::<i64>(items, ints)
        .map(Value::from)
        .or_else(|| rows::<f64>(items, floats).map(Value::from))
        .or_else(|| rows::<bool>(items, bools).map(Value::from))
        .or_else(|| rows::<Text>(items, texts).map(Value::from))
        .or_else(|| rows::<DType>(items, dtypes).map(Value::from))
        .or_else(|| rows::<Scalar>(items, numbers).map(Value::from))
}

/// A tensor argument of a function that is not an operator: a tensor or an array.
pub fn read_tensor(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    match read(object)? {
        Value::Tensor(tensor) => Ok(tensor),
        _ => Err(raise(
            object.py(),
            Error::argument(format!("a tensor was expected, got `{}`", class_name(object))),
        )),
    }
}

/// Tensor arguments: one, or a list or tuple of them.
pub fn read_tensors(object: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    match read(object)? {
        Value::Tensor(tensor) => Ok(vec![tensor]),
        Value::Tensors(tensors) => Ok(tensors),
        Value::Ints(list) if list.is_empty() => Ok(Vec::new()),
        _ => Err(raise(
            object.py(),
            Error::argument(format!(
                "a tensor or a list of tensors was expected, got `{}`",
                class_name(object)
            )),
        )),
    }
}

/// The tensors that a function of a user returned.
pub fn read_results(object: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    match attempt(object) {
        Ok(Some(Value::Tensor(tensor))) => return Ok(vec![tensor]),
        Ok(Some(Value::Tensors(tensors))) => return Ok(tensors),
        Ok(Some(Value::Ints(list))) if list.is_empty() => return Ok(Vec::new()),
        _ => {}
    }
    let error = Error::argument(format!(
        "the function returned a `{}`, and its results must be a tensor, or a list or tuple of tensors",
        class_name(object)
    ));
    let error = match object.is_instance_of::<PyDict>() {
        true => error.with_help("return `tuple(results.values())`"),
        false => error,
    };
    Err(raise(object.py(), error))
}
