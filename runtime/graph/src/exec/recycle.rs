//! Memory and handles that a plan shares with its callers: inputs, results, and the tensors over them.
//!
//! In: inputs, and outputs of the previous run. Out: tensors of the plan over the inputs' memory, and outputs. Outputs
//! without another owner are reused, so a warm run does not allocate here.

use std::borrow::Borrow;

use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::{self, TensorInternals as _};
use opsmith_runtime::storage::Storage;
use opsmith_runtime::tensor::Tensor;

use crate::ir::TensorId;
use crate::plan::{External, Plan};

impl Plan {
    /// Reclaims the previous run's output handles, so that a warm run allocates none. Handles over inputs, which would
    /// have to be made anew, are kept for this run; memory of all others is released.
    pub(crate) fn take_back(&mut self, outputs: &mut Vec<Tensor>) {
        if outputs.len() != self.handles.len() {
            return outputs.clear();
        }
        for ((id, handle), mut output) in self.handles.iter_mut().zip(outputs.drain(..)) {
            *handle = id.filter(|id| output.show(&self.tensors[id.index()])).map(|_| output);
        }
    }

    /// The outputs of this run.
    pub(crate) fn hand_out(&mut self, ids: &[TensorId], outputs: &mut Vec<Tensor>) {
        outputs.extend(ids.iter().zip(&mut self.handles).map(|(id, (_, handle))| {
            let own = &self.tensors[id.index()];
            let waiting = handle.take().and_then(|mut handle| handle.show(own).then_some(handle));
            waiting.unwrap_or_else(|| own.clone())
        }));
    }

    /// Allocates results, except those whose previous memory has no other owner.
    pub(crate) fn renew_results(&mut self) -> Result<()> {
        self.results.iter().try_for_each(|result| renew(&mut self.tensors, result))
    }

    /// Writes zeros, which are valid for every dtype, where a loaded graph may read unwritten memory.
    pub(crate) fn clear(&self) -> Result<()> {
        // SAFETY: the root covers its whole buffer, which is private memory of this plan or was just allocated for its
        // result, and no node runs yet.
        self.cleared.iter().try_for_each(|id| unsafe { internals::clear(&self.tensors[id.index()]) })
    }

    /// Releases the inputs' memory.
    pub(crate) fn let_go(&mut self) {
        for (position, _) in &self.lists {
            match &mut self.list_values[*position] {
                Value::Tensors(list) => list.clear(),
                Value::OptionalTensors(list) => list.clear(),
                _ => {}
            }
        }
        for input in &self.inputs {
            let start = self.tensors[input.root.index()].layout().offset;
            point_at(&mut self.tensors, input, &self.nowhere, -start);
        }
    }

    /// Points the tensors over an input at its memory.
    pub(crate) fn point_at_input<T: Borrow<Tensor>>(
        &mut self,
        number: usize,
        input: &Tensor,
        inputs: &[T],
    ) -> Result<()> {
        let outside = &self.inputs[number];
        if outside.written {
            let shared = inputs
                .iter()
                .enumerate()
                .any(|(other, tensor)| other != number && tensor.borrow().shares_storage(input));
            if shared || !input.is_contiguous() {
                return Err(Error::graph(format!(
                    "the graph writes to input {number}, which {}",
                    if shared { "shares memory with another input" } else { "is not row-major" }
                ))
                .with_help("give it memory of its own"));
            }
        }
        if self.writes.iter().any(|id| self.tensors[id.index()].shares_storage(input)) {
            return Err(Error::graph(format!(
                "input {number} is memory that the graph writes to besides, as it was found outside the function"
            ))
            .with_help("give it memory of its own"));
        }
        let input = input.contiguous_untracked()?;
        let start = input.layout().offset;
        point_at(&mut self.tensors, outside, input.storage(), start);
        Ok(())
    }
}

/// Points tensors at other memory, with their offsets increased by `elements`.
fn point_at(tensors: &mut [Tensor], outside: &External, storage: &Storage, elements: i64) {
    for id in &outside.tensors {
        // SAFETY: the caller's storage has the buffer's elements from this offset on.
        unsafe { tensors[id.index()].point_at(storage, elements) };
    }
}

/// Allocates an output, unless its previous memory has no other owner.
fn renew(tensors: &mut [Tensor], outside: &External) -> Result<()> {
    let own = outside.tensors.len();
    let alone = tensors[outside.root.index()].storage().references() == own
        && outside.tensors.iter().all(|id| tensors[id.index()].is_unique());
    if alone {
        return Ok(());
    }
    let root = &tensors[outside.root.index()];
    let storage = Storage::on(root.device(), root.storage().bytes())?;
    for id in &outside.tensors {
        // SAFETY: the storage has the size of the former one, and nodes write its elements.
        unsafe { tensors[id.index()].point_at(&storage, 0) };
    }
    Ok(())
}
