//! Results of calls, from the runtime to Python.
//!
//! In: values. Out: objects; several results of one call are a tuple, with names if the signature has them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use opsmith_core::python_name;
use opsmith_runtime::lists::{AnyLists, ListItem, Lists};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, Scalar, Tensor, Value};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyComplex, PyDict, PyList, PyTuple};

use crate::documentation::package;
use crate::random::PyGenerator;
use crate::tensor::PyTensor;
use crate::types::{PyDevice, PyMemoryFormat, dtype_object};

/// The object of one value.
pub fn object(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Tensor(tensor) => Py::new(py, PyTensor(tensor)).map(Py::into_any),
        Value::Tensors(list) => tensors(py, list),
        Value::Generator(generator) => PyGenerator(generator).into_py_any(py),
        value => plain(py, value.as_arg()),
    }
}

/// A tuple of tensors.
pub fn tensors(py: Python<'_>, list: Vec<Tensor>) -> PyResult<Py<PyAny>> {
    let items = list.into_iter().map(|tensor| Py::new(py, PyTensor(tensor))).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, items)?.into_py_any(py)
}

/// A tuple of tensors of which some are absent.
pub fn optional_tensors(py: Python<'_>, list: Vec<Option<Tensor>>) -> PyResult<Py<PyAny>> {
    let item = |tensor: Option<Tensor>| tensor.map(|tensor| Py::new(py, PyTensor(tensor))).transpose();
    let items = list.into_iter().map(item).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, items)?.into_py_any(py)
}

/// The number of a scalar.
pub fn number(py: Python<'_>, scalar: Scalar) -> PyResult<Py<PyAny>> {
    match scalar {
        Scalar::Bool(value) => value.into_py_any(py),
        Scalar::Int(value) => value.into_py_any(py),
        Scalar::Float(value) => value.into_py_any(py),
        Scalar::Complex(value) => PyComplex::from_doubles(py, value.re, value.im).into_py_any(py),
    }
}

fn plain(py: Python<'_>, value: Arg<'_>) -> PyResult<Py<PyAny>> {
    match value {
        Arg::Bool(value) => value.into_py_any(py),
        Arg::Int(value) => value.into_py_any(py),
        Arg::Float(value) => value.into_py_any(py),
        Arg::Scalar(value) => number(py, value),
        Arg::Str(value) => value.into_py_any(py),
        Arg::Ints(list) => list.to_vec().into_py_any(py),
        Arg::Floats(list) => list.to_vec().into_py_any(py),
        Arg::Bools(list) => list.to_vec().into_py_any(py),
        Arg::Scalars(list) => all(py, list.iter().map(|value| number(py, *value))),
        Arg::Strs(list) => all(py, list.iter().map(|text| text.as_ref().into_py_any(py))),
        Arg::DTypes(list) => all(py, list.iter().map(|dtype| dtype_object(py, *dtype)?.into_py_any(py))),
        Arg::Lists(lists) => of_lists(py, lists),
        Arg::DType(value) => dtype_object(py, value)?.into_py_any(py),
        Arg::Device(value) => PyDevice(value).into_py_any(py),
        Arg::MemoryFormat(value) => PyMemoryFormat(value).into_py_any(py),
        Arg::OptionalTensors(list) => optional_tensors(py, list.to_vec()),
        Arg::Tensor(tensor) => Py::new(py, PyTensor(tensor.clone())).map(Py::into_any),
        Arg::Tensors(list) => tensors(py, list.to_vec()),
        Arg::Generator(value) => PyGenerator(value.clone()).into_py_any(py),
        Arg::None => Ok(py.None()),
        Arg::MemoryLayout(_) => "strided".into_py_any(py),
    }
}

fn all(py: Python<'_>, items: impl Iterator<Item = PyResult<Py<PyAny>>>) -> PyResult<Py<PyAny>> {
    PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_py_any(py)
}

fn of_lists(py: Python<'_>, lists: AnyLists<'_>) -> PyResult<Py<PyAny>> {
    fn rows<T: ListItem>(py: Python<'_>, lists: &Lists<T>, row: fn(&[T]) -> Arg<'_>) -> PyResult<Py<PyAny>> {
        all(py, lists.iter().map(|items| plain(py, row(items))))
    }
    match lists {
        AnyLists::Bool(lists) => rows(py, lists, |row| Arg::Bools(row)),
        AnyLists::Int(lists) => rows(py, lists, |row| Arg::Ints(row)),
        AnyLists::Float(lists) => rows(py, lists, |row| Arg::Floats(row)),
        AnyLists::Scalar(lists) => rows(py, lists, |row| Arg::Scalars(row)),
        AnyLists::Str(lists) => rows(py, lists, |row| Arg::Strs(row)),
        AnyLists::DType(lists) => rows(py, lists, |row| Arg::DTypes(row)),
    }
}

