//! Programs exported by PyTorch, as objects.
//!
//! In: a `.pt2` file. Out: its inputs, weights, mistakes and results.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use opsmith_programs::{OutputRole, Program, ProgramSize};
use opsmith_runtime::error::Error;
use opsmith_runtime::{Tensor, Value};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::RwLockExt;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::errors::{OrRaise, raise};
use crate::graph::PyGraph;
use crate::result;
use crate::tensor::PyTensor;
use crate::types::{PyDevice, dtype_object, read_device};
use crate::values::Inputs;

/// A program that `torch.export.save` wrote.
#[pyclass(name = "Program", module = "opsmith", frozen)]
pub struct PyProgram(RwLock<Program>);

impl PyProgram {
    /// The program as it is. A thread that waits does not hold the interpreter, which runs of the program ask for signals.
    fn read(&self, py: Python<'_>) -> RwLockReadGuard<'_, Program> {
        self.0.read_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// The tensors of a run: inputs by position, then by name.
    fn read_inputs(
        &self,
        inputs: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Inputs> {
        let Some(named) = named.filter(|named| !named.is_empty()) else {
            return Inputs::read(inputs);
        };
        let py = inputs.py();
        let names: Vec<String> = self.read(py).inputs().iter().map(|input| input.name.clone()).collect();
        let failure = |text: String| {
            raise(py, Error::argument(text).with_help(format!("the inputs are: {}", names.join(", "))))
        };
        for name in named.keys() {
            let name: String = name.extract()?;
            let position = names.iter().position(|known| *known == name);
            let position = position.ok_or_else(|| failure(format!("there is no input `{name}`")))?;
            if position < inputs.len() {
                return Err(failure(format!("`{name}` is given twice, by position and by name")));
            }
        }
        let all = PyList::new(py, inputs.iter())?;
        for name in names.iter().skip(inputs.len()) {
            let given = named.get_item(name)?;
            all.append(given.ok_or_else(|| failure(format!("the input `{name}` is missing")))?)?;
        }
        Inputs::read(&all.to_tuple())
    }

    /// The results of a run, without the interpreter.
    fn results(
        &self,
        inputs: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
        run: impl FnOnce(&Program, &[Tensor]) -> opsmith_runtime::Result<Vec<Tensor>> + Send,
    ) -> PyResult<Py<PyAny>> {
        let py = inputs.py();
        let inputs = self.read_inputs(inputs, named)?;
        let found =
            py.detach(|| run(&self.0.read().unwrap_or_else(PoisonError::into_inner), &inputs.tensors));
        let found = found.or_raise(py)?;
        inputs.check(py)?;
        outputs(py, found)
    }

    /// Changes the program when no thread runs it. A thread that waits does not hold the interpreter.
    fn change<T: Send>(&self, py: Python<'_>, body: impl FnOnce(&mut Program) -> T + Send) -> T {
        py.detach(|| body(&mut self.0.write().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// A result: its name, its role, and the name of the parameter or input that it is a gradient by.
type Output = (String, &'static str, Option<String>);

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
    /// Runs the program as a graph, whose memory is planned. Inputs may be given by their names, behind those by position.
    #[pyo3(signature = (*inputs, **named))]
    fn __call__(
        &self,
        inputs: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        self.results(inputs, named, |program, tensors| program.run(tensors))
    }

    /// Calls the program's operators one by one, so that gradients flow to inputs and parameters that require them.
    #[pyo3(signature = (*inputs, **named))]
    fn call(&self, inputs: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        self.results(inputs, named, |program, tensors| program.call(tensors))
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
        self.read(py).inputs().iter().map(input).collect()
    }

    /// The results of a run: name, role (`"result"`, `"loss"` or `"gradient"`), and the parameter or input that a gradient is by.
    #[getter]
    fn outputs(&self, py: Python<'_>) -> Vec<Output> {
        let output = |output: opsmith_programs::ProgramOutput| match output.role {
            OutputRole::Result => (output.name, "result", None),
            OutputRole::Loss => (output.name, "loss", None),
            OutputRole::Gradient { of } => (output.name, "gradient", Some(of)),
        };
        self.read(py).outputs().into_iter().map(output).collect()
    }

    /// The device of weights, inputs and results.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyDevice {
        PyDevice(self.read(py).device())
    }

    /// Moves the weights to a device, where the program then runs; returns the program itself.
    fn to<'py>(
        slf: PyRef<'py, Self>,
        py: Python<'py>,
        device: &Bound<'_, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        let device = read_device(device)?;
        slf.change(py, |program| program.move_to(device)).or_raise(py)?;
        Ok(slf)
    }

    /// Gives the program other weights of the same names and shapes: those of a safetensors file, of the files of an index, or of a
    /// `.npz` file.
    fn load_weights(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let loaded = self.change(py, |program| program.load_weights(path));
        loaded.map_err(|errors| PyValueError::new_err(errors.to_string()))
    }

    /// The parameters by name, which training changes.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        self.read(py)
            .parameters()
            .try_for_each(|(name, tensor)| all.set_item(name, PyTensor(tensor.clone())))?;
        Ok(all)
    }

    /// Parameters, buffers and constants by name.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        self.read(py)
            .weights()
            .try_for_each(|(name, tensor)| all.set_item(name, PyTensor(tensor.clone())))?;
        Ok(all)
    }

    /// The version of PyTorch that wrote the program; None if the file does not say it.
    #[getter]
    fn torch_version(&self, py: Python<'_>) -> Option<String> {
        self.read(py).torch_version().map(str::to_owned)
    }

    /// Finds all mistakes; raises an exception that lists them, or returns a text with the inputs and needs of a run.
    fn check(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py)
            .check()
            .map(|checked| checked.to_string())
            .map_err(|errors| PyValueError::new_err(errors.to_string()))
    }

    /// The graph of the program, with the weights as they are now.
    fn graph(&self, py: Python<'_>) -> PyResult<PyGraph> {
        self.read(py).graph().map(PyGraph).map_err(|errors| PyValueError::new_err(errors.to_string()))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let inputs: Vec<String> = self.read(py).inputs().iter().map(ToString::to_string).collect();
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
    program.map(|program| PyProgram(RwLock::new(program))).or_raise(py)
}

/// Adds the class and the function.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyProgram>()?;
    module.add_function(wrap_pyfunction!(load, module)?)
}
