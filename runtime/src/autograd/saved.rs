//! Tensors that a node keeps for its backward formulas.
//!
//! Memory, layout and version are kept, not the tensor: a handle would keep the graph that computed it alive, and a
//! later in-place call could make that graph lead back to the node.

use std::sync::Arc;

use smallvec::SmallVec;

use super::checkpoint::{self, Place};
use super::context::TensorMeta;
use super::forward_mode::{self, LevelId, TangentList};
use super::node::Edge;
use crate::error::{Error, Result};
use crate::layout::{Dims, copied};
use crate::storage::Storage;
use crate::sync::{Brief, BriefGuard};
use crate::tensor::Tensor;

/// A tensor of a call, by position.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A tensor input, counted over all arguments.
    Input(u32),
    /// An output.
    Output(u32),
    /// Neither; only custom functions save such tensors.
    Other(u32),
}

/// One saved tensor.
#[derive(Clone)]
pub(crate) struct SavedTensor {
    slot: Slot,
    memory: Memory,
    /// Its tangents, if the call was part of a derivative in forward mode.
    tangents: Option<Arc<TangentList>>,
}

#[derive(Clone)]
enum Memory {
    Kept {
        storage: Storage,
        strides: Dims,
        offset: i64,
        /// The memory's version when the call read or wrote it.
        version: u64,
    },
    /// Not kept; recomputed from a checkpoint.
    Place(Arc<Place>),
}

impl SavedTensor {
    /// Saves a tensor, or a placeholder if this part of the forward pass is checkpointed.
    #[inline]
    pub fn new(slot: Slot, tensor: &Tensor) -> SavedTensor {
        if checkpoint::is_collecting()
            && let Some(place) = checkpoint::place_for(slot, tensor)
        {
            return SavedTensor { slot, memory: Memory::Place(Arc::new(place)), tangents: None };
        }
        SavedTensor::kept(slot, tensor)
    }

    /// Saves a tensor in any case.
    #[inline(always)]
    pub fn kept(slot: Slot, tensor: &Tensor) -> SavedTensor {
        let memory = Memory::Kept {
            storage: tensor.storage().clone(),
            strides: copied(&tensor.layout().strides),
            offset: tensor.layout().offset,
            version: tensor.version(),
        };
        SavedTensor { slot, memory, tangents: None }
    }

    /// Saves a copy of a tensor whose memory is about to change.
    pub fn copied(slot: Slot, tensor: &Tensor) -> Result<SavedTensor> {
        Ok(SavedTensor::new(slot, &tensor.cast_untracked(tensor.dtype())?))
    }

    fn is_place(&self) -> bool {
        matches!(self.memory, Memory::Place(_))
    }

    /// The tensor as it was saved, outside any graph.
    ///
    /// # Errors
    /// If it was changed since, or could not be computed again; `name` describes the tensor for the message.
    #[inline]
    pub fn restore(&self, meta: &TensorMeta, name: &dyn Fn() -> SavedName) -> Result<Tensor> {
        let tensor = self.restore_elements(meta, name)?;
        if let Some(tangents) = &self.tangents {
            forward_mode::adopt(&tensor, tangents);
        }
        Ok(tensor)
    }

    #[inline]
    fn restore_elements(&self, meta: &TensorMeta, name: &dyn Fn() -> SavedName) -> Result<Tensor> {
        match &self.memory {
            Memory::Place(place) => place.replay(meta, name),
            Memory::Kept { storage, version, .. } if storage.version() != *version => {
                Err(changed(storage, *version, &name()))
            }
            Memory::Kept { storage, strides, offset, .. } => {
                // SAFETY: storage, layout, dtype and device are those of a tensor.
                Ok(unsafe { Tensor::over(storage, [&meta.sizes, strides], *offset, meta.dtype, meta.device) })
            }
        }
    }
}

/// The saved tensors of a node, until a backward pass frees them.
#[derive(Default)]
pub(crate) struct SavedTensors(Brief<List>);

#[derive(Default)]
struct List {
    tensors: SmallVec<[SavedTensor; 2]>,
    freed: bool,
    /// A tangent of an input at each level at which the call has one.
    noted: Option<Arc<TangentList>>,
}

