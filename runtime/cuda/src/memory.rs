//! Memory of a device: the allocator over the driver.
//!
//! In: bytes, and blocks freed at a ticket. Out: addresses, or an error with the bytes live, cached and requested.
//! Must not know kernels.

use std::ffi::{c_uint, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opsmith_runtime::backend::Ticket;
use opsmith_runtime::{Error, Result};

use crate::allocator::{Pool, Source, Statistics};
use crate::driver::{Context, codes};
use crate::settings::parse_bytes;
use crate::stream;

/// Limit of the memory of every device in bytes, with an optional unit K, M or G.
const CAP_VARIABLE: &str = "OPSMITH_CUDA_MEMORY_CAP";

/// The memory of one device.
pub struct Memory {
    pool: Mutex<Pool>,
}

/// Segments from the driver.
struct Segments(&'static Context);

impl Source for Segments {
    fn segment(&mut self, bytes: usize) -> Result<Option<usize>> {
        let _entered = self.0.enter()?;
        let mut address = 0;
        // SAFETY: the context is entered, and the result is a local variable.
        match unsafe { (self.0.api().cuMemAlloc_v2)(&mut address, bytes) } {
            codes::OUT_OF_MEMORY => Ok(None),
            code => {
                self.0.check(code, format_args!("allocate {bytes} bytes"))?;
                Ok(usize::try_from(address).ok())
            }
        }
    }

    fn free(&mut self, start: usize) {
        // A lost context has lost its memory too.
        if let Ok(_entered) = self.0.enter() {
            // SAFETY: the segment came from `segment`, and the pool waited for all uses of it.
            _ = unsafe { (self.0.api().cuMemFree_v2)(start as u64) };
        }
    }

    fn has_passed(&mut self, ticket: Ticket) -> bool {
        stream::has_passed(ticket).unwrap_or(false)
    }

    fn wait(&mut self, ticket: Ticket) {
        _ = stream::wait(ticket);
    }
}

impl Memory {
    /// The memory of a device, with the limit of `OPSMITH_CUDA_MEMORY_CAP`.
    ///
    /// # Errors
    /// If the variable has no number of bytes.
    pub fn new() -> Result<Memory> {
        let mut pool = Pool::default();
        if let Ok(text) = std::env::var(CAP_VARIABLE) {
            let bytes = parse_bytes(&text).ok_or_else(|| {
                Error::value(format!("{CAP_VARIABLE} is `{text}`, which is no number of bytes"))
                    .with_help("write bytes, or a number with K, M or G: 500M")
            })?;
            pool.set_cap(Some(bytes));
        }
        Ok(Memory { pool: Mutex::new(pool) })
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block that work of this thread's stream may use at once.
    ///
    /// # Errors
    /// If the memory of the device is exhausted, or errors of the device.
    pub fn allocate(&self, context: &'static Context, bytes: usize) -> Result<NonNull<u8>> {
        let stream = stream::own(context)?.number;
        let mut pool = self.pool();
        let found = pool.allocate(&mut Segments(context), bytes, stream)?;
        let start = found.and_then(|start| NonNull::new(std::ptr::without_provenance_mut(start)));
        start.ok_or_else(|| exhausted(context, pool.statistics(), bytes))
    }

    /// Frees a block at the ticket of its last use.
    pub fn release(&self, start: NonNull<u8>, last_use: Ticket) {
        let known = self.pool().release(start.addr().get(), last_use);
        debug_assert!(known, "memory is released once, to its own device");
    }

    /// Returns cached memory to the device.
    ///
    /// # Errors
    /// If the context is lost.
    pub fn trim(&self, context: &'static Context) -> Result<usize> {
        let _entered = context.enter()?;
        Ok(self.pool().trim(&mut Segments(context)))
    }

    /// Statistics of now.
    pub fn statistics(&self) -> Statistics {
        self.pool().statistics()
    }

    /// Limits live and cached bytes together.
    pub fn set_cap(&self, bytes: Option<usize>) {
        self.pool().set_cap(bytes);
    }
}

#[cold]
fn exhausted(context: &Context, statistics: Statistics, bytes: usize) -> Error {
    let Statistics { live_bytes, cached_bytes, cap_bytes, .. } = statistics;
    let error = Error::memory(format!(
        "device {} has no memory for {bytes} bytes more: {live_bytes} bytes are live, {cached_bytes} cached",
        context.index
    ));
    let error = match (cap_bytes, context.memory()) {
        (Some(cap), _) => error.with_note(format!("the limit of this process is {cap} bytes")),
        (None, Ok((free, total))) => error.with_note(format!("the device has {free} of {total} bytes free")),
        (None, Err(_)) => error,
    };
    error.with_help(
        "drop tensors that are not needed, use smaller batches, or end other programs on the device; cached memory was \
         returned before the last attempt",
    )
}

/// Memory of the host that the device accesses directly, for the life of the process.
///
/// # Errors
/// If there is none, or errors of the device.
pub fn pinned(context: &Context, bytes: usize) -> Result<NonNull<u8>> {
    let flags = (codes::HOST_PORTABLE | codes::HOST_MAPPED) as c_uint;
    let _entered = context.enter()?;
    let mut start: *mut c_void = std::ptr::null_mut();
    // SAFETY: the context is entered, and the result is a local variable.
    let code = unsafe { (context.api().cuMemHostAlloc)(&mut start, bytes, flags) };
    context.check(code, format_args!("pin {bytes} bytes of the host's memory"))?;
    NonNull::new(start.cast()).ok_or_else(|| Error::memory(format!("the host has no {bytes} bytes to pin")))
}
