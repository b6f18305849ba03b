//! Functions and methods of a module: one for each name of the library.
//!
//! In: the names of a library. Out: functions of the module and methods of its tensors, of Python's own types for functions
//! written in C, which the interpreter calls fastest and describes best. Such a method has no data of its own, so each name has
//! a function in a table, whose number leads to the name's overloads.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith_core::python_name;
use opsmith_runtime::library::{Form, Library};
use opsmith_runtime::op::ArgKind;
use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use smallvec::SmallVec;

use crate::bind::Given;
use crate::call::{self, Overloads};
use crate::documentation;
use crate::errors::OrRaise;
use crate::tensor::{PyTensor, is_tensor};

/// Most names of a library.
const SLOTS: usize = 4096;

/// Entries of the table that are in use: those of the module's library, then those of loaded specs.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The overloads of each function in the table.
static NAMES: [OnceLock<Overloads>; SLOTS] = [const { OnceLock::new() }; SLOTS];

/// The function of a name, as the interpreter calls it.
///
/// # Safety
/// As of [`enter`].
unsafe extern "C" fn entry<const SLOT: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the arguments are those that the interpreter passes.
    unsafe { enter(SLOT, slf, args, count as usize, names) }
}

/// Calls the overloads of a slot. A method's first argument is its tensor.
///
/// # Safety
/// The arguments are those that the interpreter passes to a function of this kind.
unsafe fn enter(
    slot: usize,
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls with its lock held.
    let py = unsafe { Python::assume_attached() };
    let run = || -> PyResult<*mut ffi::PyObject> {
        let Some(overloads) = NAMES[slot].get() else {
            return Err(PyRuntimeError::new_err("a function without operators"));
        };
        // SAFETY: `names` is null or a tuple.
        let named = if names.is_null() { 0 } else { unsafe { ffi::PyTuple_Size(names) as usize } };
        let all: &[*mut ffi::PyObject] = match count + named {
            0 => &[],
            // SAFETY: the interpreter passes so many arguments.
            all => unsafe { std::slice::from_raw_parts(args, all) },
        };
        if !is_tensor(slf) {
            // SAFETY: the objects are those of the call.
            return unsafe { overloads.call(py, Given { objects: all, positional: count, names }) };
        }
        let mut objects: SmallVec<[*mut ffi::PyObject; 8]> = SmallVec::with_capacity(all.len() + 1);
        objects.push(slf);
        objects.extend_from_slice(all);
        // SAFETY: the objects are those of the call, and the tensor of the method.
        unsafe { overloads.call(py, Given { objects: &objects, positional: count + 1, names }) }
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(object)) => object,
        Ok(Err(error)) => {
            error.restore(py);
            std::ptr::null_mut()
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            PyRuntimeError::new_err(format!(
                "a kernel or the library panicked: {text}\n  help: this is a mistake of theirs, please report it"
            ))
            .restore(py);
            std::ptr::null_mut()
        }
    }
}

/// Functions for 16 numbers, from a multiple of 16.
macro_rules! sixteen {
    ($($high:literal)*) => {
        [$([
            entry::<{ $high * 16 }>, entry::<{ $high * 16 + 1 }>, entry::<{ $high * 16 + 2 }>, entry::<{ $high * 16 + 3 }>,
            entry::<{ $high * 16 + 4 }>, entry::<{ $high * 16 + 5 }>, entry::<{ $high * 16 + 6 }>,
            entry::<{ $high * 16 + 7 }>, entry::<{ $high * 16 + 8 }>, entry::<{ $high * 16 + 9 }>,
            entry::<{ $high * 16 + 10 }>, entry::<{ $high * 16 + 11 }>, entry::<{ $high * 16 + 12 }>,
            entry::<{ $high * 16 + 13 }>, entry::<{ $high * 16 + 14 }>, entry::<{ $high * 16 + 15 }>,
        ]),*]
    };
}

/// The functions of the table, in rows of 16.
static TABLE: [[ffi::PyCFunctionFastWithKeywords; 16]; SLOTS / 16] = sixteen! {
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
        16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
        48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
        64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79
        80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95
        96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111
        112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127
        128 129 130 131 132 133 134 135 136 137 138 139 140 141 142 143
        144 145 146 147 148 149 150 151 152 153 154 155 156 157 158 159
        160 161 162 163 164 165 166 167 168 169 170 171 172 173 174 175
        176 177 178 179 180 181 182 183 184 185 186 187 188 189 190 191
        192 193 194 195 196 197 198 199 200 201 202 203 204 205 206 207
        208 209 210 211 212 213 214 215 216 217 218 219 220 221 222 223
        224 225 226 227 228 229 230 231 232 233 234 235 236 237 238 239
        240 241 242 243 244 245 246 247 248 249 250 251 252 253 254 255
};

