//! The C interface between the dispatcher and kernels written in C, C++ or CUDA.
//!
//! In: prepared arguments of a kernel call. Out: the C structs of `kernels/include/opsmith/kernel.h`, which this file
//! repeats field by field (a test compiles the header against it), and an [`Error`] made of the status that the kernel
//! returned. Generated code makes the call:
//!
//! ```text
//! let mut context = KernelContext::new("opsmith_cpu_flip", "cpp/flip.cpp", Device::CPU);
//! let this = ForeignTensor::of(call.args()[0].tensor());
//! let mut out = call.foreign_output(0);
//! // SAFETY: the generated header declares the function with these types.
//! let status = unsafe { opsmith_cpu_flip(context.as_raw(), &this, List::of(call.args()[1].ints()), &mut out) };
//! context.check(status)
//! ```

use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use opsmith_core::DType;
use smallvec::SmallVec;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::lists::Text;
use crate::op::KernelCall;
use crate::parallel::{self, Shared};
use crate::random::{Generator, Stream, default_generator};
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// The version of the structs below (`OPSMITH_ABI_VERSION`).
pub const ABI_VERSION: u32 = 1;
/// Longest error message of a kernel in bytes, with its final zero (`OPSMITH_MESSAGE_SIZE`).
pub const MESSAGE_SIZE: usize = 1024;
/// The largest piece of scratch memory a kernel can ask for, in bytes.
const MAX_SCRATCH: usize = 1 << 46;

/// A tensor in the form of the C interface (`OpsmithTensor`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ForeignTensor<'a> {
    /// Address of the first element.
    pub data: *mut c_void,
    /// Elements along each dimension.
    pub sizes: *const i64,
    /// Stride in elements along each dimension.
    pub strides: *const i64,
    /// Number of dimensions.
    pub ndim: i32,
    /// The element type: [`DType::index`].
    pub dtype: i32,
    /// The family of devices: `Backend::index`.
    pub device_type: i32,
    /// The index among devices of the family.
    pub device_index: i32,
    marker: PhantomData<&'a Tensor>,
}

impl<'a> ForeignTensor<'a> {
    /// Describes a tensor. A kernel may write through it only if the dispatcher holds the storage's
    /// borrow for writing, as it does for outputs.
    #[inline]
    pub fn of(tensor: &'a Tensor) -> ForeignTensor<'a> {
        let device = tensor.device();
        ForeignTensor {
            data: tensor.data_ptr().cast(),
            sizes: tensor.shape().as_ptr(),
            strides: tensor.strides().as_ptr(),
            ndim: tensor.dim() as i32,
            dtype: tensor.dtype().index() as i32,
            device_type: device.backend.index() as i32,
            device_index: i32::from(device.index),
            marker: PhantomData,
        }
    }

    /// Describes each tensor of a list.
    pub fn of_each(tensors: &'a [Tensor]) -> SmallVec<[ForeignTensor<'a>; 4]> {
        tensors.iter().map(ForeignTensor::of).collect()
    }

    /// Describes each tensor of a list of which some may be absent.
    pub fn of_each_present(tensors: &'a [Option<Tensor>]) -> SmallVec<[Option<ForeignTensor<'a>>; 4]> {
        tensors.iter().map(|tensor| tensor.as_ref().map(ForeignTensor::of)).collect()
    }
}

impl<'a> KernelCall<'a> {
    /// An output in the form of the C interface, for writing.
    ///
    /// # Panics
    /// If its elements were handed out before, or it shares memory with an input.
    pub fn foreign_output(&self, index: usize) -> ForeignTensor<'a> {
        ForeignTensor::of(self.raw_output(index))
    }
}

/// A borrowed list (`OpsmithInts`, `OpsmithFloats`, `OpsmithBools`, `OpsmithScalars`, `OpsmithStrings`,
/// `OpsmithDTypes`, `OpsmithTensors`, `OpsmithOptionalTensors`, and `OpsmithString` as a list of bytes).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct List<'a, T> {
    /// The first entry; dangling if there is none.
    pub data: *const T,
    /// Number of entries.
    pub length: usize,
    marker: PhantomData<&'a [T]>,
}

