//! CPU memory: 64-byte aligned blocks, cached by size class.
//!
//! A fresh page costs about 2 µs and `malloc` with alignment 50 ns, so freed blocks are kept: small ones in a cache of
//! the thread, large ones in a cache of the process. Blocks of a class are interchangeable; a class is at most an
//! eighth larger than the request. Each block has additional room for a storage's header, so that sizes that are powers
//! of two, which most are, waste nothing.
//!
//! Every byte of a block is initialised: the system returns zeros, and a reused block holds its former contents. A read
//! of a tensor before its kernel wrote it is therefore never a read of uninitialised memory; see
//! `docs/design/kernel-memory.md`.

#[cfg(not(all(loom, test)))]
mod live;
#[cfg(all(loom, test))]
pub(crate) mod live;
mod machine;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use live::count_live;
pub use live::live_bytes;

/// Alignment of every block in bytes: a cache line, and an AVX-512 register.
pub const ALIGNMENT: usize = 64;

/// Room of a block beyond the requested bytes: a storage's header.
pub(crate) const HEADROOM: usize = if cfg!(loom) { 8 * ALIGNMENT } else { ALIGNMENT };
/// Classes of up to 1 KiB, 64 B apart.
const LINEAR_CLASSES: usize = 16;
/// Eight classes for each power of two from 1 KiB to 2^47 B after those.
const CLASSES: usize = LINEAR_CLASSES + 8 * 37;
/// Classes of up to 1 MiB, whose blocks are cached by thread.
const SMALL_CLASSES: usize = LINEAR_CLASSES + 8 * 10;
/// Limit of a thread's cache, in bytes.
const THREAD_CACHE_LIMIT: usize = 32 << 20;
/// Limit of the process's cache of large blocks, in bytes.
const PROCESS_CACHE_LIMIT: usize = 2 << 30;

static SYSTEM_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// A block of memory, its class, and its requested size without the headroom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub pointer: NonNull<u8>,
    pub class: u32,
    pub bytes: usize,
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

// SAFETY: the cache owns its blocks, which have no other references, and the system accepts them from any thread.
unsafe impl<const N: usize> Send for Cache<N> {}

thread_local! {
    static THREAD_CACHE: RefCell<Cache<SMALL_CLASSES>> = const { RefCell::new(Cache::new()) };
}
static PROCESS_CACHE: Mutex<Cache<CLASSES>> = Mutex::new(Cache::new());

/// Size in bytes of the blocks of a class: the headroom and 64, 128, 192, … 1024, 1152, 1280, …
#[inline]
const fn class_size(class: usize) -> usize {
    if class < LINEAR_CLASSES {
        return HEADROOM + 64 * (class + 1);
    }
    let base = 1024usize << ((class - LINEAR_CLASSES) / 8);
    HEADROOM + base + base / 8 * ((class - LINEAR_CLASSES) % 8 + 1)
}

/// The smallest class that holds the headroom and `bytes`.
#[inline]
const fn class_of(bytes: usize) -> usize {
    let last = bytes.saturating_sub(1);
    if last < 1024 {
        return last / 64;
    }
    let power = (usize::BITS - 1 - last.leading_zeros()) as usize;
    let base = 1usize << power;
    LINEAR_CLASSES + 8 * (power - 10) + (last - base) / (base / 8)
}

/// Limit of the memory of tensors and scratch together, in bytes; 0 until it is known.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Limits the memory of tensors and scratch together, in bytes; `None` for the machine's memory, the default. A call
/// that needs more memory is an error.
///
/// The limit is checked when a block of 64 KiB or more is requested from the system; smaller and cached blocks are not
/// checked.
pub fn set_limit(bytes: Option<usize>) {
    LIMIT.store(bytes.unwrap_or(0), Ordering::Relaxed);
}

/// The limit of [`set_limit`], or the machine's memory.
pub fn limit() -> usize {
    static MACHINE: OnceLock<usize> = OnceLock::new();
    match LIMIT.load(Ordering::Relaxed) {
        0 => *MACHINE.get_or_init(machine::memory),
        set => set,
    }
}

