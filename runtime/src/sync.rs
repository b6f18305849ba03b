//! Atomics, locks and waits for shared data: the standard library's, or loom's.
//!
//! In: nothing. Out: the same names for both, and a wait that yields the processor. `--cfg loom` selects loom's, so
//! that models (`tests/loom.rs`) run every order of their steps that the memory model allows; see `scripts/loom.sh`.
//! Other builds get the standard library's own items. Must not know the rest of the crate.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, atomic};
#[cfg(loom)]
use loom::thread::yield_now;
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, atomic};
#[cfg(not(loom))]
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// A wait without notification: first a spin as short as a call of a small kernel, then sleeps of an eighth of the time
/// waited so far. A wait for a long kernel therefore costs no processor time and ends at most an eighth late; and the
/// other side, each call of an operator, has no waiters to notify.
#[derive(Default)]
pub(crate) struct Backoff {
    turns: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// Some tens of microseconds.
    const TURNS: u32 = 64;
    const LONGEST: Duration = Duration::from_millis(1);

    /// Waits; each call waits longer than the one before.
    #[cold]
    pub(crate) fn wait(&mut self) {
        self.turns += 1;
        if self.turns < Backoff::TURNS || cfg!(loom) {
            return yield_now();
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        std::thread::sleep((since.elapsed() / 8).clamp(Duration::from_micros(1), Backoff::LONGEST));
        // Prevents an overflow in an endless wait.
        self.turns = Backoff::TURNS;
    }
}
