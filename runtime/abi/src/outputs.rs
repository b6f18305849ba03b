//! The place of results: memory that the caller allocates, or that it takes over.
//!
//! In: results, and the stream that the caller names. Out: elements in the caller's memory.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use opsmith_core::abi;
use opsmith_runtime::backend::Queue;
use opsmith_runtime::error::Error;
use opsmith_runtime::{DType, Device, Tensor, copy};
use smallvec::SmallVec;

use crate::arguments;
use crate::device::{CallStream, numbers};
use crate::failure::{Failure, Outcome, mistake};
use crate::structures::{self, Adopt, Allocate};

/// Results of fewer bytes are copied into the caller's memory, which costs less than to hand over memory of this library's.
const LEAST_ADOPTED: usize = 32 << 10;

/// The bytes of the structure's first form, which ends before `stream`.
const LEAST_SIZE: usize = offset_of!(structures::Outputs, stream);

/// The functions of a caller, checked, and its stream.
#[derive(Clone, Copy)]
pub struct Outputs {
    context: *mut c_void,
    allocate: Allocate,
    adopt: Option<Adopt>,
    /// The stream of the call.
    pub stream: CallStream,
}

impl Outputs {
    /// Reads the functions.
    ///
    /// # Safety
    /// The pointer leads to a structure of the header, or is null.
    pub unsafe fn read(outputs: *const structures::Outputs) -> Outcome<Outputs> {
        if outputs.is_null() {
            return mistake("`outputs` is null");
        }
        // SAFETY: the size is the first field of every version.
        let size = unsafe { outputs.cast::<usize>().read() };
        if size < LEAST_SIZE {
            return mistake(format!(
                "`outputs` says that it has {size} bytes, and has at least {LEAST_SIZE}; set `size`"
            ));
        }
        // SAFETY: the structure has these fields, and `stream` if it is as long as this version's; the stream is one of the header.
        let (context, allocate, adopt, stream) = unsafe {
            let named = size >= size_of::<structures::Outputs>();
            let stream = if named { (&raw const (*outputs).stream).read() } else { std::ptr::null() };
            ((*outputs).context, (*outputs).allocate, (*outputs).adopt, CallStream::read(stream)?)
        };
        match allocate {
            Some(allocate) => Ok(Outputs { context, allocate, adopt, stream }),
            None => mistake("`outputs` has no function `allocate`"),
        }
    }

    /// A tensor in memory of the caller's on a device, apart from these tensors.
    ///
    /// # Safety
    /// The caller's functions are as the header says, and the tensor is not used after the call.
    pub unsafe fn allocated(
        &self,
        index: usize,
        sizes: &[i64],
        dtype: DType,
        device: Device,
        apart: &[Tensor],
    ) -> Outcome<Tensor> {
        self.stream.check(device, format_args!("result {index}"))?;
        let strides = opsmith_runtime::layout::contiguous_strides(sizes);
        let mut described = description(sizes, &strides, dtype, device);
        // SAFETY: the caller's promise.
        if unsafe { (self.allocate)(self.context, index as i64, &raw mut described) } != 0 {
            return Err(Failure::Refused);
        }
        let is_on_host = device == Device::CPU;
        if is_on_host && !described.data.is_null() && !sizes.contains(&0) && dtype == DType::Bool {
            let count = sizes.iter().product::<i64>() as usize;
            // SAFETY: the memory is for so many elements; new memory may have bytes that are no truth values.
            unsafe { described.data.cast::<u8>().write_bytes(0, count) };
        }
        // The function sets the address alone.
        let placed =
            structures::Tensor { data: described.data, ..description(sizes, &strides, dtype, device) };
        // SAFETY: the caller's promise.
        let made = unsafe { arguments::tensor(&raw const placed, "result", self.stream)? };
        if apart.iter().any(|tensor| are_overlapping(tensor, &made)) {
            return Err(Error::aliasing(format!("the memory of result {index} is that of another tensor"))
                .with_help("give each result memory of its own")
                .into());
        }
        Ok(made)
    }

