//! Blocks of less than a huge page, several in one.
//!
//! In: sizes. Out: zeroed blocks, one after the other in slabs of huge pages. A slab goes back to the system with the last of its
//! blocks; a block that is given back earlier is not carved again, since caches keep blocks for that.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pages::{HUGE_PAGE, map, unmap};

/// Bytes of a slab: three of the largest blocks.
const SLAB: usize = 2 * HUGE_PAGE;

/// Alignment of blocks: that of the addresses whose last bits a processor compares to tell whether a load may be of a store before it.
/// Where a result begins a little further along than an operand, each load would wait for a store of another element.
const BLOCK_ALIGNMENT: usize = 4096;

/// The beginning of a slab.
struct Header {
    /// Blocks that were not given back.
    live: usize,
}

/// The slab that blocks are carved from.
struct Current {
    slab: Option<NonNull<Header>>,
    /// Bytes of it that are taken.
    taken: usize,
}

// SAFETY: slabs are memory of the process, read and written with the lock held.
unsafe impl Send for Current {}

static CURRENT: Mutex<Current> = Mutex::new(Current { slab: None, taken: 0 });

/// The lock on the slabs.
#[cfg(not(loom))]
pub struct HeldSlabs(
    #[expect(dead_code, reason = "held as long as the value lives")] MutexGuard<'static, Current>,
);

#[cfg(not(loom))]
impl HeldSlabs {
    /// Waits for the lock.
    pub fn lock() -> HeldSlabs {
        HeldSlabs(current())
    }
}

fn current() -> MutexGuard<'static, Current> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block of so many bytes, fewer than a slab has; `None` if the system has none.
pub fn carve(bytes: usize) -> Option<NonNull<u8>> {
    let mut current = current();
    let slab = match current.slab {
        Some(slab) if current.taken + bytes <= SLAB => slab,
        // An earlier slab has blocks, and goes with the last of them.
        _ => {
            let slab = map(SLAB, SLAB)?.cast::<Header>();
            // SAFETY: the slab is larger than a header, and the lock is held.
            unsafe { slab.write(Header { live: 0 }) };
            *current = Current { slab: Some(slab), taken: BLOCK_ALIGNMENT };
            slab
        }
    };
    // SAFETY: so many bytes are left in the slab, whose header is read and written with the lock held.
    let block = unsafe {
        (*slab.as_ptr()).live += 1;
        slab.cast::<u8>().add(current.taken)
    };
    current.taken = (current.taken + bytes).next_multiple_of(BLOCK_ALIGNMENT);
    Some(block)
}

/// Gives a block back.
///
/// # Safety
/// It came from [`carve`], and is not used any more.
pub unsafe fn give_back(block: NonNull<u8>) {
    let mut current = current();
    let Some(slab) = NonNull::new(block.as_ptr().map_addr(|address| address / SLAB * SLAB).cast::<Header>())
    else {
        return;
    };
    // SAFETY: the block lies in a slab, at whose beginning is its header, read and written with the lock held.
    unsafe {
        (*slab.as_ptr()).live -= 1;
        if (*slab.as_ptr()).live == 0 {
            if current.slab == Some(slab) {
                current.slab = None;
            }
            unmap(slab.cast(), SLAB);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_apart_and_a_slab_ends_with_the_last_of_them() {
        let sizes = [16 << 10, (1 << 20) + 64, 100_000, (1 << 20) + 64, (1 << 20) + 64, 70_000];
        let blocks = sizes.map(|bytes| (carve(bytes).unwrap(), bytes));
        for (number, (block, bytes)) in blocks.iter().enumerate() {
            assert_eq!(block.addr().get() % BLOCK_ALIGNMENT, 0);
            // SAFETY: the block has so many bytes, and is this test's.
            let content = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), *bytes) };
            assert!(content.iter().all(|byte| *byte == 0));
            content.fill(number as u8 + 1);
        }
        for (number, (block, bytes)) in blocks.iter().enumerate() {
            // SAFETY: the block has so many bytes, and is given back once.
            unsafe {
                let content = std::slice::from_raw_parts(block.as_ptr(), *bytes);
                assert!(content.iter().all(|byte| *byte == number as u8 + 1));
                give_back(*block);
            }
        }
    }
}
