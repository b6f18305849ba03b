//! The fast way of a call's arguments: those that have the types of a signature as they stand.
//!
//! In: an operator's definition, and the objects of a call. Out: its arguments, borrowed from the objects, or nothing if one of
//! them needs a conversion between types, which the runtime's calls by name do. An overload that is found so needs no
//! conversion, so no other overload can fit better.

use std::ffi::c_char;

use opsmith_runtime::op::{ArgDef, ArgKind, OpDef};
use opsmith_runtime::{Arg, Scalar, Value};
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};
use smallvec::SmallVec;

use crate::random::PyGenerator;
use crate::tensor::tensor_of_pointer;
use crate::types::{PyDType, PyDevice, PyMemoryFormat};

/// The objects of a call: those by position, then those by name.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// All objects, in the order of the call.
    pub objects: &'a [*mut ffi::PyObject],
    /// How many are by position.
    pub positional: usize,
    /// The names of the others: a tuple, or null.
    pub names: *mut ffi::PyObject,
}

/// The arguments of a call, which borrow from its objects and from lists that are kept here.
pub struct Arguments<'a> {
    args: SmallVec<[Arg<'a>; 6]>,
    /// Lists at addresses of their own; arguments refer to them.
    #[allow(clippy::vec_box, reason = "references to the values stay valid when the vector grows")]
    kept: Vec<Box<Value>>,
    /// Elements of all tensors, to judge how long the call will take.
    pub elements: i64,
}

impl<'a> Arguments<'a> {
    /// No arguments.
    #[inline]
    pub fn new() -> Arguments<'a> {
        Arguments { args: SmallVec::new(), kept: Vec::new(), elements: 0 }
    }

    /// The arguments in the order of the signature.
    pub fn args(&self) -> &[Arg<'_>] {
        &self.args
    }

    /// An argument that refers to a list, which is kept as long as the arguments are.
    fn keep(&mut self, value: Value) -> Arg<'a> {
        self.kept.push(Box::new(value));
        let place: *const Value = &raw const **self.kept.last().expect("one was pushed");
        // SAFETY: the value has an address of its own, is never changed, and is dropped with the arguments, which give out
        // references that live no longer than themselves.
        unsafe { (*place).as_arg() }
    }
}

/// Reads the arguments of a call of an operator into `bound`, in place of those of another one; `None` if one is missing,
/// unknown, or needs a conversion.
///
/// # Safety
/// The objects and the names are valid while the result lives.
#[inline]
pub unsafe fn exact<'a>(
    py: Python<'_>,
    op: &OpDef,
    given: Given<'a>,
    bound: &mut Arguments<'a>,
) -> Option<()> {
    let defs = op.schema.args;
    if given.objects.len() > defs.len() {
        return None;
    }
    bound.args.clear();
    bound.kept.clear();
    bound.elements = 0;
    for (def, object) in defs.iter().zip(&given.objects[..given.positional]) {
        if def.keyword_only {
            return None;
        }
        // SAFETY: the caller's objects are valid.
        let arg = unsafe { one(py, def, *object, bound) }?;
        bound.args.push(arg);
    }
    let mut named = given.objects.len() - given.positional;
    for def in &defs[given.positional..] {
        let found = if named == 0 { None } else { by_name(def, given) };
        let arg = match (found, def.default) {
            (Some(object), _) => {
                named -= 1;
                // SAFETY: the caller's objects are valid.
                unsafe { one(py, def, object, bound) }?
            }
            (None, Some(default)) => default.as_arg(def.ty),
            (None, None) => return None,
        };
        bound.args.push(arg);
    }
    (named == 0).then_some(())
}

/// The object given for the first argument.
pub fn first(op: &OpDef, given: Given<'_>) -> Option<*mut ffi::PyObject> {
    match given.positional {
        0 => by_name(op.schema.args.first()?, given),
        _ => given.objects.first().copied(),
    }
}

/// The object given for an argument by its name.
fn by_name(def: &ArgDef, given: Given<'_>) -> Option<*mut ffi::PyObject> {
    (given.positional..given.objects.len()).find_map(|position| {
        let name = name_at(given.names, position - given.positional)?;
        let is_it =
            name == def.name || def.aliases.contains(&name) || name.strip_suffix('_') == Some(def.name);
        is_it.then(|| given.objects[position])
    })
}

/// The name of an argument that is given by name.
pub fn name_at<'a>(names: *mut ffi::PyObject, position: usize) -> Option<&'a str> {
    let mut length = 0;
    // SAFETY: `names` is the tuple of texts that Python passes, which outlives the call; a text keeps its bytes.
    unsafe {
        let name = ffi::PyTuple_GetItem(names, position as ffi::Py_ssize_t);
        let text: *const c_char = ffi::PyUnicode_AsUTF8AndSize(name, &raw mut length);
        if text.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        std::str::from_utf8(std::slice::from_raw_parts(text.cast(), length as usize)).ok()
    }
}

