//! Frames of calls, as XLA's interface for foreign functions lays them out.
//!
//! In: a frame. Out: tensors over its buffers, its text, the device and the stream of its program, and errors of XLA. Structures have the
//! fields of `xla/ffi/api/c_api.h`, up to the last one that is read.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::offset_of;

use opsmith_runtime::backend::StreamId;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::{DType, Device, Tensor};

#[repr(C)]
struct Extension {
    size: usize,
    kind: c_int,
    next: *mut Extension,
}

#[repr(C)]
struct Version {
    size: usize,
    extensions: *mut Extension,
    major: c_int,
    minor: c_int,
}

#[repr(C)]
struct Metadata {
    size: usize,
    version: Version,
    traits: u32,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

#[repr(C)]
struct ErrorArguments {
    size: usize,
    extensions: *mut Extension,
    message: *const c_char,
    code: c_int,
}

#[repr(C)]
struct Interface {
    size: usize,
    extensions: *mut Extension,
    version: Version,
    internal: *const c_void,
    error: Option<unsafe extern "C" fn(*mut ErrorArguments) -> *mut c_void>,
    message: Option<unsafe extern "C" fn(*mut ErrorMessage)>,
    destroy: Option<unsafe extern "C" fn(*mut ErrorMessage)>,
    register: *const c_void,
    stream: Asking,
    /// Types, states, memory, threads, futures and numbers of runs.
    others: [*const c_void; 12],
    device_ordinal: Asking,
}

/// A function that writes into its arguments, or gives an error.
type Asking = Option<unsafe extern "C" fn(*mut c_void) -> *mut c_void>;

/// The arguments of a function that tells a fact of a program.
#[repr(C)]
struct Asked<T> {
    size: usize,
    extensions: *mut Extension,
    context: *mut c_void,
    found: T,
}

impl<T> Asked<T> {
    fn of(context: *mut c_void, found: T) -> Asked<T> {
        // The size that the interface knows ends with the last field, without padding.
        let size = offset_of!(Asked<T>, found) + size_of::<T>();
        Asked { size, extensions: std::ptr::null_mut(), context, found }
    }
}

/// An error of the interface, and its text. The arguments of its end are the first fields.
#[repr(C)]
struct ErrorMessage {
    size: usize,
    extensions: *mut Extension,
    error: *mut c_void,
    message: *const c_char,
}

#[repr(C)]
struct Buffer {
    size: usize,
    extensions: *mut Extension,
    dtype: c_int,
    data: *mut c_void,
    rank: i64,
    sizes: *const i64,
}

/// Buffers of a frame.
#[repr(C)]
pub struct Buffers {
    size: usize,
    extensions: *mut Extension,
    count: i64,
    kinds: *const c_int,
    items: *const *const Buffer,
}

#[repr(C)]
struct Text {
    start: *const u8,
    length: usize,
}

#[repr(C)]
struct Attributes {
    size: usize,
    extensions: *mut Extension,
    count: i64,
    kinds: *const c_int,
    names: *const *const Text,
    items: *const *const c_void,
}

/// A frame.
#[repr(C)]
pub struct Frame {
    size: usize,
    extensions: *mut Extension,
    interface: *const Interface,
    context: *mut c_void,
    /// The part of a call's life.
    pub stage: c_int,
    /// The arrays of a call.
    pub arguments: Buffers,
    /// The results of a call.
    pub results: Buffers,
    attributes: Attributes,
}

const METADATA: c_int = 1;
/// The stage that runs a call.
pub const EXECUTE: c_int = 3;
const STRING: c_int = 4;
/// The code of a mistake of the program.
pub const INVALID_ARGUMENT: c_int = 3;
/// The code of a mistake here.
pub const INTERNAL: c_int = 13;
/// The version of the interface whose frames these are.
const KNOWN: (c_int, c_int) = (0, 3);

/// The element type of a number of the interface.
fn dtype(number: c_int) -> Option<DType> {
    Some(match number {
        1 => DType::Bool,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::U8,
        7 => DType::U16,
        8 => DType::U32,
        9 => DType::U64,
        10 => DType::F16,
        11 => DType::F32,
        12 => DType::F64,
        15 => DType::C64,
        16 => DType::BF16,
        18 => DType::C128,
        _ => return None,
    })
}

/// The device of a program: a device of CUDA with the program's stream, or the host.
pub type Place = Option<(Device, StreamId)>;

impl Frame {
    /// The device and the stream of a program on devices of CUDA.
    ///
    /// # Safety
    /// The frame is one of XLA's, of a program on such a device.
    pub unsafe fn place_on_cuda(&self) -> Result<Place> {
        // SAFETY: the frame's interface lives as long as the process.
        let interface = unsafe { &*self.interface };
        if interface.size < offset_of!(Interface, device_ordinal) + size_of::<Asking>() {
            return Err(Error::not_implemented("this version of XLA does not name the device of a program")
                .with_help("install a newer jaxlib"));
        }
        let mut stream = Asked::<*mut c_void>::of(self.context, std::ptr::null_mut());
        let mut number = Asked::<i32>::of(self.context, -1);
        // SAFETY: both are functions of this interface, which write the last field.
        unsafe {
            interface.asked(interface.stream, (&raw mut stream).cast())?;
            interface.asked(interface.device_ordinal, (&raw mut number).cast())?;
        }
        let index = u16::try_from(number.found)
            .map_err(|_| Error::device(format!("XLA names the impossible device {}", number.found)))?;
        Ok(Some((Device::cuda(index), StreamId(stream.found.expose_provenance() as u64))))
    }

