//! Memory of the host that devices access themselves, so that its copies need no other memory on the way and no wait.
//!
//! In: a number of bytes. Out: pinned memory, released in the order of the streams that read it, and the wait for those reads. Must
//! not know storages.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opsmith_core::Backend;

use super::{Address, Queue, RegisteredBackend, Ticket, Work};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicBool, Ordering};

/// Pinned memory of the host, for the devices of one backend.
///
/// # Safety
/// The runtime relies on three properties: allocated memory overlaps no other memory in use, it is valid for reads and writes of
/// the host, all of it initialised, and no work of a device uses it after the point that a wait was for.
pub unsafe trait HostMemory: Sync {
    /// Allocates at least `bytes` bytes, and at least one, aligned to 64.
    ///
    /// # Errors
    /// If the host has no such memory, or errors of the devices' driver.
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>>;

    /// Releases memory, for reuse once `last_use` has passed.
    ///
    /// # Safety
    /// It came from [`HostMemory::allocate`] with the same number of bytes, and neither the host nor work after `last_use` uses it.
    unsafe fn release(&self, memory: NonNull<u8>, bytes: usize, last_use: Ticket);

    /// Copies bytes between pinned memory and the queue's device. Both sides are read and written in the order of the stream.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// The host's side is in memory of [`HostMemory::allocate`]. Both sides have at least `bytes` bytes, do not overlap, and stay
    /// valid until the stream has passed this request.
    unsafe fn transfer(&self, queue: Queue, to: Address, from: Address, bytes: usize) -> Result<()>;

    /// Waits for a point, after which work before it accesses no memory, even if it failed: failures are left to
    /// [`DeviceRuntime::wait`](super::DeviceRuntime::wait).
    ///
    /// # Errors
    /// If this thread cannot wait now, as while it records work.
    fn wait(&self, point: Ticket) -> Result<()>;
}

/// Pinned memory owned by one storage.
pub(crate) struct PinnedMemory {
    backend: Backend,
    host: &'static dyn HostMemory,
    start: NonNull<u8>,
    bytes: usize,
    reads: Mutex<Reads>,
    /// Whether other code may write the memory, and nothing here knows when.
    is_exposed: AtomicBool,
}

/// The reads by devices. Streams follow each other's, so the latest point is after all of them.
#[derive(Default)]
struct Reads {
    latest: Ticket,
    /// Whether the memory is borrowed for them.
    are_borrowed: bool,
}

// SAFETY: the address is never dereferenced here, and the backend accepts releases from any thread.
unsafe impl Send for PinnedMemory {}
// SAFETY: `&PinnedMemory` gives the address as a number; the reads are behind a lock.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// Pinned memory of the first backend of the program that has some.
    ///
    /// # Errors
    /// If there is no such backend, or no memory.
    pub fn new(bytes: usize) -> Result<PinnedMemory> {
        let (backend, host) = of_any_backend()?;
        let bytes = bytes.max(1);
        let start = host.allocate(bytes)?;
        let (reads, is_exposed) = (Mutex::default(), AtomicBool::new(false));
        Ok(PinnedMemory { backend, host, start, bytes, reads, is_exposed })
    }

    /// Address of the first byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn reads(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a device accesses this memory.
    pub fn serves(&self, device: Device) -> bool {
        device.backend == self.backend
    }

    /// Submits a copy to a device. `add_reader` borrows the memory for the device, until [`PinnedMemory::finish_reads`], unless a copy
    /// before has done so; where it cannot, the copy is waited for.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// As [`HostMemory::transfer`]; the memory is this.
    pub unsafe fn send(
        &self,
        work: &Work,
        to: Address,
        from: Address,
        bytes: usize,
        add_reader: impl FnOnce() -> bool,
    ) -> Result<()> {
        let mut reads = self.reads();
        work.follow(reads.latest)?;
        // SAFETY: the caller's promise.
        let submitted = unsafe { self.host.transfer(work.queue(), to, from, bytes) };
        // A copy that failed half way may have been submitted.
        reads.latest = work.ticket()?;
        reads.are_borrowed = reads.are_borrowed || add_reader();
        if !reads.are_borrowed {
            self.host.wait(reads.latest)?;
        }
        submitted
    }

    /// Submits a copy from a device.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// As [`HostMemory::transfer`]; the memory is this, and the caller waits before the host uses it.
    pub unsafe fn receive(&self, work: &Work, to: Address, from: Address, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.host.transfer(work.queue(), to, from, bytes) }
    }

    /// Waits for the copies to devices. Returns whether the caller has to end a borrow for them.
    ///
    /// # Errors
    /// As [`HostMemory::wait`]; the borrow stays then.
    pub fn finish_reads(&self) -> Result<bool> {
        let mut reads = self.reads();
        if reads.are_borrowed {
            self.host.wait(reads.latest)?;
        }
        Ok(std::mem::take(&mut reads.are_borrowed))
    }

    /// Takes note that other code may write the memory from now on, so that each copy is waited for.
    pub fn expose(&self) {
        self.is_exposed.store(true, Ordering::Release);
    }

    /// Whether other code may write the memory.
    pub fn is_exposed(&self) -> bool {
        self.is_exposed.load(Ordering::Acquire)
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        let latest = self.reads().latest;
        // SAFETY: the memory came from this backend with this number of bytes, the owner had the last reference to it, and each
        // copy was noted.
        unsafe { self.host.release(self.start, self.bytes, latest) };
    }
}

/// The first backend whose devices access memory of the host.
fn of_any_backend() -> Result<(Backend, &'static dyn HostMemory)> {
    for registered in inventory::iter::<RegisteredBackend> {
        let backend = registered.backend;
        if let Some(host) = super::of(Device { backend, index: 0 })?.host_memory() {
            return Ok((backend, host));
        }
    }
    Err(Error::device(
        "there is no pinned memory: no crate of this program brings devices that access the host's",
    )
    .with_help("use the feature `cuda` of `opsmith`, or the tensor as it is: copies to devices take any"))
}
