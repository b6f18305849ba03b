//! The tracing state of a thread: whether it traces a function, and the site of the outermost running call.
//!
//! In: a tracer that begins. Out: a check that costs one read of a thread-local flag. Events go to observers, each
//! declared by the layer whose events it receives: `tensor::observer`, `random::observer`, `dispatch::observer`. Must
//! not know those layers or tracers; every layer may import it.

use std::cell::Cell;
use std::panic::Location;

thread_local! {
    static TRACING: Cell<bool> = const { Cell::new(false) };
    static SITE: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// Whether this thread traces a function.
#[inline]
pub(crate) fn is_tracing() -> bool {
    TRACING.get()
}

/// Sets whether this thread traces.
pub(crate) fn set_tracing(tracing: bool) {
    TRACING.set(tracing);
    SITE.set(None);
}

/// The site of the outermost running call, if this thread traces.
pub(crate) fn site() -> Option<&'static Location<'static>> {
    SITE.get()
}

/// The outermost running call, for as long as the value lives.
pub struct SiteScope(bool);

/// Records the site of a call, unless it is part of another one.
#[inline]
pub(crate) fn enter(site: &'static Location<'static>) -> SiteScope {
    if !is_tracing() {
        return SiteScope(false);
    }
    let outermost = SITE.get().is_none();
    if outermost {
        SITE.set(Some(site));
    }
    SiteScope(outermost)
}

impl Drop for SiteScope {
    #[inline]
    fn drop(&mut self) {
        if self.0 {
            SITE.set(None);
        }
    }
}

/// Declares the slot of a layer's observer: `observer()` returns this thread's, `observe()` sets it.
macro_rules! observer_slot {
    ($observer:ty) => {
        thread_local! {
            static OBSERVER: std::cell::Cell<Option<&'static $observer>> = const { std::cell::Cell::new(None) };
        }

        /// The observer of this thread's events.
        #[inline]
        pub(crate) fn observer() -> Option<&'static $observer> {
            OBSERVER.get()
        }

        /// Sets the observer of this thread's events.
        pub(crate) fn observe(observer: Option<&'static $observer>) {
            OBSERVER.set(observer);
        }
    };
}
pub(crate) use observer_slot;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_call_is_the_site() {
        let here = Location::caller();
        drop(enter(here));
        assert!(!is_tracing() && site().is_none());
        set_tracing(true);
        let outer = enter(here);
        drop(enter(Location::caller()));
        assert_eq!(site(), Some(here));
        drop(outer);
        assert!(site().is_none());
        set_tracing(false);
    }
}
