//! Memory and elements: kernels, copies and additions under borrows that the caller holds, and blocks of memory.
//!
//! In: tensors whose storages are borrowed. Out: their elements, written. Must know no operator.

use std::ptr::NonNull;

use crate::allocator::{self, Block};
use crate::error::Result;
use crate::op::{Kernel, KernelCall};
use crate::scalar::Scalar;
use crate::storage::Storage;
use crate::tensor::Tensor;
use crate::{copy, dispatch, op};

/// Writes the elements of `source`, broadcast and converted, into `target`.
///
/// # Errors
/// If their shapes do not go together.
///
/// # Safety
/// The storage of `target` is borrowed for writing, that of `source` for reading, and no element of one is an element
/// of the other at another position.
pub unsafe fn convert(target: &Tensor, source: &Tensor) -> Result<()> {
    copy::convert(target, source)
}

/// Adds the elements of `source` to those of `target`, which may have one element at several indices.
///
/// # Errors
/// If their shapes do not go together.
///
/// # Safety
/// As of [`convert`].
pub unsafe fn add(target: &Tensor, source: &Tensor) -> Result<()> {
    copy::accumulate(target, source)
}

/// The only element of a tensor.
///
/// # Errors
/// If a device has it, and fails.
///
/// # Safety
/// The storage is borrowed, and the tensor has one element.
pub unsafe fn read_one(tensor: &Tensor) -> Result<Scalar> {
    copy::read_one(tensor)
}

/// Writes zeros to all elements of a tensor, of any dtype.
///
/// # Errors
/// If a device has them, and fails.
///
/// # Safety
/// The storage is borrowed for writing, or has no other user.
pub unsafe fn clear(tensor: &Tensor) -> Result<()> {
    copy::clear(tensor)
}

/// The bytes of a storage.
///
/// # Errors
/// If a device has them, and fails; or if there is no memory for them.
///
/// # Safety
/// The storage has elements, and nothing writes them meanwhile.
pub unsafe fn bytes_of(storage: &Storage) -> Result<Vec<u8>> {
    copy::bytes_of(storage)
}

/// Writes `false` to all elements of a tensor of `bool`, whose memory may hold other bytes.
///
/// # Safety
/// The storage is borrowed for writing, or the tensor is the only handle to new memory.
pub unsafe fn make_valid(tensor: &Tensor) {
    op::make_valid(tensor);
}

/// Runs a kernel: one of the host at once, in debug builds over filled memory, to find elements that it leaves
/// unwritten; one of a device in this thread's stream.
///
/// # Errors
/// Those of the kernel.
///
/// # Safety
/// The kernel is one of the call's operator.
#[inline]
pub unsafe fn run_kernel(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { dispatch::run_prepared(kernel, call) }
}

/// A block of host memory from the tensors' cache, initialised to any bytes and aligned as tensors are.
pub struct Workspace(Block);

impl Workspace {
    /// A block of at least `bytes` bytes; `None` if the system has none.
    #[inline]
    pub fn new(bytes: usize) -> Option<Workspace> {
        allocator::allocate(bytes).map(Workspace)
    }

    /// Its first byte.
    #[inline]
    pub fn pointer(&self) -> NonNull<u8> {
        self.0.pointer
    }
}

impl Drop for Workspace {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the block was allocated in `new`, and its owner is gone.
        unsafe { allocator::free(self.0) };
    }
}
