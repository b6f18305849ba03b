//! The bytes of live tensors: a counter a thread, and their sum.
//!
//! In: what each thread allocates and frees. Out: how much is alive. Only its own thread writes a counter, so that
//! counting costs a load and a store; who asks for the sum takes a lock. Must know no block and no class.

use std::sync::Arc;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicIsize, Ordering};

/// The counters of threads that live, and what ended ones left behind.
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

    /// A counter for a thread that begins.
    pub(crate) fn begin(&self) -> Arc<AtomicIsize> {
        let counter = Arc::new(AtomicIsize::new(0));
        self.threads.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(counter.clone());
        counter
    }

    /// Moves what a thread counted to that of ended ones. Under the lock, so that a sum has it once.
    pub(crate) fn end(&self, ending: &Arc<AtomicIsize>) {
        let mut threads = self.threads.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        threads.retain(|counter| !Arc::ptr_eq(counter, ending));
        self.ended.fetch_add(ending.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Counts bytes of a thread whose counter is gone.
    fn count_ended(&self, bytes: isize) {
        self.ended.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The sum over all threads. A thread may be freeing what another allocated, so that it can be below zero for a
    /// moment.
    pub(crate) fn sum(&self) -> isize {
        let threads = self.threads.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let total: isize = threads.iter().map(|counter| counter.load(Ordering::Relaxed)).sum();
        total + self.ended.load(Ordering::Relaxed)
    }
}

/// Counts bytes that the counter's own thread allocated or, below zero, freed.
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
        // The memory of a model's storages is not what it looks at, and thread locals outlive its runs.
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
