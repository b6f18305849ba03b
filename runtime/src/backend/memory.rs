//! Device memory owned by one storage.
//!
//! In: a device and a number of bytes. Out: a device address, which is released when the owner is dropped, in the order
//! of the streams that use it. Must not know storages.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use super::{DeviceRuntime, Queue, Ticket, Work};
use crate::device::Device;
use crate::error::Result;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Receives the device of a block, its address and its bytes, negative if it is released.
pub type DeviceBlockProfiler = fn(Device, usize, isize);

static PROFILER: OnceLock<DeviceBlockProfiler> = OnceLock::new();
static PROFILED: AtomicBool = AtomicBool::new(false);

/// Reports each block of device memory to a function of this process, in the thread that allocates or releases it, or to none.
/// The first function given is the only one.
pub fn profile_blocks(profiler: Option<DeviceBlockProfiler>) {
    if let Some(profiler) = profiler {
        PROFILER.get_or_init(|| profiler);
    }
    PROFILED.store(profiler.is_some(), Ordering::SeqCst);
}

#[inline]
fn report(device: Device, start: NonNull<u8>, bytes: isize) {
    if PROFILED.load(Ordering::Relaxed)
        && let Some(profiler) = PROFILER.get()
    {
        profiler(device, start.addr().get(), bytes);
    }
}

/// Memory of a device, and the ticket of its last use.
pub struct DeviceMemory {
    runtime: &'static dyn DeviceRuntime,
    device: Device,
    start: NonNull<u8>,
    bytes: usize,
    last_use: AtomicU64,
    /// The owner of memory of other code, and the stream in which it was taken over.
    owner: Option<(Box<dyn Any + Send + Sync>, Queue)>,
}

// SAFETY: the address is never dereferenced here, and the runtime accepts releases from any thread.
unsafe impl Send for DeviceMemory {}
// SAFETY: `&DeviceMemory` gives the address as a number, and the last use, which is atomic.
unsafe impl Sync for DeviceMemory {}

impl DeviceMemory {
    /// Allocates device memory.
    ///
    /// # Errors
    /// If no linked crate provides memory of the backend, the device does not exist, or its memory is exhausted.
    pub fn new(device: Device, bytes: usize) -> Result<DeviceMemory> {
        Self::of_runtime(super::of(device)?, device, bytes)
    }

    /// As [`DeviceMemory::new`], from a given runtime.
    pub(crate) fn of_runtime(
        runtime: &'static dyn DeviceRuntime,
        device: Device,
        bytes: usize,
    ) -> Result<DeviceMemory> {
        let bytes = bytes.max(1);
        let stream = runtime.stream(device.index)?;
        let start = runtime.allocate(device.index, bytes)?;
        let mut memory =
            DeviceMemory { runtime, device, start, bytes, last_use: AtomicU64::new(0), owner: None };
        report(device, start, bytes as isize);
        // Earlier work of this stream may still use the memory, so the first use on another stream follows it.
        let first = runtime.ticket(Queue { device: device.index, stream })?;
        memory.last_use = AtomicU64::new(first.0);
        Ok(memory)
    }

    /// Memory of a device that an owner keeps alive, for instance that of an array received from another library. The owner is
    /// dropped when the work that uses the memory is done, for which the last handle waits. If this thread is in a stream of other code
    /// ([`super::ForeignStream`]), it is dropped at once, when that stream follows the work.
    ///
    /// # Errors
    /// As [`DeviceMemory::new`].
    ///
    /// # Safety
    /// While the owner lives, `start` is the address of `bytes` bytes in memory of the device, which no other code writes, and
    /// work that this thread submits to its stream from now on comes after other code's use of them.
    pub unsafe fn external(
        device: Device,
        start: NonNull<u8>,
        bytes: usize,
        owner: impl Send + Sync + 'static,
    ) -> Result<DeviceMemory> {
        let runtime = super::of(device)?;
        let queue = Queue { device: device.index, stream: runtime.stream(device.index)? };
        let last_use = AtomicU64::new(runtime.ticket(queue)?.0);
        Ok(DeviceMemory { runtime, device, start, bytes, last_use, owner: Some((Box::new(owner), queue)) })
    }

    /// The device of the memory.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Address of the first byte, in the device's address space.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The ticket of the last use recorded so far.
    pub fn last_use(&self) -> Ticket {
        Ticket(self.last_use.load(Ordering::Acquire))
    }

    /// Records a use by all work that was submitted so far to a stream, also by other code.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn note_use_in(&self, queue: Queue) -> Result<()> {
        self.note_use(&Work::of_queue(self.runtime, queue))
    }

    /// Records a use that lasts until all work submitted so far is done. Streams follow each other's uses, so the
    /// latest ticket is enough.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn note_use(&self, work: &Work) -> Result<()> {
        let mut seen = self.last_use.load(Ordering::Acquire);
        loop {
            work.follow(Ticket(seen))?;
            let ticket = work.ticket()?.0;
            match self.last_use.compare_exchange(seen, ticket, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(()),
                // Another thread recorded a use on its stream concurrently.
                Err(other) => seen = other,
            }
        }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if let Some((owner, queue)) = self.owner.take() {
            // A failure is that of the work, and reported where its results are read.
            _ = match self.runtime.is_foreign(queue) {
                true => self.runtime.follow(queue, self.last_use()),
                false => self.runtime.wait(self.device.index, self.last_use()),
            };
            return drop(owner);
        }
        report(self.device, self.start, -(self.bytes as isize));
        // SAFETY: the memory came from this runtime with this number of bytes, and the owner had the last reference to
        // it.
        unsafe { self.runtime.release(self.device.index, self.start, self.bytes, self.last_use()) };
    }
}
