//! Operators as functions on another library's tensors, for that library's own dispatcher.
//!
//! In: an operator, and a class of tensors that exchanges memory ([`Exchange`]). Out: a callable object. Arguments are read
//! without a copy; results are new, row-major and share no memory, as dispatchers of functional operators require.

use opsmith_abi::Given;
use opsmith_runtime::boxed;
use opsmith_runtime::error::Error;
use opsmith_runtime::library::Form;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{MemoryFormat, Tensor, Value};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;

use super::exchange::{Exchange, Session};
use crate::argument;
use crate::call::{elements, released, tensor_by_name};
use crate::errors::{OrRaise, forget, raise};
use crate::result;

/// Reads an argument: tensors of the class, lists of such, and whatever other calls take.
fn read(session: &mut Session<'_>, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if session.is_object(object) {
        return session.tensor(object).map(Value::Tensor);
    }
    let list: Vec<Bound<'_, PyAny>> = match (object.cast::<PyList>(), object.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => return argument::read(object),
    };
    if !list.iter().any(|item| session.is_object(item)) {
        return argument::read(object);
    }
    if list.iter().all(|item| session.is_object(item)) {
        return list.iter().map(|item| session.tensor(item)).collect::<PyResult<_>>().map(Value::Tensors);
    }
    optional_tensors(session, object).map(Value::OptionalTensors)
}

/// Tensors of a list, of which some may be absent.
pub fn optional_tensors(session: &mut Session<'_>, list: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Tensor>>> {
    let item = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        match item.is_none() {
            true => Ok(None),
            false if session.is_object(&item) => session.tensor(&item).map(Some),
            false => argument::read_tensor(&item).map(Some),
        }
    };
    list.try_iter()?.map(item).collect()
}

/// Reads the arguments of a call.
pub fn read_all<'py>(
    session: &mut Session<'_>,
    args: impl Iterator<Item = Bound<'py, PyAny>>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Given> {
    let args = args.map(|arg| read(session, &arg)).collect::<PyResult<_>>()?;
    let named = named.into_iter().flatten().map(|(key, value)| Ok((key.extract()?, read(session, &value)?)));
    Ok((args, named.collect::<PyResult<_>>()?))
}

/// A tensor that may be given away: row-major, in memory that none of these has.
pub fn own<'a>(
    py: Python<'_>,
    tensor: Tensor,
    mut others: impl Iterator<Item = &'a Tensor>,
) -> PyResult<Tensor> {
    let tensor = if tensor.requires_grad() { tensor.detach() } else { tensor };
    if tensor.is_contiguous() && !others.any(|other| other.shares_storage(&tensor)) {
        return Ok(tensor);
    }
    let format = ("memory_format", Value::MemoryFormat(MemoryFormat::Contiguous));
    tensor_by_name(py, "clone", &[Value::Tensor(tensor)], &[format])
}

/// The tensors among values.
pub fn tensors_of(given: &Given) -> SmallVec<[Tensor; 4]> {
    let mut found = SmallVec::new();
    let (args, named) = given;
    for value in args.iter().chain(named.iter().map(|(_, value)| value)) {
        value.as_arg().for_each_tensor(|tensor| found.push(tensor.clone()));
    }
    found
}

/// The sizes of a tensor among values.
fn shape(value: &Value) -> SmallVec<[i64; 6]> {
    if let Value::Tensor(tensor) = value { SmallVec::from_slice(tensor.shape()) } else { SmallVec::new() }
}

/// An operator of one form, on tensors of a class.
#[pyclass(name = "_Kernel", module = "opsmith", frozen)]
pub struct PyKernel {
    op: &'static OpDef,
    form: Form,
    exchange: Exchange,
}

impl PyKernel {
    pub fn new(op: &'static OpDef, form: Form, exchange: Exchange) -> PyKernel {
        PyKernel { op, form, exchange }
    }

    /// The functional form: new tensors.
    fn functional(&self, py: Python<'_>, session: &Session<'_>, given: &Given) -> PyResult<Py<PyAny>> {
        let (args, named) = given;
        let named: SmallVec<[(&str, Value); 4]> =
            named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let values =
            released(py, elements(args), || boxed::call_definition(self.op, args, &named)).or_raise(py)?;
        let inputs = tensors_of(given);
        let mut made: SmallVec<[Tensor; 4]> = SmallVec::new();
        let mut give = |tensor: Tensor| -> PyResult<Py<PyAny>> {
            let tensor = own(py, tensor, inputs.iter().chain(&made))?;
            made.push(tensor.clone());
            session.object(py, tensor)
        };
        let mut objects: SmallVec<[Py<PyAny>; 4]> = SmallVec::new();
        for value in values {
            objects.push(match value {
                Value::Tensor(tensor) => give(tensor)?,
                Value::Tensors(list) => {
                    let list = list.into_iter().map(&mut give).collect::<PyResult<Vec<_>>>()?;
                    PyList::new(py, list)?.into_any().unbind()
                }
                value => result::object(py, value)?,
            });
        }
        match objects.len() {
            0 => Ok(py.None()),
            1 => Ok(objects.swap_remove(0)),
            _ => Ok(PyTuple::new(py, objects)?.into_any().unbind()),
        }
    }

    /// A form that writes into given tensors, whose objects are returned.
    fn writing(
        &self,
        py: Python<'_>,
        given: &Given,
        objects: &Bound<'_, PyTuple>,
        named_objects: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (args, named) = given;
        let named: SmallVec<[(&str, Value); 4]> =
            named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let (name, target) = match self.form {
            Form::Out => {
                (self.op.forms.out, named_objects.and_then(|all| all.get_item("out").ok().flatten()))
            }
            _ => (self.op.forms.inplace, objects.get_item(0).ok()),
        };
        let name = name.unwrap_or(self.op.name);
        let written = match self.form {
            Form::Out => named.iter().find(|(name, _)| *name == "out").map(|(_, value)| value),
            _ => args.first(),
        };
        let before = written.map(shape);
        released(py, elements(args), || boxed::call_form(self.op, self.form, args, &named)).or_raise(py)?;
        // A tensor without elements got new memory, which the other library's does not have.
        if written.map(shape) != before {
            let error = Error::shape("`out` has no elements, the result has some")
                .with_help("give an `out` of the shape of the result");
            return Err(raise(py, error.in_op(name, Vec::new())));
        }
        target
            .map(Bound::unbind)
            .ok_or_else(|| PyRuntimeError::new_err(format!("`{name}` had no tensor to write into")))
    }
}

#[pymethods]
impl PyKernel {
    #[pyo3(signature = (*args, **named))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let mut session = self.exchange.session();
        let given = read_all(&mut session, args.iter(), named)?;
        forget();
        let found = match self.form {
            Form::Functional => self.functional(py, &session, &given),
            Form::Inplace | Form::Out => self.writing(py, &given, args, named),
        }?;
        session.end(py)?;
        Ok(found)
    }

    fn __repr__(&self) -> String {
        format!("<kernel of {}>", self.op.name)
    }
}
