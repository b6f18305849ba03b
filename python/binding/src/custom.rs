//! Operators of kernels that are compiled and loaded while the program runs.
//!
//! In: a kernel's file and function, the shapes and dtypes of its outputs as values or functions of Python, a registration
//! record, a gradient as a function of Python. Out: a callable object. The kernel's interface, the compiler and the cache are
//! those of `opsmith::aot`.

use opsmith_aot::{AttrValue, BpropContext, Declaration, InferCall, Operator};
use opsmith_core::python_name;
use opsmith_runtime::op::{ArgDef, ArgKind};
use opsmith_runtime::{DType, Scalar, Tensor, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::argument;
use crate::bridge::PyDefinition;
use crate::errors::{OrRaise, carry, forget};
use crate::result;
use crate::tensor::PyTensor;
use crate::types::{dtype_object, read_dtype};

/// A custom operator.
#[pyclass(name = "_Custom", module = "opsmith", frozen)]
pub struct PyCustom(Operator);

/// The shapes of outputs: one list of sizes, or several.
fn shapes(value: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<i64>>> {
    match value.extract::<Vec<i64>>() {
        Ok(only) => Ok(vec![only]),
        Err(_) => value.extract::<Vec<Vec<i64>>>().map_err(|_| {
            PyTypeError::new_err(format!(
                "{} is no shape\n  help: give a list of sizes, or a list of those for several outputs",
                value.repr().map(|text| text.to_string()).unwrap_or_default()
            ))
        }),
    }
}

/// The dtypes of outputs: one, or several.
fn dtypes(value: &Bound<'_, PyAny>) -> PyResult<Vec<DType>> {
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return value.try_iter()?.map(|item| read_dtype(&item?)).collect();
    }
    Ok(vec![read_dtype(value)?])
}

/// Calls a function with the shapes of inputs.
fn call_shapes(function: &Py<PyAny>, call: &InferCall<'_>) -> opsmith_runtime::Result<Vec<Vec<i64>>> {
    let inputs = (0..call.len()).map(|at| call.shape(at).map(<[i64]>::to_vec));
    let inputs = inputs.collect::<opsmith_runtime::Result<Vec<_>>>()?;
    Python::attach(|py| shapes(&function.bind(py).call1(PyTuple::new(py, inputs)?)?)).map_err(carry)
}

/// Calls a function with the dtypes of inputs.
fn call_dtypes(function: &Py<PyAny>, call: &InferCall<'_>) -> opsmith_runtime::Result<Vec<DType>> {
    let inputs = (0..call.len()).map(|at| call.dtype(at)).collect::<opsmith_runtime::Result<Vec<_>>>()?;
    Python::attach(|py| {
        let one = |dtype: Option<DType>| dtype.map(|dtype| dtype_object(py, dtype)).transpose();
        let inputs = inputs.into_iter().map(one).collect::<PyResult<Vec<_>>>()?;
        dtypes(&function.bind(py).call1(PyTuple::new(py, inputs)?)?)
    })
    .map_err(carry)
}

/// Calls a gradient with inputs, outputs and gradients of outputs; several outputs are tuples.
fn call_bprop(
    function: &Py<PyAny>,
    counts: (usize, usize),
    context: &BpropContext,
) -> opsmith_runtime::Result<Vec<Option<Tensor>>> {
    let (inputs, outputs) = counts;
    let list = inputs == 0;
    let mut given: Vec<Option<Tensor>> = (0..inputs).map(|at| context.input(at).ok().cloned()).collect();
    // The number of inputs of a list is that of the call.
    given.extend((0..).take_while(|_| list).map_while(|at| context.input(at).ok().cloned().map(Some)));
    let results =
        (0..outputs).map(|at| context.output(at).cloned()).collect::<opsmith_runtime::Result<Vec<_>>>()?;
    let gradients =
        (0..outputs).map(|at| context.grad_or_zeros(at)).collect::<opsmith_runtime::Result<Vec<_>>>()?;
    let run = |py: Python<'_>| -> PyResult<Vec<Option<Tensor>>> {
        let one = |tensor: Tensor| Py::new(py, PyTensor(tensor)).map(Py::into_any);
        let alone = |mut tensors: Vec<Tensor>| match tensors.len() {
            1 => one(tensors.swap_remove(0)),
            _ => result::tensors(py, tensors),
        };
        let count = given.len();
        let mut args = Vec::with_capacity(count + 2);
        for tensor in given {
            args.push(tensor.map_or_else(|| Ok(py.None()), one)?);
        }
        args.extend([alone(results)?, alone(gradients)?]);
        let found = function.bind(py).call1(PyTuple::new(py, args)?)?;
        let found: Vec<Bound<'_, PyAny>> = match (found.cast::<PyTuple>(), found.cast::<PyList>()) {
            (Ok(tuple), _) => tuple.iter().collect(),
            (_, Ok(list)) => list.iter().collect(),
            _ => vec![found],
        };
        let read = |item: &Bound<'_, PyAny>| {
            if item.is_none() { Ok(None) } else { argument::read_tensor(item).map(Some) }
        };
        found.iter().map(read).collect()
    };
    Python::attach(run).map_err(carry)
}

