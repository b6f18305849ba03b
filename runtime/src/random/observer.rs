//! Events of random generators that a tracer observes.
//!
//! In: the thread's observer, which a tracer sets. Out: the events, from the places where they happen. Must know no
//! tensor, no operator and no tracer.

use super::{Generator, GeneratorState};

/// The start of a generator that a traced function makes, in each run of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// The position among the function's generators.
    pub number: usize,
    /// The state.
    pub state: GeneratorState,
}

/// Receives the events of generators that this thread uses while it traces.
pub trait GeneratorObserver {
    /// A generator was made.
    fn made(&self, generator: &Generator);

    /// Numbers are drawn from a generator now, or its state is read.
    fn read(&self, generator: &Generator);

    /// A generator goes to another state.
    fn set(&self, generator: &Generator);

    /// How many recorded steps drew from the default generator so far.
    fn draws(&self) -> usize;
}

crate::trace_hook::observer_slot!(dyn GeneratorObserver);

/// How many recorded steps drew from the default generator so far; 0 if no function is traced.
pub(crate) fn traced_draws() -> usize {
    observer().map_or(0, |observer| observer.draws())
}
