//! The slot of a graph for the state of its runs, opaque to the graph.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// State computed from a graph at its first run. Copies and changed graphs start without it.
#[derive(Default)]
pub(crate) struct RunState(OnceLock<Box<dyn Any + Send + Sync>>);

impl RunState {
    /// State given before the first run.
    pub fn of<T: Any + Send + Sync>(state: T) -> RunState {
        RunState(OnceLock::from(Box::new(state) as Box<dyn Any + Send + Sync>))
    }

    /// The state, computed if there is none yet. All callers use one type.
    #[inline]
    pub fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let held = self.0.get_or_init(|| Box::new(make()));
        held.downcast_ref().expect("one type of state is kept")
    }
}

impl Clone for RunState {
    fn clone(&self) -> RunState {
        RunState::default()
    }
}

impl fmt::Debug for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "ready to run" } else { "not run yet" })
    }
}
