//! Calls of operators from Python.
//!
//! In: the overloads of a name, and the objects of a call. Out: its result as an object, or an exception. Arguments that have
//! the types of a signature as they stand go straight to the operator; all others go through the runtime's calls by name, whose
//! conversions and errors are those of every other caller. The interpreter's lock is released while a large call runs.

use std::collections::HashMap;
use std::sync::OnceLock;

use opsmith_runtime::boxed;
use opsmith_runtime::generated::call as enter;
use opsmith_runtime::internals;
use opsmith_runtime::library::{Form, Library, Named};
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::{Arg, Tensor, Value};
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

use crate::bind::{self, Arguments, Given};
use crate::errors::{self, OrRaise, raise};
use crate::graph;
use crate::result;
use crate::tensor::PyTensor;
use crate::values::Reader;

/// The library of the module.
static LIBRARY: OnceLock<&'static Library> = OnceLock::new();

/// The position of each operator's declaration, by its address.
static PLACES: OnceLock<HashMap<usize, usize>> = OnceLock::new();

/// Elements of a call from which on it runs without the interpreter's lock. To release and take it again costs about 100 ns
/// where no other thread waits for it; a call of so many elements takes some microseconds.
const LARGE: i64 = 1 << 13;

/// A name of the module with the operators and forms that it may mean, those with the fewest conversions first.
pub struct Overloads {
    /// The name, such as `add` or `add_`.
    pub name: &'static str,
    /// Operators with their forms, in the order in which they are tried.
    pub candidates: Vec<Named>,
    /// The library in which calls by name look for it.
    pub library: &'static Library,
    /// The spec that was loaded for it; `None` for the module's own library.
    pub spec: Option<&'static str>,
}

/// Remembers the library of the module.
pub fn set_library(library: &'static Library) -> PyResult<()> {
    LIBRARY.set(library).map_err(|_| PyImportError::new_err("the module is filled twice in one process"))
}

/// The library of the module.
pub fn library() -> &'static Library {
    LIBRARY.get().copied().unwrap_or(&Library::EMPTY)
}

impl Overloads {
    /// The overloads of a name, as the runtime orders them: that of exactly this name first, others as they are declared.
    pub fn of(name: &'static str) -> opsmith_runtime::Result<Overloads> {
        let library = library();
        let mut candidates: Vec<Named> = library.candidates(name)?.into_vec();
        if candidates.len() > 1 {
            let places = PLACES.get_or_init(|| {
                library
                    .all_ops()
                    .into_iter()
                    .enumerate()
                    .map(|(place, op)| (std::ptr::from_ref(op).addr(), place))
                    .collect()
            });
            let place = |op: &'static OpDef| places.get(&std::ptr::from_ref(op).addr());
            candidates.sort_by_key(|(op, _)| (op.name != name, place(op)));
        }
        Ok(Overloads { name, candidates, library, spec: None })
    }

    /// The overloads of a name among the operators of a loaded spec, as they are declared.
    pub fn of_spec(library: &'static Library, name: &'static str, spec: &'static str) -> Overloads {
        let base = |full: &str| full.split('.').next() == Some(name);
        let own = library.names.iter().filter(|(full, _, form)| *form != Form::Out && base(full));
        let mut candidates: Vec<Named> = own.map(|(_, op, form)| (*op, *form)).collect();
        let place = |op: &'static OpDef| library.ops.iter().position(|known| std::ptr::eq(*known, op));
        candidates.sort_by_key(|(op, _)| (op.name != name, place(op)));
        Overloads { name, candidates, library, spec: Some(spec) }
    }

    /// Calls with the objects of a call of Python.
    ///
    /// # Safety
    /// The objects and names are those that Python passes to a function.
    #[inline]
    pub unsafe fn call(&self, py: Python<'_>, given: Given<'_>) -> PyResult<*mut ffi::PyObject> {
        let mut bound = Arguments::new();
        for (op, form) in &self.candidates {
            // SAFETY: the objects are valid while the call runs.
            if unsafe { bind::exact(py, op, given, &mut bound) }.is_some() {
                return self.run(py, op, *form, &bound, given);
            }
        }
        // SAFETY: the objects are valid while the call runs.
        unsafe { self.convert(py, given) }
    }

    /// Runs an operator with its arguments.
    #[inline]
    fn run(
        &self,
        py: Python<'_>,
        op: &'static OpDef,
        form: Form,
        bound: &Arguments<'_>,
        given: Given<'_>,
    ) -> PyResult<*mut ffi::PyObject> {
        let (args, library) = (bound.args(), self.library);
        let finish = || objects(py, op, form, compute(library, op, form, args), given);
        if internals::is_tracing() {
            return graph::at_line(py, finish);
        }
        if bound.elements < LARGE {
            return finish();
        }
        let computed = py.detach(|| compute(library, op, form, args));
        objects(py, op, form, computed, given)
    }

