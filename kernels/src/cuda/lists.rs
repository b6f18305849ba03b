//! Memory of lists of numbers by place: `lists.cuh`.

use opsmith_runtime::{DType, Device, Result, Scalar};

use super::scratch::Room;

/// Heads of lists and the number after each, field by field as in `lists.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Lists {
    heads: *mut i64,
    next: *mut i64,
}

/// Memory of lists, for the work submitted while it lives.
pub(super) struct ListMemory {
    heads: Room,
    next: Room,
}

impl ListMemory {
    /// An empty list for each place, and room for some numbers.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(device: Device, places: usize, numbers: usize) -> Result<ListMemory> {
        let heads = Room::filled(device, DType::I64, places as u64, Scalar::Int(-1))?;
        Ok(ListMemory { heads, next: Room::new::<i64>(device, numbers as u64)? })
    }

    /// The addresses.
    pub fn lists(&self) -> Lists {
        Lists { heads: self.heads.address(), next: self.next.address() }
    }
}
