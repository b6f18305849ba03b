//! Operators for other frameworks: kernels for their dispatchers, inference for their compilers.
//!
//! In: the definitions of a library. Out: objects, of which `opsmith.torch` and `opsmith.jax`, in Python, make operators of
//! those frameworks. No framework is linked: tensors are exchanged by DLPack, sizes by Python's arithmetic; `xla` knows the layout of its frames.

mod definition;
mod exchange;
mod infer;
mod kernel;
mod onnxruntime;
mod pull;
mod xla;

pub use definition::PyDefinition;

use pyo3::prelude::*;

/// Adds the classes and functions.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    definition::install(module)?;
    onnxruntime::install(module)?;
    xla::install(module)
}
