//! Movement between devices as a differentiable step.
//!
//! In: a tensor and a device. Out: its elements there. The gradient moves in the opposite direction, for derivatives of
//! any order.

use super::custom::{CustomContext, Saver, custom};
use crate::device::Device;
use crate::error::Result;
use crate::tensor::Tensor;

impl Tensor {
    /// The elements on another device; the tensor itself if it is already there. Gradients flow back to this tensor's
    /// device.
    ///
    /// # Errors
    /// If no crate of the program provides memory of the device, the device does not exist, or its memory is exhausted.
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