    /// The frame's attribute that is a text.
    ///
    /// # Safety
    /// The frame is one of XLA's.
    pub unsafe fn text(&self) -> Result<&str> {
        let mut found = None;
        for at in 0..self.attributes.count as usize {
            // SAFETY: the frame's lists are as long as it says, and an attribute of that kind is a text.
            unsafe {
                if *self.attributes.kinds.add(at) == STRING {
                    let text = &*(*self.attributes.items.add(at)).cast::<Text>();
                    found = Some(std::slice::from_raw_parts(text.start, text.length));
                }
            }
        }
        let text = found.and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.ok_or_else(|| Error::argument("the program's call has no description"))
    }

    /// An error of XLA.
    ///
    /// # Safety
    /// The frame is one of XLA's.
    pub unsafe fn error(&self, message: &str, code: c_int) -> *mut c_void {
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        let mut arguments = ErrorArguments {
            size: size_of::<ErrorArguments>(),
            extensions: std::ptr::null_mut(),
            message: message.as_ptr(),
            code,
        };
        // SAFETY: the interface lives as long as the process, and copies the message.
        unsafe { (*self.interface).error.map_or(std::ptr::null_mut(), |make| make(&raw mut arguments)) }
    }
}

impl Interface {
    /// Calls a function of the interface; its error is one of opsmith.
    ///
    /// # Safety
    /// The arguments are those of the function.
    unsafe fn asked(&self, function: Asking, arguments: *mut c_void) -> Result<()> {
        let missing = || Error::not_implemented("the program is not one of a device of CUDA");
        // SAFETY: the caller's promise.
        let error = unsafe { function.ok_or_else(missing)?(arguments) };
        if error.is_null() {
            return Ok(());
        }
        let mut given = ErrorMessage {
            size: size_of::<ErrorMessage>(),
            extensions: std::ptr::null_mut(),
            error,
            message: std::ptr::null(),
        };
        // SAFETY: the error is one of this interface, and its text lives until it is destroyed, here.
        let text = unsafe {
            if let Some(message) = self.message {
                message(&raw mut given);
            }
            let text = given.message.as_ref().map(|text| CStr::from_ptr(text).to_string_lossy().into_owned());
            if let Some(destroy) = self.destroy {
                destroy(&raw mut given);
            }
            text
        };
        Err(Error::device(format!("XLA: {}", text.unwrap_or_default())))
    }
}

/// A tensor over a buffer.
///
/// # Safety
/// The buffer is one of a frame, and no tensor over it is used after the call.
unsafe fn tensor(buffer: *const Buffer, device: Device) -> Result<Tensor> {
    // SAFETY: the frame's buffers are valid during the call.
    let buffer = unsafe { &*buffer };
    let found = dtype(buffer.dtype).ok_or_else(|| {
        Error::dtype(format!("the element type {} of XLA has no kernel here", buffer.dtype))
    })?;
    let sizes: &[i64] = match usize::try_from(buffer.rank) {
        Ok(rank) if rank > 0 => {
            // SAFETY: a buffer has as many sizes as dimensions.
            unsafe { std::slice::from_raw_parts(buffer.sizes, rank) }
        }
        _ => &[],
    };
    let strides = opsmith_runtime::layout::contiguous_strides(sizes);
    let is_empty = sizes.contains(&0) || buffer.data.is_null();
    let address = if is_empty { std::ptr::without_provenance_mut(64) } else { buffer.data.cast::<u8>() };
    // SAFETY: the buffer is row-major, and valid during the call.
    unsafe { opsmith_abi::over_on(device, address, sizes, &strides, found, ()) }
}

/// Tensors over buffers on a device.
///
/// # Safety
/// As of [`tensor`]; on a device this thread is in the program's stream.
pub unsafe fn tensors(buffers: &Buffers, device: Device) -> Result<Vec<Tensor>> {
    // SAFETY: the frame's arrays are as long as it says.
    (0..buffers.count as usize).map(|at| unsafe { tensor(*buffers.items.add(at), device) }).collect()
}

/// Tells the version of frames that this handler knows.
///
/// # Safety
/// The frame is one of XLA's.
pub unsafe fn tell(frame: &Frame) -> bool {
    // SAFETY: an extension of that kind has such data.
    unsafe {
        let Some(extension) = frame.extensions.as_ref().filter(|extension| extension.kind == METADATA) else {
            return false;
        };
        let metadata = (*std::ptr::from_ref(extension).cast::<MetadataExtension>()).metadata;
        ((*metadata).version.major, (*metadata).version.minor) = KNOWN;
        (*metadata).traits = 0;
        true
    }
}
