//! The state that runs of a graph keep: cached plans for known sizes, and segments.
//!
//! In: a graph, at its first run. Out: the same plans for later runs; each plan serves one run at a time. The graph
//! stores this state as an opaque [`RunState`]; a change of the graph drops it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opsmith_runtime::infer::symbolic::Bindings;

use super::records::Counts;
use super::segments::{self, Segment};
use crate::ir::{Graph, RunState};
use crate::plan::Plan;

/// The executable form of a graph.
#[derive(Default)]
pub(crate) struct Executable {
    /// The segments between nodes with data-dependent sizes; empty if there are no such nodes.
    pub segments: Vec<Segment>,
    /// Idle plans, by the values of the symbols.
    plans: Mutex<HashMap<Bindings, Vec<Plan>>>,
    /// How runs on devices went.
    pub counts: Counts,
}

/// Number of size combinations with cached plans.
const KEPT_SIZES: usize = 16;

impl Executable {
    /// The executable of a graph, made at its first run.
    #[inline]
    pub fn of(graph: &Graph) -> &Executable {
        graph.state.get_or_make(|| Executable { segments: segments::split(graph), ..Executable::default() })
    }

    /// State for a graph that runs without segments: one segment, whose symbols may still belong to later ones.
    pub fn whole() -> RunState {
        RunState::of(Executable::default())
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<Bindings, Vec<Plan>>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle plan for these values.
    pub fn take(&self, key: &Bindings) -> Option<Plan> {
        self.plans().get_mut(key)?.pop()
    }

    /// Returns a plan for later runs with these values.
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
