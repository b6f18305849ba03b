//! Blocks of the system.
//!
//! In: a class. Out: zeroed memory of its size, on huge pages where the system allows them.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::ALIGNMENT;
#[cfg(all(target_os = "linux", not(miri)))]
use super::classes::SMALL_CLASSES;
use super::classes::class_size;
#[cfg(all(target_os = "linux", not(miri)))]
use super::{pages, slabs};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// Number of blocks requested from the system since the start; a warm loop does not raise it.
pub fn system_allocations() -> usize {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Where the blocks of a class lie.
enum Place {
    /// Anywhere.
    Heap(Layout),
    /// In a slab, beside others.
    #[cfg(all(target_os = "linux", not(miri)))]
    Slab,
    /// In pages of their own.
    #[cfg(all(target_os = "linux", not(miri)))]
    Pages,
}

/// Smallest block of a slab, of which its alignment takes an eighth at most.
#[cfg(all(target_os = "linux", not(miri)))]
const SLAB_FROM: usize = 32 << 10;

impl Place {
    fn of(class: usize) -> Place {
        let bytes = class_size(class);
        #[cfg(all(target_os = "linux", not(miri)))]
        if bytes >= SLAB_FROM {
            return if class < SMALL_CLASSES { Place::Slab } else { Place::Pages };
        }
        Place::Heap(Layout::from_size_align(bytes, ALIGNMENT).expect("class sizes are below isize::MAX"))
    }
}

/// A block of zeros of a class; `None` if the system has none.
#[cold]
pub fn allocate(class: usize) -> Option<NonNull<u8>> {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    match Place::of(class) {
        // SAFETY: the layout's size is at least 64.
        Place::Heap(layout) => NonNull::new(unsafe { alloc_zeroed(layout) }),
        #[cfg(all(target_os = "linux", not(miri)))]
        Place::Slab => slabs::carve(class_size(class)),
        #[cfg(all(target_os = "linux", not(miri)))]
        Place::Pages => pages::map(class_size(class), pages::HUGE_PAGE),
    }
}

/// Gives a block back to the system.
#[cold]
pub fn release(pointer: NonNull<u8>, class: usize) {
    // SAFETY: blocks of a class all come from its place, with the class's size.
    unsafe {
        match Place::of(class) {
            Place::Heap(layout) => dealloc(pointer.as_ptr(), layout),
            #[cfg(all(target_os = "linux", not(miri)))]
            Place::Slab => slabs::give_back(pointer),
            #[cfg(all(target_os = "linux", not(miri)))]
            Place::Pages => pages::unmap(pointer, class_size(class)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::classes::class_of;
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "interprets a step for each of 80 million bytes")]
    fn blocks_of_every_size_are_zeroed_aligned_and_given_back() {
        // Sizes that no other test uses.
        for bytes in [100usize, 70_000, (1 << 20) - 8, (1 << 20) + 8, 5 << 20, 70 << 20] {
            let class = class_of(bytes);
            let pointer = allocate(class).unwrap();
            assert_eq!(pointer.addr().get() % ALIGNMENT, 0);
            // SAFETY: only this test has the block, whose class has this size.
            let content = unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), class_size(class)) };
            assert!(content.iter().all(|byte| *byte == 0), "{bytes}");
            content.fill(0xFF);
            release(pointer, class);
        }
    }
}
