//! DLPack: tensors of other libraries without a copy, in both directions.
//!
//! In: a tensor, or an object with `__dlpack__`. Out: a capsule with the tensor, which keeps its memory until the receiver is
//! done with it; or a tensor over the other library's memory, which is given back when the last handle goes. Both versions of
//! the structure are known: the first, and the one that says whether the memory may be written. Memory of CUDA devices is taken over
//! in the order of this thread's stream, an argument of the other library; it is given back when the work that uses it is done.

mod exported;
mod structures;

use std::ffi::CStr;

use opsmith_runtime::error::Error;
use opsmith_runtime::{DType, Device, Tensor, Value};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::argument;
use crate::call::tensor_by_name;
use crate::errors::{OrRaise, raise};
use crate::tensor::PyTensor;
pub use exported::versioned;
use exported::{delete_legacy, delete_versioned, legacy};
use structures::DlDataType;
pub use structures::{DlTensor, Legacy, Versioned};

/// The memory must not be written.
const READ_ONLY: u64 = 1;
/// The memory is a copy.
const IS_COPIED: u64 = 2;
/// Elements shorter than a byte have a byte each; without it they are packed.
const IS_PADDED: u64 = 4;
/// The version that is written; every receiver knows a later minor one, too.
pub const VERSION: (u32, u32) = (1, 1);

const LEGACY: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// Element types with their category and bits.
fn data_type(dtype: DType) -> DlDataType {
    let (code, bits) = opsmith_abi::element(dtype);
    DlDataType { code, bits, lanes: 1 }
}

/// Whether an element is shorter than a byte, of which it has one.
fn is_padded(dtype: DType) -> bool {
    dtype.bits() < 8
}

/// The kind and the number of a tensor's device.
pub fn device_of(tensor: &Tensor) -> (i32, i32) {
    opsmith_abi::device_numbers(tensor.device())
}

/// Deletes a structure that no receiver took.
///
/// # Safety
/// The interpreter calls it with a capsule of this module that goes.
unsafe extern "C" fn drop_legacy(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes the capsule that goes; its pointer is valid under this name alone.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, LEGACY.as_ptr()) != 0 {
            delete_legacy(ffi::PyCapsule_GetPointer(capsule, LEGACY.as_ptr()).cast());
        }
    }
}

/// Deletes a structure that no receiver took.
///
/// # Safety
/// As of [`drop_legacy`].
unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as of `drop_legacy`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// A capsule with a tensor.
pub fn export(
    py: Python<'_>,
    tensor: &Tensor,
    most: Option<(u32, u32)>,
    device: Option<(i32, i32)>,
    copy: Option<bool>,
    stream: Option<i128>,
) -> PyResult<Py<PyAny>> {
    if tensor.requires_grad() {
        return Err(PyBufferError::new_err(
            "the tensor requires a gradient, which other libraries would lose\n  help: use its detach()",
        ));
    }
    if tensor.storage().is_meta() {
        return Err(PyBufferError::new_err("the tensor has no elements while a function is traced"));
    }
    if device.is_some_and(|device| device != device_of(tensor)) {
        return Err(PyBufferError::new_err(
            "the tensor is on another device\n  help: move it there first, by `to`",
        ));
    }
    let is_versioned = most.is_some_and(|(major, _)| major >= 1);
    if is_padded(tensor.dtype()) && !is_versioned {
        return Err(PyBufferError::new_err(format!(
            "the receiver's version of DLPack has no {} with a byte for each element\n  help: convert the tensor to int8 or uint8",
            tensor.dtype()
        )));
    }
    let mut tensor = tensor.clone();
    if copy == Some(true) {
        tensor = tensor_by_name(py, "clone", &[Value::Tensor(tensor)], &[])?;
    }
    if !tensor.is_on_host() {
        // The receiver's stream knows nothing of ours, so ours is done first, unless they are one or it asks for no order.
        let work = opsmith_runtime::backend::Work::on(tensor.device()).or_raise(py)?;
        if let Some(memory) = tensor.storage().device_memory() {
            // Another thread may have used it last.
            work.follow(memory.last_use()).or_raise(py)?;
        }
        if ![Some(-1), Some(i128::from(work.queue().stream.0))].contains(&stream) {
            py.detach(|| work.wait()).or_raise(py)?;
        }
    }
    // SAFETY: the structures are complete, and their owner is freed by the receiver or with the capsule.
    unsafe {
        let capsule = if is_versioned {
            let head = versioned(tensor, if copy == Some(true) { IS_COPIED } else { 0 }, None);
            ffi::PyCapsule_New(head.cast(), VERSIONED.as_ptr(), Some(drop_versioned))
        } else {
            ffi::PyCapsule_New(legacy(tensor).cast(), LEGACY.as_ptr(), Some(drop_legacy))
        };
        Bound::from_owned_ptr_or_err(py, capsule).map(Bound::unbind)
    }
}

