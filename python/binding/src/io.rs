//! Files of arrays.
//!
//! In: paths. Out: tensors, and the reverse. Archives of several tensors are Python's, in `opsmith.files`.

use std::path::PathBuf;

use opsmith_runtime::Tensor;
use pyo3::prelude::*;

use crate::argument::read_tensor;
use crate::errors::OrRaise;
use crate::tensor::PyTensor;

/// Reads an array of NumPy from a `.npy` file.
#[pyfunction]
fn load_npy(py: Python<'_>, path: PathBuf) -> PyResult<PyTensor> {
    py.detach(|| Tensor::load_npy(path)).map(PyTensor).or_raise(py)
}

/// Writes a tensor to a `.npy` file, which NumPy reads.
#[pyfunction]
fn save_npy(py: Python<'_>, path: PathBuf, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    let tensor = read_tensor(tensor)?;
    py.detach(|| tensor.save_npy(path)).or_raise(py)
}

/// The elements of a tensor in row-major order, as bytes.
#[pyfunction]
fn _to_bytes<'py>(py: Python<'py>, tensor: &Bound<'_, PyAny>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
    Ok(pyo3::types::PyBytes::new(py, &crate::construct::bytes(py, &read_tensor(tensor)?)?))
}

/// Adds the functions.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(load_npy, module)?)?;
    module.add_function(wrap_pyfunction!(save_npy, module)?)?;
    module.add_function(wrap_pyfunction!(_to_bytes, module)?)
}
