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

mod cache;
mod classes;
#[cfg(not(all(loom, test)))]
mod live;
#[cfg(all(loom, test))]
pub(crate) mod live;
mod machine;
#[cfg(all(target_os = "linux", not(miri)))]
mod pages;
#[cfg(all(target_os = "linux", not(miri)))]
mod slabs;
mod system;

use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) use cache::HeldCache;
pub use cache::{cached_bytes, empty_cache, set_cache_limit, trim};
use cache::{keep_class, take_class};
pub(crate) use classes::HEADROOM;
use classes::{class_of, class_size};
use live::count_live;
pub use live::live_bytes;
pub use system::system_allocations;

/// Alignment of every block in bytes: a cache line, and an AVX-512 register.
pub const ALIGNMENT: usize = 64;

/// A block of memory, its class, and its requested size without the headroom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub pointer: NonNull<u8>,
    pub class: u32,
    pub bytes: usize,
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
    if OBSERVED.load(Ordering::Relaxed) != 0 {
        observe(pointer, bytes as isize);
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
    if OBSERVED.load(Ordering::Relaxed) != 0 {
        observe(block.pointer, -(block.bytes as isize));
    }
    // SAFETY: the block came from `take_class` by `allocate`, for its class, and the caller gives up its use.
    unsafe { keep_class(block.class as usize, block.pointer) }
}

/// Observers of blocks, a bit each: [`BY_PEAK`], [`BY_PROFILER`]. Without any, a block costs one read.
static OBSERVED: AtomicU8 = AtomicU8::new(0);
/// [`peak_bytes`] is running.
const BY_PEAK: u8 = 1;
/// Blocks are reported to [`PROFILER`].
const BY_PROFILER: u8 = 2;
static PROFILER: OnceLock<BlockProfiler> = OnceLock::new();

/// Receives the address of a block and its bytes, negative if it is freed.
pub(crate) type BlockProfiler = fn(usize, isize);

/// Reports each block to a function of this process, in the thread that allocates or frees it, or to none. The first function given is the only one.
pub(crate) fn profile_blocks(profiler: Option<BlockProfiler>) {
    if let Some(profiler) = profiler {
        PROFILER.get_or_init(|| profiler);
    }
    set_observed(BY_PROFILER, profiler.is_some());
}

fn set_observed(by: u8, observed: bool) {
    if observed {
        OBSERVED.fetch_or(by, Ordering::SeqCst);
    } else {
        OBSERVED.fetch_and(!by, Ordering::SeqCst);
    }
}

#[cold]
fn observe(pointer: NonNull<u8>, bytes: isize) {
    let by = OBSERVED.load(Ordering::Relaxed);
    if by & BY_PEAK != 0 && bytes > 0 {
        PEAK.fetch_max(live_bytes(), Ordering::Relaxed);
    }
    if by & BY_PROFILER != 0
        && let Some(profiler) = PROFILER.get()
    {
        profiler(pointer.addr().get(), bytes);
    }
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

/// Asks for huge pages for memory of another origin, where they waste less than half of it. The system is free to refuse.
///
/// # Safety
/// The memory has so many bytes.
pub(crate) unsafe fn prefer_huge_pages(memory: NonNull<u8>, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: the caller's promise.
    unsafe {
        pages::prefer_huge_pages(memory, bytes);
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (memory, bytes);
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

static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The maximum of [`live_bytes`] over all threads while `work` runs, and its result.
///
/// Only one peak is measured at a time: a call inside `work`, or in another thread, restarts the measurement.
pub fn peak_bytes<R>(work: impl FnOnce() -> R) -> (usize, R) {
    /// Ends the measurement even if `work` panics.
    struct Watch;
    impl Drop for Watch {
        fn drop(&mut self) {
            set_observed(BY_PEAK, false);
        }
    }
    PEAK.store(live_bytes(), Ordering::Relaxed);
    set_observed(BY_PEAK, true);
    let watch = Watch;
    let result = work();
    drop(watch);
    (PEAK.load(Ordering::Relaxed), result)
}

#[cfg(test)]
mod tests {
    use super::*;

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
