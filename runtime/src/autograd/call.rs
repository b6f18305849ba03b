//! A recorded call: the data that its backward formulas read.

use std::ops::Range;

use smallvec::SmallVec;

use super::context::TensorMeta;
use super::saved::{SavedName, SavedTensors, Slot};
use crate::arg::Value;
use crate::error::Result;
use crate::op::{ArgKind, OpDef};
use crate::tensor::Tensor;

/// A recorded call of an operator.
pub(crate) struct Call {
    pub op: &'static OpDef,
    /// Index in `inputs` of the first tensor of each argument; one entry more than arguments.
    pub starts: SmallVec<[u32; 6]>,
    /// Metadata of each tensor input.
    pub inputs: SmallVec<[TensorMeta; 2]>,
    /// Positions in `inputs` of tensors that are absent.
    pub absent: SmallVec<[u32; 2]>,
    /// The arguments that are not tensors and that a formula reads.
    pub attributes: SmallVec<[(u8, Value); 1]>,
    /// Results that a needed formula reads, a bit each.
    pub reads_outputs: u64,
    pub saved: SavedTensors,
}

impl Call {
    /// A call without recorded inputs yet.
    #[inline]
    pub fn new(op: &'static OpDef) -> Call {
        Call {
            op,
            starts: SmallVec::new(),
            inputs: SmallVec::new(),
            absent: SmallVec::new(),
            attributes: SmallVec::new(),
            reads_outputs: 0,
            saved: SavedTensors::default(),
        }
    }

    /// Positions in `inputs` of the tensors of an argument.
    #[inline]
    pub fn positions(&self, argument: usize) -> Range<usize> {
        self.starts[argument] as usize..self.starts[argument + 1] as usize
    }

    /// A saved tensor.
    /// # Errors
    /// If it was freed, changed, or could not be computed again; `what` names the tensor for the message.
    #[inline]
    pub fn restore(&self, slot: Slot, meta: &TensorMeta, what: impl Fn() -> String) -> Result<Tensor> {
        self.saved.restore(slot, meta, &|| SavedName { op: self.op.name.to_owned(), what: what() })
    }

    /// The name of the tensor at a position of `inputs`: `weight`, `tensors[1]`.
    pub fn input_name(&self, position: usize) -> String {
        let argument = self.starts.partition_point(|start| *start as usize <= position) - 1;
        let def = &self.op.schema.args[argument];
        match def.ty.kind {
            ArgKind::Tensor => def.name.to_owned(),
            _ => format!("{}[{}]", def.name, position - self.positions(argument).start),
        }
    }

    /// Whether the tensor at a position of `inputs` is present.
    pub fn is_present(&self, position: usize) -> bool {
        !self.absent.contains(&(position as u32))
    }
}
