//! Movement between devices, as a step that gradients and tangents follow back.
//!
//! In: a tensor and a device. Out: its elements there. The gradient moves the other way, and so on for derivatives of
//! any order.

use super::custom::{CustomContext, Saver, custom};
use crate::device::Device;
use crate::error::Result;
use crate::tensor::Tensor;

impl Tensor {
    /// The elements on another device; the tensor itself if they are there. Gradients flow back to this tensor's device.
    ///
    /// # Errors
    /// If no crate of this program brings memory of the device, the device is not there, or it has no memory.
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        if self.device() == device {
            return Ok(self.clone());
        }
        let back = self.device();
        let forward = |inputs: &[&Tensor], _: &mut Saver| Ok(vec![inputs[0].moved_untracked(device)?]);
        let backward = move |context: &CustomContext<'_>| {
            let gradient = context.grad(0).map(|gradient| gradient.to_device(back)).transpose()?;
            Ok(vec![gradient])
        };
        Ok(custom("to_device", &[self], forward, backward)?.swap_remove(0))
    }
}
