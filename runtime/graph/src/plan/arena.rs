//! Handles of tensors in a plan's arenas.
//!
//! In: tensors in the order of a graph. Out: a handle each, one for those that follow each other in the same memory. Must not know
//! nodes.

use std::collections::HashMap;

use opsmith_runtime::DType;
use opsmith_runtime::device::Device;
use opsmith_runtime::layout::Layout;
use opsmith_runtime::tensor::Tensor;

/// The tensors in arenas, by device and offset in bytes: those that follow each other in the same memory with one layout are one
/// handle, so that a run reads few of them again and again.
#[derive(Default)]
pub(super) struct InArenas(HashMap<(Device, i64), usize>);

impl InArenas {
    /// The handle of a tensor of this layout and dtype that is in a plan's list, else a new one, which is the next of the list.
    pub fn tensor(
        &mut self,
        device: Device,
        layout: Layout,
        dtype: DType,
        tensors: &[Tensor],
        new: impl FnOnce(Layout) -> Tensor,
    ) -> Tensor {
        let place = layout.offset.wrapping_mul(dtype.size() as i64);
        let before = self.0.insert((device, place), tensors.len()).map(|number| &tensors[number]);
        match before {
            Some(tensor) if tensor.dtype() == dtype && *tensor.layout() == layout => tensor.clone(),
            _ => new(layout),
        }
    }
}
