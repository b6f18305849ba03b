//! The use of tensors' memory by work on a device.
//!
//! In: a device, and the tensors that work there reads or writes. Out: the work, asked of this thread's stream after what
//! other streams do with the memory, and noted as its last use. Tensors of the host are left alone.

use opsmith_core::Backend;

use super::Tensor;
use crate::backend::{Elements, Work};
use crate::device::Device;
use crate::error::{Error, Result};

/// Asks a device for work that uses the memory of tensors; `for_each` visits those.
///
/// # Errors
/// Whatever the work reports, or if the device is not there.
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
    // Work that failed half way may have been asked for.
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
    /// Whether the host has the elements, so that it can read them where they are.
    #[inline]
    pub fn is_on_host(&self) -> bool {
        self.device().backend == Backend::Cpu
    }

    /// Refuses a tensor whose elements the host cannot read.
    ///
    /// # Errors
    /// If another device has them.
    #[inline]
    pub(crate) fn check_on_host(&self) -> Result<()> {
        if self.is_on_host() { Ok(()) } else { Err(elsewhere(self.device())) }
    }

    /// The elements, as a device's runtime moves them.
    pub(crate) fn elements(&self) -> Elements<'_> {
        Elements { start: self.data_ptr(), dtype: self.dtype(), sizes: self.shape(), strides: self.strides() }
    }
}

#[cold]
fn elsewhere(device: Device) -> Error {
    Error::device(format!("the elements are in the memory of {device}, which the host cannot read"))
        .with_help("move the tensor to the CPU first")
}
