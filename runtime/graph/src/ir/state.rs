//! The place in a graph for the state of its runs, of which the graph knows nothing.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// State that is made from a graph when it first runs. A copy of a graph starts without, and so does a graph that
/// was changed.
#[derive(Default)]
pub(crate) struct RunState(OnceLock<Box<dyn Any + Send + Sync>>);

impl RunState {
    /// State that is there before the first run.
    pub fn of<T: Any + Send + Sync>(state: T) -> RunState {
        RunState(OnceLock::from(Box::new(state) as Box<dyn Any + Send + Sync>))
    }

    /// The state, made if there is none yet. All callers ask for one type.
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
