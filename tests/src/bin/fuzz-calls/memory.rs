//! An allocator that has only so much memory for a call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

/// Bytes that are allocated, in all threads.
static LIVE: AtomicIsize = AtomicIsize::new(0);
/// Where [`LIVE`] may go.
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
/// Whether a place that asks for too much is printed.
static TRACED: AtomicBool = AtomicBool::new(false);

/// The system's allocator, counting.
struct Bounded;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

/// Runs something that may have so many bytes more than there are now; there is no memory beyond.
pub fn bounded<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    /// The bound ends however the work does.
    struct Bound;
    impl Drop for Bound {
        fn drop(&mut self) {
            LIMIT.store(isize::MAX, Ordering::Relaxed);
        }
    }
    LIMIT.store(LIVE.load(Ordering::Relaxed) + bytes as isize, Ordering::Relaxed);
    let _bound = Bound;
    work()
}

/// Prints from now on who asks for more than there is.
pub fn trace() {
    TRACED.store(true, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged or is refused; counting allocates nothing.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        if live.saturating_add(layout.size() as isize) > LIMIT.load(Ordering::Relaxed) {
            LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
            if TRACED.swap(false, Ordering::Relaxed) {
                let limit = LIMIT.swap(isize::MAX, Ordering::Relaxed);
                eprintln!("{} bytes refused\n{}", layout.size(), std::backtrace::Backtrace::force_capture());
                LIMIT.store(limit, Ordering::Relaxed);
            }
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller promises a block of this allocator, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}
