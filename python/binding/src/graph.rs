//! Graphs: functions of Python, traced, checked, planned and run.
//!
//! In: a function, and the dtypes and sizes of its inputs. Out: a graph. While the function is traced, the line of Python that
//! makes a call is the site of its node. The decorator `opsmith.graph` is Python's, above this.

use std::path::PathBuf;
use std::sync::Arc;

use opsmith_graph::{Dim, Graph, InputSpec, Passes, at_source};
use opsmith_runtime::{DType, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::autograd::call_with;
use crate::errors::{OrRaise, forget};
use crate::result;
use crate::types::{PyDType, dtype_object, read_device, read_dtype};
use crate::values::Inputs;

/// Runs a call whose site is the line of Python that is running.
#[cold]
pub fn at_line<R>(py: Python<'_>, function: impl FnOnce() -> R) -> R {
    let line = || -> PyResult<String> {
        let frame = py.import("sys")?.call_method1("_getframe", (0,))?;
        let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
        let line: i64 = frame.getattr("f_lineno")?.extract()?;
        Ok(format!("{file}:{line}"))
    };
    match line() {
        Ok(line) => at_source(&line, function),
        Err(_) => function(),
    }
}

/// The dtype and the sizes of an input of a graph. A size is a number, or a name for one that differs from run to run; equal
/// names are equal sizes.
#[pyclass(name = "InputSpec", module = "opsmith", frozen)]
#[derive(Clone)]
pub struct PyInputSpec(InputSpec);

#[pymethods]
impl PyInputSpec {
    #[new]
    #[pyo3(signature = (shape, dtype=None, *, device=None, name=None, requires_grad=false))]
    fn new(
        shape: Vec<Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
        name: Option<String>,
        requires_grad: bool,
    ) -> PyResult<PyInputSpec> {
        let dims = shape.iter().map(dim).collect::<PyResult<Vec<_>>>()?;
        let mut spec = InputSpec::new(dtype.map(read_dtype).transpose()?.unwrap_or(DType::F32), dims);
        if let Some(device) = device {
            spec = spec.on(read_device(device)?);
        }
        spec.name = name;
        spec.requires_grad = requires_grad;
        Ok(PyInputSpec(spec))
    }

    /// The element type.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        dtype_object(py, self.0.dtype)
    }

    fn __repr__(&self) -> String {
        let dims: Vec<String> = self.0.dims.iter().map(dim_text).collect();
        format!("opsmith.InputSpec(({}), opsmith.{})", dims.join(", "), self.0.dtype)
    }
}

fn dim_text(dim: &Dim) -> String {
    match dim {
        Dim::Fixed(size) => size.to_string(),
        Dim::Symbol { name, .. } => format!("{name:?}"),
        Dim::Unknown | Dim::AnyRank => "None".to_owned(),
        Dim::Sum { .. } => format!("{:?}", dim.to_string()),
    }
}

fn dim(size: &Bound<'_, PyAny>) -> PyResult<Dim> {
    if size.is_none() {
        return Ok(Dim::Unknown);
    }
    if let Ok(name) = size.extract::<String>() {
        return Ok(Dim::multiple(name, 1));
    }
    match size.extract::<i64>() {
        Ok(size) if size >= 0 => Ok(Dim::Fixed(size)),
        _ => Err(PyTypeError::new_err(format!(
            "{} is no size\n  help: sizes are numbers, names, or None",
            size.repr()?
        ))),
    }
}

/// A traced function.
#[pyclass(name = "Graph", module = "opsmith", frozen)]
#[derive(Clone)]
pub struct PyGraph(pub Arc<Graph>);

#[pymethods]
impl PyGraph {
    /// Traces a function, with an input of each specification or like each tensor.
    #[staticmethod]
    #[pyo3(signature = (function, *inputs, optimize=true))]
    fn trace(
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        inputs: &Bound<'_, PyTuple>,
        optimize: bool,
    ) -> PyResult<PyGraph> {
        let spec = |input: Bound<'_, PyAny>| match input.cast::<PyInputSpec>() {
            Ok(spec) => Ok(spec.get().0.clone()),
            Err(_) => crate::argument::read_tensor(&input).map(|tensor| InputSpec::from(&tensor)),
        };
        let specs = inputs.iter().map(spec).collect::<PyResult<Vec<_>>>()?;
        forget();
        let graph = Graph::trace(|tensors: &[Tensor]| call_with(function, tensors), specs).or_raise(py)?;
        let graph = if optimize { graph.optimize(&Passes::all()) } else { graph };
        Ok(PyGraph(Arc::new(graph)))
    }

    /// Runs the graph.
    #[pyo3(signature = (*inputs))]
    fn __call__(&self, py: Python<'_>, inputs: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let inputs = Inputs::read(inputs)?;
        let outputs = py.detach(|| self.0.run(&inputs.tensors)).or_raise(py)?;
        inputs.check(py)?;
        match <[Tensor; 1]>::try_from(outputs) {
            Ok([only]) => result::object(py, opsmith_runtime::Value::Tensor(only)),
            Err(several) => result::tensors(py, several),
        }
    }

    /// Finds all mistakes without running: raises an exception that lists them.
    #[pyo3(signature = (**sizes))]
    fn check(&self, sizes: Option<std::collections::BTreeMap<String, i64>>) -> PyResult<()> {
        let sizes = sizes.unwrap_or_default();
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let found = if sizes.is_empty() { self.0.check().map(drop) } else { self.0.check_at(&sizes) };
        found.map_err(|errors| PyValueError::new_err(errors.to_string()))
    }

    /// A line for each tensor of the graph.
    fn describe(&self) -> String {
        self.0.describe()
    }

    /// The graph as a page to open in a browser.
    fn to_html(&self) -> String {
        self.0.to_html()
    }

    /// Bytes of a run's intermediate tensors, with the sizes of symbols by name.
    #[pyo3(signature = (**sizes))]
    fn memory(
        &self,
        py: Python<'_>,
        sizes: Option<std::collections::BTreeMap<String, i64>>,
    ) -> PyResult<i64> {
        let sizes = sizes.unwrap_or_default();
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        self.0.memory_at(&sizes).map(|report| report.planned as i64).or_raise(py)
    }

    /// Number of nodes.
    fn __len__(&self) -> usize {
        self.0.nodes().len()
    }

    /// Writes the graph into a folder.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        self.0.save(folder).or_raise(py)
    }

    /// Writes the graph as a model of ONNX. Operators that ONNX lacks are nodes of the domain of their library, which
    /// `opsmith.onnxruntime` runs.
    fn save_onnx(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        opsmith_onnx::save_onnx(&self.0, path).or_raise(py)
    }

    /// Reads a graph from a folder.
    #[staticmethod]
    fn load(py: Python<'_>, folder: PathBuf) -> PyResult<PyGraph> {
        Graph::load(folder).map(|graph| PyGraph(Arc::new(graph))).or_raise(py)
    }

    fn __repr__(&self) -> String {
        format!("<opsmith.Graph of {} nodes>", self.0.nodes().len())
    }
}

/// Adds the classes.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyInputSpec>()?;
    module.add_class::<PyGraph>()
}
