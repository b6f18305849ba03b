//! Gradients of an operator as functions on another library's tensors.
//!
//! In: the gradients of a call's results, the results, and the arguments. Out: the gradients of arguments. If the entry has
//! formulas, the call is recorded from its results, without running again, and only elements that formulas read need exist; a
//! composition runs again.

use opsmith_runtime::autograd::{self, Options};
use opsmith_runtime::boxed;
use opsmith_runtime::internals;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, Result, Tensor, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::exchange::{Exchange, Session};
use super::kernel::{Given, optional_tensors, own, read_all, tensors_of};
use crate::call::{elements, released, tensor_by_name};
use crate::errors::{OrRaise, forget};

/// Whether the results of a call, which are its visible ones, suffice to record it.
pub fn is_recorded_from_results(op: &OpDef) -> bool {
    op.grad.is_some() && op.hidden == 0 && op.present.is_none()
}

/// The derivative of an operator, on tensors of a class.
///
/// Called with the gradients of results, the results, a truth value for each tensor argument, and the arguments, it returns
/// the gradient of each argument whose value is true.
#[pyclass(name = "_Pullback", module = "opsmith", frozen)]
pub struct PyPullback {
    op: &'static OpDef,
    exchange: Exchange,
}

impl PyPullback {
    pub fn new(op: &'static OpDef, exchange: Exchange) -> PyPullback {
        PyPullback { op, exchange }
    }
}

/// Replaces the tensors of arguments by leaves where a gradient is wanted; returns those.
pub fn track(given: &mut Given, wanted: &[bool]) -> Result<Vec<Tensor>> {
    let (mut leaves, mut place) = (Vec::new(), 0);
    let mut one = |tensor: &mut Tensor| -> Result<()> {
        if wanted.get(place).copied().unwrap_or(false) {
            *tensor = tensor.detach();
            tensor.set_requires_grad(true)?;
            leaves.push(tensor.clone());
        }
        place += 1;
        Ok(())
    };
    let (args, named) = given;
    for value in args.iter_mut().chain(named.iter_mut().map(|(_, value)| value)) {
        match value {
            Value::Tensor(tensor) => one(tensor)?,
            Value::Tensors(list) => list.iter_mut().try_for_each(&mut one)?,
            Value::OptionalTensors(list) => list.iter_mut().flatten().try_for_each(&mut one)?,
            _ => {}
        }
    }
    Ok(leaves)
}

/// The results of a call of tracked arguments, in its graph.
pub fn recorded(op: &'static OpDef, given: &Given, results: Option<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    let (args, named) = given;
    let named: Vec<(&str, Value)> =
        named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    if let Some(mut results) = results {
        results.iter_mut().for_each(|tensor| *tensor = tensor.detach());
        let record = |args: &[Arg<'_>]| internals::record_results(op, args, &mut results);
        internals::with_bound(op, args, &named, record)?;
        return Ok(results);
    }
    let values = boxed::call_definition(op, args, &named)?;
    let mut found = Vec::new();
    for value in &values {
        match value {
            // An absent result keeps its place among the gradients.
            Value::None => found.push(Tensor::from_slice::<f32>(&[], &[0])?),
            value => value.as_arg().for_each_tensor(|tensor| found.push(tensor.clone())),
        }
    }
    Ok(found)
}

/// The gradients of tensors, from those of results; `None` where no result depends on one.
pub fn pull(
    results: &[Tensor],
    gradients: &[Option<Tensor>],
    leaves: &[Tensor],
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let flows =
        |(result, gradient): &(&Tensor, &Option<Tensor>)| gradient.is_some() && result.requires_grad();
    let (results, gradients): (Vec<&Tensor>, Vec<Option<&Tensor>>) = results
        .iter()
        .zip(gradients)
        .filter(flows)
        .map(|(result, gradient)| (result, gradient.as_ref()))
        .unzip();
    if results.is_empty() {
        return Ok(vec![None; leaves.len()]);
    }
    autograd::grad(&results, &leaves.iter().collect::<Vec<_>>(), &gradients, options)
}

/// The lists of a call of the second derivative.
struct Lists<'a> {
    cotangents: &'a [Option<Tensor>],
    needed: &'a [bool],
    wanted: &'a [bool],
}

