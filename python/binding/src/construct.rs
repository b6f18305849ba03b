//! Tensors from Python's data: numbers, nested lists, arrays of NumPy and of other libraries, bytes.
//!
//! In: any of these. Out: a tensor, with a copy of the elements or, where the caller says so, over the array's own memory.

use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::{DType, Device, Element, Scalar, Tensor, Value, with_dtype};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::argument;
use crate::call::tensor_by_name;
use crate::dlpack;
use crate::errors::OrRaise;
use crate::tensor::{PyTensor, tensor_of};
use crate::types::{read_device, read_dtype};
use crate::{buffer, types};

/// Whether an object is an array of another library: it gives its elements by DLPack or as a buffer with a shape.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__dlpack__")? || object.hasattr("__array__")? && object.hasattr("shape")?)
}

/// Whether an object is a number of NumPy: it has an array's attributes, and is not one.
pub fn is_numpy_number(object: &Bound<'_, PyAny>) -> bool {
    let has = |name: &str| object.hasattr(name).unwrap_or(false);
    has("__array_interface__") && has("item") && !has("__setitem__")
}

/// The tensor over an array's memory, or of a copy where the array cannot be shared: it may not be written, or its elements
/// have no type here or another byte order.
pub fn shared(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    if object.hasattr("__dlpack__")?
        && let Ok(tensor) = dlpack::import(object, None, None)
    {
        return Ok(tensor);
    }
    buffer::copied(object)
}

/// A tensor with a copy of data.
pub fn tensor(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let py = data.py();
    let dtype = dtype.map(read_dtype).transpose()?;
    let device = device.map(read_device).transpose()?.unwrap_or(Device::CPU);
    let made = if let Some(tensor) = tensor_of(data) {
        tensor_by_name(py, "clone", &[Value::Tensor(tensor.detach())], &[])?
    } else if is_array(data)? {
        let shared = shared(data)?;
        tensor_by_name(py, "clone", &[Value::Tensor(shared)], &[])?
    } else {
        nested(data, dtype)?
    };
    let made = converted(py, made, dtype, device)?;
    made.set_requires_grad(requires_grad).or_raise(py)?;
    Ok(PyTensor(made))
}

/// The tensor with an element type and on a device; itself if it is so.
fn converted(py: Python<'_>, tensor: Tensor, dtype: Option<DType>, device: Device) -> PyResult<Tensor> {
    let dtype = dtype.unwrap_or(tensor.dtype());
    if dtype == tensor.dtype() && device == tensor.device() {
        return Ok(tensor);
    }
    tensor_by_name(py, "to.device", &[Value::Tensor(tensor), Value::Device(device), Value::DType(dtype)], &[])
}

/// A tensor of nested lists of numbers.
fn nested(data: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let py = data.py();
    let (mut shape, mut numbers) = (Vec::new(), Vec::new());
    let mut rows: Vec<Tensor> = Vec::new();
    gather(data, 0, &mut shape, &mut numbers, &mut rows)?;
    if !rows.is_empty() {
        if !numbers.is_empty() {
            return Err(PyTypeError::new_err(
                "a list of tensors and numbers is no tensor\n  help: use `opsmith.stack`",
            ));
        }
        let stacked = tensor_by_name(py, "stack", &[Value::Tensors(rows)], &[])?;
        let mut sizes = shape;
        sizes.extend_from_slice(&stacked.shape()[1..]);
        return tensor_by_name(py, "reshape", &[Value::Tensor(stacked), Value::Ints(sizes)], &[]);
    }
    let rank = |number: &Scalar| match number {
        Scalar::Bool(_) => 0,
        Scalar::Int(_) => 1,
        Scalar::Float(_) => 2,
        Scalar::Complex(_) => 3,
    };
    let found = match numbers.iter().map(rank).max() {
        Some(0) => DType::Bool,
        Some(1) => DType::I64,
        None | Some(2) => DType::F32,
        Some(_) => DType::C64,
    };
    let dtype = dtype.unwrap_or(found);
    with_dtype!(dtype, T => {
        let numbers: Vec<T> = numbers.iter().map(|number| T::from_scalar(*number)).collect();
        Tensor::from_slice(&numbers, &shape)
    })
    .or_raise(py)
}

/// Deepest nesting of lists.
const DEEPEST: usize = 64;

/// Collects the numbers of nested lists, all of the same lengths, and the tensors among them.
fn gather(
    data: &Bound<'_, PyAny>,
    depth: usize,
    shape: &mut Vec<i64>,
    numbers: &mut Vec<Scalar>,
    tensors: &mut Vec<Tensor>,
) -> PyResult<()> {
    let is_list = data.cast::<PyList>().is_ok()
        || data.cast::<PyTuple>().is_ok()
        || data.cast::<pyo3::types::PyRange>().is_ok();
    if !is_list {
        if depth != shape.len() && !numbers.is_empty() || depth < shape.len() {
            return Err(ragged(depth));
        }
        match argument::read(data)? {
            Value::Tensor(tensor) => tensors.push(tensor),
            Value::Bool(value) => numbers.push(Scalar::Bool(value)),
            Value::Int(value) => numbers.push(Scalar::Int(value)),
            Value::Float(value) => numbers.push(Scalar::Float(value)),
            Value::Scalar(value) => numbers.push(value),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "a tensor has numbers as elements, not {}",
                    data.repr()?
                )));
            }
        }
        return Ok(());
    }
    if depth >= DEEPEST {
        return Err(PyValueError::new_err(format!("lists are nested more than {DEEPEST} deep")));
    }
    let length = data.len()? as i64;
    match shape.get(depth) {
        Some(known) if *known != length => return Err(ragged(depth)),
        Some(_) => {}
        None if numbers.is_empty() && tensors.is_empty() => shape.push(length),
        None => return Err(ragged(depth)),
    }
    data.try_iter()?.try_for_each(|item| gather(&item?, depth + 1, shape, numbers, tensors))
}

