//! The observer of a traced function: passes the events of its thread to the recorder.
//!
//! In: events of tensors, generators and calls. Out: nodes and other records of the [`recorder`]. Only
//! [`recorder::record`] installs it.

use opsmith_core::DType;
use opsmith_runtime::arg::Arg;
use opsmith_runtime::error::Result;
use opsmith_runtime::internals::{self, CallObserver, GeneratorObserver, Observers, TensorObserver};
use opsmith_runtime::op::{OpDef, Outputs};
use opsmith_runtime::random::Generator;
use opsmith_runtime::storage::Storage;
use opsmith_runtime::tensor::Tensor;

use super::dynamic_sizes;
use super::recorder;
use super::rng;

/// Observes this thread for as long as the value lives.
pub(crate) struct Observing(());

impl Observing {
    /// Begins to observe; the recorder is ready.
    pub fn begin() -> Observing {
        internals::trace(Some(Observers { tensors: &Events, generators: &Events, calls: &Events }));
        Observing(())
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        internals::trace(None);
    }
}

/// Runs a function aside from the trace of this thread, if there is one: its calls are computed, not recorded. For a reader
/// of programs that computes with constants of the program, whose values must be known while the program is traced.
///
/// Tensors that the traced function made have no elements, and a kernel that reads them is refused.
pub fn untraced<R>(function: impl FnOnce() -> R) -> R {
    struct Resume(bool);
    impl Drop for Resume {
        fn drop(&mut self) {
            if self.0 {
                std::mem::forget(Observing::begin());
            }
        }
    }
    let resume = Resume(internals::is_tracing());
    if resume.0 {
        internals::trace(None);
    }
    let result = function();
    drop(resume);
    result
}

/// The events of this thread.
struct Events;

impl TensorObserver for Events {
    fn allocated(&self, tensor: &Tensor) {
        recorder::tensor(tensor);
    }

    fn made(&self, tensor: &Tensor) {
        recorder::made(tensor);
    }

    fn copied(&self, target: &Tensor, source: &Tensor) -> Result<()> {
        recorder::copy(target, source)
    }

    fn added(&self, target: &Tensor, source: &Tensor) -> Result<()> {
        recorder::add(target, source)
    }
}

impl GeneratorObserver for Events {
    fn made(&self, generator: &Generator) {
        rng::made(generator);
    }

    fn read(&self, generator: &Generator) {
        rng::read(generator);
    }

    fn set(&self, generator: &Generator) {
        rng::set(generator);
    }

    fn draws(&self) -> usize {
        rng::draws()
    }
}

impl CallObserver for Events {
    fn called(
        &self,
        op: &'static OpDef,
        compute: DType,
        args: &[Arg<'_>],
        outs: &[Tensor],
        shared: bool,
    ) -> Result<()> {
        recorder::call(op, compute, args, outs, shared)
    }

    fn viewed(&self, op: &'static OpDef, args: &[Arg<'_>], outs: &[Tensor]) -> Result<()> {
        recorder::view(op, args, outs)
    }

    fn decided_by(&self, op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
        recorder::shape_depends_on(op, args)
    }

    fn data_dependent(&self, op: &'static OpDef, args: &[Arg<'_>]) -> Option<Result<Outputs>> {
        dynamic_sizes::depends_on_values(op, args).then(|| dynamic_sizes::call(op, args))
    }

    fn is_stale(&self, storage: &Storage) -> bool {
        recorder::changes(storage)
    }
}