/// The leaves whose gradients a second derivative gives, and those gradients.
fn second(
    op: &'static OpDef,
    given: &mut Given,
    gradients: &mut [Option<Tensor>],
    results: &[Tensor],
    lists: &Lists<'_>,
) -> Result<(Vec<Tensor>, Vec<Option<Tensor>>)> {
    let Lists { cotangents, needed, wanted } = *lists;
    let present = gradients.iter().flatten().count();
    let mut all = Vec::new();
    for (gradient, needed) in gradients.iter_mut().flatten().zip(needed) {
        *gradient = gradient.detach();
        if *needed {
            gradient.set_requires_grad(true)?;
            all.push(gradient.clone());
        }
    }
    // Every argument that takes part in either derivative is a leaf.
    let needed = needed.get(present..).unwrap_or_default();
    let is_in = |list: &[bool], at: usize| list.get(at).copied().unwrap_or(false);
    let either: Vec<bool> =
        (0..wanted.len().max(needed.len())).map(|at| is_in(wanted, at) || is_in(needed, at)).collect();
    let leaves = track(given, &either)?;
    let places: Vec<usize> = (0..either.len()).filter(|at| either[*at]).collect();
    let of = |list: &[bool]| -> Vec<Tensor> {
        let chosen = places.iter().zip(&leaves).filter(|(at, _)| is_in(list, **at));
        chosen.map(|(_, leaf)| leaf.clone()).collect()
    };
    autograd::enable_grad(|| {
        let given_results = is_recorded_from_results(op).then(|| results.to_vec());
        let outs = recorded(op, given, given_results)?;
        let options = Options { retain_graph: true, create_graph: true };
        let first = pull(&outs, gradients, &of(wanted), options)?;
        let (first, starts): (Vec<Tensor>, Vec<Option<Tensor>>) =
            first.into_iter().zip(cotangents).filter_map(|(one, start)| Some((one?, start.clone()))).unzip();
        all.extend(of(needed));
        let found = pull(&first, &starts, &all, Options::default())?;
        Ok((all, found))
    })
}

#[pymethods]
impl PyPullback {
    #[pyo3(signature = (gradients, results, wanted, *args, **named))]
    fn __call__(
        &self,
        gradients: &Bound<'_, PyAny>,
        results: &Bound<'_, PyAny>,
        wanted: Vec<bool>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        self.run(gradients, results, &wanted, args, named, false)
    }

    /// The same for a backward pass that is not recorded: a gradient that passes unchanged is the given object.
    #[pyo3(signature = (gradients, results, wanted, *args, **named))]
    fn direct(
        &self,
        gradients: &Bound<'_, PyAny>,
        results: &Bound<'_, PyAny>,
        wanted: Vec<bool>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        self.run(gradients, results, &wanted, args, named, true)
    }

    /// The derivative of the derivative: the gradients of the gradients and arguments of a call of this, from those of its
    /// results. `wanted` is that of the call, `needed` has a truth value for each present gradient, then each tensor argument.
    #[allow(
        clippy::too_many_arguments,
        reason = "it is called by a dispatcher, which passes lists one by one"
    )]
    #[pyo3(signature = (cotangents, needed, gradients, results, wanted, *args, **named))]
    fn second(
        &self,
        py: Python<'_>,
        cotangents: &Bound<'_, PyAny>,
        needed: Vec<bool>,
        gradients: &Bound<'_, PyAny>,
        results: &Bound<'_, PyAny>,
        wanted: Vec<bool>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let mut session = self.exchange.session();
        let cotangents = optional_tensors(&mut session, cotangents)?;
        let mut gradients = optional_tensors(&mut session, gradients)?;
        let results: Vec<Tensor> = optional_tensors(&mut session, results)?.into_iter().flatten().collect();
        let mut given = read_all(&mut session, args.iter(), named)?;
        forget();
        let (op, count) = (self.op, elements(&given.0));
        let run = || {
            let lists = Lists { cotangents: &cotangents, needed: &needed, wanted: &wanted };
            second(op, &mut given, &mut gradients, &results, &lists)
        };
        let (all, found) = released(py, count, run).or_raise(py)?;
        let mut others: Vec<Tensor> = tensors_of(&given).into_vec();
        others.extend(cotangents.into_iter().flatten());
        others.extend(results);
        others.extend(gradients.into_iter().flatten());
        let found = give(py, &session, (all, found), others, &[])?;
        session.end(py)?;
        Ok(found)
    }
}

