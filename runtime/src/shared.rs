//! Counted handles to values in cached memory: tensors and nodes of graphs, of which calls make several each.
//!
//! In: a value. Out: handles that any thread may clone and drop, and weak ones. As `std::sync::Arc`, with two differences: both
//! counts are one word, so the only handle is dropped without an atomic step that writes, where `Arc` has two; and the memory is
//! that of the thread's cache of blocks. Must not know the values.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::allocator;
use crate::sync::atomic::{AtomicU64, Ordering, fence};

/// A handle to a shared value, which is dropped with the last one.
pub(crate) struct Shared<T>(NonNull<Counted<T>>, PhantomData<Counted<T>>);

/// A handle that does not keep the value alive.
pub(crate) struct WeakShared<T>(NonNull<Counted<T>>, PhantomData<Counted<T>>);

/// Memory for a shared value, which is written at its final address: large values take long to move, and a function that
/// writes one would wait for the stores of its captures. Memory that is not filled is lost.
#[must_use]
pub(crate) struct Room<T>(NonNull<Counted<T>>);

impl<T> Room<T> {
    /// New memory.
    #[inline(always)]
    pub fn new() -> Room<T> {
        const { assert!(align_of::<Counted<T>>() <= allocator::ALIGNMENT) };
        let Some((memory, _)) = allocator::take(size_of::<Counted<T>>()) else {
            // Without memory for a handle no program can continue.
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<Counted<T>>())
        };
        let place = memory.cast::<Counted<T>>();
        // SAFETY: the memory is large enough, aligned, and not used by other code.
        unsafe { (&raw mut (*place.as_ptr()).counts).write(AtomicU64::new(ALONE)) };
        Room(place)
    }

    /// The address of the value, valid for writes.
    #[inline(always)]
    pub fn place(&self) -> *mut T {
        // SAFETY: the address lies inside the memory.
        unsafe { &raw mut (*self.0.as_ptr()).value }
    }

    /// The handle to the value.
    ///
    /// # Safety
    /// A whole value was written to its address.
    #[inline(always)]
    pub unsafe fn filled(self) -> Shared<T> {
        Shared(self.0, PhantomData)
    }
}

/// The counts come first, in the cache line of the value's first fields.
#[repr(C)]
struct Counted<T> {
    /// The number of handles in the lower half; in the upper, that of weak ones, of which all handles together have one.
    counts: AtomicU64,
    value: T,
}

const HANDLE: u64 = 1;
const WEAK: u64 = 1 << 32;
/// The counts of a value with one handle and no weak one.
const ALONE: u64 = HANDLE | WEAK;
/// Most handles of a kind: their number cannot reach this before it is noticed in every thread.
const MOST: u64 = 1 << 31;

fn handles(counts: u64) -> u64 {
    counts & (WEAK - 1)
}

// SAFETY: a handle gives `&T` in any thread that has one, and the last may drop the value in any thread.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above: a reference to a handle can be cloned.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}
// SAFETY: a weak handle becomes a handle in any thread that has one.
unsafe impl<T: Send + Sync> Send for WeakShared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for WeakShared<T> {}

impl<T> Shared<T> {
    /// A handle to a new value.
    #[inline]
    pub fn new(value: T) -> Shared<T> {
        let room = Room::<T>::new();
        // SAFETY: the address is valid for writes, and has the value then.
        unsafe {
            room.place().write(value);
            room.filled()
        }
    }

    #[inline]
    fn counts(&self) -> &AtomicU64 {
        // SAFETY: the memory lives while a handle does, and the counts are never borrowed mutably.
        unsafe { &(*self.0.as_ptr()).counts }
    }

    /// Address of the value.
    #[inline]
    pub fn as_ptr(this: &Shared<T>) -> *const T {
        // SAFETY: the address lies inside the handle's memory.
        unsafe { &raw const (*this.0.as_ptr()).value }
    }

    /// Whether both handles are of one value.
    #[inline]
    pub fn ptr_eq(this: &Shared<T>, other: &Shared<T>) -> bool {
        this.0 == other.0
    }

    /// Whether there are other handles than this one; weak ones do not count.
    #[inline]
    pub fn has_others(this: &Shared<T>) -> bool {
        handles(this.counts().load(Ordering::Acquire)) > 1
    }

    /// The value, if this is the only handle and there is no weak one.
    #[inline]
    pub fn get_mut(this: &mut Shared<T>) -> Option<&mut T> {
        // One word has both counts: with two, a thread could make a weak handle of one that it drops, between the reads.
        if this.counts().load(Ordering::Acquire) != ALONE {
            return None;
        }
        // SAFETY: no other handle exists that could give access to the value, nor a weak one that could become such; this one
        // is borrowed mutably. Handles that were dropped in other threads happened before the load.
        Some(unsafe { &mut (*this.0.as_ptr()).value })
    }

    /// A handle that does not keep the value alive.
    pub fn downgrade(this: &Shared<T>) -> WeakShared<T> {
        let before = this.counts().fetch_add(WEAK, Ordering::Relaxed);
        refuse_more_than_most(before >> 32);
        WeakShared(this.0, PhantomData)
    }

