//! The loops of the host over memory that a backend gives, for devices whose memory the host can reach.
//!
//! In: elements as a backend moves them. Out: those of the target, written. Nothing is borrowed and no tracer is told:
//! the elements are the backend's while it runs.

use crate::backend::Elements;
use crate::device::Device;
use crate::error::Result;
use crate::layout::Layout;
use crate::scalar::Scalar;
use crate::storage::Storage;
use crate::tensor::Tensor;

/// Writes elements into others of the same sizes, converted as [`copy`](super::copy) does.
///
/// # Errors
/// If there is no memory for a header.
///
/// # Safety
/// The host may read and write both sides, nothing else uses them, and they do not overlap.
pub unsafe fn convert_elements(to: Elements<'_>, from: Elements<'_>) -> Result<()> {
    // SAFETY: the caller's promise.
    let (to, from) = unsafe { (over(to), over(from)) };
    super::convert(&to, &from)
}

/// Writes one number into all elements.
///
/// # Errors
/// If there is no memory for a header.
///
/// # Safety
/// As [`convert_elements`].
pub unsafe fn fill_elements(to: Elements<'_>, value: Scalar) -> Result<()> {
    // SAFETY: the caller's promise.
    let to = unsafe { over(to) };
    super::convert(&to, &Tensor::scalar_untraced(value, to.dtype())?)
}

/// Adds elements to others of the same dtype and sizes, of which several may be one.
///
/// # Errors
/// If there is no memory for a header, or the dtype has no sum.
///
/// # Safety
/// As [`convert_elements`].
pub unsafe fn accumulate_elements(to: Elements<'_>, from: Elements<'_>) -> Result<()> {
    // SAFETY: the caller's promise.
    let (to, from) = unsafe { (over(to), over(from)) };
    super::accumulate(&to, &from)
}

/// A tensor of the host over memory that others keep.
///
/// # Safety
/// The memory is the host's to use while the tensor lives.
unsafe fn over(elements: Elements<'_>) -> Tensor {
    let layout = Layout { sizes: elements.sizes.into(), strides: elements.strides.into(), offset: 0 };
    // SAFETY: the caller's promise. How many bytes there are is the backend's to know: the layout is inside.
    unsafe {
        let storage = Storage::external(elements.start, usize::MAX >> 1, ());
        Tensor::from_parts(storage, layout, elements.dtype, Device::CPU)
    }
}
