//! Tensors of another library by the C functions of its class, without a call of Python.
//!
//! In: a class with `__dlpack_c_exchange_api__`, its objects, and tensors. Out: a tensor over an object's memory, and an object
//! over a tensor's. The functions do not check whether the other library differentiates; callers stand below that.
//!
//! Memory of a device is exchanged in the order of the other library's current stream, which this thread's work enters during a
//! call ([`Session`]): neither side waits for the other.

use std::ffi::{CStr, c_int, c_void};

use opsmith_runtime::backend::{ForeignStream, Queue, StreamId};
use opsmith_runtime::{Device, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use smallvec::SmallVec;

use crate::dlpack::{self, DlTensor, Received, VERSION, Versioned};
use crate::errors::OrRaise;

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
    stream: Option<CurrentStream>,
}

/// Writes the handle of the current stream of a device, given by its kind and number.
type CurrentStream = unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int;

/// A class with such functions.
pub struct Exchange {
    class: Py<PyType>,
    from_object: unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut Versioned) -> c_int,
    to_object: unsafe extern "C" fn(*mut Versioned, *mut *mut ffi::PyObject) -> c_int,
    current_stream: Option<CurrentStream>,
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
        match functions.map(|known| (known.from_object, known.to_object, known.stream)) {
            Some((Some(from_object), Some(to_object), current_stream)) => {
                Ok(Exchange { class: class.clone().unbind(), from_object, to_object, current_stream })
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

    /// The exchange of one call.
    pub fn session(&self) -> Session<'_> {
        Session { exchange: self, entered: SmallVec::new() }
    }

    /// The handle of the other library's current stream of a device.
    fn stream(&self, py: Python<'_>, kind: i32, number: i32) -> PyResult<StreamId> {
        let current = self.current_stream.ok_or_else(|| {
            PyBufferError::new_err(
                "the object is on a device, and its library has no function that names its current stream\n  help: move it to the \
                 host, or take it over by opsmith.from_dlpack",
            )
        })?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the function writes the handle of a stream, or fails with an exception.
        if unsafe { current(kind, number, &raw mut handle) } != 0 {
            return Err(
                PyErr::take(py).unwrap_or_else(|| PyBufferError::new_err("the device has no current stream"))
            );
        }
        Ok(StreamId(handle.expose_provenance() as u64))
    }
}

/// The exchange of a call's tensors: from the first one on a device to the end of the call, the work of this thread on that device
/// is in the other library's current stream.
pub struct Session<'a> {
    exchange: &'a Exchange,
    entered: SmallVec<[(Device, ForeignStream); 1]>,
}

impl Session<'_> {
    /// Whether an object is of the class.
    pub fn is_object(&self, object: &Bound<'_, PyAny>) -> bool {
        self.exchange.is_object(object)
    }

    /// Enters the current stream of the other library on a device.
    fn enter(&mut self, py: Python<'_>, kind: i32, number: i32) -> PyResult<()> {
        let device = dlpack::device(kind, number)?;
        if self.entered.iter().any(|(known, _)| *known == device) {
            return Ok(());
        }
        let stream = self.exchange.stream(py, kind, number)?;
        // SAFETY: the other library's streams are valid as long as memory that was used in them.
        let entered = unsafe { ForeignStream::enter(device, stream) }.or_raise(py)?;
        self.entered.push((device, entered));
        Ok(())
    }

    /// The tensor over the memory of an object of the class.
    pub fn tensor(&mut self, object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let py = object.py();
        let mut head: *mut Versioned = std::ptr::null_mut();
        // SAFETY: the object is of the class, and the function gives a structure of which this is the owner.
        let tensor: *const DlTensor = unsafe {
            if (self.exchange.from_object)(object.as_ptr(), &raw mut head) != 0 || head.is_null() {
                return Err(PyErr::take(py).unwrap_or_else(|| PyBufferError::new_err("no tensor was given")));
            }
            &raw const (*head).tensor
        };
        let owner = Received::Versioned(head);
        // SAFETY: the structure lives while its owner does.
        let (kind, number) = unsafe { ((*tensor).device.kind, (*tensor).device.number) };
        if kind != 1 && kind != 3 {
            self.enter(py, kind, number)?;
        }
        // SAFETY: the structure lives while its owner does.
        unsafe { dlpack::over(py, owner, tensor) }
    }

    /// The stream in which the other library uses a tensor.
    fn queue_of(&self, tensor: &Tensor) -> Option<Queue> {
        let of =
            |(device, stream): &(Device, ForeignStream)| (*device == tensor.device()).then(|| stream.queue());
        self.entered.iter().find_map(of)
    }

    /// Ends the exchange of a call that succeeded.
    pub fn end(self, py: Python<'_>) -> PyResult<()> {
        self.entered.into_iter().try_for_each(|(_, stream)| stream.leave()).or_raise(py)
    }

    /// An object of the class over a tensor's memory. One on a device that no argument was on is complete before.
    pub fn object(&self, py: Python<'_>, tensor: Tensor) -> PyResult<Py<PyAny>> {
        let queue = self.queue_of(&tensor);
        if queue.is_none() && !tensor.is_on_host() {
            tensor.device().synchronize().or_raise(py)?;
        }
        let head = dlpack::versioned(tensor, 0, queue);
        let mut object: *mut ffi::PyObject = std::ptr::null_mut();
        // SAFETY: the function becomes the owner of the structure, and gives a new reference.
        unsafe {
            if (self.exchange.to_object)(head, &raw mut object) != 0 {
                return Err(PyErr::take(py).unwrap_or_else(|| PyBufferError::new_err("no object was made")));
            }
            Bound::from_owned_ptr_or_err(py, object).map(Bound::unbind)
        }
    }
}
