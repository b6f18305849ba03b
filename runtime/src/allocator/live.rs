//! The bytes of live tensors: a counter per thread, and their sum.
//!
//! In: each thread's allocations and frees. Out: the bytes alive. Only its own thread writes a counter, so counting
//! costs a load and a store; reading the sum takes a lock. Must not know blocks or classes.

use std::sync::Arc;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicIsize, Ordering};

/// The counters of running threads, and the sum of ended ones.
pub(crate) struct Counters {
    threads: Mutex<Vec<Arc<AtomicIsize>>>,
    ended: AtomicIsize,
}

impl Counters {
    #[cfg(not(loom))]
    const fn new() -> Counters {
        Counters { threads: Mutex::new(Vec::new()), ended: AtomicIsize::new(0) }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Counters {
        Counters { threads: Mutex::new(Vec::new()), ended: AtomicIsize::new(0) }
    }

    /// A counter for a new thread.
    pub(crate) fn begin(&self) -> Arc<AtomicIsize> {
        let counter = Arc::new(AtomicIsize::new(0));
        self.threads.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(counter.clone());
        counter
    }

    /// Adds a thread's counter to the sum of ended ones, under the lock, so that a sum counts it once.
    pub(crate) fn end(&self, ending: &Arc<AtomicIsize>) {
        let mut threads = self.threads.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        threads.retain(|counter| !Arc::ptr_eq(counter, ending));
        self.ended.fetch_add(ending.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Counts bytes for a thread whose counter is gone.
    fn count_ended(&self, bytes: isize) {
        self.ended.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The sum over all threads. It can be negative temporarily, while a thread frees memory that another allocated.
    pub(crate) fn sum(&self) -> isize {
        let threads = self.threads.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let total: isize = threads.iter().map(|counter| counter.load(Ordering::Relaxed)).sum();
        total + self.ended.load(Ordering::Relaxed)
    }
}

/// Counts bytes that the counter's own thread allocated (positive) or freed (negative).
#[inline]
pub(crate) fn count(counter: &AtomicIsize, bytes: isize) {
    counter.store(counter.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
}

#[cfg(not(loom))]
static COUNTERS: Counters = Counters::new();
// Each run of a model has counters of its own.
#[cfg(loom)]
loom::lazy_static! { static ref COUNTERS: Counters = Counters::new(); }

/// The counter of this thread, until it ends.
struct Live(Arc<AtomicIsize>);

impl Drop for Live {
    fn drop(&mut self) {
        COUNTERS.end(&self.0);
    }
}

thread_local! {
    static LIVE: Live = Live(COUNTERS.begin());
}

#[inline]
pub(super) fn count_live(bytes: isize) {
    if cfg!(loom) {
        // The memory of a model's storages is irrelevant to it, and thread locals outlive its runs.
        return;
    }
    if LIVE.try_with(|Live(counter)| count(counter, bytes)).is_err() {
        COUNTERS.count_ended(bytes);
    }
}

/// Bytes of the elements of live tensors.
pub fn live_bytes() -> usize {
    if cfg!(loom) { 0 } else { COUNTERS.sum().max(0) as usize }
}
