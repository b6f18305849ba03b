//! CPU memory: 64-byte aligned blocks, cached by size class.
//!
//! A fresh page costs about 2 µs and `malloc` with alignment 50 ns, so freed blocks are kept: small
//! ones in a cache of the thread, large ones in a cache of the process. Blocks of a class are
//! interchangeable; a class is at most a quarter larger than what was asked for.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Alignment of every block in bytes: a cache line, and an AVX-512 register.
pub const ALIGNMENT: usize = 64;

/// Four classes for each power of two from 64 B to 2^47 B.
const CLASSES: usize = 4 * 42;
const SMALL_CLASSES: usize = 4 * 14 + 1;
/// What a thread keeps, in bytes.
const THREAD_CACHE_LIMIT: usize = 32 << 20;
/// What the process keeps in large blocks, in bytes.
const PROCESS_CACHE_LIMIT: usize = 2 << 30;

static SYSTEM_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// A block of memory and the class it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub pointer: NonNull<u8>,
    pub class: u32,
}

struct Cache<const N: usize> {
    free: [Vec<NonNull<u8>>; N],
    bytes: usize,
}

impl<const N: usize> Cache<N> {
    const fn new() -> Self {
        Cache { free: [const { Vec::new() }; N], bytes: 0 }
    }

    #[inline]
    fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        let pointer = self.free[class].pop()?;
        self.bytes -= class_size(class);
        Some(pointer)
    }

    #[inline]
    fn keep(&mut self, class: usize, pointer: NonNull<u8>, limit: usize) -> bool {
        let size = class_size(class);
        if self.bytes + size > limit {
            return false;
        }
        self.bytes += size;
        self.free[class].push(pointer);
        true
    }

    fn release(&mut self) {
        for (class, list) in self.free.iter_mut().enumerate() {
            for pointer in list.drain(..) {
                free_to_system(pointer, class);
            }
        }
        self.bytes = 0;
    }
}

impl<const N: usize> Drop for Cache<N> {
    fn drop(&mut self) {
        self.release();
    }
}

// SAFETY: the cache owns its blocks; nothing else refers to them.
unsafe impl<const N: usize> Send for Cache<N> {}

thread_local! {
    static THREAD_CACHE: RefCell<Cache<SMALL_CLASSES>> = const { RefCell::new(Cache::new()) };
}
static PROCESS_CACHE: Mutex<Cache<CLASSES>> = Mutex::new(Cache::new());

/// Size in bytes of the blocks of a class: 64, 80, 96, 112, 128, 160, …
#[inline]
const fn class_size(class: usize) -> usize {
    let base = 64usize << (class / 4);
    // Rounded up to the alignment for the first few classes, where a quarter is less than a line.
    let size = base + base / 4 * (class % 4);
    size.next_multiple_of(ALIGNMENT)
}

/// The smallest class that holds `bytes`.
#[inline]
fn class_of(bytes: usize) -> usize {
    if bytes <= 64 {
        return 0;
    }
    let power = (usize::BITS - 1 - (bytes - 1).leading_zeros()) as usize; // floor(log2(bytes - 1)) ≥ 6
    let base = 1usize << power;
    let quarter = (bytes - 1 - base) / (base / 4);
    4 * (power - 6) + quarter + 1
}

/// A block of at least `bytes` bytes, whose content is arbitrary; `None` if the system has none.
#[inline]
pub(crate) fn allocate(bytes: usize) -> Option<Block> {
    let class = class_of(bytes);
    if class >= CLASSES {
        return None;
    }
    let cached = if class < SMALL_CLASSES {
        THREAD_CACHE.try_with(|cache| cache.borrow_mut().take(class)).ok().flatten()
    } else {
        PROCESS_CACHE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take(class)
    };
    let pointer = match cached {
        Some(pointer) => pointer,
        None => allocate_from_system(class)?,
    };
    count_live(class_size(class) as isize);
    Some(Block { pointer, class: class as u32 })
}