/// The base names of a library's functional and in-place forms that users call, sorted, each once.
pub fn names(library: &'static Library) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    let mut stack = vec![library];
    while let Some(library) = stack.pop() {
        let called =
            library.names.iter().filter(|(_, op, form)| *form != Form::Out && !op.facts.backward_only);
        names.extend(called.map(|(name, ..)| name.split('.').next().unwrap_or(name)));
        stack.extend(library.parents);
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The functions of the module's operators by family, the file of the spec that declares them.
#[pyfunction]
fn families() -> BTreeMap<&'static str, Vec<String>> {
    let mut families: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for op in call::library().all_ops().into_iter().filter(|op| !op.facts.backward_only) {
        let file = op.location.rsplit_once(':').map_or(op.location, |(file, _)| file);
        let base = python_name(op.name.split('.').next().unwrap_or(op.name));
        let family = families.entry(file).or_default();
        if !family.contains(&base) {
            family.push(base);
        }
    }
    families
}

/// Whether a name is also a method: the first argument of an operator is the tensor `self`.
pub fn is_method(overloads: &Overloads) -> bool {
    overloads.candidates.iter().any(|(op, form)| {
        let first = op.schema.args.first().filter(|first| first.ty.kind == ArgKind::Tensor);
        first.is_some_and(|first| first.name == "self" || *form == Form::Inplace)
    })
}

/// Adds a function for each name of the library, and a method of tensors for those that take one first, unless they have one
/// of that name.
///
/// # Errors
/// `ImportError` if there are more names than possible, or one is that of something else in the module.
pub fn install(module: &Bound<'_, PyModule>, library: &'static Library, package: &str) -> PyResult<()> {
    let py = module.py();
    module.add_function(wrap_pyfunction!(families, module)?)?;
    let class = py.get_type::<PyTensor>();
    let names = names(library);
    if names.len() > SLOTS {
        return Err(PyImportError::new_err(format!(
            "{} names of operators, at most {SLOTS} are possible",
            names.len()
        )));
    }
    USED.store(names.len(), Ordering::Relaxed);
    let package = pyo3::types::PyString::new(py, package);
    let own = class.getattr("__dict__")?;
    for (slot, name) in names.into_iter().enumerate() {
        let overloads = Overloads::of(name).or_raise(py)?;
        let overloads = NAMES[slot].get_or_init(|| overloads);
        let python = python_name(name);
        if module.hasattr(&*python)? {
            return Err(PyImportError::new_err(format!(
                "the operator `{name}` would be `{package}.{python}`, which is the package's own\n  help: give it another name in \
                 the spec"
            )));
        }
        let define = definition(slot, &python, documentation::function(overloads));
        // SAFETY: the definition is valid for ever.
        let function = unsafe {
            Bound::from_owned_ptr_or_err(
                py,
                ffi::PyCFunction_NewEx(define, module.as_ptr(), package.as_ptr()),
            )?
        };
        module.add(&*python, function)?;
        if is_method(overloads) && !own.contains(&*python)? {
            let define = definition(slot, &python, documentation::method(overloads));
            class.setattr(&*python, method(py, &class, define)?)?;
        }
    }
    Ok(())
}

/// A function for each name of a loaded spec, with its name in Python.
pub fn of_spec<'py>(
    py: Python<'py>,
    library: &'static Library,
    package: &str,
    spec: &'static str,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let own = library.names.iter().filter(|(_, op, form)| *form != Form::Out && !op.facts.backward_only);
    let mut names: Vec<&'static str> = own.map(|(name, ..)| name.split('.').next().unwrap_or(name)).collect();
    names.sort_unstable();
    names.dedup();
    let reserved = |used: usize| used.checked_add(names.len()).filter(|used| *used <= SLOTS);
    let first = USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserved).map_err(|used| {
        PyRuntimeError::new_err(format!(
            "{} functions more than the {used} that the process has; {SLOTS} are possible\n  help: load each spec once, and \
             keep its operators",
            names.len()
        ))
    })?;
    let package = pyo3::types::PyString::new(py, package);
    let make = |(at, name): (usize, &'static str)| {
        let overloads = NAMES[first + at].get_or_init(|| Overloads::of_spec(library, name, spec));
        let python = python_name(name);
        let define = definition(first + at, &python, documentation::function(overloads));
        // SAFETY: the definition is valid for ever.
        let function = unsafe {
            Bound::from_owned_ptr_or_err(
                py,
                ffi::PyCFunction_NewEx(define, std::ptr::null_mut(), package.as_ptr()),
            )?
        };
        Ok((python, function))
    };
    names.iter().copied().enumerate().map(make).collect()
}

fn method<'py>(
    py: Python<'py>,
    class: &Bound<'py, PyType>,
    define: *mut ffi::PyMethodDef,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the class is a type, and the definition is valid for ever.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_ptr().cast(), define)) }
}

/// The definition of a slot's function. It is never freed, since functions refer to it.
fn definition(slot: usize, name: &str, documentation: String) -> *mut ffi::PyMethodDef {
    let text =
        |text: String| CString::new(text.replace('\0', " ")).unwrap_or_default().into_raw().cast_const();
    Box::into_raw(Box::new(ffi::PyMethodDef {
        ml_name: text(name.to_owned()),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: TABLE[slot / 16][slot % 16] },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: text(documentation),
    }))
}