/// One argument, if the object has its type as it stands.
///
/// # Safety
/// The object is valid while the arguments live.
#[inline]
unsafe fn one<'a>(
    py: Python<'_>,
    def: &ArgDef,
    object: *mut ffi::PyObject,
    bound: &mut Arguments<'a>,
) -> Option<Arg<'a>> {
    // SAFETY: the object is valid while the arguments live.
    if let Some(tensor) = unsafe { tensor_of_pointer::<'a>(object) } {
        if def.ty.kind != ArgKind::Tensor {
            return None;
        }
        bound.elements += tensor.numel();
        return Some(Arg::Tensor(tensor));
    }
    match def.ty.kind {
        ArgKind::Tensor => (def.ty.optional && is_none(object)).then_some(Arg::None),
        ArgKind::Scalar => number(object).map(Arg::Scalar).or_else(|| none(def, object)),
        // SAFETY: the object is valid.
        _ => other(def, unsafe { Borrowed::from_ptr(py, object) }, bound),
    }
}

fn is_none(object: *mut ffi::PyObject) -> bool {
    // SAFETY: the singleton has no other condition than an interpreter.
    object == unsafe { ffi::Py_None() }
}

fn none(def: &ArgDef, object: *mut ffi::PyObject) -> Option<Arg<'static>> {
    (def.ty.optional && is_none(object)).then_some(Arg::None)
}

/// Whether an object is a number of Python's own types, not of a class derived from them.
#[inline]
pub fn is_plain_number(object: *mut ffi::PyObject) -> bool {
    // SAFETY: callers pass valid objects.
    unsafe {
        ffi::PyFloat_CheckExact(object) != 0
            || ffi::PyLong_CheckExact(object) != 0
            || ffi::PyBool_Check(object) != 0
    }
}

/// A number of Python's own types.
#[inline]
fn number(object: *mut ffi::PyObject) -> Option<Scalar> {
    // SAFETY: the object is valid, and each function reads the type that the check before it found.
    unsafe {
        if ffi::PyFloat_CheckExact(object) != 0 {
            return Some(Scalar::Float(ffi::PyFloat_AsDouble(object)));
        }
        if ffi::PyBool_Check(object) != 0 {
            return Some(Scalar::Bool(object == ffi::Py_True()));
        }
        if ffi::PyLong_CheckExact(object) != 0 {
            return integer(object).map(Scalar::Int);
        }
    }
    None
}

/// An integer of 64 bits.
///
/// # Safety
/// The object is a valid `int`.
#[inline]
unsafe fn integer(object: *mut ffi::PyObject) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: the object is an `int`.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(object, &raw mut overflow) };
    (overflow == 0).then_some(value)
}

fn other<'a>(def: &ArgDef, object: Borrowed<'_, '_, PyAny>, bound: &mut Arguments<'a>) -> Option<Arg<'a>> {
    let pointer = object.as_ptr();
    if is_none(pointer) {
        return def.ty.optional.then_some(Arg::None);
    }
    match def.ty.kind {
        ArgKind::Bool => match number(pointer)? {
            Scalar::Bool(value) => Some(Arg::Bool(value)),
            _ => None,
        },
        ArgKind::Int => match number(pointer)? {
            Scalar::Int(value) => Some(Arg::Int(value)),
            _ => None,
        },
        ArgKind::Float => match number(pointer)? {
            Scalar::Float(value) => Some(Arg::Float(value)),
            _ => None,
        },
        ArgKind::Ints(length) => {
            let list = items(object, |item| match number(item.as_ptr())? {
                Scalar::Int(value) => Some(value),
                _ => None,
            })?;
            (length.is_none_or(|length| length as usize == list.len())).then(|| bound.keep(Value::Ints(list)))
        }
        ArgKind::Tensors => {
            // SAFETY: an item is valid while the closure runs, and its tensor is cloned.
            let list = items(object, |item| unsafe { tensor_of_pointer(item.as_ptr()) }.cloned())?;
            bound.elements += list.iter().map(|tensor| tensor.numel()).sum::<i64>();
            Some(bound.keep(Value::Tensors(list)))
        }
        ArgKind::DType => object.cast::<PyDType>().ok().map(|dtype| Arg::DType(dtype.get().0)),
        ArgKind::Device => object.cast::<PyDevice>().ok().map(|device| Arg::Device(device.get().0)),
        ArgKind::MemoryFormat => {
            object.cast::<PyMemoryFormat>().ok().map(|format| Arg::MemoryFormat(format.get().0))
        }
        ArgKind::Generator => {
            let generator = object.cast::<PyGenerator>().ok()?.get().0.clone();
            Some(bound.keep(Value::Generator(generator)))
        }
        _ => None,
    }
}

/// The items of a list or tuple; `None` if it is neither, or one of them does not fit.
fn items<T>(
    object: Borrowed<'_, '_, PyAny>,
    item: impl Fn(&Bound<'_, PyAny>) -> Option<T>,
) -> Option<Vec<T>> {
    if let Ok(tuple) = object.cast::<pyo3::types::PyTuple>() {
        return tuple.iter().map(|found| item(&found)).collect();
    }
    let list = object.cast::<pyo3::types::PyList>().ok()?;
    list.iter().map(|found| item(&found)).collect()
}
