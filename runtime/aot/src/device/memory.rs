//! Memory and streams of the device that calls take and give back, so that a call of sizes that were there
//! before asks the driver for nothing.
//!
//! In: sizes in bytes. Out: blocks. Every call waits for its end before it gives a block back, so the next
//! may use it on any stream. Must not know kernels.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opsmith_runtime::error::{Error, Result};

use super::driver::{self, Entered, Stream};

/// The least size of a block, as other frameworks' are: some kernels count on it.
const LEAST: usize = 512;
/// How many sizes of blocks there are between a power of two and the next.
const STEPS: usize = 8;

/// The blocks and streams that wait for the next call.
#[derive(Default)]
struct Kept {
    /// Addresses by the size of their blocks.
    blocks: BTreeMap<usize, Vec<u64>>,
    streams: Vec<Stream>,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept { blocks: BTreeMap::new(), streams: Vec::new() });

fn kept() -> MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory of the device.
#[derive(Debug)]
pub(super) struct Block {
    address: u64,
    size: usize,
}

impl Block {
    /// At least so many bytes, with anything in them.
    ///
    /// # Errors
    /// If the device has not so much; blocks that are kept for later calls are given back to it first.
    pub fn new(bytes: usize, entered: &Entered) -> Result<Block> {
        let size = rounded(bytes).ok_or_else(|| no_memory(bytes))?;
        if let Some(block) = take(size) {
            return Ok(block);
        }
        let address = match driver::allocate(size, entered)? {
            Some(address) => address,
            None => {
                release(entered);
                driver::allocate(size, entered)?.ok_or_else(|| no_memory(bytes))?
            }
        };
        Ok(Block { address, size })
    }

    /// Its address for copies.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its address for kernels.
    pub fn as_raw(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.address as usize)
    }

    /// Keeps it for later calls; nothing on the device uses it any more.
    pub fn give_back(self) {
        kept().blocks.entry(self.size).or_default().push(self.address);
    }
}

/// A kept block of that size, or of one that is not twice as large.
fn take(size: usize) -> Option<Block> {
    let mut kept = kept();
    let mut fitting = kept.blocks.range_mut(size..size.saturating_mul(2));
    let (&size, addresses) = fitting.find(|(_, addresses)| !addresses.is_empty())?;
    Some(Block { address: addresses.pop()?, size })
}

/// The size of the block for so many bytes: few sizes, so that those of growing shapes are found again.
fn rounded(bytes: usize) -> Option<usize> {
    let bytes = bytes.max(LEAST);
    let step = (bytes.checked_next_power_of_two()? / 2 / STEPS).max(LEAST);
    bytes.checked_next_multiple_of(step)
}

/// A stream that no other call uses.
///
/// # Errors
/// If the driver fails.
pub(super) fn stream(entered: &Entered) -> Result<Stream> {
    let waiting = kept().streams.pop();
    waiting.map_or_else(|| Stream::new(entered), Ok)
}

/// Keeps a stream on which all is done.
pub(super) fn give_back(stream: Stream) {
    kept().streams.push(stream);
}

/// Gives memory of the device that is kept for later calls of custom kernels back to it. Nothing happens
/// where no kernel for a device was called.
pub fn release_device_memory() {
    if !driver::is_started() {
        return;
    }
    // If the device cannot be used any more, its memory is gone already.
    if let Ok(entered) = Entered::new() {
        release(&entered);
    }
}

fn release(entered: &Entered) {
    let Kept { blocks, streams } = std::mem::take(&mut *kept());
    drop(streams);
    for address in blocks.into_values().flatten() {
        // SAFETY: it was allocated there, and waits, so nothing uses it.
        unsafe { driver::free(address, entered) };
    }
}

#[cold]
fn no_memory(bytes: usize) -> Error {
    Error::memory(format!("the device has no memory for {bytes} bytes more"))
        .with_help("inputs, outputs and workspaces of a call must be there at once; is a size computed from one that is not known?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_few_and_hardly_larger_than_asked_for() {
        assert_eq!([0, 1, 512, 513, 4097].map(rounded), [512, 512, 512, 1024, 4608].map(Some));
        assert_eq!(rounded(usize::MAX), None);
        for bytes in [5_000, 80_000, 1 << 20, 20_000_001] {
            let size = rounded(bytes).unwrap();
            assert!(size >= bytes && size - bytes <= bytes / STEPS + LEAST, "{bytes}: {size}");
            assert_eq!(rounded(size), Some(size));
        }
    }
}
