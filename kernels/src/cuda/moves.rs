//! Copies of elements from one place to another, by the backend's own movement.
//!
//! In: elements of any layout on one device. Out: work in the stream of the calling thread.

use std::ffi::c_void;

use opsmith_runtime::backend::{Elements, Work};
use opsmith_runtime::{DType, DeviceView, DeviceViewMut, Result, Scalar};

/// A part of an operand: its sizes and strides, and the elements before its first.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub sizes: &'a [i64],
    pub strides: &'a [i64],
    pub offset: i64,
}

/// Copies a part of the source to a part of the target of the same sizes.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// Each part lies inside its operand, and the two do not overlap.
pub(super) unsafe fn copy(
    target: &DeviceViewMut<'_>,
    to: Part<'_>,
    source: &DeviceView<'_>,
    from: Part<'_>,
) -> Result<()> {
    let dtype = target.dtype();
    let work = Work::on(target.device())?;
    let to = elements(dtype, target.address(), to);
    let from = elements(dtype, source.address().cast_mut(), from);
    // SAFETY: the caller's promise; the dispatcher keeps the memory until the use that it notes.
    unsafe { work.runtime().convert(work.queue(), to, from) }
}

/// Writes a number into a part of the target.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// The part lies inside the target.
pub(super) unsafe fn fill(target: &DeviceViewMut<'_>, to: Part<'_>, value: Scalar) -> Result<()> {
    let dtype = target.dtype();
    let work = Work::on(target.device())?;
    // SAFETY: the caller's promise; the dispatcher keeps the memory until the use that it notes.
    unsafe { work.runtime().fill(work.queue(), elements(dtype, target.address(), to), value) }
}

fn elements(dtype: DType, address: *mut c_void, part: Part<'_>) -> Elements<'_> {
    let start = address.wrapping_byte_offset(part.offset as isize * dtype.size() as isize).cast();
    Elements { start, dtype, sizes: part.sizes, strides: part.strides }
}
