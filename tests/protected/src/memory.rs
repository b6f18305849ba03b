//! Pages of memory that cannot be read or written until they are opened.
//!
//! In: numbers of bytes, and addresses of memory to open. Out: addresses; memory that is open as long as an [`Open`]
//! lives.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a page, or a multiple of it.
const PAGE: usize = 4096;

/// The content of new memory: unlike any expected result, and not a valid `bool`.
pub const CONTENT: u8 = 0xA5;

struct Block {
    bytes: usize,
    /// Number of [`Open`]s that have it open.
    open: usize,
}

static BLOCKS: Mutex<BTreeMap<usize, Block>> = Mutex::new(BTreeMap::new());

fn blocks() -> MutexGuard<'static, BTreeMap<usize, Block>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of memory that was allocated and not freed.
pub fn live_bytes() -> usize {
    blocks().values().map(|block| block.bytes).sum()
}

/// New memory, closed; `None` if allocation fails.
pub fn allocate(bytes: usize) -> Option<NonNull<u8>> {
    let bytes = bytes.checked_next_multiple_of(PAGE)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping overlaps no existing one.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping has this size, and no other code has its address.
    unsafe { start.cast::<u8>().write_bytes(CONTENT, bytes) };
    protect(start.addr(), bytes, libc::PROT_NONE);
    blocks().insert(start.addr(), Block { bytes, open: 0 });
    NonNull::new(start.cast())
}

/// Frees memory.
///
/// # Panics
/// If it was not allocated, or is open.
pub fn free(start: NonNull<u8>) {
    let block = blocks().remove(&start.addr().get()).expect("memory is freed once");
    assert_eq!(block.open, 0, "memory is freed while the device uses it");
    // SAFETY: the mapping has this size, and no code uses it any more.
    let result = unsafe { libc::munmap(start.as_ptr().cast(), block.bytes) };
    assert_eq!(result, 0, "a mapping can be given back");
}

/// Memory that is open for the device's work only.
pub struct Open(Vec<usize>);

impl Open {
    /// Opens the memory that contains the addresses; host memory is always open.
    pub fn new(addresses: impl Iterator<Item = *mut u8>) -> Open {
        let mut open = Open(Vec::new());
        let mut blocks = blocks();
        for address in addresses {
            let Some((start, block)) = blocks.range_mut(..=address.addr()).next_back() else { continue };
            if address.addr() >= start + block.bytes {
                continue;
            }
            block.open += 1;
            if block.open == 1 {
                protect(*start, block.bytes, libc::PROT_READ | libc::PROT_WRITE);
            }
            open.0.push(*start);
        }
        open
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut blocks = blocks();
        for start in &self.0 {
            let block = blocks.get_mut(start).expect("open memory is not freed");
            block.open -= 1;
            if block.open == 0 {
                protect(*start, block.bytes, libc::PROT_NONE);
            }
        }
    }
}

fn protect(start: usize, bytes: usize, access: i32) {
    // SAFETY: the pages are a mapping of this module, which is only accessed through its `Open`s.
    let result = unsafe { libc::mprotect(std::ptr::with_exposed_provenance_mut(start), bytes, access) };
    assert_eq!(result, 0, "pages of a mapping can be protected");
}