/// The value of an attribute.
fn attribute(value: Value) -> PyResult<AttrValue> {
    Ok(match value {
        Value::Bool(value) | Value::Scalar(Scalar::Bool(value)) => AttrValue::Bool(value),
        Value::Int(value) | Value::Scalar(Scalar::Int(value)) => AttrValue::Int(value),
        Value::Float(value) | Value::Scalar(Scalar::Float(value)) => AttrValue::Float(value),
        Value::Str(text) => AttrValue::Str(text),
        Value::Ints(list) => AttrValue::Ints(list),
        Value::Bools(list) => AttrValue::Ints(list.into_iter().map(i64::from).collect()),
        Value::Floats(list) => AttrValue::Floats(list),
        _ => {
            return Err(PyTypeError::new_err(
                "an attribute of a kernel is a bool, int, float, str, or a list of ints or floats",
            ));
        }
    })
}

#[pymethods]
impl PyCustom {
    #[pyo3(signature = (*args, **named))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (mut tensors, mut attributes) = (Vec::new(), Vec::new());
        // Values behind the tensors are those attributes that calls give, in their order.
        let mut names =
            self.0.definition().schema.args.iter().filter(|def| !def.ty.holds_tensors()).map(|def| def.name);
        for arg in args {
            match argument::read(&arg)? {
                Value::Tensor(tensor) => tensors.push(tensor),
                Value::Tensors(list) => tensors.extend(list),
                value => match names.next() {
                    Some(name) => attributes.push((name.to_owned(), attribute(value)?)),
                    None => {
                        return Err(PyTypeError::new_err(format!(
                            "`{}` takes tensors, got {}\n  help: the signature is {}",
                            self.0.definition().name,
                            arg.repr()?,
                            self.0.definition().schema.text
                        )));
                    }
                },
            }
        }
        for (name, value) in named.into_iter().flatten() {
            attributes.push((name.extract()?, attribute(argument::read(&value)?)?));
        }
        forget();
        let inputs: Vec<&Tensor> = tensors.iter().collect();
        let attributes: Vec<(&str, AttrValue)> =
            attributes.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        // Functions of shapes take the interpreter's lock, so that no call may wait for another one while it has it.
        let outs = py.detach(|| self.0.call_with(&inputs, &attributes)).or_raise(py)?;
        let mut outs = outs.into_vec();
        match outs.len() {
            1 => Ok(Py::new(py, PyTensor(outs.swap_remove(0)))?.into_any()),
            _ => result::tensors(py, outs),
        }
    }

    /// Compiles the source if it has to be, and loads the library, so that the first call need not.
    fn load(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.load()).or_raise(py)
    }

    /// The shared object that is loaded, or would be.
    fn library(&self, py: Python<'_>) -> PyResult<std::path::PathBuf> {
        py.detach(|| self.0.library()).or_raise(py)
    }

    /// The definition.
    #[getter]
    fn definition(&self) -> PyDefinition {
        PyDefinition(self.0.definition())
    }

    /// The name of the operator.
    #[getter]
    fn __name__(&self) -> &'static str {
        self.0.definition().name
    }

    /// The signature as `inspect` shows it: tensors by position, then the attributes that calls give.
    #[getter]
    fn __signature__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let inspect = py.import("inspect")?;
        let class = inspect.getattr("Parameter")?;
        let args = self.0.definition().schema.args;
        let is_list = args.iter().any(|def| def.ty.kind == ArgKind::Tensors);
        let parameter = |def: &ArgDef| {
            let kind = match (def.ty.kind, def.ty.holds_tensors()) {
                (ArgKind::Tensors, _) => "VAR_POSITIONAL",
                (_, true) => "POSITIONAL_ONLY",
                _ if is_list => "KEYWORD_ONLY",
                _ => "POSITIONAL_OR_KEYWORD",
            };
            let named = PyDict::new(py);
            if def.ty.optional && kind == "POSITIONAL_ONLY" {
                named.set_item("default", py.None())?;
            }
            class.call((python_name(def.name), class.getattr(kind)?), Some(&named))
        };
        let parameters = args.iter().map(parameter).collect::<PyResult<Vec<_>>>()?;
        inspect.getattr("Signature")?.call1((parameters,))
    }

    /// The signature.
    #[getter]
    fn schema(&self) -> &'static str {
        self.0.definition().schema.text
    }

    fn __repr__(&self) -> String {
        format!("<opsmith.custom {}>", self.0.definition().schema.text)
    }
}

