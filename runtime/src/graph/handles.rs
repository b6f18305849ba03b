//! What a plan shares with its callers: the memory of inputs and results, and the handles that show them.
//!
//! In: inputs, and outputs of the run before. Out: tensors of the plan that point at that memory, and outputs. Where
//! nobody else holds what a run before gave out, it serves again, so a warm run asks for no memory here.

use std::borrow::Borrow;

use super::ir::TensorId;
use super::plan::{Outside, Plan};
use crate::arg::Value;
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::tensor::Tensor;

impl Plan {
    /// Reclaims the previous run's output handles, so that a warm run allocates none. A handle over an input, which
    /// would have to be made anew, is kept for this run; the memory that any other shows is released.
    pub(super) fn take_back(&mut self, outputs: &mut Vec<Tensor>) {
        if outputs.len() != self.handles.len() {
            return outputs.clear();
        }
        for ((id, handle), mut output) in self.handles.iter_mut().zip(outputs.drain(..)) {
            *handle = id.filter(|id| output.show(&self.tensors[id.index()])).map(|_| output);
        }
    }

    /// The outputs of this run.
    pub(super) fn hand_out(&mut self, ids: &[TensorId], outputs: &mut Vec<Tensor>) {
        outputs.extend(ids.iter().zip(&mut self.handles).map(|(id, (_, handle))| {
            let own = &self.tensors[id.index()];
            let waiting = handle.take().and_then(|mut handle| handle.show(own).then_some(handle));
            waiting.unwrap_or_else(|| own.clone())
        }));
    }

    /// Gives results new memory, unless nobody holds what the run before wrote.
    pub(super) fn renew_results(&mut self) -> Result<()> {
        self.results.iter().try_for_each(|result| renew(&mut self.tensors, result))
    }

    /// Writes zeros, which are elements of every dtype, where a graph that was read may read what no step wrote.
    pub(super) fn clear(&self) {
        for id in &self.cleared {
            let root = &self.tensors[id.index()];
            // SAFETY: the root shows all of its buffer, which is memory of this plan's own, or was just made for its
            // result, and no step runs yet.
            unsafe { std::ptr::write_bytes(root.data_ptr(), 0, root.numel() as usize * root.dtype().size()) };
        }
    }

    /// Lets go of the inputs' memory.
    pub(super) fn let_go(&mut self) {
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
    pub(super) fn point_at_input<T: Borrow<Tensor>>(
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

/// Points tensors at other memory, in which they begin so many elements further on.
fn point_at(tensors: &mut [Tensor], outside: &Outside, storage: &Storage, elements: i64) {
    for id in &outside.tensors {
        tensors[id.index()].point_at(storage, elements);
    }
}

/// Gives outputs new memory, unless nobody holds what the last run wrote.
fn renew(tensors: &mut [Tensor], outside: &Outside) -> Result<()> {
    let own = outside.tensors.len();
    let alone = tensors[outside.root.index()].storage().references() == own
        && outside.tensors.iter().all(|id| tensors[id.index()].is_unique());
    if alone {
        return Ok(());
    }
    let storage = Storage::uninitialized(tensors[outside.root.index()].storage().bytes())?;
    for id in &outside.tensors {
        tensors[id.index()].point_at(&storage, 0);
    }
    Ok(())
}
