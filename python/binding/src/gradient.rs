//! Gradients of tensors: the attributes and methods that are not operators.
//!
//! In: a tensor. Out: whether it is recorded, its gradient, backward passes from it, and hooks.

use opsmith_runtime::Tensor;
use opsmith_runtime::autograd::Options;
use pyo3::prelude::*;

use crate::argument::read_tensor;
use crate::autograd::PyHook;
use crate::errors::{OrRaise, carry};
use crate::tensor::PyTensor;

#[pymethods]
impl PyTensor {
    /// Whether operators record calls with the tensor, for gradients.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.0.requires_grad()
    }

    #[setter]
    fn set_requires_grad(&self, py: Python<'_>, required: bool) -> PyResult<()> {
        self.0.set_requires_grad(required).or_raise(py)
    }

    /// Sets whether operators record calls with the tensor, and returns the tensor.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_<'py>(slf: Bound<'py, Self>, requires_grad: bool) -> PyResult<Bound<'py, Self>> {
        slf.get().0.set_requires_grad(requires_grad).or_raise(slf.py())?;
        Ok(slf)
    }

    /// Whether the tensor was not computed by a recorded operator. Gradients are kept in leaves.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.0.is_leaf()
    }

    /// The gradient that backward passes have added up; None before the first.
    #[getter]
    fn grad(&self) -> Option<PyTensor> {
        self.0.grad().map(PyTensor)
    }

    #[setter]
    fn set_grad(&self, py: Python<'_>, gradient: Option<&Bound<'_, PyTensor>>) -> PyResult<()> {
        self.0.set_grad(gradient.map(|gradient| gradient.get().0.clone())).or_raise(py)
    }

    /// The node of the graph that receives the tensor's gradient, as text; None if it is in no graph.
    #[getter]
    fn grad_fn(&self) -> Option<String> {
        self.0.graph_node().filter(|_| !self.0.is_leaf()).map(|node| format!("{node:?}"))
    }

    /// Removes the gradient.
    fn zero_grad(&self) {
        self.0.zero_grad();
    }

    /// Makes backward keep the gradient of this tensor, as it does that of leaves.
    fn retain_grad(&self, py: Python<'_>) -> PyResult<()> {
        self.0.retain_grad().or_raise(py)
    }

    /// Computes the gradients of all leaves that the tensor depends on, and adds them to their `grad`.
    #[pyo3(signature = (gradient=None, *, retain_graph=false, create_graph=false))]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<&Bound<'_, PyAny>>,
        retain_graph: bool,
        create_graph: bool,
    ) -> PyResult<()> {
        let gradient = gradient.map(read_tensor).transpose()?;
        let options = Options { retain_graph, create_graph };
        crate::errors::forget();
        py.detach(|| self.0.backward_with(gradient.as_ref(), options)).or_raise(py)
    }

    /// Runs a function on each gradient of the tensor; a tensor that it returns replaces the gradient.
    fn register_hook(&self, py: Python<'_>, hook: Py<PyAny>) -> PyResult<PyHook> {
        let run = move |gradient: &Tensor| {
            Python::attach(|py| -> PyResult<Option<Tensor>> {
                let found = hook.bind(py).call1((PyTensor(gradient.clone()),))?;
                if found.is_none() { Ok(None) } else { read_tensor(&found).map(Some) }
            })
            .map_err(carry)
        };
        self.0.register_hook(run).map(PyHook).or_raise(py)
    }

    /// The same elements outside any graph, in the same memory.
    fn detach(&self) -> PyTensor {
        PyTensor(self.0.detach())
    }
}