/// A structure of another library, which is given back when this goes.
pub enum Received {
    Legacy(*mut Legacy),
    Versioned(*mut Versioned),
}

// SAFETY: the structure is only read, and given back once; the standard lets any thread do that.
unsafe impl Send for Received {}
// SAFETY: as above.
unsafe impl Sync for Received {}

impl Drop for Received {
    fn drop(&mut self) {
        // SAFETY: the structure was taken out of its capsule, so that this is its only owner.
        unsafe {
            match *self {
                Received::Legacy(head) => {
                    if let Some(delete) = (*head).deleter {
                        delete(head);
                    }
                }
                Received::Versioned(head) => {
                    if let Some(delete) = (*head).deleter {
                        delete(head);
                    }
                }
            }
        }
    }
}

/// A tensor over the memory of an object with `__dlpack__`. Without `copy` it is a copy only if the memory must not be written.
pub fn import(object: &Bound<'_, PyAny>, device: Option<(i32, i32)>, copy: Option<bool>) -> PyResult<Tensor> {
    let (shared, flags) = shared(object, device, copy)?;
    let must_not_write = flags & READ_ONLY != 0;
    if must_not_write && copy == Some(false) {
        return Err(must_not_be_written());
    }
    if must_not_write || copy == Some(true) && flags & IS_COPIED == 0 {
        return tensor_by_name(object.py(), "clone", &[Value::Tensor(shared)], &[]);
    }
    Ok(shared)
}

/// A tensor over the memory of an object with `__dlpack__`, which may be written.
pub fn writable(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    match shared(object, None, None)? {
        (_, flags) if flags & READ_ONLY != 0 => Err(must_not_be_written()),
        (_, flags) if flags & IS_COPIED != 0 => {
            Err(PyBufferError::new_err("its library gives a copy of the elements"))
        }
        (shared, _) => Ok(shared),
    }
}

fn must_not_be_written() -> PyErr {
    PyBufferError::new_err(
        "the memory must not be written, and every tensor can be\n  help: leave `copy` out, or give True",
    )
}

