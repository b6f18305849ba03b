//! The class `Tensor`.
//!
//! In: a tensor of the runtime. Out: its object, with the attributes, conversions and gradients that are not operators. Methods
//! for operators are added by `functions`, those for Python's operators are in `numeric`, indexing is in `index`.

use std::sync::atomic::{AtomicPtr, Ordering};

use opsmith_runtime::{Tensor, Value, with_dtype};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3::{IntoPyObjectExt, ffi};

use crate::call::tensor_by_name;
use crate::errors::OrRaise;
use crate::types::{PyDType, PyDevice, dtype_object, read_device, read_dtype};
use crate::{construct, numpy, result};

/// An array of elements of one type, with a shape.
///
/// Made by `opsmith.tensor`, `opsmith.asarray` and functions such as `opsmith.zeros`. Operators are methods of it, too, and
/// Python's `+`, `*`, `@`, `<` and so on call them element by element.
#[pyclass(name = "Tensor", module = "opsmith", frozen, weakref, subclass)]
pub struct PyTensor(pub Tensor);

/// The address of the class, which the fast way of calls compares with.
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

/// Whether an object is of the class itself.
#[inline]
pub fn is_tensor(object: *mut ffi::PyObject) -> bool {
    // SAFETY: callers pass valid objects or null.
    !object.is_null() && unsafe { ffi::Py_TYPE(object) } == CLASS.load(Ordering::Relaxed)
}

/// The tensor of an object of the class itself.
///
/// # Safety
/// The object is valid while the result lives, and the thread has the interpreter.
#[inline]
pub unsafe fn tensor_of_pointer<'a>(object: *mut ffi::PyObject) -> Option<&'a Tensor> {
    if !is_tensor(object) {
        return None;
    }
    // SAFETY: the object is of the class, which is frozen: its content is never borrowed for writing.
    let object =
        unsafe { Bound::ref_from_ptr(Python::assume_attached(), &object).cast_unchecked::<PyTensor>() };
    let tensor: *const Tensor = &raw const object.get().0;
    // SAFETY: the content lives as long as the object, which the caller keeps.
    Some(unsafe { &*tensor })
}

/// The tensor of an object of the class itself.
#[inline]
pub fn tensor_of<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Tensor> {
    object.cast_exact::<PyTensor>().ok().map(|object| &object.get().0)
}

impl PyTensor {
    /// The elements as nested lists, or one number.
    fn nested(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let flat: Vec<Py<PyAny>> = match self.0.dtype() {
            // Numbers beyond the signed ones are no scalars of the runtime.
            opsmith_runtime::DType::U64 => {
                let all = self.0.to_vec::<u64>().or_raise(py)?;
                all.into_iter().map(|value| value.into_py_any(py)).collect::<PyResult<_>>()?
            }
            dtype => with_dtype!(dtype, T => {
                let all = self.0.to_vec::<T>().or_raise(py)?;
                let number = |value: T| result::number(py, opsmith_runtime::Element::to_scalar(value));
                all.into_iter().map(number).collect::<PyResult<_>>()?
            }),
        };
        nest(py, self.0.shape(), &mut flat.into_iter())
    }
}

fn nest(py: Python<'_>, shape: &[i64], items: &mut impl Iterator<Item = Py<PyAny>>) -> PyResult<Py<PyAny>> {
    match shape {
        [] => Ok(items.next().unwrap_or_else(|| py.None())),
        [length, rest @ ..] => {
            let rows = (0..*length).map(|_| nest(py, rest, items)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, rows)?.into_py_any(py)
        }
    }
}

#[pymethods]
impl PyTensor {
    /// A tensor with the given elements, as `opsmith.tensor` makes it.
    #[new]
    #[pyo3(signature = (data, *, dtype=None, device=None, requires_grad=false))]
    fn new(
        data: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        requires_grad: bool,
    ) -> PyResult<PyTensor> {
        construct::tensor(data, dtype, device, requires_grad)
    }