    /// Drops the value and its memory.
    ///
    /// # Safety
    /// This is the only handle, there is no weak one, and it is not used again.
    #[inline(never)]
    unsafe fn drop_alone(&mut self) {
        // SAFETY: no other thread can make a handle, so nothing else has access to the value and its memory.
        unsafe {
            std::ptr::drop_in_place(&raw mut (*self.0.as_ptr()).value);
            free(self.0);
        }
    }

    /// Drops the value after the last handle of several, or of one beside weak ones.
    #[cold]
    #[inline(never)]
    fn drop_value(&mut self) {
        fence(Ordering::Acquire);
        // SAFETY: no handle is left, so nothing else has access to the value; the memory lives on, because the weak handle that
        // all handles together have is given up afterwards.
        unsafe {
            std::ptr::drop_in_place(&raw mut (*self.0.as_ptr()).value);
            give_up_weak(self.0);
        }
    }
}

/// Gives up a weak handle, and the memory with the last.
///
/// # Safety
/// The caller has a weak handle, and does not use it again.
unsafe fn give_up_weak<T>(place: NonNull<Counted<T>>) {
    // SAFETY: the memory lives until the last weak handle is given up.
    unsafe {
        if (*place.as_ptr()).counts.fetch_sub(WEAK, Ordering::AcqRel) >> 32 == 1 {
            free(place);
        }
    }
}

/// Gives the memory back.
///
/// # Safety
/// It came from [`Room::new`], no handle has access to it, and its value was dropped.
#[inline]
unsafe fn free<T>(place: NonNull<Counted<T>>) {
    // SAFETY: the caller's promise. The atomic counts need no drop.
    unsafe {
        #[cfg(loom)]
        std::ptr::drop_in_place(&raw mut (*place.as_ptr()).counts);
        allocator::give_back(place.cast(), size_of::<Counted<T>>());
    }
}

/// Ends the process before a count overflows, which only forgotten handles can cause.
#[inline]
fn refuse_more_than_most(count: u64) {
    if count >= MOST {
        std::process::abort();
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value lives while a handle does, and is borrowed mutably only through the only one.
        unsafe { &(*self.0.as_ptr()).value }
    }
}

impl<T> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Shared<T> {
        let before = self.counts().fetch_add(HANDLE, Ordering::Relaxed);
        refuse_more_than_most(handles(before));
        Shared(self.0, PhantomData)
    }
}

impl<T> Drop for Shared<T> {
    // Both ways are calls of functions, so that a handle of several is given up without a register to save.
    #[inline(always)]
    fn drop(&mut self) {
        if self.counts().load(Ordering::Acquire) == ALONE {
            // SAFETY: the counts say so. Handles that were dropped in other threads happened before the load.
            unsafe { self.drop_alone() }
        } else if handles(self.counts().fetch_sub(HANDLE, Ordering::Release)) == 1 {
            self.drop_value();
        }
    }
}

impl<T> WeakShared<T> {
    /// A handle, if the value still exists.
    pub fn upgrade(&self) -> Option<Shared<T>> {
        // SAFETY: the memory lives while a weak handle does.
        let counts = unsafe { &(*self.0.as_ptr()).counts };
        let mut known = counts.load(Ordering::Relaxed);
        loop {
            if handles(known) == 0 {
                return None;
            }
            refuse_more_than_most(handles(known));
            match counts.compare_exchange_weak(known, known + HANDLE, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Shared(self.0, PhantomData)),
                Err(now) => known = now,
            }
        }
    }
}

impl<T> Clone for WeakShared<T> {
    fn clone(&self) -> WeakShared<T> {
        // SAFETY: the memory lives while a weak handle does.
        let before = unsafe { (*self.0.as_ptr()).counts.fetch_add(WEAK, Ordering::Relaxed) };
        refuse_more_than_most(before >> 32);
        WeakShared(self.0, PhantomData)
    }
}

impl<T> Drop for WeakShared<T> {
    fn drop(&mut self) {
        // SAFETY: this weak handle is not used again.
        unsafe { give_up_weak(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    struct Counter<'a>(&'a AtomicUsize);

    impl Drop for Counter<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_value_is_dropped_with_its_last_handle() {
        let drops = AtomicUsize::new(0);
        let mut first = Shared::new(Counter(&drops));
        assert!(Shared::get_mut(&mut first).is_some() && !Shared::has_others(&first));
        let second = first.clone();
        assert!(Shared::get_mut(&mut first).is_none() && Shared::ptr_eq(&first, &second));
        drop(first);
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(second);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_weak_handle_keeps_the_memory_alone() {
        let drops = AtomicUsize::new(0);
        let mut handle = Shared::new(Counter(&drops));
        let weak = Shared::downgrade(&handle);
        assert!(Shared::get_mut(&mut handle).is_none());
        drop(weak.upgrade().expect("the value lives"));
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(handle);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        assert!(weak.clone().upgrade().is_none());
    }

    #[test]
    fn threads_drop_a_value_once() {
        for _ in 0..100 {
            let drops = AtomicUsize::new(0);
            let handle = Shared::new(Counter(&drops));
            let weak = Shared::downgrade(&handle);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    let clone = handle.clone();
                    scope.spawn(|| drop(clone));
                }
                scope.spawn(|| drop(weak.upgrade()));
                drop(handle);
            });
            assert_eq!(drops.load(Ordering::Relaxed), 1);
        }
    }
}
