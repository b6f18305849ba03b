//! The use of tensors' memory by work on a device.
//!
//! In: a device, and the tensors that the work reads or writes. Out: the work, submitted to this thread's stream after
//! the memory's uses in other streams, and recorded as its last use. Tensors of the host are ignored.

use opsmith_core::Backend;

use super::Tensor;
use crate::backend::{Elements, Work};
use crate::device::Device;
use crate::error::{Error, Result};

/// Submits work to a device that uses the memory of tensors; `for_each` visits those.
///
/// # Errors
/// Errors of the work, or if the device does not exist.
#[cold]
pub(crate) fn on_device<R>(
    device: Device,
    for_each: impl Fn(&mut dyn FnMut(&Tensor)),
    work: impl FnOnce(&Work) -> Result<R>,
) -> Result<R> {
    let ours = Work::on(device)?;
    let mut followed = Ok(());
    for_each(&mut |tensor| {
        if let Some(memory) = tensor.storage().device_memory()
            && followed.is_ok()
        {
            followed = ours.follow(memory.last_use());
        }
    });
    followed?;
    // Work that failed half way may have been submitted.
    let result = work(&ours);
    let mut noted = Ok(());
    for_each(&mut |tensor| {
        if let Some(memory) = tensor.storage().device_memory() {
            noted = std::mem::replace(&mut noted, Ok(())).and(memory.note_use(&ours));
        }
    });
    let result = result?;
    noted.map(|()| result)
}

impl Tensor {
    /// Whether the elements are in host memory.
    #[inline]
    pub fn is_on_host(&self) -> bool {
        self.device().backend == Backend::Cpu
    }

    /// Rejects a tensor whose elements the host cannot read.
    ///
    /// # Errors
    /// If the elements are on another device.
    #[inline]
    pub(crate) fn check_on_host(&self) -> Result<()> {
        if self.is_on_host() { Ok(()) } else { Err(elsewhere(self.device())) }
    }

    /// The elements, in the form of a device runtime's requests.
    pub(crate) fn elements(&self) -> Elements<'_> {
        Elements { start: self.data_ptr(), dtype: self.dtype(), sizes: self.shape(), strides: self.strides() }
    }
}

#[cold]
fn elsewhere(device: Device) -> Error {
    Error::device(format!("the elements are in the memory of {device}, which the host cannot read"))
        .with_help("move the tensor to the CPU first")
}
