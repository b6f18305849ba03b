//! Events of calls that a tracer observes: kernels and views, and reads of elements that decide shapes.
//!
//! In: the thread's observer, which a tracer sets. Out: the events, from the steps of the dispatcher; while there is
//! an observer, no kernel runs. Must know no tracer.

use opsmith_core::DType;

use crate::arg::Arg;
use crate::error::Result;
use crate::op::{OpDef, Outputs};
use crate::storage::Storage;
use crate::tensor::Tensor;

/// Receives the events of this thread's calls while it traces.
pub trait CallObserver {
    /// A kernel would run, on outputs that others know if they are `shared`.
    ///
    /// # Errors
    /// If the tracer cannot repeat that.
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
    /// If the tracer cannot repeat that.
    fn viewed(&self, op: &'static OpDef, args: &[Arg<'_>], outs: &[Tensor]) -> Result<()>;

    /// A call is inferred, whose results may depend on elements.
    ///
    /// # Errors
    /// If the traced function changes those elements.
    fn decided_by(&self, op: &'static OpDef, args: &[Arg<'_>]) -> Result<()>;

    /// The results of a call whose sizes depend on elements that do not exist yet; `None` if they don't.
    fn data_dependent(&self, op: &'static OpDef, args: &[Arg<'_>]) -> Option<Result<Outputs>>;

    /// Whether the traced function writes this storage; if so its contents are stale while tracing.
    fn is_stale(&self, storage: &Storage) -> bool;
}

crate::trace_hook::observer_slot!(dyn CallObserver);

/// Whether a function that this thread traces writes this storage, and so has locked it.
pub(crate) fn is_stale(storage: &Storage) -> bool {
    observer().is_some_and(|observer| observer.is_stale(storage))
}
