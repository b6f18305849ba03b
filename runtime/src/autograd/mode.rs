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
#[inline]
pub fn no_grad<R>(function: impl FnOnce() -> R) -> R {
    let _scope = Scope::enter(false);
    function()
}

/// Runs a function with recording, for instance inside [`no_grad`]; the mode is restored even if it
/// panics.
#[inline]
pub fn enable_grad<R>(function: impl FnOnce() -> R) -> R {
    let _scope = Scope::enter(true);
    function()
}

/// A mode that lasts as long as this value.
pub(super) struct Scope(bool);

impl Scope {
    #[inline]
    pub fn enter(enabled: bool) -> Scope {
        Scope(ENABLED.replace(enabled))
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        ENABLED.set(self.0);
    }
}
