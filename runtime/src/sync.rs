//! Atomics, locks and waits for shared data: the standard library's, or loom's.
//!
//! In: nothing. Out: the same names for both, and a wait that yields the processor. `--cfg loom` selects loom's, so
//! that models (`tests/loom.rs`) run every order of their steps that the memory model allows; see `scripts/loom.sh`.
//! Other builds get the standard library's own items. Must not know the rest of the crate.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, atomic};
#[cfg(loom)]
use loom::thread::yield_now;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, atomic};
#[cfg(not(loom))]
use std::thread::yield_now;
use std::time::{Duration, Instant};

use atomic::{AtomicBool, Ordering};

/// A wait without notification: first a spin as short as a call of a small kernel, then sleeps of an eighth of the time
/// waited so far. A wait for a long kernel therefore costs no processor time and ends at most an eighth late; and the
/// other side, each call of an operator, has no waiters to notify.
pub(crate) struct Backoff {
    turns: u32,
    since: Option<Instant>,
    sleep: fn(Duration),
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff::with(std::thread::sleep)
    }
}

impl Backoff {
    /// Some tens of microseconds.
    const TURNS: u32 = 64;
    const LONGEST: Duration = Duration::from_millis(1);

    /// A wait with this function for its sleeps.
    pub(crate) fn with(sleep: fn(Duration)) -> Self {
        Backoff { turns: 0, since: None, sleep }
    }

    /// Waits; each call waits longer than the one before.
    #[cold]
    pub(crate) fn wait(&mut self) {
        self.turns += 1;
        if self.turns < Backoff::TURNS || cfg!(loom) {
            return yield_now();
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        (self.sleep)((since.elapsed() / 8).clamp(Duration::from_micros(1), Backoff::LONGEST));
        // Prevents an overflow in an endless wait.
        self.turns = Backoff::TURNS;
    }
}

/// A lock that is held for some instructions, such as a copy of a handle. It costs one atomic step that writes, where the
/// standard library's has two and counts panics; threads that wait have no place in a queue ([`Backoff`]).
#[derive(Default)]
pub(crate) struct Brief<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives access to the value to one thread at a time.
unsafe impl<T: Send> Sync for Brief<T> {}

impl<T> Brief<T> {
    /// Waits until no other thread holds it.
    #[inline]
    pub(crate) fn lock(&self) -> BriefGuard<'_, T> {
        if !self.try_hold() {
            self.wait();
        }
        BriefGuard(self, PhantomData)
    }

    #[inline]
    fn try_hold(&self) -> bool {
        self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut backoff = Backoff::default();
        while !self.try_hold() {
            backoff.wait();
        }
    }

    /// The value, which a mutable borrow protects from other threads.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Access to the value of a [`Brief`] lock, until it is dropped.
pub(crate) struct BriefGuard<'a, T>(&'a Brief<T>, PhantomData<&'a mut T>);

impl<T> Deref for BriefGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held, so no other thread has access, and this guard is borrowed.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for BriefGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, so no other thread has access, and this guard is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for BriefGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        let lock = Brief::<u64>::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(*lock.lock(), 4000);
    }
}
