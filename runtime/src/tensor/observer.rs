//! Events of tensors that a tracer observes: new memory, and elements that are copied or added.
//!
//! In: the thread's observer, set by a tracer. Out: the events, from the functions that cause them. Must not know
//! operators, the dispatcher or tracers.

use super::Tensor;
use crate::error::Result;

/// Receives the events of this thread's tensors while it traces.
pub trait TensorObserver {
    /// A meta tensor was made, as all new tensors of a traced function are.
    fn allocated(&self, tensor: &Tensor);

    /// A tensor was made from numbers, and has elements.
    fn made(&self, tensor: &Tensor);

    /// Elements would be copied.
    ///
    /// # Errors
    /// If the tracer cannot record the copy.
    fn copied(&self, target: &Tensor, source: &Tensor) -> Result<()>;

    /// Elements would be added to a tensor whose indices may overlap in memory.
    ///
    /// # Errors
    /// If the tracer cannot record the addition.
    fn added(&self, target: &Tensor, source: &Tensor) -> Result<()>;
}

crate::trace_hook::observer_slot!(dyn TensorObserver);
