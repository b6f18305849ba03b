//! Tensors from Python's data: numbers, nested lists, arrays of NumPy and of other libraries, bytes.
//!
//! In: any of these. Out: a tensor, with a copy of the elements or, where the caller says so, over the array's own memory.

use opsmith_runtime::error::Error;
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::{DType, Device, Element, Scalar, Tensor, Value, with_dtype};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyMemoryView, PyTuple};

use crate::argument;
use crate::call::tensor_by_name;
use crate::dlpack;
use crate::errors::{OrRaise, raise};
use crate::tensor::{PyTensor, tensor_of};
use crate::types::{read_device, read_dtype};
use crate::{buffer, types};

/// Whether an object is an array of another library: it gives its elements by DLPack, as an array of NumPy, or as a buffer.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__dlpack__")?
        || object.hasattr("__array__")? && object.hasattr("shape")?
        || is_buffer(object))
}

/// Whether an object has its elements in a buffer, as `bytearray`, `memoryview` and `array.array` have. `bytes` are a text.
fn is_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is valid.
    let has_buffer = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 };
    has_buffer && !object.is_instance_of::<PyBytes>()
}

/// The object that gives an array's memory by DLPack: itself, or an array of NumPy over its buffer.
fn exporter<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if array.hasattr("__dlpack__")? || !is_buffer(array) {
        return Ok(array.clone());
    }
    let py = array.py();
    py.import("numpy")?.call_method1("asarray", (py.get_type::<PyMemoryView>().call1((array,))?,))
}

/// The tensor over an array's memory, which may be written.
pub fn writable(array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let array = exporter(array)?;
    if !array.hasattr("__dlpack__")? {
        return Err(PyTypeError::new_err("it gives no memory by `__dlpack__`"));
    }
    dlpack::writable(&array)
}

/// Whether an object is a number of NumPy: it has an array's attributes, and is not one.
pub fn is_numpy_number(object: &Bound<'_, PyAny>) -> bool {
    let has = |name: &str| object.hasattr(name).unwrap_or(false);
    has("__array_interface__") && has("item") && !has("__setitem__")
}

/// The tensor over an array's memory, or of a copy where the array cannot be shared: it may not be written, or its elements
/// have no type here or another byte order.
pub fn shared(array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let array = exporter(array)?;
    if array.hasattr("__dlpack__")?
        && let Ok(tensor) = dlpack::import(&array, None, None)
    {
        return Ok(tensor);
    }
    buffer::copied(&array)
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
    let mut gathered = Gathered { is_unsigned: dtype == Some(DType::U64), ..Gathered::default() };
    gathered.gather(data, 0)?;
    let Gathered { shape, numbers, tensors: rows, .. } = gathered;
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

/// The numbers of nested lists, and the tensors among them.
#[derive(Default)]
struct Gathered {
    shape: Vec<i64>,
    numbers: Vec<Scalar>,
    tensors: Vec<Tensor>,
    /// Whether the elements are of 64 bits without a sign: numbers beyond the signed ones are kept by their bits.
    is_unsigned: bool,
}

impl Gathered {
    /// Collects the numbers of nested lists, all of the same lengths, and the tensors among them.
    fn gather(&mut self, data: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        let is_list = data.cast::<PyList>().is_ok()
            || data.cast::<PyTuple>().is_ok()
            || data.cast::<pyo3::types::PyRange>().is_ok();
        if !is_list {
            if depth != self.shape.len() && !self.numbers.is_empty() || depth < self.shape.len() {
                return Err(ragged(depth));
            }
            return self.element(data);
        }
        if depth >= DEEPEST {
            return Err(PyValueError::new_err(format!("lists are nested more than {DEEPEST} deep")));
        }
        let length = data.len()? as i64;
        match self.shape.get(depth) {
            Some(known) if *known != length => return Err(ragged(depth)),
            Some(_) => {}
            None if self.numbers.is_empty() && self.tensors.is_empty() => self.shape.push(length),
            None => return Err(ragged(depth)),
        }
        data.try_iter()?.try_for_each(|item| self.gather(&item?, depth + 1))
    }

    fn element(&mut self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.is_unsigned
            && data.cast::<PyInt>().is_ok()
            && let Ok(value) = data.extract::<u64>()
        {
            self.numbers.push(Scalar::Int(value.cast_signed()));
            return Ok(());
        }
        match argument::attempt(data)? {
            Some(Value::Tensor(tensor)) => self.tensors.push(tensor),
            Some(Value::Bool(value)) => self.numbers.push(Scalar::Bool(value)),
            Some(Value::Int(value)) => self.numbers.push(Scalar::Int(value)),
            Some(Value::Float(value)) => self.numbers.push(Scalar::Float(value)),
            Some(Value::Scalar(value)) => self.numbers.push(value),
            _ => return Err(no_element(data)),
        }
        Ok(())
    }
}

fn no_element(data: &Bound<'_, PyAny>) -> PyErr {
    let class = argument::class_name(data);
    let help = match data.is_instance_of::<PyBytes>() {
        true => "give `memoryview(data)` for a tensor of the bytes",
        false => "give a number, nested lists of numbers, a tensor, or an array",
    };
    let error = Error::argument(format!("a tensor has numbers as elements, and `{class}` is none"));
    raise(data.py(), error.with_help(help))
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
/// data : number, nested lists of numbers, a tensor, an array of another library, or an object with a buffer
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
        if copy == Some(false) { dlpack::import(&exporter(data)?, None, copy)? } else { shared(data)? }
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
