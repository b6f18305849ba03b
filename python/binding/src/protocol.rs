//! The protocols of Python for tensors: text, numbers, iteration, pickles, arrays of NumPy, buffers, DLPack.
//!
//! In: a tensor. Out: the methods that the interpreter and other libraries call. Python's operators are in `numeric`.

use opsmith_runtime::{Scalar, Value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use pyo3::{IntoPyObjectExt, ffi};

use crate::call::{by_name, tensor_by_name};
use crate::errors::OrRaise;
use crate::tensor::PyTensor;
use crate::{construct, dlpack, index, numeric, numpy, result};

#[pymethods]
impl PyTensor {
    fn __repr__(&self) -> String {
        let text = format!("{:?}", self.0);
        let Some(end) = text.rfind(", dtype=") else { return text };
        let mut text = text[..end].to_owned();
        if self.0.dtype() == opsmith_runtime::DType::Bool {
            text = text.replace("true", "True").replace("false", "False");
        }
        text += &format!(", dtype={}", self.0.dtype());
        if self.0.numel() == 0 {
            text += &format!(", shape={:#}", opsmith_runtime::error::ShapeText(self.0.shape()));
        }
        if !self.0.is_on_host() {
            text += &format!(", device={}", self.0.device());
        }
        if self.0.requires_grad() {
            text += ", requires_grad=True";
        }
        text + ")"
    }

    fn __str__(&self) -> String {
        let text = self.0.to_string();
        match self.0.dtype() {
            opsmith_runtime::DType::Bool => text.replace("true", "True").replace("false", "False"),
            _ => text,
        }
    }

    fn __format__(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        if format.is_empty() {
            return Ok(self.__str__());
        }
        if self.0.dim() > 0 {
            return Err(PyTypeError::new_err(format!(
                "the format {format:?} is one of numbers, and the tensor has dimensions\n  help: format its elements, by `tolist()`"
            )));
        }
        self.item(py)?.bind(py).call_method1("__format__", (format,))?.extract()
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.0.shape().first().map(|length| *length as usize);
        first.ok_or_else(|| PyTypeError::new_err("a tensor without dimensions has no length"))
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if slf.get().0.dim() == 0 {
            return Err(PyTypeError::new_err("a tensor without dimensions has no rows to iterate over"));
        }
        let rows = by_name(py, "unbind", &[Value::Tensor(slf.get().0.clone()), Value::Int(0)], &[])?;
        let rows = rows.into_iter().map(|row| result::object(py, row)).collect::<PyResult<Vec<_>>>()?;
        match rows.first() {
            Some(rows) => rows.bind(py).try_iter()?.into_py_any(py),
            None => PyTuple::empty(py).try_iter()?.into_py_any(py),
        }
    }

    fn __contains__(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let same = numeric::compare(py, &self.0, item, pyo3::basic::CompareOp::Eq)?;
        let Some(same) = same else { return Ok(false) };
        let any = tensor_by_name(py, "any", &[Value::Tensor(same)], &[])?;
        any.item().or_raise(py).map(Scalar::to_bool)
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        slf.as_ptr().addr().rotate_right(4) as isize
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if self.0.numel() != 1 {
            return Err(PyValueError::new_err(format!(
                "the truth value of a tensor with {} elements is ambiguous\n  help: use `any()` or `all()`",
                self.0.numel()
            )));
        }
        self.0.item().or_raise(py).map(Scalar::to_bool)
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.item(py)?.bind(py).call_method0("__int__").map(Bound::unbind)
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let item = self.item(py)?;
        py.get_type::<pyo3::types::PyFloat>().call1((item,)).map(Bound::unbind)
    }

    fn __complex__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let item = self.item(py)?;
        py.get_type::<pyo3::types::PyComplex>().call1((item,)).map(Bound::unbind)
    }

    fn __index__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.0.numel() != 1 {
            return Err(PyTypeError::new_err(format!(
                "a tensor with {} elements is no index",
                self.0.numel()
            )));
        }
        let item = self.item(py)?;
        item.bind(py)
            .call_method0("__index__")
            .map(Bound::unbind)
            .map_err(|_| PyTypeError::new_err(format!("a tensor of {} is no index", self.0.dtype())))
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        index::get(py, &self.0, key).map(PyTensor)
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        index::set(py, &self.0, key, value)
    }

    /// A pickle has the elements, and whether gradients are required.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let tensor = &slf.get().0;
        if tensor.requires_grad() && !tensor.is_leaf() {
            return Err(PyTypeError::new_err(
                "a tensor that is part of a graph cannot be pickled\n  help: pickle its detach()",
            ));
        }
        let bytes = PyBytes::new(py, &construct::bytes(py, tensor)?);
        let class: Bound<'_, PyType> = py.get_type::<PyTensor>();
        let parts =
            (bytes, slf.get().shape(py)?, tensor.dtype().name(), tensor.requires_grad()).into_pyobject(py)?;
        Ok((class.getattr("_from_bytes")?, parts))
    }

    /// The tensor of a pickle.
    #[staticmethod]
    fn _from_bytes(
        py: Python<'_>,
        bytes: &[u8],
        shape: Vec<i64>,
        dtype: &str,
        requires_grad: bool,
    ) -> PyResult<PyTensor> {
        let dtype = opsmith_runtime::DType::from_name(dtype)
            .ok_or_else(|| PyValueError::new_err(format!("there is no element type {dtype:?}")))?;
        let tensor = construct::from_bytes(py, bytes, &shape, dtype)?;
        tensor.set_requires_grad(requires_grad).or_raise(py)?;
        Ok(PyTensor(tensor))
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// A tensor of its own, outside any graph.
    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        let copy = tensor_by_name(py, "clone", &[Value::Tensor(self.0.detach())], &[])?;
        copy.set_requires_grad(self.0.requires_grad()).or_raise(py)?;
        Ok(PyTensor(copy))
    }

    /// The tensor for other libraries, without a copy, as the array API's data interchange has it.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let stream = stream.and_then(|stream| stream.extract().ok());
        dlpack::export(py, &self.0, max_version, dl_device, copy, stream)
    }

    /// The kind and the number of the device, as DLPack has them.
    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::device_of(&self.0)
    }

    /// The elements as an array of NumPy.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__(
        slf: &Bound<'_, Self>,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let array = numpy::to_numpy(slf, false)?;
        let named = PyDict::new(py);
        if let Some(copy) = copy {
            named.set_item("copy", copy)?;
        }
        py.import("numpy")?.call_method("array", (array, dtype), copy.map(|_| &named)).map(Bound::unbind)
    }

    /// NumPy leaves arithmetic with a tensor to the tensor.
    #[classattr]
    fn __array_priority__() -> f64 {
        1000.0
    }

    /// The namespace of the array API's functions for this tensor, `opsmith.array_api`.
    #[pyo3(signature = (*, api_version=None))]
    fn __array_namespace__<'py>(
        slf: &Bound<'py, Self>,
        api_version: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("opsmith.array_api")?.call_method1("_namespace", (slf, api_version))
    }

    /// Fills a buffer of the interpreter's.
    ///
    /// # Safety
    /// `view` is one that the interpreter passes.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        // SAFETY: the interpreter passes a buffer to fill.
        unsafe { crate::buffer::fill(&slf, view, flags) }
    }

    /// Releases a buffer.
    ///
    /// # Safety
    /// `view` is one that `__getbuffer__` filled.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: the interpreter passes a buffer that was filled.
        unsafe { crate::buffer::release(view) }
    }
}