impl SavedTensors {
    // No user code runs under the lock, so no panic can leave it half changed.
    #[inline]
    fn lock(&self) -> BriefGuard<'_, List> {
        self.0.lock()
    }

    #[inline]
    fn list(&mut self) -> &mut List {
        self.0.get_mut()
    }

    #[inline]
    pub fn push(&mut self, saved: SavedTensor) {
        self.list().tensors.push(saved);
    }

    /// Saves a tensor, as [`SavedTensor::new`] does, where it stays.
    #[inline(always)]
    pub fn keep(&mut self, slot: Slot, tensor: &Tensor) {
        if checkpoint::is_collecting() {
            return self.push(SavedTensor::new(slot, tensor));
        }
        let tensors = &mut self.list().tensors;
        tensors.reserve(1);
        // SAFETY: there is room for one more, which is written.
        unsafe {
            tensors.as_mut_ptr().add(tensors.len()).write(SavedTensor::kept(slot, tensor));
            tensors.set_len(tensors.len() + 1);
        }
    }

    /// Releases the saved memory; reading it is an error from now on.
    pub fn free(&self) {
        let mut list = self.lock();
        if list.tensors.is_empty() {
            return;
        }
        list.freed = true;
        // Dropped after the lock: memory of another library has an owner, whose drop is other code.
        let tensors = std::mem::take(&mut list.tensors);
        drop(list);
        drop(tensors);
    }

    /// Stores a tangent of the call at a level.
    pub fn note_tangents(&self, level: LevelId, tangent: &Tensor) {
        let noted = self.lock().noted.get_or_insert_default().clone();
        forward_mode::put(&noted, level, Some(tangent.clone()));
    }

    /// Whether an input of the call has a tangent at a level not hidden from this thread.
    pub fn has_tangents(&self) -> bool {
        let noted = self.lock().noted.clone();
        noted.is_some_and(|noted| !noted.visible().is_empty())
    }

    /// Calls `visit` to add to the tangents of each saved tensor.
    pub fn add_tangents(&self, mut visit: impl FnMut(Slot, &mut Option<Arc<TangentList>>)) {
        for saved in &mut self.lock().tensors {
            visit(saved.slot, &mut saved.tangents);
        }
    }

    /// Calls `visit` with the address and size in bytes of each saved memory block.
    pub fn for_each_memory(&self, mut visit: impl FnMut(usize, usize)) {
        for saved in &self.lock().tensors {
            if let Memory::Kept { storage, .. } = &saved.memory {
                visit(storage.data().addr(), storage.bytes());
            }
        }
    }

    /// Whether a saved placeholder may own tensors that are part of a graph.
    pub fn has_places(&mut self) -> bool {
        self.list().has_places()
    }

    /// The tensor that was saved in a slot, outside any graph.
    ///
    /// # Errors
    /// If it was freed, changed, or could not be computed again; `name` describes the tensor for the message.
    #[inline]
    pub fn restore(&self, slot: Slot, meta: &TensorMeta, name: &dyn Fn() -> SavedName) -> Result<Tensor> {
        let list = self.lock();
        if list.freed {
            return Err(freed(&name()));
        }
        let Some(saved) = list.tensors.iter().find(|saved| saved.slot == slot) else {
            let SavedName { op, what } = name();
            panic!("a formula of {op} reads its {what}, which its definition does not mention")
        };
        if !saved.is_place() {
            return saved.restore(meta, name);
        }
        let place = saved.clone();
        drop(list);
        place.restore(meta, name)
    }
}

impl List {
    fn has_places(&self) -> bool {
        self.noted.is_some() || self.tensors.iter().any(|saved| saved.is_place() || saved.tangents.is_some())
    }
}

/// A saved tensor's description for messages: its name and its call's.
pub(crate) struct SavedName {
    pub op: String,
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
fn changed(storage: &Storage, then: u64, name: &SavedName) -> Error {
    let SavedName { op, what } = name;
    let by = match storage.last_writer() {
        Some(writer) => format!(", last by `{writer}`"),
        None => String::new(),
    };
    let now = storage.version();
    Error::autograd(format!(
        "`{op}` saved its {what} for backward, and its memory was changed in place since{by} (version {now}, saved at {then})"
    ))
    .with_help("use the functional form of the call that changed it, or give it a copy")
}

/// A tensor with its edge, as double backward needs it.
pub(crate) fn tracked_at(mut tensor: Tensor, edge: Option<&Edge>) -> Tensor {
    if let Some(edge) = edge {
        super::attach(&mut tensor, edge.clone());
    }
    tensor
}
