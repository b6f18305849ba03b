//! Plans that wait for a run with their sizes.
//!
//! In: plans and the values of the symbols that they are for. Out: the same plans, one run at a time each.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opsmith_runtime::infer::symbolic::Bindings;

use super::Plan;

/// Plans that were made, by the values of the symbols.
#[derive(Default)]
pub(crate) struct Plans(Mutex<HashMap<Bindings, Vec<Plan>>>);

/// For how many sizes plans are kept.
const KEPT_SIZES: usize = 16;

impl Clone for Plans {
    fn clone(&self) -> Plans {
        Plans::default()
    }
}

impl std::fmt::Debug for Plans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "plans for {} sizes", self.lock().len())
    }
}

impl Plans {
    fn lock(&self) -> MutexGuard<'_, HashMap<Bindings, Vec<Plan>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a plan for some values, if one waits.
    pub fn take(&self, key: &Bindings) -> Option<Plan> {
        self.lock().get_mut(key)?.pop()
    }

    /// Keeps a plan for the next run with these values.
    pub fn give_back(&self, key: &Bindings, plan: Plan) {
        let mut plans = self.lock();
        if let Some(waiting) = plans.get_mut(key) {
            return waiting.push(plan);
        }
        if plans.len() >= KEPT_SIZES {
            plans.clear();
        }
        plans.insert(key.clone(), vec![plan]);
    }
}
