//! Tensors over foreign memory.
//!
//! In: an address and a layout. Out: a tensor that copies nothing.

use opsmith_runtime::error::Error;
use opsmith_runtime::storage::Storage;
use opsmith_runtime::{DType, Device, Layout, Result, Tensor};

/// A tensor over memory that an owner keeps alive.
///
/// # Errors
/// If the sizes are not possible.
///
/// # Safety
/// The address is that of the first element, from which the strides lead to elements of the type that are valid for reads and
/// writes while the owner lives.
pub unsafe fn over<T: Send + Sync + 'static>(
    address: *mut u8,
    sizes: &[i64],
    strides: &[i64],
    dtype: DType,
    owner: T,
) -> Result<Tensor> {
    // SAFETY: the caller's promise.
    unsafe { over_on(Device::CPU, address, sizes, strides, dtype, owner) }
}

/// As [`over`], over memory of a device.
///
/// # Errors
/// As [`over`]; if the device cannot be used.
///
/// # Safety
/// As [`over`]; of a device other than the host, work that this thread submits to its stream comes after other code's use of the
/// memory.
pub unsafe fn over_on<T: Send + Sync + 'static>(
    device: Device,
    address: *mut u8,
    sizes: &[i64],
    strides: &[i64],
    dtype: DType,
    owner: T,
) -> Result<Tensor> {
    opsmith_runtime::layout::checked_numel(sizes)?;
    let mut layout = Layout::contiguous(sizes);
    layout.strides = strides.iter().copied().collect();
    let (low, high) = layout.extent().unwrap_or((0, 0));
    layout.offset = -low;
    let size = dtype.size() as i64;
    let start = address.wrapping_offset((low * size) as isize);
    let reach = high.checked_sub(low).and_then(|elements| elements.checked_mul(size));
    let Some(bytes) = reach.and_then(|bytes| usize::try_from(bytes).ok()) else {
        return Err(Error::shape("the strides lead beyond all memory"));
    };
    // SAFETY: the memory from the lowest to the highest element is the owner's.
    let storage = unsafe {
        match (device, std::ptr::NonNull::new(start)) {
            (Device::CPU, _) => Storage::external(start, bytes, owner),
            (device, Some(start)) => Storage::external_on(device, start, bytes, owner)?,
            (device, None) => Storage::on(device, bytes)?,
        }
    };
    // SAFETY: the layout lies between the lowest and the highest element.
    Ok(unsafe { Tensor::from_parts(storage, layout, dtype, device) })
}
