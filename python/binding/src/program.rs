//! Programs exported by PyTorch, as objects.
//!
//! In: a `.pt2` file. Out: its inputs, weights, mistakes and results.

use std::path::PathBuf;

use opsmith_programs::{Program, ProgramSize};
use opsmith_runtime::{Tensor, Value};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::argument::read_tensors;
use crate::errors::OrRaise;
use crate::graph::PyGraph;
use crate::result;
use crate::tensor::PyTensor;
use crate::types::dtype_object;

/// A program that `torch.export.save` wrote.
#[pyclass(name = "Program", module = "opsmith", frozen)]
pub struct PyProgram(Program);

/// An input: its name, dtype and sizes.
type Input = (String, Py<PyAny>, Py<PyAny>);

fn outputs(py: Python<'_>, tensors: Vec<Tensor>) -> PyResult<Py<PyAny>> {
    match <[Tensor; 1]>::try_from(tensors) {
        Ok([only]) => result::object(py, Value::Tensor(only)),
        Err(several) => result::tensors(py, several),
    }
}

#[pymethods]
impl PyProgram {
    /// Runs the program as a graph, whose memory is planned.
    #[pyo3(signature = (*inputs))]
    fn __call__(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let inputs = read_tensors(inputs.as_any())?;
        let found = py.detach(|| self.0.run(&inputs)).or_raise(py)?;
        outputs(py, found)
    }

    /// Calls the program's operators one by one, so that gradients flow to inputs and parameters that require them.
    #[pyo3(signature = (*inputs))]
    fn call(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let inputs = read_tensors(inputs.as_any())?;
        let found = py.detach(|| self.0.call(&inputs)).or_raise(py)?;
        outputs(py, found)
    }

    /// The inputs of a run: name, dtype, and sizes, of which those that differ from run to run are names.
    #[getter]
    fn inputs(&self, py: Python<'_>) -> PyResult<Vec<Input>> {
        let size = |size: &ProgramSize| match size {
            ProgramSize::Fixed(size) => size.into_py_any(py),
            ProgramSize::Symbol { name, .. } | ProgramSize::Sum { name, .. } => name.into_py_any(py),
        };
        let input = |input: &opsmith_programs::ProgramInput| {
            let sizes = input.sizes.iter().map(size).collect::<PyResult<Vec<_>>>()?;
            let sizes = PyTuple::new(py, sizes)?.into_py_any(py)?;
            Ok((input.name.clone(), dtype_object(py, input.dtype)?.into_any(), sizes))
        };
        self.0.inputs().iter().map(input).collect()
    }

    /// The parameters by name, which training changes.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        self.0.parameters().try_for_each(|(name, tensor)| all.set_item(name, PyTensor(tensor.clone())))?;
        Ok(all)
    }

    /// Parameters, buffers and constants by name.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        self.0.weights().try_for_each(|(name, tensor)| all.set_item(name, PyTensor(tensor.clone())))?;
        Ok(all)
    }

    /// The version of PyTorch that wrote the program; None if the file does not say it.
    #[getter]
    fn torch_version(&self) -> Option<&str> {
        self.0.torch_version()
    }

    /// Finds all mistakes; raises an exception that lists them, or returns a text with the inputs and needs of a run.
    fn check(&self) -> PyResult<String> {
        self.0
            .check()
            .map(|checked| checked.to_string())
            .map_err(|errors| PyValueError::new_err(errors.to_string()))
    }

    /// The graph of the program, with the weights as they are now.
    fn graph(&self) -> PyResult<PyGraph> {
        self.0.graph().map(PyGraph).map_err(|errors| PyValueError::new_err(errors.to_string()))
    }

    fn __repr__(&self) -> String {
        let inputs: Vec<String> = self.0.inputs().iter().map(ToString::to_string).collect();
        format!("<opsmith.Program of {}>", inputs.join(", "))
    }
}

/// Reads a program that `torch.export.save` wrote, or one of several models in the file, by its name.
#[pyfunction]
#[pyo3(signature = (path, *, model=None))]
fn load(py: Python<'_>, path: PathBuf, model: Option<String>) -> PyResult<PyProgram> {
    let program = py.detach(|| match &model {
        Some(model) => Program::load_model(path, model),
        None => Program::load(path),
    });
    program.map(PyProgram).or_raise(py)
}

/// Adds the class and the function.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyProgram>()?;
    module.add_function(wrap_pyfunction!(load, module)?)
}