/// Whether two tensors have the same elements at the same places.
fn are_one(a: &Tensor, b: &Tensor) -> bool {
    a.shares_storage(b)
        && (a.data_ptr(), a.dtype(), a.shape(), a.strides())
            == (b.data_ptr(), b.dtype(), b.shape(), b.strides())
}

impl PyPullback {
    /// The gradients of a call. If they may be the given ones, those that pass unchanged are their objects.
    fn run(
        &self,
        gradient_objects: &Bound<'_, PyAny>,
        results: &Bound<'_, PyAny>,
        wanted: &[bool],
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
        may_be_given: bool,
    ) -> PyResult<Py<PyAny>> {
        let py = args.py();
        let mut session = self.exchange.session();
        let gradients = optional_tensors(&mut session, gradient_objects)?;
        let results: Vec<Tensor> = optional_tensors(&mut session, results)?.into_iter().flatten().collect();
        let mut given = read_all(&mut session, args.iter(), named)?;
        forget();
        let (op, count) = (self.op, elements(&given.0));
        let (leaves, found) = released(py, count, || {
            let leaves = track(&mut given, wanted)?;
            let given_results = is_recorded_from_results(op).then_some(results.clone());
            let outs = autograd::enable_grad(|| recorded(op, &given, given_results))?;
            let found = pull(&outs, &gradients, &leaves, Options::default())?;
            Ok((leaves, found))
        })
        .or_raise(py)?;
        let mut same: Vec<(Tensor, Py<PyAny>)> = Vec::new();
        if may_be_given {
            for (tensor, object) in gradients.iter().zip(gradient_objects.try_iter()?) {
                same.extend(tensor.clone().zip(Some(object?.unbind())));
            }
        }
        let mut others: Vec<Tensor> = tensors_of(&given).into_vec();
        others.extend(results);
        others.extend(gradients.into_iter().flatten());
        let found = give(py, &session, (leaves, found), others, &same)?;
        session.end(py)?;
        Ok(found)
    }
}

/// Objects of gradients, zeros where none flows, and those of tensors that are the `same`.
fn give(
    py: Python<'_>,
    session: &Session<'_>,
    (leaves, found): (Vec<Tensor>, Vec<Option<Tensor>>),
    mut others: Vec<Tensor>,
    same: &[(Tensor, Py<PyAny>)],
) -> PyResult<Py<PyAny>> {
    let mut objects = Vec::with_capacity(leaves.len());
    for (leaf, found) in leaves.iter().zip(found) {
        let known = found.as_ref().and_then(|found| same.iter().find(|(one, _)| are_one(one, found)));
        if let Some((_, object)) = known {
            objects.push(object.clone_ref(py));
            continue;
        }
        let tensor = match found {
            Some(tensor) => own(py, tensor, others.iter())?,
            None => {
                let zeros = tensor_by_name(py, "zeros_like", &[Value::Tensor(leaf.detach())], &[])?;
                own(py, zeros, others.iter())?
            }
        };
        others.push(tensor.clone());
        objects.push(session.object(py, tensor)?);
    }
    Ok(PyList::new(py, objects)?.into_any().unbind())
}
