//! Facts of devices.
//!
//! In: the index of a device. Out: its name, memory and limits, as the driver tells them. Must not know streams.

use std::ffi::c_char;

use opsmith_runtime::Result;

use crate::driver::{self, codes};

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

/// Facts of a device.
///
/// # Errors
/// As [`device_count`](crate::device_count), or if there is no such device.
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