/// Takes a block back.
///
/// # Safety
/// The block came from [`allocate`], was not freed, and is not used again.
#[inline]
pub(crate) unsafe fn free(block: Block) {
    let class = block.class as usize;
    count_live(-(class_size(class) as isize));
    let kept = if class < SMALL_CLASSES {
        // A thread that is ending has no cache any more.
        THREAD_CACHE
            .try_with(|cache| cache.borrow_mut().keep(class, block.pointer, THREAD_CACHE_LIMIT))
            .unwrap_or(false)
    } else {
        PROCESS_CACHE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).keep(
            class,
            block.pointer,
            PROCESS_CACHE_LIMIT,
        )
    };
    if !kept {
        free_to_system(block.pointer, class);
    }
}

#[cold]
fn allocate_from_system(class: usize) -> Option<NonNull<u8>> {
    SYSTEM_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the layout's size is at least 64.
    NonNull::new(unsafe { alloc(block_layout(class)) })
}

#[cold]
fn free_to_system(pointer: NonNull<u8>, class: usize) {
    // SAFETY: blocks of a class are allocated with the class's layout.
    unsafe { dealloc(pointer.as_ptr(), block_layout(class)) }
}

fn block_layout(class: usize) -> Layout {
    Layout::from_size_align(class_size(class), ALIGNMENT).expect("class sizes are below isize::MAX")
}

/// Bytes that one thread allocated minus those it freed. Only the thread itself writes, so that
/// counting costs a load and a store; the sum over threads is what is alive.
struct LiveCount(Arc<AtomicIsize>);

static LIVE_COUNTS: Mutex<Vec<Arc<AtomicIsize>>> = Mutex::new(Vec::new());

thread_local! {
    static LIVE: LiveCount = {
        let count = Arc::new(AtomicIsize::new(0));
        LIVE_COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(count.clone());
        LiveCount(count)
    };
}

/// What threads that have ended left behind.
static ENDED: AtomicIsize = AtomicIsize::new(0);

impl Drop for LiveCount {
    fn drop(&mut self) {
        let mut counts = LIVE_COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        counts.retain(|count| !Arc::ptr_eq(count, &self.0));
        ENDED.fetch_add(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[inline]
fn count_live(bytes: isize) {
    let counted = LIVE.try_with(|LiveCount(count)| {
        count.store(count.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    });
    if counted.is_err() {
        ENDED.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Bytes held by live tensors, rounded up to their size classes.
pub fn live_bytes() -> usize {
    let counts = LIVE_COUNTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let total: isize = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    (total + ENDED.load(Ordering::Relaxed)).max(0) as usize
}

/// How many blocks were asked of the system since the start; a warm loop does not raise it.
pub fn system_allocations() -> usize {
    SYSTEM_ALLOCATIONS.load(Ordering::Relaxed)
}

/// Gives the cached blocks of this thread and of the process back to the system.
pub fn empty_cache() {
    // A thread that is ending has no cache any more, hence nothing to give back.
    let _ = THREAD_CACHE.try_with(|cache| cache.borrow_mut().release());
    PROCESS_CACHE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).release();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_was_asked_and_wastes_at_most_a_quarter() {
        for bytes in
            (0..5000).chain((12..40).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]))
        {
            let size = class_size(class_of(bytes));
            assert!(size >= bytes, "{bytes} in {size}");
            assert!(size <= bytes.max(64) * 5 / 4 + ALIGNMENT, "{bytes} in {size}");
        }
    }

    #[test]
    fn a_freed_block_is_used_again() {
        let block = allocate(1000).unwrap();
        let first = block.pointer;
        // SAFETY: allocated above and not used after.
        unsafe { free(block) };
        let block = allocate(1010).unwrap();
        assert_eq!(block.pointer, first);
        assert_eq!(block.pointer.as_ptr() as usize % ALIGNMENT, 0);
        // SAFETY: as above.
        unsafe { free(block) };
    }
}
