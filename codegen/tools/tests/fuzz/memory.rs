//! Peak memory of a thread: an allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Resets the peak; returns the present count.
pub fn start() -> usize {
    let now = NOW.get();
    PEAK.set(now);
    now
}

/// The highest count since [`start`], in this thread.
pub fn peak() -> usize {
    PEAK.get()
}

fn add(bytes: usize) {
    let now = NOW.get().wrapping_add(bytes);
    NOW.set(now);
    PEAK.set(PEAK.get().max(now));
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // Memory allocated by another thread may be freed here.
        NOW.set(NOW.get().saturating_sub(layout.size()));
        // SAFETY: the caller promises a block of this allocator, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}
