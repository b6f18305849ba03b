//! The functions and numbers of cuFFT, as `cufft.h` and `cufftXt.h` have them.
//!
//! In: an opened library. Out: a table of its functions, complete, or the name that is missing. Must not know transforms.

use std::ffi::{c_int, c_void};

use libloading::os::unix::Library;

use crate::table::{functions, numbers};

/// A result; 0 is success.
pub type Status = c_int;
/// A plan of the library.
pub type PlanHandle = c_int;

numbers! {
    /// Success.
    SUCCESS = CUFFT_SUCCESS 0;
    /// Kinds of transforms: of real to complex numbers, back, and of complex ones, in single and double precision.
    REAL_TO_COMPLEX = CUFFT_R2C 0x2a;
    COMPLEX_TO_REAL = CUFFT_C2R 0x2c;
    COMPLEX = CUFFT_C2C 0x29;
    DOUBLE_REAL_TO_COMPLEX = CUFFT_D2Z 0x6a;
    DOUBLE_COMPLEX_TO_REAL = CUFFT_Z2D 0x6c;
    DOUBLE_COMPLEX = CUFFT_Z2Z 0x69;
    /// Directions.
    INVERSE = CUFFT_INVERSE 1;
    /// Statuses.
    INVALID_PLAN = CUFFT_INVALID_PLAN 1;
    ALLOC_FAILED = CUFFT_ALLOC_FAILED 2;
    INVALID_TYPE = CUFFT_INVALID_TYPE 3;
    INVALID_VALUE = CUFFT_INVALID_VALUE 4;
    INTERNAL_ERROR = CUFFT_INTERNAL_ERROR 5;
    EXEC_FAILED = CUFFT_EXEC_FAILED 6;
    SETUP_FAILED = CUFFT_SETUP_FAILED 7;
    INVALID_SIZE = CUFFT_INVALID_SIZE 8;
    UNALIGNED_DATA = CUFFT_UNALIGNED_DATA 9;
    INVALID_DEVICE = CUFFT_INVALID_DEVICE 11;
    NO_WORKSPACE = CUFFT_NO_WORKSPACE 13;
    NOT_IMPLEMENTED = CUFFT_NOT_IMPLEMENTED 14;
    NOT_SUPPORTED = CUFFT_NOT_SUPPORTED 16;
}

/// The direction of a transform that is no inverse, which the header has as a macro.
pub const FORWARD: c_int = -1;

functions! {
    /// The library's functions that are used.
    pub struct Functions;
    cufftGetVersion(version: *mut c_int) -> Status;
    cufftCreate(plan: *mut PlanHandle) -> Status;
    cufftDestroy(plan: PlanHandle) -> Status;
    cufftSetAutoAllocation(plan: PlanHandle, allocates: c_int) -> Status;
    cufftMakePlanMany64(
        plan: PlanHandle, rank: c_int, sizes: *mut i64, from_sizes: *mut i64, from_stride: i64, from_distance: i64,
        to_sizes: *mut i64, to_stride: i64, to_distance: i64, kind: c_int, count: i64, workspace: *mut usize
    ) -> Status;
    cufftSetWorkArea(plan: PlanHandle, workspace: *mut c_void) -> Status;
    cufftSetStream(plan: PlanHandle, stream: *mut c_void) -> Status;
    cufftXtExec(plan: PlanHandle, from: *mut c_void, to: *mut c_void, direction: c_int) -> Status;
}

/// The header's name of a status. The library has no function for it.
pub fn name(status: Status) -> &'static str {
    match status {
        INVALID_PLAN => "CUFFT_INVALID_PLAN",
        ALLOC_FAILED => "CUFFT_ALLOC_FAILED",
        INVALID_TYPE => "CUFFT_INVALID_TYPE",
        INVALID_VALUE => "CUFFT_INVALID_VALUE",
        INTERNAL_ERROR => "CUFFT_INTERNAL_ERROR",
        EXEC_FAILED => "CUFFT_EXEC_FAILED",
        SETUP_FAILED => "CUFFT_SETUP_FAILED",
        INVALID_SIZE => "CUFFT_INVALID_SIZE",
        UNALIGNED_DATA => "CUFFT_UNALIGNED_DATA",
        INVALID_DEVICE => "CUFFT_INVALID_DEVICE",
        NO_WORKSPACE => "CUFFT_NO_WORKSPACE",
        NOT_IMPLEMENTED => "CUFFT_NOT_IMPLEMENTED",
        NOT_SUPPORTED => "CUFFT_NOT_SUPPORTED",
        _ => "a status of a newer cuFFT",
    }
}
