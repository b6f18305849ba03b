//! Python's buffers: memory with a shape and a format.
//!
//! In: a tensor, for readers such as `memoryview`; or an array with a buffer, whose elements are copied. Out: a view of the
//! tensor's memory, which keeps the tensor; or a tensor.

use std::ffi::{CStr, c_int, c_void};

use opsmith_runtime::{DType, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::construct;
use crate::errors::OrRaise;
use crate::tensor::PyTensor;

/// The format of an element type; `None` if buffers, which have NumPy's types, have none.
fn format(dtype: DType) -> Option<&'static CStr> {
    Some(match dtype.numpy_code()? {
        "b1" => c"?",
        "u1" => c"B",
        "u2" => c"H",
        "u4" => c"I",
        "u8" => c"Q",
        "i1" => c"b",
        "i2" => c"h",
        "i4" => c"i",
        "i8" => c"q",
        "f2" => c"e",
        "f4" => c"f",
        "f8" => c"d",
        "c8" => c"Zf",
        "c16" => c"Zd",
        _ => return None,
    })
}

/// Sizes and strides of a buffer that is in use, and the tensor, whose memory cannot go or move.
struct Exported {
    sizes: Vec<isize>,
    strides: Vec<isize>,
    _tensor: Tensor,
}

/// Fills a buffer with a tensor's memory.
///
/// # Safety
/// `view` is a buffer that the interpreter passes to be filled.
pub unsafe fn fill(slf: &Bound<'_, PyTensor>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    let tensor = &slf.get().0;
    if view.is_null() {
        return Err(PyBufferError::new_err("no buffer to fill"));
    }
    // SAFETY: the interpreter's buffer is valid for writes.
    unsafe { (*view).obj = std::ptr::null_mut() };
    if !tensor.is_on_host() || tensor.storage().is_meta() {
        return Err(PyBufferError::new_err(
            "the elements are not in the host's memory\n  help: move the tensor to the CPU first",
        ));
    }
    if tensor.requires_grad() {
        return Err(PyBufferError::new_err(
            "the tensor requires a gradient, which a buffer would lose\n  help: use its detach()",
        ));
    }
    let Some(format) = format(tensor.dtype()) else {
        return Err(PyBufferError::new_err(format!(
            "buffers have no format for {}\n  help: convert it first",
            tensor.dtype()
        )));
    };
    if !tensor.is_contiguous() && flags & ffi::PyBUF_STRIDES != ffi::PyBUF_STRIDES {
        return Err(PyBufferError::new_err(
            "the tensor has gaps or another order\n  help: use its contiguous()",
        ));
    }
    // The reader of the buffer may write.
    tensor.storage().expose().or_raise(slf.py())?;
    let size = tensor.dtype().size() as isize;
    let exported = Box::new(Exported {
        sizes: tensor.shape().iter().map(|size| *size as isize).collect(),
        strides: tensor.strides().iter().map(|stride| *stride as isize * size).collect(),
        _tensor: tensor.clone(),
    });
    let exported = Box::into_raw(exported);
    // SAFETY: the interpreter's buffer is valid for writes; sizes and strides live until the buffer is released, which keeps
    // the object and the tensor.
    unsafe {
        (*view).obj = slf.clone().into_any().into_ptr();
        (*view).buf = tensor.data_ptr().cast::<c_void>();
        (*view).len = tensor.numel() as isize * size;
        (*view).readonly = 0;
        (*view).itemsize = size;
        (*view).format =
            if flags & ffi::PyBUF_FORMAT != 0 { format.as_ptr().cast_mut() } else { std::ptr::null_mut() };
        (*view).ndim = (*exported).sizes.len() as c_int;
        (*view).shape = (*exported).sizes.as_mut_ptr();
        (*view).strides = (*exported).strides.as_mut_ptr();
        (*view).suboffsets = std::ptr::null_mut();
        (*view).internal = exported.cast::<c_void>();
    }
    Ok(())
}

/// Frees the sizes and strides of a buffer.
///
/// # Safety
/// The buffer was filled by [`fill`], and is released once.
pub unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: `internal` is the box that `fill` left there.
    unsafe {
        let exported = (*view).internal.cast::<Exported>();
        if !exported.is_null() {
            drop(Box::from_raw(exported));
            (*view).internal = std::ptr::null_mut();
        }
    }
}

/// A tensor with a copy of an array's elements, by way of NumPy, which knows every kind of array.
pub fn copied(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = object.py();
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("ascontiguousarray", (object,))?;
    let shape: Vec<i64> = object.getattr("shape").and_then(|shape| shape.extract()).unwrap_or_default();
    let given = array.getattr("dtype")?;
    let dtype = crate::types::read_dtype(&given).map_err(|_| {
        PyTypeError::new_err(format!("an array of {given} is no tensor: the element type is not known"))
    })?;
    let native = array.call_method1("astype", (given.call_method1("newbyteorder", ("=",))?,))?;
    let bytes: Vec<u8> = native.call_method0("tobytes")?.extract()?;
    construct::from_bytes(py, &bytes, &shape, dtype)
}
