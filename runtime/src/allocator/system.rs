//! Blocks of the system.
//!
//! In: a class. Out: zeroed memory of its size, on huge pages where the system allows them.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::ALIGNMENT;
use super::classes::{SMALL_CLASSES, class_size};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// Number of blocks requested from the system since the start; a warm loop does not raise it.
pub fn system_allocations() -> usize {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Smallest block of a slab, of which its alignment takes an eighth at most.
#[cfg(all(target_os = "linux", not(miri)))]
const SLAB_FROM: usize = 32 << 10;

/// Whether blocks of a class share slabs.
#[cfg(all(target_os = "linux", not(miri)))]
fn is_in_slab(class: usize) -> bool {
    class < SMALL_CLASSES && class_size(class) >= SLAB_FROM
}

/// A block of zeros of a class; `None` if the system has none.
#[cold]
pub fn allocate(class: usize) -> Option<NonNull<u8>> {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    #[cfg(all(target_os = "linux", not(miri)))]
    if is_in_slab(class) {
        return super::slabs::carve(class_size(class));
    }
    // SAFETY: the layout's size is at least 64.
    let start = NonNull::new(unsafe { alloc_zeroed(block_layout(class)) })?;
    if class < SMALL_CLASSES {
        return Some(start);
    }
    let distance = ALIGNMENT - start.addr().get() % ALIGNMENT;
    // SAFETY: the layout has room before the block for the distance, at most `ALIGNMENT`; the distance is a multiple of
    // `SYSTEM_ALIGNMENT`, so the gap holds a `usize`.
    unsafe {
        let pointer = start.add(distance);
        pointer.cast::<usize>().sub(1).write(distance);
        super::prefer_huge_pages(pointer, class_size(class));
        Some(pointer)
    }
}

/// Gives a block back to the system.
#[cold]
pub fn release(pointer: NonNull<u8>, class: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if is_in_slab(class) {
        // SAFETY: the block is one of a class whose blocks are carved.
        return unsafe { super::slabs::give_back(pointer) };
    }
    // SAFETY: blocks of a class are allocated with the class's layout; a large block is preceded by its distance from
    // the start of the allocation.
    unsafe {
        let distance = if class < SMALL_CLASSES { 0 } else { pointer.cast::<usize>().sub(1).read() };
        dealloc(pointer.sub(distance).as_ptr(), block_layout(class));
    }
}

/// The alignment that the system provides by default.
const SYSTEM_ALIGNMENT: usize = 2 * size_of::<usize>();

/// The allocation to request from the system for a class. The system has large blocks of zeros ready, but only with its
/// own alignment: with a larger one it zeroes them by writing, which takes as long as a fast kernel.
fn block_layout(class: usize) -> Layout {
    let layout = match class {
        ..SMALL_CLASSES => Layout::from_size_align(class_size(class), ALIGNMENT),
        _ => Layout::from_size_align(class_size(class) + ALIGNMENT, SYSTEM_ALIGNMENT),
    };
    layout.expect("class sizes are below isize::MAX")
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
