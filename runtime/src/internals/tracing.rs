//! Tracing of a thread: its observers, its flag and the site of its outermost call.
//!
//! In: the observers of a tracer. Out: the events of the thread. While a thread traces, new tensors have no elements
//! and no kernel runs; flag and observers are set together, so no tensor with memory is left unwritten.

use std::panic::Location;

use crate::dispatch::observer::{self as calls, CallObserver};
use crate::random::observer::{self as generators, GeneratorObserver};
use crate::tensor::observer::{self as tensors, TensorObserver};
use crate::trace_hook;

pub use crate::trace_hook::SiteScope;

/// The receivers of a traced thread's events.
#[derive(Clone, Copy)]
pub struct Observers {
    /// New memory, copies and additions.
    pub tensors: &'static dyn TensorObserver,
    /// Random generators.
    pub generators: &'static dyn GeneratorObserver,
    /// Kernels, views, and reads of elements that determine shapes.
    pub calls: &'static dyn CallObserver,
}

/// Begins tracing in this thread, or ends it.
pub fn trace(observers: Option<Observers>) {
    trace_hook::set_tracing(observers.is_some());
    tensors::observe(observers.map(|observers| observers.tensors));
    generators::observe(observers.map(|observers| observers.generators));
    calls::observe(observers.map(|observers| observers.calls));
}

/// Whether this thread traces.
#[inline]
pub fn is_tracing() -> bool {
    trace_hook::is_tracing()
}

/// Records the site of a call, unless it is part of another one.
pub fn enter(site: &'static Location<'static>) -> SiteScope {
    trace_hook::enter(site)
}

/// The site of the outermost running call, if this thread traces.
pub fn site() -> Option<&'static Location<'static>> {
    trace_hook::site()
}
