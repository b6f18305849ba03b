//! CUDA devices for opsmith: memory, movement, streams, and kernels compiled at run time.
//!
//! A program that links this crate (`use opsmith_cuda as _;`) has tensors on `Device::cuda(0)`. Nothing of CUDA is needed to
//! build it. The driver's library is found when a device is first used, and NVRTC, the compiler, when the first kernel is;
//! a missing library is an error that names it. See `docs/design/cuda.md`.
//!
//! In: requests of [`opsmith_runtime::backend`]. Out: work of the driver's streams. Must not know tensors, operators by
//! name, graphs or custom kernels.

mod allocator;
mod backend;
mod capture;
mod compile;
mod device;
mod driver;
mod geometry;
mod launch;
mod marks;
mod memory;
mod movement;
mod properties;
mod settings;
mod staging;
mod status;
mod stream;
mod ticket;

use opsmith_runtime::Result;

pub use allocator::Statistics;
pub use properties::{Properties, properties};

/// The number of devices that the driver shows, at least 1.
///
/// # Errors
/// If there is no driver, it is too old, it finds no device, or this process is a copy (fork) of one that uses it.
pub fn device_count() -> Result<u16> {
    Ok(driver::driver()?.count)
}

/// Statistics of the memory that this process holds on a device, in bytes. Blocks are multiples of 512 bytes.
///
/// # Errors
/// As [`properties`].
pub fn memory_statistics(index: u16) -> Result<Statistics> {
    Ok(device::device(index)?.memory.statistics())
}

/// Limits the bytes that this process holds on a device, live and cached together; `None` for the device's memory. The
/// initial limit is that of `OPSMITH_CUDA_MEMORY_CAP`. Memory that is held already stays.
///
/// # Errors
/// As [`properties`].
pub fn set_memory_cap(index: u16, bytes: Option<usize>) -> Result<()> {
    device::device(index)?.memory.set_cap(bytes);
    Ok(())
}

/// Waits for the last uses of cached memory, and returns it to the device. Returns the number of bytes returned.
///
/// # Errors
/// As [`properties`], or if the context of the device is lost.
pub fn trim(index: u16) -> Result<usize> {
    let device = device::device(index)?;
    device.memory.trim(device.context)
}

/// Waits for all work of all streams of a device.
///
/// # Errors
/// As [`properties`], and errors of that work.
pub fn synchronize(index: u16) -> Result<()> {
    let device = device::device(index)?;
    device.context.synchronize()?;
    device.check_reports()
}
