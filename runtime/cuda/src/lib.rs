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
mod compile;
mod device;
mod driver;
mod geometry;
mod launch;
mod marks;
mod memory;
mod movement;
mod settings;
mod staging;
mod status;
mod stream;
mod ticket;

use std::ffi::c_char;

use opsmith_runtime::Result;

pub use allocator::Statistics;

use driver::codes;

/// Facts of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Properties {
    /// The name, e.g. `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// The identifier that `nvidia-smi -L` shows, 16 bytes.
    pub uuid: [u8; 16],
    /// The compute capability, major and minor.
    pub compute_capability: (usize, usize),
    /// Bytes of memory.
    pub total_bytes: usize,
    /// Number of multiprocessors.
    pub multiprocessors: usize,
    /// Threads of a warp.
    pub warp_threads: usize,
    /// The maximal number of threads of a block.
    pub max_threads_per_block: usize,
    /// Bytes of shared memory that a block has without a request.
    pub shared_bytes_per_block: usize,
    /// The maximal bytes of shared memory of a block.
    pub max_shared_bytes_per_block: usize,
    /// Bytes of the second-level cache.
    pub cache_bytes: usize,
    /// The CUDA version of the driver, major and minor.
    pub driver_version: (usize, usize),
}

/// The number of devices that the driver shows, at least 1.
///
/// # Errors
/// If there is no driver, it is too old, it finds no device, or this process is a copy (fork) of one that uses it.
pub fn device_count() -> Result<u16> {
    Ok(driver::driver()?.count)
}

/// Facts of a device.
///
/// # Errors
/// As [`device_count`], or if there is no such device.
pub fn properties(index: u16) -> Result<Properties> {
    let context = driver::context(index)?;
    let (mut name, mut uuid, mut total_bytes) = ([0u8; 256], [0; 16], 0);
    let api = context.api();
    // SAFETY: results are local variables; the name has room for as many bytes as are said, its end included.
    let code = unsafe {
        let code =
            (api.cuDeviceGetName)(name.as_mut_ptr().cast::<c_char>(), name.len() as i32 - 1, context.device);
        let code =
            if code == codes::SUCCESS { (api.cuDeviceGetUuid_v2)(&mut uuid, context.device) } else { code };
        if code == codes::SUCCESS {
            (api.cuDeviceTotalMem_v2)(&mut total_bytes, context.device)
        } else {
            code
        }
    };
    context.check(code, "read properties")?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let version = usize::try_from(context.driver.version).unwrap_or(0);
    Ok(Properties {
        name: String::from_utf8_lossy(name).into_owned(),
        uuid,
        compute_capability: (
            context.attribute(codes::COMPUTE_CAPABILITY_MAJOR)?,
            context.attribute(codes::COMPUTE_CAPABILITY_MINOR)?,
        ),
        total_bytes,
        multiprocessors: context.attribute(codes::MULTIPROCESSOR_COUNT)?,
        warp_threads: context.attribute(codes::WARP_SIZE)?,
        max_threads_per_block: context.attribute(codes::MAX_THREADS_PER_BLOCK)?,
        shared_bytes_per_block: context.attribute(codes::MAX_SHARED_MEMORY_PER_BLOCK)?,
        max_shared_bytes_per_block: context.attribute(codes::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        cache_bytes: context.attribute(codes::L2_CACHE_SIZE)?,
        driver_version: (version / 1000, version % 1000 / 10),
    })
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
