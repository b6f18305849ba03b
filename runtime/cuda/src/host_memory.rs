//! Pinned memory of the host for tensors: a cache over the driver's, and copies without buffers between.
//!
//! In: bytes, and blocks released at a ticket. Out: addresses, or an error with the bytes live, cached and requested. The driver's
//! own release waits for all devices, so blocks are kept for later requests of as many bytes. Must not know tensors.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opsmith_core::Backend;
use opsmith_runtime::backend::{Address, HostMemory, Queue, Ticket};
use opsmith_runtime::{Error, Result};

use crate::capture;
use crate::device::{device, existing};
use crate::driver::{self, Context};
use crate::memory::pinned;
use crate::staging::{fetch, send};
use crate::stream;

/// Blocks up to the second have a power of two of bytes, the first at least; larger ones multiples of it.
const LEAST: usize = 4 << 10;
const STEP: usize = 2 << 20;

/// Pinned memory of the host that this process holds for tensors, in bytes. Blocks are powers of two up to 2 MiB, and multiples of
/// that beyond.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostStatistics {
    /// In use.
    pub live_bytes: usize,
    /// Kept for later use, or until work of a device is done.
    pub cached_bytes: usize,
    /// Requests to the driver so far.
    pub driver_allocations: usize,
}

struct Block {
    start: NonNull<u8>,
    bytes: usize,
    last_use: Ticket,
}

// SAFETY: pinned memory may be used from any thread, and a cached block has no user.
unsafe impl Send for Block {}

#[derive(Default)]
struct Cache {
    blocks: Vec<Block>,
    statistics: HostStatistics,
}

static CACHE: Mutex<Cache> = Mutex::new(Cache {
    blocks: Vec::new(),
    statistics: HostStatistics { live_bytes: 0, cached_bytes: 0, driver_allocations: 0 },
});

fn cache() -> MutexGuard<'static, Cache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of a block that serves a request; `None` if no address has so many.
fn block_bytes(bytes: usize) -> Option<usize> {
    match bytes {
        ..=STEP => Some(bytes.next_power_of_two().max(LEAST)),
        _ => bytes.checked_next_multiple_of(STEP),
    }
}

/// A context that exists, or that of the first device: pinned memory is for all.
fn any_context() -> Result<&'static Context> {
    let count = driver::driver()?.count;
    match (0..count).find_map(existing) {
        Some(device) => Ok(device.context),
        None => driver::context(0),
    }
}

/// Statistics of now.
pub fn statistics() -> HostStatistics {
    cache().statistics
}

/// Waits for the last uses of cached blocks, and returns them to the driver. Returns their bytes.
///
/// # Errors
/// If there is no driver, its context is lost, or the thread records work.
pub fn trim() -> Result<usize> {
    capture::refuse("a release of pinned memory")?;
    let context = any_context()?;
    let _entered = context.enter()?;
    let mut cache = cache();
    let mut freed = 0;
    while let Some(block) = cache.blocks.last() {
        // Work that failed uses no memory any more.
        _ = stream::wait(block.last_use);
        // SAFETY: the block came from the driver, nothing uses it, and the context is entered.
        let code = unsafe { (context.api().cuMemFreeHost)(block.start.as_ptr().cast::<c_void>()) };
        context.check(code, "release pinned memory")?;
        let bytes = block.bytes;
        cache.blocks.pop();
        cache.statistics.cached_bytes -= bytes;
        freed += bytes;
    }
    Ok(freed)
}

/// Pinned memory of all devices.
pub struct Pinned;

// SAFETY: blocks are the driver's, with one user at a time, and are reused when the last use has passed; the driver initialises
// them. A failed wait is one of work that accesses nothing any more.
unsafe impl HostMemory for Pinned {
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        let whole = block_bytes(bytes).ok_or_else(|| exhausted(bytes, None))?;
        if let Some(start) = reused(whole) {
            return Ok(start);
        }
        capture::refuse("an allocation of pinned memory")?;
        let context = any_context()?;
        let start = match pinned(context, whole) {
            Ok(start) => start,
            Err(first) => {
                trim()?;
                pinned(context, whole).map_err(|_| exhausted(bytes, Some(&first)))?
            }
        };
        let mut cache = cache();
        cache.statistics.live_bytes += whole;
        cache.statistics.driver_allocations += 1;
        Ok(start)
    }

    unsafe fn release(&self, start: NonNull<u8>, bytes: usize, last_use: Ticket) {
        // A copy (fork) of the process has no memory of the driver to reuse.
        if driver::started().is_none() {
            return;
        }
        if let Some(bytes) = block_bytes(bytes) {
            let mut cache = cache();
            cache.blocks.push(Block { start, bytes, last_use });
            cache.statistics.live_bytes -= bytes;
            cache.statistics.cached_bytes += bytes;
        }
    }

    unsafe fn transfer(&self, queue: Queue, to: Address, from: Address, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        capture::refuse("a copy from or to another device")?;
        device(queue.device)?;
        let stream = stream::of(queue)?;
        // SAFETY: the caller's promise; the host's side is not null.
        unsafe {
            match to.device.backend {
                Backend::Cpu => fetch(stream, to.start, from.start.addr() as u64, bytes),
                _ => send(stream, to.start.addr() as u64, from.start, bytes),
            }
        }
    }

    fn wait(&self, point: Ticket) -> Result<()> {
        if stream::is_recording() && !stream::has_passed(point).unwrap_or(true) {
            return capture::refuse("a wait for a copy of pinned memory that the host is to write");
        }
        // Its failure is that of the work, and reported where results are read.
        _ = stream::wait(point);
        Ok(())
    }
}

/// A cached block of so many bytes that no work uses.
fn reused(bytes: usize) -> Option<NonNull<u8>> {
    driver::started()?;
    let mut cache = cache();
    let is_free = |block: &Block| block.bytes == bytes && stream::has_passed(block.last_use).unwrap_or(false);
    let position = cache.blocks.iter().position(is_free)?;
    let block = cache.blocks.swap_remove(position);
    cache.statistics.cached_bytes -= bytes;
    cache.statistics.live_bytes += bytes;
    Some(block.start)
}

#[cold]
fn exhausted(bytes: usize, reason: Option<&Error>) -> Error {
    let HostStatistics { live_bytes, cached_bytes, .. } = statistics();
    let error = Error::memory(format!(
        "the host has no {bytes} bytes more to pin: {live_bytes} bytes are live, {cached_bytes} cached"
    ));
    let error = match reason {
        Some(reason) => error.with_note(reason.to_string()),
        None => error,
    };
    error.with_help("drop pinned tensors that are not needed, raise the limit of locked memory, or leave the tensor unpinned")
}