fn ragged(depth: usize) -> PyErr {
    PyValueError::new_err(format!(
        "lists of different lengths in dimension {depth} are no tensor\n  help: give every row as many elements"
    ))
}

/// The elements in row-major order, as bytes.
pub fn bytes(py: Python<'_>, tensor: &Tensor) -> PyResult<Vec<u8>> {
    fn of<T: Element>(tensor: &Tensor) -> opsmith_runtime::Result<Vec<u8>> {
        let elements = tensor.to_vec::<T>()?;
        // SAFETY: elements have no gaps between or inside them, and live while the slice does.
        let bytes =
            unsafe { std::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(&elements[..])) };
        Ok(bytes.to_vec())
    }
    with_dtype!(tensor.dtype(), T => of::<T>(tensor)).or_raise(py)
}

/// A tensor of bytes in row-major order, which are copied.
pub fn from_bytes(py: Python<'_>, bytes: &[u8], shape: &[i64], dtype: DType) -> PyResult<Tensor> {
    let count = opsmith_runtime::layout::checked_numel(shape).or_raise(py)?;
    let needed = (count as usize).checked_mul(dtype.size());
    if needed != Some(bytes.len()) {
        return Err(PyValueError::new_err(format!(
            "{} bytes are no tensor of {dtype} with the shape {}",
            bytes.len(),
            opsmith_runtime::error::ShapeText(shape)
        )));
    }
    if dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1) {
        return Err(PyValueError::new_err("a byte that is neither 0 nor 1 is no truth value"));
    }
    // SAFETY: every byte is written before any is read, and those of truth values were checked.
    let tensor = unsafe { Tensor::with_memory(shape, dtype, Device::CPU) }.or_raise(py)?;
    // SAFETY: the new memory has as many bytes, and this function alone refers to it.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr(), bytes.len()) };
    Ok(tensor)
}

/// A tensor with a copy of the given elements.
///
/// Parameters
/// ----------
/// data : number, nested lists of numbers, a tensor, or an array of another library
/// dtype : dtype, optional
///     The element type; by default that of an array, or float32, int64, bool or complex64 for Python's numbers.
/// device : device, default "cpu"
/// requires_grad : bool, default False
///
/// Examples
/// --------
/// >>> import opsmith
/// >>> opsmith.tensor([[1, 2], [3, 4]])
/// tensor([[1, 2],
///         [3, 4]], dtype=int64)
#[pyfunction(name = "tensor")]
#[pyo3(signature = (data, *, dtype=None, device=None, requires_grad=false))]
fn make(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    tensor(data, dtype, device, requires_grad)
}

/// A tensor of data, over the same memory where that is possible.
///
/// Parameters
/// ----------
/// data : number, nested lists of numbers, a tensor, or an array of another library
/// dtype : dtype, optional
/// device : device, optional
/// copy : bool, optional
///     True always copies, False raises an exception where a copy is needed.
#[pyfunction]
#[pyo3(signature = (data, *, dtype=None, device=None, copy=None))]
fn asarray(
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Py<PyAny>> {
    let py = data.py();
    if copy == Some(true) {
        return Ok(Py::new(py, tensor(data, dtype, device, false)?)?.into_any());
    }
    let to = dtype.map(types::read_dtype).transpose()?;
    let place = device.map(types::read_device).transpose()?;
    let found = if let Some(own) = tensor_of(data) {
        if to.is_none_or(|to| to == own.dtype()) && place.is_none_or(|place| place == own.device()) {
            return Ok(data.clone().unbind());
        }
        own.clone()
    } else if is_array(data)? {
        if copy == Some(false) { dlpack::import(data, None, copy)? } else { shared(data)? }
    } else if copy == Some(false) {
        return Err(PyValueError::new_err(
            "numbers of Python cannot be a tensor without a copy\n  help: leave `copy` out",
        ));
    } else {
        nested(data, to)?
    };
    let device = place.unwrap_or(found.device());
    if copy == Some(false) && (to.is_some_and(|to| to != found.dtype()) || device != found.device()) {
        return Err(PyValueError::new_err(
            "another element type or device needs a copy\n  help: leave `copy` out",
        ));
    }
    Ok(Py::new(py, PyTensor(converted(py, found, to, device)?))?.into_any())
}

/// Adds the functions that make tensors of data.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(make, module)?)?;
    module.add_function(wrap_pyfunction!(asarray, module)?)
}