impl<'a, T> List<'a, T> {
    /// The list of the slice's entries.
    #[inline]
    pub fn of(entries: &'a [T]) -> List<'a, T> {
        List { data: entries.as_ptr(), length: entries.len(), marker: PhantomData }
    }
}

/// A borrowed list of lists (`OpsmithIntLists`, `OpsmithFloatLists`, `OpsmithBoolLists`,
/// `OpsmithScalarLists`, `OpsmithStringLists`, `OpsmithDTypeLists`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ListOfLists<'a, T> {
    /// The entries of all rows; dangling if there is none.
    pub data: *const T,
    /// The end of each row among the entries.
    pub ends: *const usize,
    /// Number of rows.
    pub length: usize,
    marker: PhantomData<&'a [T]>,
}

impl<'a, T> ListOfLists<'a, T> {
    /// The entries of all rows, and the end of each row among them.
    #[inline]
    pub fn of(entries: &'a [T], ends: &'a [usize]) -> ListOfLists<'a, T> {
        ListOfLists { data: entries.as_ptr(), ends: ends.as_ptr(), length: ends.len(), marker: PhantomData }
    }
}

/// A text in the form of the C interface: [`List::from`] for items of lists.
pub fn foreign_text(text: &Text) -> List<'_, u8> {
    List::from(&**text)
}

impl<'a> From<&'a str> for List<'a, u8> {
    /// The UTF-8 bytes, without a final zero.
    #[inline]
    fn from(text: &'a str) -> List<'a, u8> {
        List::of(text.as_bytes())
    }
}

/// The address of an optional value, null if it is absent: the C form of `T?`.
#[inline]
pub fn address_or_null<T>(value: &Option<T>) -> *const T {
    value.as_ref().map_or(std::ptr::null(), std::ptr::from_ref)
}

/// [`address_or_null`] of each entry, for a list of optional tensors.
pub fn addresses_or_null<T>(values: &[Option<T>]) -> SmallVec<[*const T; 4]> {
    values.iter().map(address_or_null).collect()
}

/// A number of any kind (`OpsmithScalar`). Every field is filled, whatever the kind.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForeignScalar {
    /// 0 bool, 1 integer, 2 float, 3 complex.
    pub kind: i32,
    /// Zero.
    pub reserved: i32,
    /// The value truncated toward zero.
    pub integer: i64,
    /// The real part.
    pub real: f64,
    /// The imaginary part.
    pub imag: f64,
}

impl From<Scalar> for ForeignScalar {
    #[inline]
    fn from(scalar: Scalar) -> ForeignScalar {
        let kind = match scalar {
            Scalar::Bool(_) => 0,
            Scalar::Int(_) => 1,
            Scalar::Float(_) => 2,
            Scalar::Complex(_) => 3,
        };
        let value = scalar.to_complex();
        ForeignScalar { kind, reserved: 0, integer: scalar.to_i64(), real: value.re, imag: value.im }
    }
}

/// A device (`OpsmithDevice`).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForeignDevice {
    /// The family of devices: `Backend::index`.
    pub device_type: i32,
    /// The index among devices of the family.
    pub index: i32,
}

impl From<Device> for ForeignDevice {
    #[inline]
    fn from(device: Device) -> ForeignDevice {
        ForeignDevice { device_type: device.backend.index() as i32, index: i32::from(device.index) }
    }
}

/// An element type in the form of the C interface.
#[inline]
pub fn foreign_dtype(dtype: DType) -> i32 {
    dtype.index() as i32
}

/// A random generator (`OpsmithGenerator`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ForeignGenerator<'a> {
    handle: *const Generator,
    reserve: unsafe extern "C" fn(*const Generator, u64) -> Stream,
    marker: PhantomData<&'a Generator>,
}

