//! Memory of a device that one storage owns.
//!
//! In: a device and a number of bytes. Out: an address of the device, which is given back when the owner is dropped, in
//! the order of the streams that use it. Must know no storage.

use std::ptr::NonNull;

use super::{DeviceRuntime, Ticket, Work};
use crate::device::Device;
use crate::error::Result;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Memory of a device, and the point after which nothing uses it.
pub struct DeviceMemory {
    runtime: &'static dyn DeviceRuntime,
    device: Device,
    start: NonNull<u8>,
    bytes: usize,
    last_use: AtomicU64,
}

// SAFETY: the address is never followed here, and the runtime may be asked to take it back from any thread.
unsafe impl Send for DeviceMemory {}
// SAFETY: `&DeviceMemory` gives the address as a number, and the last use, which is atomic.
unsafe impl Sync for DeviceMemory {}

impl DeviceMemory {
    /// Memory for so many bytes.
    ///
    /// # Errors
    /// If no crate brings memory of the backend, the device is not there, or it has no such memory.
    pub fn new(device: Device, bytes: usize) -> Result<DeviceMemory> {
        Self::of_runtime(super::of(device)?, device, bytes)
    }

    /// The same, of a runtime.
    pub(crate) fn of_runtime(
        runtime: &'static dyn DeviceRuntime,
        device: Device,
        bytes: usize,
    ) -> Result<DeviceMemory> {
        let bytes = bytes.max(1);
        let start = runtime.allocate(device.index, bytes)?;
        Ok(DeviceMemory { runtime, device, start, bytes, last_use: AtomicU64::new(0) })
    }

    /// The device that has it.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The first byte, in the device's addresses.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The point after which nothing uses it, of what was asked so far.
    pub fn last_use(&self) -> Ticket {
        Ticket(self.last_use.load(Ordering::Acquire))
    }

    /// Notes that it is used until the work is done that was asked for so far. Streams follow each other's uses, so that
    /// the latest is enough.
    ///
    /// # Errors
    /// If the device refuses.
    pub fn note_use(&self, work: &Work) -> Result<()> {
        let mut seen = self.last_use.load(Ordering::Acquire);
        loop {
            work.follow(Ticket(seen))?;
            let ticket = work.ticket()?.0;
            match self.last_use.compare_exchange(seen, ticket, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(()),
                // Another thread's stream uses it too.
                Err(other) => seen = other,
            }
        }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: the memory came from this runtime for as many bytes, and the owner was the last who knew of it.
        unsafe { self.runtime.release(self.device.index, self.start, self.bytes, self.last_use()) };
    }
}