/// Whether an allocation of this size stays within the limit.
pub(crate) fn fits(bytes: usize) -> bool {
    bytes < BOUNDED_FROM || live_bytes().saturating_add(bytes) <= limit()
}

/// Blocks below this size are allocated without a check of the limit.
const BOUNDED_FROM: usize = 64 << 10;

/// A block of at least `bytes` bytes after the headroom, whose content is initialised and arbitrary; `None` if
/// the system has none.
#[inline]
pub(crate) fn allocate(bytes: usize) -> Option<Block> {
    let class = class_of(bytes);
    let pointer = take_class(class)?;
    count_live(bytes as isize);
    if WATCHED.load(Ordering::Relaxed) {
        PEAK.fetch_max(live_bytes(), Ordering::Relaxed);
    }
    Some(Block { pointer, class: class as u32, bytes })
}

/// Releases a block.
///
/// # Safety
/// The block came from [`allocate`], was not freed, and is not used again.
#[inline]
pub(crate) unsafe fn free(block: Block) {
    count_live(-(block.bytes as isize));
    // SAFETY: the block came from `take_class` by `allocate`, for its class, and the caller gives up its use.
    unsafe { keep_class(block.class as usize, block.pointer) }
}

/// Memory of at least `bytes` bytes, with its actual size, for scratch: not counted as a tensor's.
#[inline]
pub(crate) fn take(bytes: usize) -> Option<(NonNull<u8>, usize)> {
    let class = class_of(bytes.saturating_sub(HEADROOM));
    Some((take_class(class)?, class_size(class)))
}

/// Releases memory of any contents.
///
/// # Safety
/// The memory came from [`take`] for `bytes` bytes or any smaller number whose block has room for `bytes`; it was not
/// released before, and is not used again.
#[inline]
pub(crate) unsafe fn give_back(pointer: NonNull<u8>, bytes: usize) {
    let class = class_of(bytes.saturating_sub(HEADROOM));
    // SAFETY: the memory came from `take_class` by `take`, and the caller gives up its use; every size that it may be
    // released with has the same class.
    unsafe {
        initialize(pointer, class_size(class));
        keep_class(class, pointer);
    }
}

/// Makes all bytes of memory initialised: values with padding, which kernels may store, leave their padding
/// uninitialised.
///
/// # Safety
/// The memory has `bytes` bytes, and no other code uses it.
#[inline(always)]
unsafe fn initialize(pointer: NonNull<u8>, bytes: usize) {
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    {
        let _ = bytes;
        // SAFETY: the empty assembly changes nothing. The compiler must assume that it wrote every byte reachable from
        // the address, so from here on all bytes count as initialised with their present values.
        unsafe { std::arch::asm!("/* {0} */", in(reg) pointer.as_ptr(), options(nostack, preserves_flags)) };
    }
    #[cfg(not(all(
        not(miri),
        any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
    )))]
    // SAFETY: the memory has `bytes` bytes, and no other code uses it, as the caller promises.
    unsafe {
        pointer.as_ptr().write_bytes(0, bytes);
    }
}

#[inline]
fn take_class(class: usize) -> Option<NonNull<u8>> {
    if class >= CLASSES {
        return None;
    }
    let cached = if class < SMALL_CLASSES {
        THREAD_CACHE.try_with(|cache| cache.borrow_mut().take(class)).ok().flatten()
    } else {
        PROCESS_CACHE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take(class)
    };
    cached.or_else(|| allocate_from_system(class))
}

/// Keeps a block for later, or frees it.
///
/// # Safety
/// It came from [`take_class`] for the same class, and is not used any more.
#[inline]
unsafe fn keep_class(class: usize, pointer: NonNull<u8>) {
    let kept = if class < SMALL_CLASSES {
        // A thread that is ending has no cache any more.
        THREAD_CACHE
            .try_with(|cache| cache.borrow_mut().keep(class, pointer, THREAD_CACHE_LIMIT))
            .unwrap_or(false)
    } else {
        let mut cache = PROCESS_CACHE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        cache.keep(class, pointer, PROCESS_CACHE_LIMIT)
    };
    if !kept {
        free_to_system(pointer, class);
    }
}