    /// Number of elements along each dimension.
    #[getter]
    pub fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.dim()
    }

    /// Number of dimensions.
    fn dim(&self) -> usize {
        self.0.dim()
    }

    /// Number of elements along a dimension, or along each.
    #[pyo3(signature = (dim=None))]
    fn size(&self, py: Python<'_>, dim: Option<i64>) -> PyResult<Py<PyAny>> {
        match dim {
            Some(dim) => self.0.size(dim).or_raise(py)?.into_py_any(py),
            None => self.shape(py)?.into_py_any(py),
        }
    }

    /// Number of elements.
    fn numel(&self) -> i64 {
        self.0.numel()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> i64 {
        self.0.numel() * self.0.dtype().size() as i64
    }

    /// Bytes of an element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.dtype().size()
    }

    /// Distance in elements between neighbours along each dimension.
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.strides())
    }

    /// The element type.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        dtype_object(py, self.0.dtype())
    }

    /// The device of the elements.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.0.device())
    }

    /// Whether the elements lie in memory in row-major order without gaps.
    fn is_contiguous(&self) -> bool {
        self.0.is_contiguous()
    }

    /// Address of the first element.
    fn data_ptr(&self) -> usize {
        self.0.data_ptr().addr()
    }

    /// Number of writes to the memory by operators.
    #[getter]
    fn version(&self) -> u64 {
        self.0.version()
    }

    /// Whether both are handles of the same tensor.
    fn same(&self, other: &Bound<'_, PyTensor>) -> bool {
        self.0.same(&other.get().0)
    }

    /// The tensor with its dimensions in reverse order.
    #[getter(T)]
    fn reversed(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let dims: Vec<i64> = (0..self.0.dim() as i64).rev().collect();
        tensor_by_name(py, "permute", &[Value::Tensor(self.0.clone()), Value::Ints(dims)], &[]).map(PyTensor)
    }

    /// The tensor with its last two dimensions exchanged.
    #[getter(mT)]
    fn matrix_transposed(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let args = [Value::Tensor(self.0.clone()), Value::Int(-2), Value::Int(-1)];
        tensor_by_name(py, "transpose.int", &args, &[]).map(PyTensor)
    }

    /// The only element as a number.
    pub fn item(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.0.dtype() {
            opsmith_runtime::DType::U64 if self.0.numel() == 1 => {
                self.0.to_vec::<u64>().or_raise(py)?[0].into_py_any(py)
            }
            _ => result::number(py, self.0.item().or_raise(py)?),
        }
    }

    /// The elements as nested lists of numbers.
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.nested(py)
    }

    /// The elements as an array of NumPy over the same memory.
    #[pyo3(signature = (*, force=false))]
    fn numpy(slf: &Bound<'_, Self>, force: bool) -> PyResult<Py<PyAny>> {
        numpy::to_numpy(slf, force)
    }

    /// The tensor with another element type, on another device, or both; itself if nothing changes.
    ///
    /// Work on devices is asynchronous in any case, and reads of the host wait for it. With `non_blocking` or without, a copy to a
    /// device returns when the elements were read, or, of pinned memory (`pin_memory`), at once.
    #[pyo3(signature = (*args, dtype=None, device=None, non_blocking=false, copy=false))]
    fn to(
        slf: &Bound<'_, Self>,
        args: &Bound<'_, PyTuple>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        non_blocking: bool,
        copy: bool,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let (mut dtype, mut device) =
            (dtype.map(read_dtype).transpose()?, device.map(read_device).transpose()?);
        for arg in args {
            if let Ok(other) = arg.cast::<PyTensor>() {
                (dtype, device) = (Some(other.get().0.dtype()), Some(other.get().0.device()));
            } else if let Ok(found) = read_dtype(&arg) {
                dtype = Some(found);
            } else {
                device = Some(read_device(&arg)?);
            }
        }
        let tensor = &slf.get().0;
        let (to, place) = (dtype.unwrap_or(tensor.dtype()), device.unwrap_or(tensor.device()));
        if to == tensor.dtype() && place == tensor.device() && !copy {
            return Ok(slf.clone().into_any().unbind());
        }
        let args = [Value::Tensor(tensor.clone()), Value::Device(place), Value::DType(to)];
        let options = [("non_blocking", Value::Bool(non_blocking)), ("copy", Value::Bool(copy))];
        let converted = tensor_by_name(py, "to.device", &args, &options)?;
        PyTensor(converted).into_py_any(py)
    }

    /// The tensor on a device, as the array API names it.
    fn to_device(slf: &Bound<'_, Self>, device: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Self::to(slf, &PyTuple::empty(slf.py()), None, Some(device), false, false)
    }

    /// The elements in pinned memory of the host, which devices read themselves; the tensor itself if it is there already.
    fn pin_memory(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let tensor = &slf.get().0;
        if tensor.is_pinned() {
            return Ok(slf.clone().into_any().unbind());
        }
        PyTensor(py.detach(|| tensor.pin_memory()).or_raise(py)?).into_py_any(py)
    }

    /// Whether the elements are in pinned memory of the host.
    fn is_pinned(&self) -> bool {
        self.0.is_pinned()
    }
}

/// Adds the class.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTensor>()?;
    let class = module.py().get_type::<PyTensor>();
    CLASS.store(class.as_type_ptr(), Ordering::Relaxed);
    Ok(())
}
