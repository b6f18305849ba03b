//! Values that were computed from a model, kept with it.
//!
//! In: a complete model, which does not change any more. Out: values by key. Must not know how they are computed.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values by key. A clone has none, because a model is cloned to be changed.
pub(crate) struct Kept<K, V> {
    values: Mutex<HashMap<K, V>>,
    /// How often a value was met inside of itself: those that are computed meanwhile hold there alone.
    cycles: AtomicU64,
}

impl<K: Hash + Eq, V: Clone> Kept<K, V> {
    /// Notes that a value was met inside of itself.
    pub fn note_cycle(&self) {
        self.cycles.fetch_add(1, Ordering::Relaxed);
    }

    /// The value of a key, computed at its first use; without a key, computed and not kept.
    pub fn get(&self, key: Option<K>, compute: impl FnOnce() -> V) -> V {
        let Some(key) = key else { return compute() };
        if let Some(value) = self.values().get(&key) {
            return value.clone();
        }
        let before = self.cycles.load(Ordering::Relaxed);
        let value = compute();
        if self.cycles.load(Ordering::Relaxed) == before {
            self.values().insert(key, value.clone());
        }
        value
    }

    fn values(&self) -> MutexGuard<'_, HashMap<K, V>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Kept { values: Mutex::default(), cycles: AtomicU64::new(0) }
    }
}

impl<K, V> Clone for Kept<K, V> {
    fn clone(&self) -> Self {
        Kept::default()
    }
}

impl<K, V> fmt::Debug for Kept<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}