impl<'a> ForeignGenerator<'a> {
    /// The generator, or the default one.
    pub fn of(generator: Option<&'a Generator>) -> ForeignGenerator<'a> {
        ForeignGenerator {
            handle: generator.unwrap_or(default_generator()),
            reserve: reserve_blocks,
            marker: PhantomData,
        }
    }
}

/// # Safety
/// `generator` is the handle of a [`ForeignGenerator`] that lives.
unsafe extern "C" fn reserve_blocks(generator: *const Generator, blocks: u64) -> Stream {
    // SAFETY: the caller promises that the handle is valid.
    unsafe { &*generator }.reserve(blocks)
}

/// The part of a [`KernelContext`] in the C interface (`OpsmithContext`).
#[repr(C)]
pub struct RawContext {
    struct_size: u32,
    abi_version: u32,
    stream: *mut c_void,
    allocate: unsafe extern "C" fn(*mut RawContext, usize) -> *mut c_void,
    /// Written up to a zero byte by `opsmith_fail`; the rest is never read.
    message: [MaybeUninit<c_char>; MESSAGE_SIZE],
    parallel_for: unsafe extern "C" fn(*mut RawContext, i64, i64, RangeBody, *mut c_void),
}

/// A function of a range in the C interface: its data, the first number, and the last and one.
type RangeBody = unsafe extern "C" fn(*mut c_void, i64, i64);

/// The context of one call of a foreign kernel: its error message, its scratch memory, its stream.
///
/// Scratch memory is released when the context is dropped.
#[repr(C)]
pub struct KernelContext {
    /// First, so that a pointer to it is a pointer to the whole.
    raw: RawContext,
    function: &'static str,
    source: &'static str,
    device: Device,
    scratch: SmallVec<[Tensor; 2]>,
}

impl KernelContext {
    /// The context of a call of `function`, written in the file `source`, on `device`.
    #[inline]
    pub fn new(function: &'static str, source: &'static str, device: Device) -> KernelContext {
        let mut message = [MaybeUninit::uninit(); MESSAGE_SIZE];
        message[0].write(0);
        let raw = RawContext {
            struct_size: size_of::<RawContext>() as u32,
            abi_version: ABI_VERSION,
            stream: std::ptr::null_mut(),
            allocate: allocate_scratch,
            message,
            parallel_for,
        };
        KernelContext { raw, function, source, device, scratch: SmallVec::new() }
    }

    /// The same context with the `CUstream` that the kernel launches on.
    #[must_use]
    pub fn with_stream(mut self, stream: *mut c_void) -> KernelContext {
        self.raw.stream = stream;
        self
    }

    /// The argument for the kernel. Valid until the context is moved or dropped.
    #[inline]
    pub fn as_raw(&mut self) -> *mut RawContext {
        std::ptr::from_mut(self).cast()
    }

    /// Turns the kernel's status into a result.
    ///
    /// # Errors
    /// If the status is not 0: names the function and its file, with the kernel's message.
    #[inline]
    pub fn check(&self, status: c_int) -> Result<()> {
        if status == 0 { Ok(()) } else { Err(self.failure(status)) }
    }

    #[cold]
    fn failure(&self, status: c_int) -> Error {
        let KernelContext { function, source, .. } = self;
        let message = self.message();
        let reason = match (status, message.is_empty()) {
            (1, false) => message,
            (_, false) => format!("{message} (status {status})"),
            (_, true) => format!("it returned the status {status} without a message"),
        };
        let error = Error::kernel(format!("the kernel `{function}` ({source}) failed: {reason}"));
        if self.message().is_empty() {
            error.with_help("let the kernel return `opsmith_fail(context, code, \"why\")`")
        } else {
            error
        }
    }

    fn message(&self) -> String {
        let bytes: Vec<u8> = self
            .raw
            .message
            .iter()
            // SAFETY: every byte before the first zero is written: `new` writes a zero to the first,
            // and `opsmith_fail` writes a text that ends in one.
            .map(|byte| unsafe { byte.assume_init() } as u8)
            .take_while(|byte| *byte != 0)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// # Safety
/// The body may be called with the data and any range below `count`, from several threads at once.
unsafe extern "C" fn parallel_for(
    _context: *mut RawContext,
    count: i64,
    chunk: i64,
    body: RangeBody,
    data: *mut c_void,
) {
    let data = Shared(data.cast::<u8>());
    let number = |number: i64| usize::try_from(number).unwrap_or(0);
    parallel::for_each_range(number(count), number(chunk).max(1), |range| {
        // SAFETY: the caller's promise.
        unsafe { body(data.at(0).cast(), range.start as i64, range.end as i64) }
    });
}

/// # Safety
/// `context` came from [`KernelContext::as_raw`], and its context is alive and was not moved.
unsafe extern "C" fn allocate_scratch(context: *mut RawContext, bytes: usize) -> *mut c_void {
    if bytes > MAX_SCRATCH {
        return std::ptr::null_mut();
    }
    // SAFETY: the pointer was made from the whole context, whose first field the kernel has; the kernel has the only
    // reference while it runs.
    let context = unsafe { &mut *context.cast::<KernelContext>() };
    let Ok(memory) = Tensor::with_memory(&[bytes as i64], DType::U8, context.device) else {
        return std::ptr::null_mut();
    };
    let data = memory.data_ptr().cast();
    context.scratch.push(memory);
    data
}
