//! The program that the runtime is part of, such as an interpreter.
//!
//! In: its functions, once. Out: long calls that ask it between their steps whether to go on, and waits for other threads in
//! which it can let them run. Must not know tensors or calls.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::error::Result;

/// Functions of the program that the runtime is part of.
#[derive(Clone, Copy, Debug)]
pub struct Embedder {
    /// Called between the steps of a graph and of a backward pass, at most ten times a second in a thread, and while
    /// storages are borrowed. An error ends the call with that error.
    pub poll: fn() -> Result<()>,
    /// Sleeps for about this time while another thread uses a storage that this one waits for. It gives up locks that the
    /// other may need to come to its end, such as that of an interpreter.
    pub sleep: fn(Duration),
}

static EMBEDDER: OnceLock<Embedder> = OnceLock::new();

/// Sets the functions for the whole process; whether none were set before.
pub fn set(embedder: Embedder) -> bool {
    EMBEDDER.set(embedder).is_ok()
}

/// Sleeps for about this time.
pub(crate) fn sleep(time: Duration) {
    EMBEDDER.get().map_or(std::thread::sleep as fn(Duration), |embedder| embedder.sleep)(time);
}

thread_local! {
    static WATCH: Watch = const { Watch::new() };
}

/// A step of a long call of this thread.
///
/// # Errors
/// The program's, if the call is to end.
#[inline]
pub fn step() -> Result<()> {
    WATCH.with(|watch| match watch.left.get() {
        0 => watch.look(),
        left => {
            watch.left.set(left - 1);
            Ok(())
        }
    })
}

/// The steps of a thread's calls.
struct Watch {
    /// Steps before the next look at the clock.
    left: Cell<u32>,
    /// Steps between the last two.
    stride: Cell<u32>,
    /// The times of the last look and of the last question.
    times: Cell<Option<(Instant, Instant)>>,
}

impl Watch {
    /// Most steps between two looks.
    const MOST: u32 = 64;
    /// The time of a stride from which on the next one is a single step.
    const LONG: Duration = Duration::from_millis(1);
    /// Least time between two questions.
    const BETWEEN: Duration = Duration::from_millis(100);

    const fn new() -> Watch {
        Watch { left: Cell::new(0), stride: Cell::new(0), times: Cell::new(None) }
    }

    /// The stride after one that took this time.
    fn next(stride: u32, took: Duration) -> u32 {
        if took >= Watch::LONG { 0 } else { (stride * 2 + 1).min(Watch::MOST) }
    }

    #[cold]
    #[inline(never)]
    fn look(&self) -> Result<()> {
        let Some(embedder) = EMBEDDER.get() else {
            self.left.set(Watch::MOST);
            return Ok(());
        };
        let now = Instant::now();
        let (looked, asked) = self.times.get().unwrap_or((now, now));
        let stride = Watch::next(self.stride.get(), now - looked);
        self.stride.set(stride);
        self.left.set(stride);
        let due = now - asked >= Watch::BETWEEN;
        self.times.set(Some((now, if due { now } else { asked })));
        if due { (embedder.poll)() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rare_where_steps_are_short_and_frequent_where_they_are_long() {
        let short = (0..20).fold(0, |stride, _| Watch::next(stride, Duration::ZERO));
        assert_eq!(short, Watch::MOST);
        assert_eq!(Watch::next(short, Watch::LONG), 0);
    }
}
