//! Arrays of NumPy.
//!
//! In: a tensor. Out: an array over its memory, or of a copy where NumPy has no such element type or the caller asks for one.

use opsmith_runtime::{DType, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::call::tensor_by_name;
use crate::tensor::PyTensor;

/// The tensor's elements as an array of NumPy: over the same memory, or a copy if NumPy has no such element type, or `force`
/// is given and the tensor is part of a graph or on a device.
pub fn to_numpy(slf: &Bound<'_, PyTensor>, force: bool) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let mut tensor = slf.get().0.clone();
    if tensor.requires_grad() {
        if !force {
            return Err(PyTypeError::new_err(
                "the tensor requires a gradient, which an array would lose\n  help: use its detach(), or numpy(force=True)",
            ));
        }
        tensor = tensor.detach();
    }
    if !tensor.is_on_host() {
        if !force {
            return Err(PyTypeError::new_err(
                "the elements are on a device\n  help: move the tensor to the CPU, or use numpy(force=True)",
            ));
        }
        let args = [Value::Tensor(tensor), Value::Device(opsmith_runtime::Device::CPU)];
        tensor = tensor_by_name(py, "to.device", &args, &[])?;
    }
    let known = if tensor.dtype() == DType::BF16 { DType::F32 } else { tensor.dtype().to_computing() };
    if tensor.dtype() != known {
        let args = [Value::Tensor(tensor), Value::Device(opsmith_runtime::Device::CPU), Value::DType(known)];
        tensor = tensor_by_name(py, "to.device", &args, &[])?;
    }
    let view = py.get_type::<pyo3::types::PyMemoryView>().call1((PyTensor(tensor),))?;
    py.import("numpy")?.call_method1("asarray", (view,)).map(Bound::unbind)
}