/// The classes of results with names, by the operator's name.
static NAMED: Mutex<BTreeMap<&'static str, Py<PyAny>>> = Mutex::new(BTreeMap::new());

/// A class of results: its name, and those of its fields.
type Shape = (String, Vec<String>);

/// The same classes by name and fields, which overloads and pickles share.
static CLASSES: Mutex<BTreeMap<Shape, Py<PyAny>>> = Mutex::new(BTreeMap::new());

/// The object of a call's results: one result alone, several as a tuple, none as None.
pub fn objects(py: Python<'_>, op: &'static OpDef, mut values: Vec<Value>) -> PyResult<Py<PyAny>> {
    match values.len() {
        0 => Ok(py.None()),
        1 => object(py, values.swap_remove(0)),
        count => {
            let items = values.into_iter().map(|value| object(py, value)).collect::<PyResult<Vec<_>>>()?;
            let items = PyTuple::new(py, items)?;
            match class(py, op, count)? {
                Some(class) => class.call_method1(py, "_make", (items,)),
                None => items.into_py_any(py),
            }
        }
    }
}

/// The class of an operator's results, a tuple with names; `None` if the signature has no names.
fn class(py: Python<'_>, op: &'static OpDef, count: usize) -> PyResult<Option<Py<PyAny>>> {
    let known =
        |classes: &BTreeMap<&'static str, Py<PyAny>>| classes.get(op.name).map(|class| class.clone_ref(py));
    if let Some(class) = NAMED.lock().ok().and_then(|classes| known(&classes)) {
        return Ok(Some(class));
    }
    let names: Option<Vec<&str>> = op.schema.returns.iter().take(count).map(|result| result.name).collect();
    let Some(names) = names.filter(|names| names.len() == count) else { return Ok(None) };
    let base = op.name.split('.').next().unwrap_or(op.name);
    let fields = names.into_iter().map(|name| python_name(name.trim_start_matches('_'))).collect();
    let class = class_of(py, (python_name(base.trim_matches('_')), fields))?;
    if let Ok(mut classes) = NAMED.lock() {
        classes.insert(op.name, class.clone_ref(py));
    }
    Ok(Some(class))
}

/// The class with a name and fields, made at its first use. Pickles of its objects have name and fields, since it is an attribute of
/// no module.
fn class_of(py: Python<'_>, shape: Shape) -> PyResult<Py<PyAny>> {
    let known = |classes: &BTreeMap<Shape, Py<PyAny>>| classes.get(&shape).map(|class| class.clone_ref(py));
    if let Some(class) = CLASSES.lock().ok().and_then(|classes| known(&classes)) {
        return Ok(class);
    }
    let named = PyDict::new(py);
    named.set_item("module", package())?;
    let (name, fields) = &shape;
    let class =
        py.import("collections")?.getattr("namedtuple")?.call((name, fields.clone()), Some(&named))?;
    py.import("copyreg")?.call_method1("pickle", (&class, function(py, |all| &all.reduce)?))?;
    let class = class.unbind();
    match CLASSES.lock() {
        // Another thread may have made it meanwhile.
        Ok(mut classes) => Ok(classes.entry(shape).or_insert(class).clone_ref(py)),
        Err(_) => Ok(class),
    }
}

/// The parts of a pickle of results with names.
#[pyfunction]
fn _reduced<'py>(results: &Bound<'py, PyTuple>) -> PyResult<(Py<PyAny>, Bound<'py, PyTuple>)> {
    let py = results.py();
    let class = results.get_type();
    let parts = (class.name()?, class.getattr("_fields")?, results.to_list());
    Ok((function(py, |functions| &functions.rebuild)?, parts.into_pyobject(py)?))
}

/// The results with names of a pickle.
#[pyfunction]
fn _results(
    py: Python<'_>,
    name: String,
    fields: Vec<String>,
    values: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    class_of(py, (name, fields))?.call_method1(py, "_make", (values,))
}

/// The functions of the module that write and read pickles of results.
struct Functions {
    reduce: Py<PyAny>,
    rebuild: Py<PyAny>,
}

static FUNCTIONS: PyOnceLock<Functions> = PyOnceLock::new();

fn function(py: Python<'_>, which: impl Fn(&Functions) -> &Py<PyAny>) -> PyResult<Py<PyAny>> {
    let all = FUNCTIONS.get(py).ok_or_else(|| PyRuntimeError::new_err("the module is not complete yet"))?;
    Ok(which(all).clone_ref(py))
}

/// Adds the function that reads pickles of results, which they name.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let rebuild = wrap_pyfunction!(_results, module)?;
    module.add_function(rebuild.clone())?;
    let reduce = wrap_pyfunction!(_reduced, module)?.into_any().unbind();
    _ = FUNCTIONS.set(module.py(), Functions { reduce, rebuild: rebuild.into_any().unbind() });
    Ok(())
}
