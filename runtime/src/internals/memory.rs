//! Memory and elements: kernels, copies and additions under borrows that the caller holds, and blocks of memory.
//!
//! In: tensors whose storages are borrowed. Out: their elements, written. Must not know operators.

use std::ptr::NonNull;

use crate::allocator::{self, Block};
use crate::error::Result;
use crate::op::{Kernel, KernelCall};
use crate::scalar::Scalar;
use crate::scratch;
use crate::storage::Storage;
use crate::tensor::Tensor;
use crate::{copy, dispatch, op};

/// Writes the elements of `source`, broadcast and converted, into `target`.
///
/// # Errors
/// If their shapes are incompatible.
///
/// # Safety
/// The storage of `target` is borrowed for writing, that of `source` for reading, and no element of one is an element
/// of the other at another position.
pub unsafe fn convert(target: &Tensor, source: &Tensor) -> Result<()> {
    copy::convert(target, source)
}

/// Adds the elements of `source` to those of `target`, whose indices may overlap in memory.
///
/// # Errors
/// If their shapes are incompatible.
///
/// # Safety
/// As of [`convert`].
pub unsafe fn add(target: &Tensor, source: &Tensor) -> Result<()> {
    copy::accumulate(target, source)
}

/// Memory for so many more items, on huge pages where the system allows them; items grow by themselves if the system
/// has less.
pub fn reserve<T>(items: &mut Vec<T>, additional: usize) {
    if items.try_reserve_exact(additional).is_err() {
        return;
    }
    let spare = items.spare_capacity_mut();
    let bytes = size_of_val(spare);
    // SAFETY: the spare memory has so many bytes.
    unsafe { allocator::prefer_huge_pages(NonNull::from(spare).cast(), bytes) };
}

/// The only element of a tensor.
///
/// # Errors
/// If it is on a device that fails.
///
/// # Safety
/// The storage is borrowed, and the tensor has one element.
pub unsafe fn read_one(tensor: &Tensor) -> Result<Scalar> {
    copy::read_one(tensor)
}

/// Writes zeros to all elements of a tensor, of any dtype.
///
/// # Errors
/// If they are on a device that fails.
///
/// # Safety
/// The storage is borrowed for writing, or has no other user.
pub unsafe fn clear(tensor: &Tensor) -> Result<()> {
    copy::clear(tensor)
}

/// The bytes of a storage.
///
/// # Errors
/// If they are on a device that fails; or if there is no memory for them.
///
/// # Safety
/// The storage has elements, and no other code writes them during the call.
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

/// Runs a kernel. A host kernel runs immediately, in debug builds over filled memory, to find elements that it leaves
/// unwritten; a device kernel runs in this thread's stream.
///
/// # Errors
/// Errors of the kernel.
///
/// # Safety
/// The kernel is one of the call's operator.
#[inline]
pub unsafe fn run_kernel(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { dispatch::run_prepared(kernel, call) }
}

/// As [`run_kernel`], without a span, of a call whose outputs are on the host.
///
/// # Errors
/// Errors of the kernel.
///
/// # Safety
/// As of [`run_kernel`]; and the operator does not update its first argument, which the output would start as a copy of.
#[inline]
pub unsafe fn run_on_host(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { dispatch::written::run(kernel, call) }
}

/// Runs a function that calls kernels by [`run_in_turn`]: a failed scratch allocation ends it.
///
/// # Errors
/// If there is no memory for scratch; the function did not come to its end then.
#[inline]
pub fn until_out_of_memory<T>(kernels: impl FnOnce() -> T) -> Result<T> {
    scratch::until_out_of_memory(kernels)
}

/// As [`run_on_host`], of one kernel of several that a function of [`until_out_of_memory`] runs.
///
/// # Errors
/// Errors of the kernel.
///
/// # Safety
/// As of [`run_on_host`]; and the output is no `bool`, whose memory may hold other bytes.
#[inline]
pub unsafe fn run_in_turn(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { dispatch::written::run_in_turn(kernel, call) }
}

/// The call with tensors of one shape, so that loops need not compare them.
///
/// # Safety
/// Every tensor of the arguments and every output has the same shape.
#[inline]
#[must_use]
pub unsafe fn with_one_shape(call: KernelCall<'_>) -> KernelCall<'_> {
    // SAFETY: the caller's promise.
    unsafe { call.with_one_shape() }
}

/// A block of host memory from the tensors' cache, initialised to arbitrary bytes and aligned as tensors are.
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
        // SAFETY: the block was allocated in `new`, and its only owner is dropped.
        unsafe { allocator::free(self.0) };
    }
}