/// A tensor over the memory of an object with `__dlpack__`, or of the copy that its library made, and the flags of the structure.
fn shared<'py>(
    object: &Bound<'py, PyAny>,
    device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<(Tensor, u64)> {
    let py = object.py();
    if !object.hasattr("__dlpack__")? {
        let error = Error::argument(format!("a `{}` has no `__dlpack__`", argument::class_name(object)));
        return Err(raise(py, error.with_help("use `asarray`, which also takes numbers, lists and buffers")));
    }
    let place: (i32, i32) = match object.getattr("__dlpack_device__") {
        Ok(method) => method.call0()?.extract()?,
        Err(_) => (1, 0),
    };
    let named = PyDict::new(py);
    if let Some(stream) = stream_of(py, place)? {
        named.set_item("stream", stream)?;
    }
    let first = named.copy()?;
    named.set_item("max_version", VERSION)?;
    let second = named.copy()?;
    if let Some(device) = device {
        named.set_item("dl_device", device)?;
    }
    if let Some(copy) = copy {
        named.set_item("copy", copy)?;
    }
    // A library of the first version knows none of the names.
    let call = |named: &Bound<'py, PyDict>| object.call_method("__dlpack__", (), Some(named));
    let is_unknown = |found: &PyResult<Bound<'py, PyAny>>| {
        found.as_ref().is_err_and(|error| error.is_instance_of::<PyTypeError>(py))
    };
    let mut capsule = call(&named);
    if is_unknown(&capsule) && named.len() > second.len() {
        capsule = call(&second);
    }
    let is_old = is_unknown(&capsule);
    if is_old {
        capsule = call(&first);
    }
    let (received, tensor, flags) = take(&capsule?)?;
    // A library that knows the version with flags and gives the first one says nothing of writes: arrays of JAX must not be written.
    let is_silent = !is_old && matches!(received, Received::Legacy(_));
    // SAFETY: the structure lives while `received` does.
    let shared = unsafe { over(py, received, tensor) }?;
    Ok((shared, if is_silent { flags | READ_ONLY } else { flags }))
}

/// The device of a kind of memory: the host's, pinned or not, or CUDA's, its own or managed.
pub fn device(kind: i32, number: i32) -> PyResult<Device> {
    match (kind, u16::try_from(number)) {
        (1 | 3, _) => Ok(Device::CPU),
        (2 | 13, Ok(number)) => Ok(Device::cuda(number)),
        _ => Err(PyBufferError::new_err(format!(
            "memory of the device ({kind}, {number}) cannot be taken over\n  help: move the array to the host first"
        ))),
    }
}

/// The handle of this thread's stream on a device, with which a library makes its earlier work come first; none on the host.
fn stream_of(py: Python<'_>, (kind, number): (i32, i32)) -> PyResult<Option<u64>> {
    let device = device(kind, number)?;
    if device == Device::CPU {
        return Ok(None);
    }
    let work = opsmith_runtime::backend::Work::on(device).or_raise(py)?;
    Ok(Some(work.queue().stream.0))
}

/// Takes the structure out of a capsule, which then says that it is used.
fn take(capsule: &Bound<'_, PyAny>) -> PyResult<(Received, *const DlTensor, u64)> {
    let raw = capsule.as_ptr();
    // SAFETY: `raw` is a valid object; a capsule of one of the names has such a structure, by the standard.
    unsafe {
        if ffi::PyCapsule_IsValid(raw, VERSIONED.as_ptr()) != 0 {
            let head = ffi::PyCapsule_GetPointer(raw, VERSIONED.as_ptr()).cast::<Versioned>();
            if (*head).major != VERSION.0 {
                return Err(PyBufferError::new_err(format!(
                    "version {} of DLPack is not known",
                    (*head).major
                )));
            }
            ffi::PyCapsule_SetName(raw, c"used_dltensor_versioned".as_ptr());
            return Ok((Received::Versioned(head), &raw const (*head).tensor, (*head).flags));
        }
        if ffi::PyCapsule_IsValid(raw, LEGACY.as_ptr()) != 0 {
            let head = ffi::PyCapsule_GetPointer(raw, LEGACY.as_ptr()).cast::<Legacy>();
            ffi::PyCapsule_SetName(raw, c"used_dltensor".as_ptr());
            return Ok((Received::Legacy(head), &raw const (*head).tensor, 0));
        }
    }
    Err(PyTypeError::new_err("a capsule of DLPack that was not used before was expected"))
}

