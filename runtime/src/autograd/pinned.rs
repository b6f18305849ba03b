//! Tensors in pinned memory of the host, whose copies to devices are asynchronous.
//!
//! In: a tensor of the host. Out: its elements in memory that devices access themselves. A copy to a device returns when it is asked
//! for; a later write of the host to the memory waits for it, and so does the memory's reuse.

use super::custom::{CustomContext, Saver, custom};
use crate::copy;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::storage::Storage;
use crate::tensor::{Tensor, observer};

impl Tensor {
    /// The elements, row-major, in pinned memory of the host; the tensor itself if it is there already. [`Tensor::to_device`] copies
    /// them without other memory on the way, and without a wait: the host goes on while the device reads. A write to the tensor waits
    /// until it is done. Code that writes by the address alone ([`Tensor::data_ptr`]) has to wait itself ([`Device::synchronize`]).
    /// Gradients flow back to this tensor.
    ///
    /// # Errors
    /// If the elements are not the host's, no crate of the program brings devices that access memory of the host, there is not
    /// enough, or a function is being traced, whose graph has memory of its own.
    pub fn pin_memory(&self) -> Result<Tensor> {
        self.check_on_host()?;
        if observer::observer().is_some() {
            return Err(Error::graph(
                "a traced function cannot pin memory: results are in the memory of its graph",
            )
            .with_help("pin the tensor before, outside of the function"));
        }
        if self.is_pinned() {
            return Ok(self.clone());
        }
        let forward = |inputs: &[&Tensor], _: &mut Saver| Ok(vec![inputs[0].pinned_untracked()?]);
        let backward = |context: &CustomContext<'_>| Ok(vec![context.grad(0).cloned()]);
        Ok(custom("pin_memory", &[self], forward, backward)?.swap_remove(0))
    }

    /// Whether the elements are in pinned memory of the host.
    pub fn is_pinned(&self) -> bool {
        self.storage().pinned_memory().is_some()
    }

    fn pinned_untracked(&self) -> Result<Tensor> {
        let storage = Storage::pinned(self.numel() as usize * self.dtype().size())?;
        let layout = Layout::contiguous(self.shape());
        // SAFETY: the memory has as many elements, which the copy writes before they are read.
        let pinned = unsafe { Tensor::from_parts(storage, layout, self.dtype(), Device::CPU) };
        copy::copy(&pinned, self)?;
        Ok(pinned)
    }
}
