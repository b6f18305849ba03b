//! The state that runs of a graph keep: plans that wait for a run with their sizes, and segments.
//!
//! In: a graph, when it runs first. Out: the same plans, one run at a time each. The graph holds the state without
//! knowing it ([`RunState`]); what changes a graph forgets it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opsmith_runtime::infer::symbolic::Bindings;

use super::segments::{self, Segment};
use crate::ir::{Graph, RunState};
use crate::plan::Plan;

/// What is made of a graph to run it.
#[derive(Default)]
pub(crate) struct Executable {
    /// The segments between nodes with data-dependent sizes; none if there are no such nodes.
    pub segments: Vec<Segment>,
    /// Plans that were made, by the values of the symbols.
    plans: Mutex<HashMap<Bindings, Vec<Plan>>>,
}

/// For how many sizes plans are kept.
const KEPT_SIZES: usize = 16;

impl Executable {
    /// That of a graph, made at its first run.
    #[inline]
    pub fn of(graph: &Graph) -> &Executable {
        graph.state.get_or_make(|| Executable { segments: segments::split(graph), ..Executable::default() })
    }

    /// That of a graph which runs as a whole: of a segment, whose symbols may still be those of later segments.
    pub fn whole() -> RunState {
        RunState::of(Executable::default())
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<Bindings, Vec<Plan>>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a plan for some values, if one waits.
    pub fn take(&self, key: &Bindings) -> Option<Plan> {
        self.plans().get_mut(key)?.pop()
    }

    /// Keeps a plan for the next run with these values.
    pub fn give_back(&self, key: &Bindings, plan: Plan) {
        let mut plans = self.plans();
        if let Some(waiting) = plans.get_mut(key) {
            return waiting.push(plan);
        }
        if plans.len() >= KEPT_SIZES {
            plans.clear();
        }
        plans.insert(key.clone(), vec![plan]);
    }
}
