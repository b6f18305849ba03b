//! Gradients of an operator as functions on another library's tensors.
//!
//! In: the gradients of a call's results, the results, and the arguments. Out: the gradients of arguments, as `opsmith_abi` computes them.

use opsmith_abi::{Lists, second};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Tensor, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::exchange::{Exchange, Session};
use super::kernel::{optional_tensors, own, read_all, tensors_of};
use crate::call::{elements, released, tensor_by_name};
use crate::errors::{OrRaise, forget};

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
        let run = || opsmith_abi::gradients(op, &mut given, Some(results.clone()), &gradients, wanted);
        let (leaves, found) = released(py, count, run).or_raise(py)?;
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