    /// Calls with objects of other types.
    ///
    /// # Safety
    /// As of [`Overloads::call`].
    #[cold]
    unsafe fn convert(&self, py: Python<'_>, given: Given<'_>) -> PyResult<*mut ffi::PyObject> {
        // SAFETY: the objects are valid while the call runs.
        let object = |position: usize| unsafe { Bound::from_borrowed_ptr(py, given.objects[position]) };
        let mut reader = Reader::new(self.name, &self.candidates);
        let mut args =
            (0..given.positional).map(|at| reader.at(at, &object(at))).collect::<PyResult<Vec<_>>>()?;
        let mut named = Vec::with_capacity(given.objects.len() - given.positional);
        for position in given.positional..given.objects.len() {
            let name = bind::name_at(given.names, position - given.positional).unwrap_or_default();
            let value = object(position);
            // `out=None` is no `out`.
            if name != "out" || !value.is_none() {
                let name = self.keyword(name);
                named.push((name, reader.named(name, &value)?));
            }
        }
        self.pack(&mut args);
        let out = named.iter().any(|(name, _)| *name == "out");
        let values = traced(py, || {
            let elements = elements(&args);
            released(py, elements, || boxed::call(self.library, self.name, &args, &named))
        });
        let values = values.or_raise(py)?;
        reader.check(py)?;
        let given_back = if out { self.out(py, given) } else { self.target(given) };
        if let Some(target) = given_back {
            // SAFETY: an object of the call, of which the caller gets a reference of its own.
            unsafe { ffi::Py_INCREF(target) };
            return Ok(target);
        }
        Ok(result::objects(py, self.candidates[0].0, values)?.into_ptr())
    }

    /// A keyword as the signatures have it: Python's own words end in `_`.
    fn keyword<'a>(&self, name: &'a str) -> &'a str {
        match name.strip_suffix('_') {
            Some(word) if self.candidates.iter().any(|(op, _)| op.argument(word).is_some()) => word,
            _ => name,
        }
    }

    /// Sizes given one by one, as in `x.reshape(2, 3)`, become a list if a signature has a list in their place.
    fn pack(&self, args: &mut Vec<Value>) {
        let is_list = |place: usize| {
            self.candidates.iter().any(|(op, _)| {
                let all: Vec<_> = op.schema.args.iter().filter(|def| !def.keyword_only).collect();
                all.len() == place + 1 && matches!(all[place].ty.kind, ArgKind::Ints(_))
            })
        };
        let first = args.iter().position(|arg| matches!(arg, Value::Int(_)));
        if let Some(first) = first
            && args.len() - first > 1
            && is_list(first)
            && let Some(sizes) = args[first..].iter().map(int).collect::<Option<Vec<i64>>>()
        {
            args.truncate(first);
            args.push(Value::Ints(sizes));
        } else if let (Some(first), true) = (first, args.len() - first.unwrap_or(0) == 1)
            && self.candidates.iter().all(|(op, _)| {
                op.schema.args.get(first).is_some_and(|def| matches!(def.ty.kind, ArgKind::Ints(None)))
            })
            && let Some(size) = int(&args[first])
        {
            args[first] = Value::Ints(vec![size]);
        }
    }

    /// The object that an in-place form writes into and returns.
    fn target(&self, given: Given<'_>) -> Option<*mut ffi::PyObject> {
        let (op, form) = self.candidates[0];
        (form == Form::Inplace && op.inplace_pairs.is_empty()).then(|| bind::first(op, given))?
    }

    /// The object given as `out`, if it is a single tensor.
    fn out(&self, py: Python<'_>, given: Given<'_>) -> Option<*mut ffi::PyObject> {
        (given.positional..given.objects.len()).find_map(|position| {
            let name = bind::name_at(given.names, position - given.positional)?;
            let object = given.objects[position];
            // SAFETY: the objects are valid while the call runs.
            let is_tensor = unsafe { Bound::from_borrowed_ptr(py, object) }.is_instance_of::<PyTensor>();
            (name == "out" && is_tensor).then_some(object)
        })
    }
}

fn int(value: &Value) -> Option<i64> {
    if let Value::Int(value) = value { Some(*value) } else { None }
}

/// Elements of all tensors among values, and of those that sizes among them describe.
pub fn elements(args: &[Value]) -> i64 {
    let mut count = 0;
    for arg in args {
        arg.as_arg().for_each_tensor(|tensor| count += tensor.numel());
        if let Value::Ints(sizes) = arg {
            count = count.max(sizes.iter().fold(1i64, |product, size| product.saturating_mul(*size)));
        }
    }
    count
}