#[cold]
fn allocate_from_system(class: usize) -> Option<NonNull<u8>> {
    if !fits(class_size(class)) {
        return None;
    }
    SYSTEM_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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
        Some(pointer)
    }
}

#[cold]
fn free_to_system(pointer: NonNull<u8>, class: usize) {
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

/// Whether [`peak_bytes`] is running.
static WATCHED: AtomicBool = AtomicBool::new(false);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The maximum of [`live_bytes`] over all threads while `work` runs, and its result.
///
/// Only one peak is measured at a time: a call inside `work`, or in another thread, restarts the measurement.
pub fn peak_bytes<R>(work: impl FnOnce() -> R) -> (usize, R) {
    /// Ends the measurement even if `work` panics.
    struct Watch;
    impl Drop for Watch {
        fn drop(&mut self) {
            WATCHED.store(false, Ordering::Relaxed);
        }
    }
    PEAK.store(live_bytes(), Ordering::Relaxed);
    WATCHED.store(true, Ordering::Relaxed);
    let watch = Watch;
    let result = work();
    drop(watch);
    (PEAK.load(Ordering::Relaxed), result)
}

/// Number of blocks requested from the system since the start; a warm loop does not raise it.
pub fn system_allocations() -> usize {
    SYSTEM_ALLOCATIONS.load(Ordering::Relaxed)
}

/// Returns the cached blocks of this thread and of the process to the system.
pub fn empty_cache() {
    // A thread that is ending has no cache any more.
    let _ = THREAD_CACHE.try_with(|cache| cache.borrow_mut().release());
    PROCESS_CACHE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).release();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_was_asked_and_wastes_at_most_an_eighth() {
        for bytes in
            (0..5000).chain((12..40).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]))
        {
            let size = class_size(class_of(bytes));
            assert!(size >= HEADROOM + bytes, "{bytes} in {size}");
            assert!(size <= HEADROOM + bytes * 9 / 8 + ALIGNMENT, "{bytes} in {size}");
        }
    }

    #[test]
    fn powers_of_two_with_a_header_fill_their_class() {
        for power in 6..40 {
            let bytes = 1usize << power;
            assert_eq!(class_size(class_of(bytes)), HEADROOM + bytes);
            assert_eq!(class_of(bytes + 1), class_of(bytes) + 1);
        }
    }

    #[test]
    fn memory_goes_back_to_the_class_it_came_from() {
        for bytes in (0..5000).chain([1 << 20, (1 << 20) + 1]) {
            let (pointer, size) = take(bytes).unwrap();
            assert!(size >= bytes);
            // A vector may have rounded its size up to the whole block.
            for other in [bytes, size] {
                assert_eq!(
                    class_of(other.saturating_sub(HEADROOM)),
                    class_of(bytes.saturating_sub(HEADROOM))
                );
            }
            // SAFETY: taken above and not used after.
            unsafe { give_back(pointer, bytes) };
        }
    }

    #[test]
    fn blocks_of_every_size_are_zeroed_aligned_and_given_back() {
        // Sizes that no other test uses.
        for bytes in [100usize, 70_000, (1 << 20) - 8, (1 << 20) + 8, 5 << 20, 70 << 20] {
            let class = class_of(bytes);
            let pointer = allocate_from_system(class).unwrap();
            assert_eq!(pointer.addr().get() % ALIGNMENT, 0);
            // SAFETY: only this test has the block, whose class has this size.
            let content = unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), class_size(class)) };
            assert!(content.iter().all(|byte| *byte == 0), "{bytes}");
            content.fill(0xFF);
            free_to_system(pointer, class);
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
        // SAFETY: allocated above, and not used after.
        unsafe { free(block) };
    }
}
