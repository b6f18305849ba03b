//! The observer of a traced function: hands the events of its thread to the recorder.
//!
//! In: events of tensors, generators and calls. Out: steps and notes of the [`recorder`]. Only [`recorder::record`]
//! installs it.

use opsmith_core::DType;

use super::{generators, recorder, unknown};
use crate::arg::Arg;
use crate::dispatch::observer::{self as calls, CallObserver};
use crate::error::Result;
use crate::op::{OpDef, Outputs};
use crate::random::Generator;
use crate::random::observer::{self as draws, GeneratorObserver};
use crate::storage::Storage;
use crate::tensor::Tensor;
use crate::tensor::observer::{self as tensors, TensorObserver};
use crate::trace_hook;

/// Observes this thread for as long as the value lives.
pub(super) struct Observing(());

impl Observing {
    /// Begins; the recorder is ready.
    pub fn begin() -> Observing {
        trace_hook::set_tracing(true);
        tensors::observe(Some(&Events));
        draws::observe(Some(&Events));
        calls::observe(Some(&Events));
        Observing(())
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        trace_hook::set_tracing(false);
        tensors::observe(None);
        draws::observe(None);
        calls::observe(None);
    }
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
        generators::made(generator);
    }

    fn read(&self, generator: &Generator) {
        generators::read(generator);
    }

    fn set(&self, generator: &Generator) {
        generators::set(generator);
    }

    fn draws(&self) -> usize {
        generators::draws()
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
        recorder::decided_by(op, args)
    }

    fn data_dependent(&self, op: &'static OpDef, args: &[Arg<'_>]) -> Option<Result<Outputs>> {
        unknown::wants_elements(op, args).then(|| unknown::call(op, args))
    }

    fn is_stale(&self, storage: &Storage) -> bool {
        recorder::changes(storage)
    }
}
