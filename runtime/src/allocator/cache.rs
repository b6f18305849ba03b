//! Free blocks by class: small ones of the thread, large ones of the process.
//!
//! In: a class. Out: a block of it. Cached blocks count as memory of the process: where a new block would pass the limit, or
//! the system has none, cached ones go back to the system first.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::classes::{CLASSES, SMALL_CLASSES, class_size};
use super::{fits, limit, live_bytes, system};

/// Limit of a thread's cache, in bytes.
const THREAD_CACHE_LIMIT: usize = 32 << 20;
/// Limit of the process's cache of large blocks, in bytes.
static PROCESS_CACHE_LIMIT: AtomicUsize = AtomicUsize::new(2 << 30);

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

    /// Gives the largest blocks back to the system until at most so many bytes are left.
    fn trim(&mut self, bytes: usize) {
        for (class, list) in self.free.iter_mut().enumerate().rev() {
            while self.bytes > bytes
                && let Some(pointer) = list.pop()
            {
                self.bytes -= class_size(class);
                system::release(pointer, class);
            }
        }
    }
}

impl<const N: usize> Drop for Cache<N> {
    fn drop(&mut self) {
        self.trim(0);
    }
}

// SAFETY: the cache owns its blocks, which have no other references, and the system accepts them from any thread.
unsafe impl<const N: usize> Send for Cache<N> {}

thread_local! {
    static THREAD_CACHE: RefCell<Cache<SMALL_CLASSES>> = const { RefCell::new(Cache::new()) };
}
static PROCESS_CACHE: Mutex<Cache<CLASSES>> = Mutex::new(Cache::new());

fn process_cache() -> MutexGuard<'static, Cache<CLASSES>> {
    PROCESS_CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The locks on the process's cache and on the slabs of its blocks.
#[cfg(all(target_os = "linux", not(loom)))]
pub struct HeldCache {
    #[expect(dead_code, reason = "held as long as the value lives")]
    cache: MutexGuard<'static, Cache<CLASSES>>,
    #[cfg(not(miri))]
    #[expect(dead_code, reason = "held as long as the value lives")]
    slabs: super::slabs::HeldSlabs,
}

#[cfg(all(target_os = "linux", not(loom)))]
impl HeldCache {
    /// Waits for the locks.
    pub fn lock() -> HeldCache {
        HeldCache {
            cache: process_cache(),
            #[cfg(not(miri))]
            slabs: super::slabs::HeldSlabs::lock(),
        }
    }
}

/// A block of a class, cached or of the system; `None` if neither has one, or beyond the limit.
#[inline(always)]
pub fn take_class(class: usize) -> Option<NonNull<u8>> {
    if class < SMALL_CLASSES
        && let Ok(Some(block)) = THREAD_CACHE.try_with(|cache| cache.borrow_mut().take(class))
    {
        return Some(block);
    }
    take_other(class)
}

/// A block of a class that this thread's cache has not.
#[inline(never)]
fn take_other(class: usize) -> Option<NonNull<u8>> {
    if class >= CLASSES {
        return None;
    }
    // A statement of its own, so that the lock is released before the next one.
    let cached = if class < SMALL_CLASSES { None } else { process_cache().take(class) };
    cached.or_else(|| allocate(class))
}

/// Caches a block, or returns it to the system.
///
/// # Safety
/// It came from [`take_class`] for the same class, and is not used any more.
#[inline(always)]
pub unsafe fn keep_class(class: usize, pointer: NonNull<u8>) {
    // A thread that is ending has no cache any more.
    let kept = class < SMALL_CLASSES
        && THREAD_CACHE
            .try_with(|cache| cache.borrow_mut().keep(class, pointer, THREAD_CACHE_LIMIT))
            .unwrap_or(false);
    if !kept {
        keep_other(class, pointer);
    }
}

/// Caches a block that this thread's cache does not take, or returns it to the system.
#[inline(never)]
fn keep_other(class: usize, pointer: NonNull<u8>) {
    let limit = || PROCESS_CACHE_LIMIT.load(Ordering::Relaxed);
    if class < SMALL_CLASSES || !process_cache().keep(class, pointer, limit()) {
        system::release(pointer, class);
    }
}

#[cold]
fn allocate(class: usize) -> Option<NonNull<u8>> {
    let size = class_size(class);
    if !fits(size) {
        return None;
    }
    if class >= SMALL_CLASSES {
        trim(limit().saturating_sub(live_bytes().saturating_add(size)));
    }
    system::allocate(class).or_else(|| {
        empty_cache();
        system::allocate(class)
    })
}

/// Bytes of large blocks in the process's cache.
pub fn cached_bytes() -> usize {
    process_cache().bytes
}

/// Limits the process's cache of large blocks, in bytes, 2 GiB by default; blocks beyond the limit return to the system.
pub fn set_cache_limit(bytes: usize) {
    PROCESS_CACHE_LIMIT.store(bytes, Ordering::Relaxed);
    trim(bytes);
}

/// Returns the largest blocks of the process's cache to the system, until at most so many bytes are left.
pub fn trim(bytes: usize) {
    process_cache().trim(bytes);
}

/// Returns the cached blocks of this thread and of the process to the system.
pub fn empty_cache() {
    // A thread that is ending has no cache any more.
    let _ = THREAD_CACHE.try_with(|cache| cache.borrow_mut().trim(0));
    trim(0);
}

#[cfg(test)]
mod tests {
    use super::super::classes::class_of;
    use super::*;

    #[test]
    fn large_blocks_go_back_to_the_system_from_the_largest_on() {
        let mut cache = Cache::<CLASSES>::new();
        let classes = [2 << 20, 9 << 20, 3 << 20].map(class_of);
        for class in classes {
            assert!(cache.keep(class, system::allocate(class).unwrap(), usize::MAX));
        }
        let sizes = classes.map(class_size);
        assert!(!cache.keep(classes[0], NonNull::dangling(), cache.bytes), "beyond the limit");
        cache.trim(sizes[0] + sizes[2]);
        assert_eq!(cache.bytes, sizes[0] + sizes[2]);
        assert!(cache.take(classes[1]).is_none());
        cache.trim(sizes[2] - 1);
        assert_eq!(cache.bytes, sizes[0]);
        assert!(cache.take(classes[2]).is_none());
    }
}
