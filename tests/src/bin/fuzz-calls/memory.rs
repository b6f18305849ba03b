//! An allocator with a memory limit for a call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

/// Bytes that are allocated, in all threads.
static LIVE: AtomicIsize = AtomicIsize::new(0);
/// The limit of [`LIVE`].
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
/// Whether the backtrace of a failed allocation is printed.
static TRACED: AtomicBool = AtomicBool::new(false);

/// The system's allocator, counting.
struct Bounded;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

/// Runs work with a limit of additional bytes; allocations beyond it fail.
pub fn bounded<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    /// Ends the limit even if the work panics.
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

/// Prints the backtraces of failed allocations from now on.
pub fn trace() {
    TRACED.store(true, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged or fails; counting allocates nothing.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A refused request is never counted, since another thread's small one would fail beside it.
        let with_it = |live: isize| {
            let live = live.saturating_add(layout.size() as isize);
            (live <= LIMIT.load(Ordering::Relaxed)).then_some(live)
        };
        if LIVE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_it).is_err() {
            if TRACED.swap(false, Ordering::Relaxed) {
                let limit = LIMIT.swap(isize::MAX, Ordering::Relaxed);
                eprintln!("{} bytes refused\n{}", layout.size(), std::backtrace::Backtrace::force_capture());
                LIMIT.store(limit, Ordering::Relaxed);
            }
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are those that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller promises a block of this allocator, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}
