//! The extension module of the Python package `opsmith`: the stock library's operators.
//!
//! In: the library's definitions. Out: a module. All of its content is made by `opsmith_python_binding`, which serves other
//! libraries too.

use pyo3::prelude::*;

// Tensors on CUDA devices; nothing of CUDA is needed until one is used.
use opsmith_cuda as _;

/// Fills the module `opsmith._opsmith`.
#[pymodule(gil_used = false)]
fn _opsmith(module: &Bound<'_, PyModule>) -> PyResult<()> {
    opsmith_python_binding::install(module, &opsmith::DOCUMENTATION, "opsmith")
}