    /// Gives a computed result to the caller: its memory, if it is large and nothing else has it, or a copy.
    ///
    /// # Safety
    /// As [`Outputs::allocated`].
    pub unsafe fn give(&self, index: usize, result: Tensor, inputs: &[Tensor]) -> Outcome<()> {
        let result = if result.requires_grad() { result.detach() } else { result };
        let bytes = result.numel() as usize * result.dtype().size();
        let is_own = || result.is_contiguous() && !inputs.iter().any(|input| are_overlapping(input, &result));
        if let Some(adopt) = self.adopt
            && bytes >= LEAST_ADOPTED
            && is_own()
        {
            // SAFETY: the caller's promise.
            return unsafe { self.handed(adopt, index, result) };
        }
        let (sizes, dtype, device) = (result.shape(), result.dtype(), result.device());
        // SAFETY: the caller's promise.
        let target = unsafe { self.allocated(index, sizes, dtype, device, inputs)? };
        Ok(copy::copy(&target, &result)?)
    }

    /// Hands the memory of a result over.
    ///
    /// # Safety
    /// As [`Outputs::allocated`].
    unsafe fn handed(&self, adopt: Adopt, index: usize, result: Tensor) -> Outcome<()> {
        self.stream.check(result.device(), format_args!("result {index}"))?;
        let strides: SmallVec<[i64; 6]> = SmallVec::from_slice(result.strides());
        let sizes: SmallVec<[i64; 6]> = SmallVec::from_slice(result.shape());
        let described = structures::Tensor {
            data: result.data_ptr().cast(),
            ..description(&sizes, &strides, result.dtype(), result.device())
        };
        let queue = self.stream.queue_of(result.device());
        let owner = Box::into_raw(Box::new(Handed { result, queue })).cast::<c_void>();
        // SAFETY: the caller's promise; from here on the owner is the caller's, unless the function fails.
        let code: c_int = unsafe { adopt(self.context, index as i64, &raw const described, owner, release) };
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the function failed, so that the owner is still this one's.
        unsafe { release(owner) };
        Err(Failure::Refused)
    }

    /// A result of zeros.
    ///
    /// # Safety
    /// As [`Outputs::allocated`].
    pub unsafe fn zeros(&self, index: usize, like: &Tensor, inputs: &[Tensor]) -> Outcome<()> {
        // SAFETY: the caller's promise.
        let target = unsafe { self.allocated(index, like.shape(), like.dtype(), like.device(), inputs)? };
        Ok(copy::copy(&target, &Tensor::scalar(0.0, like.dtype()))?)
    }
}

/// Memory that was handed over.
struct Handed {
    result: Tensor,
    /// The stream in which the receiver uses it.
    queue: Option<Queue>,
}

impl Drop for Handed {
    fn drop(&mut self) {
        if let (Some(queue), Some(memory)) = (self.queue, self.result.storage().device_memory()) {
            // A failure is that of earlier work, and reported where its results are read.
            _ = memory.note_use_in(queue);
        }
    }
}

/// Frees an owner.
unsafe extern "C" fn release(owner: *mut c_void) {
    let free = || {
        // SAFETY: the pointer is that of memory that was handed over, and this is its only use.
        drop(unsafe { Box::from_raw(owner.cast::<Handed>()) });
    };
    _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(free));
}

fn description(sizes: &[i64], strides: &[i64], dtype: DType, device: Device) -> structures::Tensor {
    let (code, bits) = abi::element(dtype);
    let (device_type, device_id) = numbers(device);
    structures::Tensor {
        data: std::ptr::null_mut(),
        device_type,
        device_id,
        ndim: sizes.len() as i32,
        code,
        bits,
        lanes: 1,
        shape: sizes.as_ptr(),
        strides: strides.as_ptr(),
        byte_offset: 0,
    }
}

/// Whether the address ranges of two tensors overlap, whatever their storages.
pub fn are_overlapping(a: &Tensor, b: &Tensor) -> bool {
    if a.device() != b.device() {
        return false;
    }
    let range = |tensor: &Tensor| {
        let (low, high) = tensor.layout().extent()?;
        let (size, offset) = (tensor.dtype().size() as i64, tensor.layout().offset);
        let start = tensor.data_ptr().addr() as i64;
        Some((start + (low - offset) * size, start + (high - offset) * size))
    };
    matches!((range(a), range(b)), (Some(a), Some(b)) if a.0 < b.1 && b.0 < a.1)
}
