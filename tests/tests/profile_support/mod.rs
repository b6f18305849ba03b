//! Parts that the tests of the profiler share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use opsmith::Tensor;

/// Recording belongs to the process: calls of other tests would be in the profile.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tensor of ones.
pub fn ones(sizes: &[i64]) -> Tensor {
    opsmith::ones(sizes).unwrap()
}
