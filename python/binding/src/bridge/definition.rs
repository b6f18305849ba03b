//! Definitions of operators as objects, of which Python code makes those of other frameworks.
//!
//! In: a library. Out: an object for each operator: signature, forms, facts of its derivative, samples, inference, and its
//! functions on another library's tensors.

use opsmith_abi::is_recorded_from_results;
use opsmith_runtime::boxed;
use opsmith_runtime::library::Form;
use opsmith_runtime::op::{ArgDef, ElementType, OpDef};
use opsmith_runtime::{DType, Value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::exchange::Exchange;
use super::infer;
use super::kernel::PyKernel;
use super::pull::PyPullback;
use crate::argument;
use crate::call::library;
use crate::documentation::{sample_dtype, sample_text};
use crate::errors::{OrRaise, forget};
use crate::result;

/// The tag of operators whose results have sizes that elements decide, as in PyTorch's list.
const DYNAMIC: &str = "dynamic_output_shape";

/// A definition of an operator.
#[pyclass(name = "_Definition", module = "opsmith", frozen)]
pub struct PyDefinition(pub &'static OpDef);

/// An argument: its name, the identifier of its kind, its type as schemas write it, whether it may be absent, whether it has a
/// default, and whether it is given by name alone.
type Argument = (&'static str, &'static str, String, bool, bool, bool);

fn positions(bits: u64, count: usize) -> Vec<bool> {
    (0..count).map(|at| bits & 1 << at.min(63) != 0).collect()
}

#[pymethods]
impl PyDefinition {
    /// The full name, such as `add.Tensor`.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    /// The signature as the spec has it.
    #[getter]
    fn schema(&self) -> &'static str {
        self.0.schema.text
    }

    /// The documentation.
    #[getter]
    fn doc(&self) -> &'static str {
        self.0.doc
    }

    /// The library that declares it.
    #[getter]
    fn library(&self) -> &'static str {
        self.0.library.name
    }

    /// The arguments in order.
    #[getter]
    fn arguments(&self) -> Vec<Argument> {
        let argument = |def: &ArgDef| {
            let ty = opsmith_abi::spelling(def);
            (def.name, def.ty.kind.ident(), ty, def.ty.optional, def.default.is_some(), def.keyword_only)
        };
        self.0.schema.args.iter().map(argument).collect()
    }

    /// The results that a call returns, each with its name, the identifier of its kind, and whether it may be absent.
    #[getter]
    fn results(&self) -> Vec<(Option<&'static str>, &'static str, bool)> {
        let all = self.0.schema.returns;
        let visible = all.len() - self.0.hidden.min(all.len());
        all[..visible].iter().map(|def| (def.name, def.ty.kind.ident(), def.ty.optional)).collect()
    }

    /// The name of the form that writes its only result into its first argument.
    #[getter]
    fn inplace(&self) -> Option<&'static str> {
        self.0.forms.inplace.filter(|_| matches!(self.0.inplace_pairs, [] | [(0, 0)]))
    }

    /// The name of the form that writes into given tensors.
    #[getter]
    fn out(&self) -> Option<&'static str> {
        self.0.forms.out
    }

    /// The reason for which a framework of functional operators cannot have it; None if it can. With `views`, a result may share
    /// memory with an argument, since nothing is written there.
    #[pyo3(signature = (views=false))]
    fn refusal(&self, views: bool) -> Option<String> {
        opsmith_abi::facts(self.0).refusal(views)
    }

    /// Whether it is a composition of other operators.
    #[getter]
    fn is_composition(&self) -> bool {
        self.0.composite.is_some()
    }

    /// Whether each element of a result is a function of those of the tensors at the same place, of broadcast shapes.
    #[getter]
    fn is_pointwise(&self) -> bool {
        self.0.forms.elementwise
    }

    /// Whether it has a derivative, of its entry or of its composition.
    #[getter]
    fn is_differentiable(&self) -> bool {
        self.0.grad.is_some_and(|grad| grad.differentiable_outputs != 0)
            || self.0.grad.is_none() && self.0.composite.is_some()
    }

    /// Whether each result can have a gradient; None if a composition decides it.
    #[getter]
    fn differentiable_results(&self) -> Option<Vec<bool>> {
        let grad = self.0.grad?;
        Some(positions(grad.differentiable_outputs, self.0.schema.returns.len()))
    }

    /// Whether sizes of results are known after a run only.
    #[getter]
    fn is_data_dependent(&self) -> bool {
        self.0.rules.is_some_and(|rules| !rules.run_sizes.is_empty()) || self.0.facts.tags.contains(&DYNAMIC)
    }

    /// The dtypes that each argument accepts, the one of kernels first; None for arguments of the call's dtype.
    #[getter]
    fn accepted(&self) -> Vec<Option<Vec<&'static str>>> {
        let one = |at: usize| match self.0.element_types.get(at) {
            Some(ElementType::Fixed { kernel, accepted }) => {
                let others =
                    DType::ALL.into_iter().filter(|dtype| dtype != kernel && accepted.contains(*dtype));
                Some(std::iter::once(*kernel).chain(others).map(|dtype| dtype.name()).collect())
            }
            _ => None,
        };
        (0..self.0.schema.args.len()).map(one).collect()
    }

    /// The arguments and the results whose elements formulas of the derivative read, a truth value each; None if a derivative
    /// runs the operator again, so that all arguments must be kept and no results.
    #[getter]
    fn reads(&self) -> Option<(Vec<bool>, Vec<bool>)> {
        let grad = self.0.grad.filter(|_| is_recorded_from_results(self.0))?;
        let arguments = grad.formulas.iter().fold(0, |all, formula| all | formula.reads_arguments);
        let results = grad.formulas.iter().fold(0, |all, formula| all | formula.reads_outputs);
        Some((
            positions(arguments, self.0.schema.args.len()),
            positions(results, self.0.schema.returns.len()),
        ))
    }

    /// Arguments of calls, as expressions over the functions of `opsmith.testing`, by name.
    #[getter]
    fn samples(&self) -> Vec<Vec<(&'static str, String)>> {
        let op = self.0;
        let sample = |sample: &opsmith_runtime::sample::Sample| {
            let dtype = sample_dtype(op, sample);
            let text = |(name, value): &(&'static str, _)| {
                let element = op.argument(name).and_then(|at| op.element_types.get(at));
                let dtype = match element {
                    Some(ElementType::Real) => dtype.to_real(),
                    Some(ElementType::Fixed { kernel, accepted }) if !accepted.contains(dtype) => *kernel,
                    _ => dtype,
                };
                (*name, sample_text(value, dtype))
            };
            sample.args.iter().map(text).collect()
        };
        op.samples.iter().map(sample).collect()
    }

    /// Shapes and dtypes of results: see `infer::run`.
    #[pyo3(signature = (args, named, hooks))]
    fn infer<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        named: &Bound<'py, PyDict>,
        hooks: &Bound<'py, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        infer::run(self.0, args, named, hooks)
    }

    /// A form as a function on tensors of a class: `functional`, `inplace` or `out`.
    #[pyo3(signature = (class, form="functional"))]
    fn kernel(&self, class: &Bound<'_, PyType>, form: &str) -> PyResult<PyKernel> {
        let form = match form {
            "functional" => Form::Functional,
            "inplace" => Form::Inplace,
            "out" => Form::Out,
            other => {
                return Err(PyValueError::new_err(format!(
                    "there is no form {other:?}\n  help: forms are functional, inplace and out"
                )));
            }
        };
        Ok(PyKernel::new(self.0, form, Exchange::of(class)?))
    }

    /// The derivative as a function on tensors of a class.
    fn pullback(&self, class: &Bound<'_, PyType>) -> PyResult<PyPullback> {
        Ok(PyPullback::new(self.0, Exchange::of(class)?))
    }

    /// Calls the functional form.
    #[pyo3(signature = (*args, **named))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let args = args.iter().map(|arg| argument::read(&arg)).collect::<PyResult<Vec<_>>>()?;
        let named =
            named.into_iter().flatten().map(|(key, value)| Ok((key.extract()?, argument::read(&value)?)));
        let named = named.collect::<PyResult<Vec<(String, Value)>>>()?;
        let named: Vec<(&str, Value)> =
            named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        forget();
        let values = py.detach(|| boxed::call_definition(self.0, &args, &named)).or_raise(py)?;
        result::objects(py, self.0, values)
    }

    fn __repr__(&self) -> String {
        format!("<definition of {}>", self.0.schema.text)
    }
}

/// The definitions of the module's library and, if `parents`, of those that it builds on.
#[pyfunction]
#[pyo3(signature = (parents=true))]
fn _definitions(parents: bool) -> Vec<PyDefinition> {
    let all = if parents { library().all_ops() } else { library().ops.to_vec() };
    all.into_iter().map(PyDefinition).collect()
}

/// The name of each element type.
#[pyfunction]
fn _dtype_names() -> Vec<&'static str> {
    DType::ALL.iter().map(|dtype| dtype.name()).collect()
}

/// Adds the classes and functions.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDefinition>()?;
    module.add_class::<PyKernel>()?;
    module.add_class::<PyPullback>()?;
    module.add_function(pyo3::wrap_pyfunction!(_definitions, module)?)?;
    module.add_function(pyo3::wrap_pyfunction!(_dtype_names, module)?)
}