/// The tensor of a structure.
///
/// # Safety
/// The structure is valid while its owner lives.
pub unsafe fn over(py: Python<'_>, owner: Received, tensor: *const DlTensor) -> PyResult<Tensor> {
    // SAFETY: the caller's structure is valid.
    let given = unsafe { &*tensor };
    let device = device(given.device.kind, given.device.number)?;
    let dtype = DType::ALL.into_iter().find(|dtype| data_type(*dtype) == given.dtype).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "an element type of DLPack is not known: code {}, {} bits, {} lanes",
            given.dtype.code, given.dtype.bits, given.dtype.lanes
        ))
    })?;
    let is_given_padded = match owner {
        // SAFETY: the caller's structure is valid.
        Received::Versioned(head) => unsafe { (*head).flags & IS_PADDED != 0 },
        Received::Legacy(_) => false,
    };
    if is_padded(dtype) && !is_given_padded {
        return Err(PyBufferError::new_err(format!(
            "the elements are packed, and a tensor has a byte for each {dtype}\n  help: give the packed bytes as uint8"
        )));
    }
    let rank = usize::try_from(given.rank).unwrap_or(0);
    let list = |items: *const i64| match (rank, items.is_null()) {
        (0, _) | (_, true) => Vec::new(),
        // SAFETY: the structure has as many items as dimensions.
        _ => unsafe { std::slice::from_raw_parts(items, rank) }.to_vec(),
    };
    let sizes = list(given.sizes);
    let strides = match given.strides.is_null() {
        true => opsmith_runtime::layout::contiguous_strides(&sizes).to_vec(),
        false => list(given.strides),
    };
    let address = given.data.cast::<u8>().wrapping_add(given.byte_offset as usize);
    let is_empty = sizes.contains(&0);
    if !is_empty && (address.is_null() || address.addr() % align(dtype) != 0) {
        return Err(PyBufferError::new_err(
            "the memory is not aligned for its elements\n  help: make a copy of the array first",
        ));
    }
    let address = if is_empty { std::ptr::without_provenance_mut(16) } else { address };
    // SAFETY: the sizes and strides of the structure lead to elements inside the owner's memory.
    let found =
        unsafe { opsmith_abi::over_on(device, address, &sizes, &strides, dtype, owner) }.or_raise(py)?;
    check_truth_values(py, &found)?;
    Ok(found)
}

/// Rejects truth values whose bytes are neither 0 nor 1, which other libraries do not all refuse.
fn check_truth_values(py: Python<'_>, tensor: &Tensor) -> PyResult<()> {
    if tensor.dtype() != DType::Bool {
        return Ok(());
    }
    let (storage, layout) = (tensor.storage().clone(), tensor.layout().clone());
    // SAFETY: the layout lies inside the storage, whose bytes are initialised; bytes and truth values have one size.
    let bytes = unsafe { Tensor::from_parts(storage, layout, DType::U8, tensor.device()) };
    if bytes.to_vec::<u8>().or_raise(py)?.iter().any(|byte| *byte > 1) {
        return Err(PyBufferError::new_err(
            "a byte that is neither 0 nor 1 is no truth value\n  help: compare the array with 0 first",
        ));
    }
    Ok(())
}

/// The alignment that elements need.
fn align(dtype: DType) -> usize {
    opsmith_runtime::with_dtype!(dtype, T => align_of::<T>())
}

/// A tensor over the memory of an object with `__dlpack__`.
///
/// Parameters
/// ----------
/// x : an object of any library with `__dlpack__`
/// device : device, optional
/// copy : bool, optional
///     True always copies, False never does. By default memory that must not be written is copied, other memory is not.
///
/// Examples
/// --------
/// >>> import numpy, opsmith
/// >>> array = numpy.zeros(3)
/// >>> tensor = opsmith.from_dlpack(array)
/// >>> array[1] = 5
/// >>> tensor
/// tensor([0., 5., 0.], dtype=float64)
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None))]
fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<PyTensor> {
    let place = device.map(crate::types::read_device).transpose()?;
    let tensor = import(x, None, copy)?;
    if place.is_some_and(|place| place != tensor.device()) {
        return Err(PyBufferError::new_err(
            "the tensor is on another device\n  help: move it there first, by `to`",
        ));
    }
    Ok(PyTensor(tensor))
}

/// Adds the function.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(from_dlpack, module)?)
}
