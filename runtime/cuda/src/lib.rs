//! CUDA devices for opsmith: memory, movement, streams, and kernels compiled at run time or ahead of it.
//!
//! A program that links this crate (`use opsmith_cuda as _;`) has tensors on `Device::cuda(0)`. Nothing of CUDA is needed to
//! build it. The driver's library is found when a device is first used, and NVRTC, the compiler, when the first kernel is
//! that no archive of [`images`] has; a missing library is an error that names it. See `docs/design/cuda.md`.
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
mod host_memory;
pub mod images;
mod key;
mod launch;
mod libraries;
mod marks;
mod memory;
mod movement;
mod properties;
mod requests;
mod settings;
mod staging;
mod status;
mod stream;
mod table;
mod ticket;

use opsmith_runtime::Result;

pub use allocator::Statistics;
pub use compile::{Compiled, KernelOrigin, Nvrtc};
pub use host_memory::HostStatistics;
pub use libraries::cublaslt::{allows_tf32, set_allow_tf32};
pub use libraries::{LibraryReport, LibraryState, libraries};
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

/// Statistics of the pinned memory of the host that this process holds for tensors (`Tensor::pin_memory`).
pub fn host_memory_statistics() -> HostStatistics {
    host_memory::statistics()
}

/// Waits for the last uses of cached pinned memory, and returns it to the host. Returns the number of bytes returned.
///
/// # Errors
/// As [`device_count`], or if a context is lost, or this thread records work.
pub fn trim_host_memory() -> Result<usize> {
    host_memory::trim()
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

/// A kernel that this process has loaded on a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadedKernel {
    /// The source and the line that defines the kernel.
    pub name: String,
    /// The way by which it came to the device.
    pub origin: KernelOrigin,
}

/// The kernels that this process has loaded on a device, by name.
///
/// # Errors
/// As [`properties`].
pub fn loaded_kernels(index: u16) -> Result<Vec<LoadedKernel>> {
    let functions = device::device(index)?.functions();
    let kernel = |function: &compile::Function| LoadedKernel {
        name: function.name.clone(),
        origin: function.origin.clone(),
    };
    let mut kernels: Vec<LoadedKernel> = functions.into_iter().map(kernel).collect();
    kernels.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kernels)
}

/// The name and the texts of all kernels that move elements, for compilation ahead of time: those of operators are the texts
/// that a program keeps (`OPSMITH_CUDA_KEEP_TEXT`).
pub fn movement_texts() -> (&'static str, Vec<String>) {
    let (source, lines) = movement::all_lines();
    (source.name, lines.iter().map(|line| images::text_of(source, line)).collect())
}