/// Declares a custom operator: see `opsmith.custom`, which writes the record.
#[pyfunction]
#[pyo3(signature = (func, record, inputs, outputs, out_shape=None, out_dtype=None, bprop=None, flags=Vec::new(), check=None))]
#[allow(clippy::too_many_arguments, reason = "the function of Python above it has names for them")]
fn _custom_kernel(
    py: Python<'_>,
    func: &str,
    record: &str,
    inputs: usize,
    outputs: usize,
    out_shape: Option<Bound<'_, PyAny>>,
    out_dtype: Option<Bound<'_, PyAny>>,
    bprop: Option<Py<PyAny>>,
    flags: Vec<String>,
    check: Option<bool>,
) -> PyResult<PyCustom> {
    let mut declaration = Declaration::from_record(func, record).or_raise(py)?;
    if let Some(value) = out_shape {
        declaration = match value.is_callable() {
            true => {
                let function = value.unbind();
                declaration.output_shape_fn(move |call| call_shapes(&function, call))
            }
            false => declaration.output_shapes(shapes(&value)?),
        };
    }
    if let Some(value) = out_dtype {
        // Types of Python and NumPy can be called, too, and are values.
        declaration = match read_dtype(&value).is_err() && value.is_callable() {
            true => {
                let function = value.unbind();
                declaration.output_dtype_fn(move |call| call_dtypes(&function, call))
            }
            false => declaration.output_dtypes(dtypes(&value)?),
        };
    }
    if let Some(function) = bprop {
        declaration = declaration.bprop(move |context| call_bprop(&function, (inputs, outputs), context));
    }
    for flag in flags {
        declaration = declaration.flag(flag);
    }
    if let Some(check) = check {
        declaration = declaration.check(check);
    }
    declaration.declare().map(PyCustom).or_raise(py)
}

/// Adds the class and the function.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCustom>()?;
    module.add_function(wrap_pyfunction!(_custom_kernel, module)?)
}
