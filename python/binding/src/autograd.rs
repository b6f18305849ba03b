//! Differentiation: recording modes, gradients, derivatives of functions, hooks, functions with a backward of their own.
//!
//! In: tensors and functions of Python. Out: gradients. A function of Python that fails in the middle of a pass ends it with the
//! exception that it raised.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith_runtime::autograd::{self, CustomContext, HookHandle, Options, Saver};
use opsmith_runtime::{Error, Tensor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::argument::{read_results, read_tensor, read_tensors};
use crate::errors::{OrRaise, carry, forget};
use crate::result;
use crate::tensor::PyTensor;

/// A hook of a tensor; `remove()` ends it.
#[pyclass(name = "HookHandle", module = "opsmith", frozen)]
pub struct PyHook(pub HookHandle);

#[pymethods]
impl PyHook {
    /// Removes the hook.
    fn remove(&self) {
        self.0.remove();
    }
}

/// Switches recording in this thread; returns whether it was on.
#[pyfunction]
fn _set_grad_enabled(enabled: bool) -> bool {
    autograd::set_enabled(enabled)
}

/// Whether operators record calls for gradients in this thread.
#[pyfunction]
fn is_grad_enabled() -> bool {
    autograd::is_enabled()
}

/// Gradients of outputs, None standing for 1.
fn starts(given: Option<&Bound<'_, PyAny>>, count: usize) -> PyResult<Vec<Option<Tensor>>> {
    let Some(given) = given else { return Ok(vec![None; count]) };
    if given.is_instance_of::<PyTensor>() {
        return Ok(vec![Some(read_tensor(given)?)]);
    }
    given
        .try_iter()?
        .map(|one| one.and_then(|one| if one.is_none() { Ok(None) } else { read_tensor(&one).map(Some) }))
        .collect()
}

/// Adds the gradients of outputs to all leaves that they depend on.
#[pyfunction]
#[pyo3(signature = (outputs, gradients=None, *, retain_graph=false, create_graph=false))]
fn backward(
    py: Python<'_>,
    outputs: &Bound<'_, PyAny>,
    gradients: Option<&Bound<'_, PyAny>>,
    retain_graph: bool,
    create_graph: bool,
) -> PyResult<()> {
    let outputs = read_tensors(outputs)?;
    let gradients = starts(gradients, outputs.len())?;
    forget();
    py.detach(|| {
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        let gradients: Vec<Option<&Tensor>> = gradients.iter().map(Option::as_ref).collect();
        autograd::backward(&outputs, &gradients, Options { retain_graph, create_graph })
    })
    .or_raise(py)
}

/// The gradients of outputs with respect to inputs, a tuple; None where no output depends on an input.
#[pyfunction]
#[pyo3(signature = (outputs, inputs, grad_outputs=None, *, retain_graph=false, create_graph=false))]
fn grad(
    py: Python<'_>,
    outputs: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    grad_outputs: Option<&Bound<'_, PyAny>>,
    retain_graph: bool,
    create_graph: bool,
) -> PyResult<Py<PyAny>> {
    let (outputs, inputs) = (read_tensors(outputs)?, read_tensors(inputs)?);
    let gradients = starts(grad_outputs, outputs.len())?;
    forget();
    let found = py.detach(|| {
        let outputs: Vec<&Tensor> = outputs.iter().collect();
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let gradients: Vec<Option<&Tensor>> = gradients.iter().map(Option::as_ref).collect();
        autograd::grad(&outputs, &inputs, &gradients, Options { retain_graph, create_graph })
    });
    result::optional_tensors(py, found.or_raise(py)?)
}

/// Calls a function of Python with tensors; its result is a tensor or several.
pub fn call_with(function: &Bound<'_, PyAny>, tensors: &[Tensor]) -> opsmith_runtime::Result<Vec<Tensor>> {
    let run = || -> PyResult<Vec<Tensor>> {
        let items = tensors.iter().map(|tensor| Py::new(function.py(), PyTensor(tensor.clone())));
        let items = PyTuple::new(function.py(), items.collect::<PyResult<Vec<_>>>()?)?;
        read_results(&function.call1(items)?)
    };
    run().map_err(carry)
}

/// One result alone, several as a tuple, as the function itself returns them.
fn like(py: Python<'_>, mut tensors: Vec<Option<Tensor>>) -> PyResult<Py<PyAny>> {
    match tensors.len() {
        1 => match tensors.swap_remove(0) {
            Some(tensor) => Py::new(py, PyTensor(tensor)).map(Py::into_any),
            None => Ok(py.None()),
        },
        _ => result::optional_tensors(py, tensors),
    }
}

/// The value of a function and its derivative along tangents, in forward mode.
#[pyfunction]
fn jvp(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    tangents: &Bound<'_, PyAny>,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let (inputs, tangents) = (read_tensors(inputs)?, read_tensors(tangents)?);
    let (inputs, tangents): (Vec<&Tensor>, Vec<&Tensor>) =
        (inputs.iter().collect(), tangents.iter().collect());
    forget();
    let (values, found) =
        autograd::jvp(|tensors| call_with(function, tensors), &inputs, &tangents).or_raise(py)?;
    Ok((like(py, values.into_iter().map(Some).collect())?, like(py, found)?))
}

/// The value of a function and the gradients of its inputs from those of its results, in reverse mode.
#[pyfunction]
fn vjp(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    inputs: &Bound<'_, PyAny>,
    cotangents: &Bound<'_, PyAny>,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let (inputs, cotangents) = (read_tensors(inputs)?, read_tensors(cotangents)?);
    let (inputs, cotangents): (Vec<&Tensor>, Vec<&Tensor>) =
        (inputs.iter().collect(), cotangents.iter().collect());
    forget();
    let (values, found) =
        autograd::vjp(|tensors| call_with(function, tensors), &inputs, &cotangents).or_raise(py)?;
    Ok((like(py, values.into_iter().map(Some).collect())?, like(py, found)?))
}

fn single(function: &Bound<'_, PyAny>, tensor: &Tensor) -> opsmith_runtime::Result<Tensor> {
    let mut results = call_with(function, std::slice::from_ref(tensor))?;
    match results.len() {
        1 => Ok(results.swap_remove(0)),
        count => Err(Error::argument(format!("the function returns {count} tensors, one is needed"))),
    }
}

/// The derivatives of each element of a function's result by each element of its input.
#[pyfunction]
fn jacobian(py: Python<'_>, function: &Bound<'_, PyAny>, input: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    forget();
    autograd::jacobian(|tensor| single(function, tensor), &read_tensor(input)?).map(PyTensor).or_raise(py)
}

/// The second derivatives of a function with one element by each pair of elements of its input.
#[pyfunction]
fn hessian(py: Python<'_>, function: &Bound<'_, PyAny>, input: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    forget();
    autograd::hessian(|tensor| single(function, tensor), &read_tensor(input)?).map(PyTensor).or_raise(py)
}

/// The Hessian of a function with one element, times a vector.
#[pyfunction]
fn hvp(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    input: &Bound<'_, PyAny>,
    vector: &Bound<'_, PyAny>,
) -> PyResult<PyTensor> {
    forget();
    let (input, vector) = (read_tensor(input)?, read_tensor(vector)?);
    autograd::hvp(|tensor| single(function, tensor), &input, &vector).map(PyTensor).or_raise(py)
}

/// Runs a function again in the backward pass rather than keep its intermediate tensors.
#[pyfunction]
#[pyo3(signature = (function, *inputs))]
fn checkpoint(py: Python<'_>, function: Py<PyAny>, inputs: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let inputs = inputs.iter().map(|input| read_tensor(&input)).collect::<PyResult<Vec<_>>>()?;
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    forget();
    let run = move |tensors: &[Tensor]| Python::attach(|py| call_with(function.bind(py), tensors));
    like(py, autograd::checkpoint(&inputs, run).or_raise(py)?.into_iter().map(Some).collect())
}

/// The context of a function with its own backward: the tensors that forward saves for it, and other values.
#[pyclass(name = "FunctionContext", module = "opsmith", dict)]
pub struct PyContext {
    save: Vec<Tensor>,
    saved: Vec<Tensor>,
    needs: Vec<bool>,
}

#[pymethods]
impl PyContext {
    /// Saves tensors for backward, which reads them as `saved_tensors`.
    #[pyo3(signature = (*tensors))]
    fn save_for_backward(&mut self, tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.save = tensors.iter().map(|tensor| read_tensor(&tensor)).collect::<PyResult<_>>()?;
        Ok(())
    }

    /// The tensors that forward saved.
    #[getter]
    fn saved_tensors(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        result::tensors(py, self.saved.clone())
    }

    /// Whether each input needs a gradient.
    #[getter]
    fn needs_input_grad<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.needs)
    }
}

