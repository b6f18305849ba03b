//! Tensors that a node keeps for its backward formulas.
//!
//! Memory, layout and version are kept, not the tensor: a handle would keep the graph behind it
//! alive, and a later in-place call could make that graph lead back to the node.

use smallvec::SmallVec;

use super::context::TensorMeta;
use super::node::Edge;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout};
use crate::storage::Storage;
use crate::tensor::Tensor;

/// Which tensor of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A tensor input, counted over all arguments.
    Input(u32),
    /// An output.
    Output(u32),
}

/// One saved tensor.
pub(crate) struct SavedTensor {
    slot: Slot,
    storage: Storage,
    strides: Dims,
    offset: i64,
    /// The memory's version when the call read or wrote it.
    version: u64,
}

impl SavedTensor {
    #[inline]
    pub fn new(slot: Slot, tensor: &Tensor) -> SavedTensor {
        SavedTensor {
            slot,
            storage: tensor.storage().clone(),
            strides: Dims::from_slice(tensor.strides()),
            offset: tensor.layout().offset,
            version: tensor.version(),
        }
    }

    /// A copy of a tensor whose memory is about to change.
    pub fn copied(slot: Slot, tensor: &Tensor) -> Result<SavedTensor> {
        Ok(SavedTensor::new(slot, &tensor.cast_untracked(tensor.dtype())?))
    }
}

/// The saved tensors of a node, until a backward pass frees them.
#[derive(Default)]
pub(crate) struct SavedTensors {
    tensors: SmallVec<[SavedTensor; 2]>,
    freed: bool,
}

impl SavedTensors {
    #[inline]
    pub fn push(&mut self, saved: SavedTensor) {
        self.tensors.push(saved);
    }

    /// Frees the memory; reading is an error from now on, if there was anything.
    pub fn free(&mut self) {
        if !self.tensors.is_empty() {
            self.tensors = SmallVec::new();
            self.freed = true;
        }
    }

    /// The tensor as it was saved, outside any graph.
    ///
    /// # Errors
    /// If it was freed, or changed since; `describe` says what the tensor is.
    pub fn unpack(&self, slot: Slot, meta: &TensorMeta, describe: impl Fn() -> SavedName) -> Result<Tensor> {
        if self.freed {
            return Err(freed(&describe()));
        }
        let Some(saved) = self.tensors.iter().find(|saved| saved.slot == slot) else {
            let SavedName { op, what, .. } = describe();
            panic!("a formula of {op} reads {what}, which its definition does not mention");
        };
        if saved.storage.version() != saved.version {
            return Err(changed(saved, &describe()));
        }
        let layout = Layout {
            sizes: Dims::from_slice(&meta.sizes),
            strides: Dims::from_slice(&saved.strides),
            offset: saved.offset,
        };
        // SAFETY: storage, layout, dtype and device are those of a tensor.
        Ok(unsafe { Tensor::from_parts(saved.storage.clone(), layout, meta.dtype, meta.device) })
    }
}

/// What a saved tensor is, for messages.
pub(crate) struct SavedName {
    pub op: &'static str,
    pub what: String,
}

#[cold]
fn freed(name: &SavedName) -> Error {
    Error::autograd(format!(
        "backward went through `{}` a second time, but the first pass freed what the call had saved ({})",
        name.op, name.what
    ))
    .with_help("pass `retain_graph: true` to every pass but the last")
}

#[cold]
fn changed(saved: &SavedTensor, name: &SavedName) -> Error {
    let SavedName { op, what } = name;
    let (then, now) = (saved.version, saved.storage.version());
    let by = match saved.storage.last_writer() {
        Some(writer) => format!(", last by `{writer}`"),
        None => String::new(),
    };
    Error::autograd(format!(
        "`{op}` saved its {what} for backward, and its memory was changed in place since{by} (version {now}, saved at {then})"
    ))
    .with_help("use the functional form of the call that changed it, or give it a copy")
}

/// A tensor with its place in the graph, as double backward needs it.
pub(crate) fn tracked_at(mut tensor: Tensor, edge: Option<&Edge>) -> Tensor {
    if let Some(edge) = edge {
        super::attach(&mut tensor, edge.clone());
    }
    tensor
}
