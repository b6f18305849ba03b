//! Tensors of another library by the C functions of its class, without a call of Python.
//!
//! In: a class with `__dlpack_c_exchange_api__`, its objects, and tensors. Out: a tensor over an object's memory, and an object
//! over a tensor's. The functions do not check whether the other library differentiates; callers stand below that.

use std::ffi::{CStr, c_int, c_void};

use opsmith_runtime::Tensor;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::dlpack::{self, DlTensor, Received, VERSION, Versioned};

const CAPSULE: &CStr = c"dlpack_exchange_api";
const ATTRIBUTE: &str = "__dlpack_c_exchange_api__";

/// The functions of a class, as the standard lays them out.
#[repr(C)]
struct Functions {
    major: u32,
    minor: u32,
    previous: *const Functions,
    allocate: *const c_void,
    from_object: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut Versioned) -> c_int>,
    to_object: Option<unsafe extern "C" fn(*mut Versioned, *mut *mut ffi::PyObject) -> c_int>,
    describe: *const c_void,
    stream: *const c_void,
}

/// A class with such functions.
pub struct Exchange {
    class: Py<PyType>,
    from_object: unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut Versioned) -> c_int,
    to_object: unsafe extern "C" fn(*mut Versioned, *mut *mut ffi::PyObject) -> c_int,
}

impl Exchange {
    /// The functions of a class, in the version that is known here.
    pub fn of(class: &Bound<'_, PyType>) -> PyResult<Exchange> {
        let refused = || {
            PyTypeError::new_err(format!(
                "the class `{class}` has no C functions of DLPack {}, by which its objects are exchanged\n  help: install a newer \
                 version of its library",
                VERSION.0
            ))
        };
        let capsule = class.getattr(ATTRIBUTE).map_err(|_| refused())?;
        // SAFETY: the pointer of a capsule of that name leads to such functions, which live as long as the process.
        let functions = unsafe {
            let mut found = ffi::PyCapsule_GetPointer(capsule.as_ptr(), CAPSULE.as_ptr()).cast::<Functions>();
            if found.is_null() {
                return Err(PyErr::fetch(class.py()));
            }
            while !found.is_null() && (*found).major != VERSION.0 {
                found = (*found).previous.cast_mut();
            }
            found.as_ref()
        };
        match functions.map(|known| (known.from_object, known.to_object)) {
            Some((Some(from_object), Some(to_object))) => {
                Ok(Exchange { class: class.clone().unbind(), from_object, to_object })
            }
            _ => Err(refused()),
        }
    }

    /// Whether an object is of the class.
    pub fn is_object(&self, object: &Bound<'_, PyAny>) -> bool {
        let class = self.class.as_ptr().cast();
        // SAFETY: both are valid; the address of the type is compared first, since most objects are of the class itself.
        unsafe {
            ffi::Py_TYPE(object.as_ptr()) == class || ffi::PyObject_TypeCheck(object.as_ptr(), class) != 0
        }
    }

    /// The tensor over the memory of an object of the class.
    pub fn tensor(&self, object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let py = object.py();
        let mut head: *mut Versioned = std::ptr::null_mut();
        // SAFETY: the object is of the class, and the function gives a structure of which this is the owner.
        let tensor: *const DlTensor = unsafe {
            if (self.from_object)(object.as_ptr(), &raw mut head) != 0 || head.is_null() {
                return Err(PyErr::take(py).unwrap_or_else(|| PyBufferError::new_err("no tensor was given")));
            }
            &raw const (*head).tensor
        };
        let owner = Received::Versioned(head);
        // SAFETY: the structure lives while its owner does.
        let kind = unsafe { (*tensor).device.kind };
        if kind != 1 && kind != 3 {
            return Err(PyBufferError::new_err(
                "the object is on a device, and its library's functions in C say nothing of streams here\n  help: move it to the \
                 host, or take it over by opsmith.from_dlpack",
            ));
        }
        // SAFETY: the structure lives while its owner does.
        unsafe { dlpack::over(py, owner, tensor) }
    }

    /// An object of the class over a tensor's memory.
    pub fn object(&self, py: Python<'_>, tensor: Tensor) -> PyResult<Py<PyAny>> {
        let head = dlpack::versioned(tensor, 0);
        let mut object: *mut ffi::PyObject = std::ptr::null_mut();
        // SAFETY: the function becomes the owner of the structure, and gives a new reference.
        unsafe {
            if (self.to_object)(head, &raw mut object) != 0 {
                return Err(PyErr::take(py).unwrap_or_else(|| PyBufferError::new_err("no object was made")));
            }
            Bound::from_owned_ptr_or_err(py, object).map(Bound::unbind)
        }
    }
}
