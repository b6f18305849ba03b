//! Recording mode of a thread.

use std::cell::Cell;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Recording,
    Paused,
    /// Off, and no scope inside can enable it.
    Inference,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Recording) };
}

/// Whether recording is on in this thread.
#[inline]
pub fn is_enabled() -> bool {
    MODE.get() == Mode::Recording
}

/// Switches recording in this thread; returns the former state. Does nothing inside [`inference`].
pub fn set_enabled(enabled: bool) -> bool {
    switch(enabled) == Mode::Recording
}

/// Runs a function without recording; the mode is restored even if it panics.
#[inline]
pub fn no_grad<R>(function: impl FnOnce() -> R) -> R {
    let _scope = Scope::enter(false);
    function()
}

/// Runs a function with recording, for instance inside [`no_grad`]; the mode is restored even if it panics. Inside
/// [`inference`] recording stays off.
#[inline]
pub fn enable_grad<R>(function: impl FnOnce() -> R) -> R {
    let _scope = Scope::enter(true);
    function()
}

/// Runs a function without recording, even if it enables recording itself; the mode is restored even if it panics.
///
/// Tensors made inside are ordinary tensors: version counters cost nothing here, so a special kind of tensor that can
/// never be differentiated would not be faster.
pub fn inference<R>(function: impl FnOnce() -> R) -> R {
    let _scope = Scope(MODE.replace(Mode::Inference));
    function()
}

/// A mode that lasts as long as this value.
pub(super) struct Scope(Mode);

impl Scope {
    #[inline]
    pub fn enter(enabled: bool) -> Scope {
        Scope(switch(enabled))
    }

    /// Recording even inside [`inference`]: for a graph that is private to its creator.
    pub fn force() -> Scope {
        Scope(MODE.replace(Mode::Recording))
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        MODE.set(self.0);
    }
}

/// Switches the mode, unless it is inference; returns the old one.
#[inline]
fn switch(enabled: bool) -> Mode {
    let old = MODE.get();
    if old != Mode::Inference {
        MODE.set(if enabled { Mode::Recording } else { Mode::Paused });
    }
    old
}
