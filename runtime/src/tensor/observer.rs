//! Events of tensors that a tracer observes: new memory, and elements that are copied or added.
//!
//! In: the thread's observer, which a tracer sets. Out: the events, from the places where they happen. Must know no
//! operator, no dispatcher and no tracer.

use super::Tensor;
use crate::error::Result;

/// Receives the events of this thread's tensors while it traces.
pub trait TensorObserver {
    /// A tensor was made that has sizes and no elements, as all new tensors of a traced function.
    fn allocated(&self, tensor: &Tensor);

    /// A tensor was made from numbers, and has them.
    fn made(&self, tensor: &Tensor);

    /// Elements would be copied.
    ///
    /// # Errors
    /// If the tracer cannot repeat that.
    fn copied(&self, target: &Tensor, source: &Tensor) -> Result<()>;

    /// Elements would be added to a tensor that may show one at several indices.
    ///
    /// # Errors
    /// If the tracer cannot repeat that.
    fn added(&self, target: &Tensor, source: &Tensor) -> Result<()>;
}

crate::trace_hook::observer_slot!(dyn TensorObserver);
