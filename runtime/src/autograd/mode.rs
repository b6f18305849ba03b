//! Whether operators record themselves, a flag of the thread.

use std::cell::Cell;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Whether operators record themselves in this thread.
#[inline]
pub fn is_enabled() -> bool {
    ENABLED.get()
}

/// Switches recording in this thread; returns what it was.
pub fn set_enabled(enabled: bool) -> bool {
    ENABLED.replace(enabled)
}

/// Runs a function without recording; the mode is restored even if it panics.
pub fn no_grad<R>(function: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ENABLED.set(self.0);
        }
    }
    let _restore = Restore(ENABLED.replace(false));
    function()
}