/// Runs a function, without the interpreter's lock if it works on many elements.
#[inline]
pub fn released<R: Send>(py: Python<'_>, elements: i64, function: impl FnOnce() -> R + Send) -> R {
    if elements >= LARGE { py.detach(function) } else { function() }
}

/// Runs a call at the line of Python that made it, if the thread traces.
#[inline]
fn traced<R>(py: Python<'_>, function: impl FnOnce() -> R) -> R {
    if internals::is_tracing() { graph::at_line(py, function) } else { function() }
}

/// The result of a call before it becomes an object.
enum Computed {
    One(Tensor),
    Values(Vec<Value>),
    /// The call wrote into its first argument.
    Written,
}

#[inline]
fn compute(
    library: &'static Library,
    op: &'static OpDef,
    form: Form,
    args: &[Arg<'_>],
) -> opsmith_runtime::Result<Computed> {
    match form {
        Form::Functional if is_single(op) => enter::invoke_single(op, args).map(Computed::One),
        Form::Inplace if op.inplace_pairs.is_empty() => {
            enter::invoke_inplace(op, args).map(|()| Computed::Written)
        }
        Form::Inplace => {
            let values: SmallVec<[Value; 8]> = args.iter().map(|arg| arg.to_value()).collect();
            boxed::call(library, op.forms.inplace.unwrap_or(op.name), &values, &[]).map(Computed::Values)
        }
        Form::Functional | Form::Out => boxed::functional(op, args).map(Computed::Values),
    }
}

#[inline]
fn objects(
    py: Python<'_>,
    op: &'static OpDef,
    form: Form,
    computed: opsmith_runtime::Result<Computed>,
    given: Given<'_>,
) -> PyResult<*mut ffi::PyObject> {
    match computed {
        Ok(Computed::One(tensor)) => Ok(Py::new(py, PyTensor(tensor))?.into_ptr()),
        Ok(Computed::Written) => {
            debug_assert_eq!(form, Form::Inplace);
            let target = bind::first(op, given).unwrap_or(given.objects[0]);
            // SAFETY: an object of the call, of which the caller gets a reference of its own.
            unsafe { ffi::Py_INCREF(target) };
            Ok(target)
        }
        Ok(Computed::Values(values)) => Ok(result::objects(py, op, values)?.into_ptr()),
        Err(error) => Err(raise(py, error)),
    }
}

/// Whether a call of the functional form gives exactly one tensor.
#[inline]
fn is_single(op: &OpDef) -> bool {
    op.host.is_none()
        && op.present.is_none()
        && op.hidden == 0
        && matches!(op.schema.returns, [only] if only.ty.kind == ArgKind::Tensor)
}

/// Calls the overloads of a name with values, for parts of the module that need an operator.
pub fn by_name(py: Python<'_>, name: &str, args: &[Value], named: &[(&str, Value)]) -> PyResult<Vec<Value>> {
    errors::forget();
    traced(py, || released(py, elements(args), || boxed::call(library(), name, args, named))).or_raise(py)
}

/// As [`by_name`], for an operator with one tensor as its result.
pub fn tensor_by_name(
    py: Python<'_>,
    name: &str,
    args: &[Value],
    named: &[(&str, Value)],
) -> PyResult<Tensor> {
    match by_name(py, name, args, named)?.into_iter().next() {
        Some(Value::Tensor(tensor)) => Ok(tensor),
        _ => Err(pyo3::exceptions::PyRuntimeError::new_err(format!("`{name}` gave no tensor"))),
    }
}

/// Calls an operator by its full name, such as `add.Tensor`, or by a name of another library. Names without overload choose one
/// by the arguments, as the functions do.
///
/// Examples
/// --------
/// >>> import opsmith
/// >>> opsmith.call("add.Scalar", opsmith.ones([2]), 1)
/// tensor([2., 2.], dtype=float32)
#[pyfunction(name = "call")]
#[pyo3(signature = (name, /, *args, **named))]
fn call_by_name(
    py: Python<'_>,
    name: &str,
    args: &Bound<'_, PyTuple>,
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    let candidates = library().candidates(name).or_raise(py)?;
    let mut reader = Reader::new(name, &candidates);
    let args = args.iter().enumerate().map(|(at, arg)| reader.at(at, &arg)).collect::<PyResult<Vec<_>>>()?;
    let mut owned: Vec<(String, Value)> = Vec::new();
    for (key, value) in named.into_iter().flatten() {
        let key: String = key.extract()?;
        let value = reader.named(&key, &value)?;
        owned.push((key, value));
    }
    let named: Vec<(&str, Value)> = owned.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    let values = by_name(py, name, &args, &named)?;
    reader.check(py)?;
    result::objects(py, candidates[0].0, values)
}

/// Adds the function.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(call_by_name, module)?)
}
