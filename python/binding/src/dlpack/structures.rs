//! The structures of DLPack, as its header has them.
//!
//! In: nothing. Out: plain data.

use std::ffi::c_void;

/// A device: its kind, 1 for the host and 2 for CUDA, and its number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DlDevice {
    pub kind: i32,
    pub number: i32,
}

/// An element type: its category, bits, and elements in one.
#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
pub struct DlDataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

#[repr(C)]
pub struct DlTensor {
    pub data: *mut c_void,
    pub device: DlDevice,
    pub rank: i32,
    pub dtype: DlDataType,
    pub sizes: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

/// The first version of the structure.
#[repr(C)]
pub struct Legacy {
    pub tensor: DlTensor,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut Legacy)>,
}

/// The version with flags.
#[repr(C)]
pub struct Versioned {
    pub major: u32,
    pub minor: u32,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    pub flags: u64,
    pub tensor: DlTensor,
}