/// Calls a function of Python that has a backward of its own. `forward(context, *inputs)` and `backward(context, *gradients)`
/// get the same context; the tensors among the inputs may require gradients.
#[pyfunction]
#[pyo3(signature = (name, forward, backward, inputs))]
fn _custom(
    py: Python<'_>,
    name: String,
    forward: &Bound<'_, PyAny>,
    backward: Py<PyAny>,
    inputs: &Bound<'_, PyTuple>,
) -> PyResult<Py<PyAny>> {
    let place = |(place, input): (usize, Bound<'_, PyAny>)| {
        let tensor = input.cast_into::<PyTensor>().ok()?.get().0.clone();
        Some((place, tensor))
    };
    let (places, tensors): (Vec<usize>, Vec<Tensor>) = inputs.iter().enumerate().filter_map(place).unzip();
    let references: Vec<&Tensor> = tensors.iter().collect();
    let needs =
        inputs.iter().map(|input| input.cast_into::<PyTensor>().is_ok_and(|one| one.get().0.requires_grad()));
    let context = Py::new(py, PyContext { save: Vec::new(), saved: Vec::new(), needs: needs.collect() })?;
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let made = counts.clone();
    let count = inputs.len();
    let run = |tensors: &[&Tensor], saver: &mut Saver| -> opsmith_runtime::Result<Vec<Tensor>> {
        let mut run = || -> PyResult<Vec<Tensor>> {
            let mut all: Vec<Py<PyAny>> = vec![context.clone_ref(py).into_any()];
            all.extend(inputs.iter().map(Bound::unbind));
            for (place, tensor) in places.iter().zip(tensors) {
                all[place + 1] = Py::new(py, PyTensor((*tensor).clone()))?.into_any();
            }
            let results = read_results(&forward.call1(PyTuple::new(py, all)?)?)?;
            let save = std::mem::take(&mut context.borrow_mut(py).save);
            save.iter().for_each(|tensor| saver.save(tensor));
            made.0.store(results.len(), Ordering::Relaxed);
            made.1.store(save.len(), Ordering::Relaxed);
            Ok(results)
        };
        run().map_err(carry)
    };
    let backward = Backward {
        context: context.clone_ref(py),
        function: backward,
        places: places.clone(),
        count,
        counts,
    };
    let pull = move |given: &CustomContext<'_>| Python::attach(|py| backward.pull(py, given));
    forget();
    let results = autograd::custom(name, &references, run, pull).or_raise(py)?;
    like(py, results.into_iter().map(Some).collect())
}

