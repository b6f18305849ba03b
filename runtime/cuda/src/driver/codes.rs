//! Result codes of the driver, and attributes that are asked for.
//!
//! In: nothing. Out: numbers of `cuda.h`.

use std::ffi::c_int;

use super::api::Code;

pub const SUCCESS: Code = 0;
pub const OUT_OF_MEMORY: Code = 2;
pub const NOT_INITIALIZED: Code = 3;
pub const STUB_LIBRARY: Code = 34;
pub const NO_DEVICE: Code = 100;
pub const INVALID_IMAGE: Code = 200;
pub const NO_BINARY_FOR_GPU: Code = 209;
pub const UNSUPPORTED_PTX_VERSION: Code = 222;
pub const NOT_READY: Code = 600;
pub const SYSTEM_DRIVER_MISMATCH: Code = 803;

/// Codes after which a context accepts no further work.
pub const LOSSES: [Code; 15] = [
    214, // uncorrectable ECC error
    220, // uncorrectable error of a link between devices
    226, // contained error of the hardware
    700, // illegal address
    702, // launch timeout
    709, // context is destroyed
    710, // assertion in a kernel
    714, // hardware stack error
    715, // illegal instruction
    716, // misaligned address
    717, // invalid address space
    718, // invalid program counter
    719, // launch failed
    721, // contained tensor memory leak
    999, // unknown error
];

/// Attributes of a device.
pub const MAX_THREADS_PER_BLOCK: c_int = 1;
pub const MAX_SHARED_MEMORY_PER_BLOCK: c_int = 8;
pub const WARP_SIZE: c_int = 10;
pub const MULTIPROCESSOR_COUNT: c_int = 16;
pub const L2_CACHE_SIZE: c_int = 38;
pub const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
pub const COMPUTE_CAPABILITY_MINOR: c_int = 76;
pub const MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;

/// Attributes of a function.
pub const FUNCTION_MAX_THREADS_PER_BLOCK: c_int = 0;
pub const FUNCTION_SHARED_BYTES: c_int = 1;
pub const FUNCTION_MAX_DYNAMIC_SHARED_BYTES: c_int = 8;
