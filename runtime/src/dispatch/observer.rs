//! Events of calls that a tracer observes: kernels, views, and reads of elements that determine shapes.
//!
//! In: the thread's observer, set by a tracer. Out: the events, from the steps of the dispatcher; while an observer is
//! set, no kernel runs. Must not know tracers.

use opsmith_core::DType;

use crate::arg::Arg;
use crate::error::Result;
use crate::op::{OpDef, Outputs};
use crate::storage::Storage;
use crate::tensor::Tensor;

/// Receives the events of this thread's calls while it traces.
pub trait CallObserver {
    /// A kernel would run; its outputs are visible to other code if `shared`.
    ///
    /// # Errors
    /// If the tracer cannot record the call.
    fn called(
        &self,
        op: &'static OpDef,
        compute: DType,
        args: &[Arg<'_>],
        outs: &[Tensor],
        shared: bool,
    ) -> Result<()>;

    /// Views of the first argument were made.
    ///
    /// # Errors
    /// If the tracer cannot record the call.
    fn viewed(&self, op: &'static OpDef, args: &[Arg<'_>], outs: &[Tensor]) -> Result<()>;

    /// A call is inferred whose result shapes may depend on elements.
    ///
    /// # Errors
    /// If the traced function changes those elements.
    fn decided_by(&self, op: &'static OpDef, args: &[Arg<'_>]) -> Result<()>;

    /// The results of a call with data-dependent sizes whose elements do not exist yet; `None` for other calls.
    fn data_dependent(&self, op: &'static OpDef, args: &[Arg<'_>]) -> Option<Result<Outputs>>;

    /// Whether the traced function writes this storage; if so its contents are stale while tracing.
    fn is_stale(&self, storage: &Storage) -> bool;
}

crate::trace_hook::observer_slot!(dyn CallObserver);

/// Whether the function traced by this thread writes this storage, and so holds its lock.
pub(crate) fn is_stale(storage: &Storage) -> bool {
    observer().is_some_and(|observer| observer.is_stale(storage))
}