/// The backward of a function of Python.
struct Backward {
    context: Py<PyContext>,
    function: Py<PyAny>,
    /// The inputs that are tensors.
    places: Vec<usize>,
    /// Number of all inputs.
    count: usize,
    /// Numbers of outputs and of saved tensors.
    counts: Arc<(AtomicUsize, AtomicUsize)>,
}

impl Backward {
    /// The gradients of the inputs that are tensors.
    fn pull(
        &self,
        py: Python<'_>,
        given: &CustomContext<'_>,
    ) -> opsmith_runtime::Result<Vec<Option<Tensor>>> {
        let saved = self.counts.1.load(Ordering::Relaxed);
        let saved =
            (0..saved).map(|place| given.saved(place)).collect::<opsmith_runtime::Result<Vec<_>>>()?;
        self.context.borrow_mut(py).saved = saved;
        let found = self.run(py, given).map_err(carry);
        // A saved output would keep the graph alive, which keeps the context.
        self.context.borrow_mut(py).saved.clear();
        found
    }

    fn run(&self, py: Python<'_>, given: &CustomContext<'_>) -> PyResult<Vec<Option<Tensor>>> {
        let mut all: Vec<Py<PyAny>> = vec![self.context.clone_ref(py).into_any()];
        for output in 0..self.counts.0.load(Ordering::Relaxed) {
            let gradient = given.grad(output).map(|one| Py::new(py, PyTensor(one.clone()))).transpose()?;
            all.push(gradient.map_or_else(|| py.None(), Py::into_any));
        }
        let found = self.function.bind(py).call1(PyTuple::new(py, all)?)?;
        let found: Vec<Bound<'_, PyAny>> = match found.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![found],
        };
        if found.len() != self.count {
            return Err(PyValueError::new_err(format!(
                "backward returned {} gradients for {} inputs\n  help: return None for inputs without a gradient",
                found.len(),
                self.count
            )));
        }
        let one = |place: &usize| {
            if found[*place].is_none() { Ok(None) } else { read_tensor(&found[*place]).map(Some) }
        };
        self.places.iter().map(one).collect()
    }
}

/// Adds the classes and functions.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyHook>()?;
    module.add_class::<PyContext>()?;
    module.add_function(wrap_pyfunction!(_set_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(backward, module)?)?;
    module.add_function(wrap_pyfunction!(grad, module)?)?;
    module.add_function(wrap_pyfunction!(jvp, module)?)?;
    module.add_function(wrap_pyfunction!(vjp, module)?)?;
    module.add_function(wrap_pyfunction!(jacobian, module)?)?;
    module.add_function(wrap_pyfunction!(hessian, module)?)?;
    module.add_function(wrap_pyfunction!(hvp, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint, module)?)?;
    module.add_function(wrap_pyfunction!(_custom, module)?)
}
