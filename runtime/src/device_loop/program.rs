//! The source of several kernels, and those compiled from it.
//!
//! In: a number and a line of text for each kernel that is wanted. Out: the kernel, compiled at its first launch on a device
//! and launched in this thread's stream.

use std::sync::{PoisonError, RwLock};

use crate::backend::{DeviceSource, FunctionId, Grid, KernelParameter, Work};
use crate::device::Device;
use crate::error::Result;

/// The source of several kernels, and those compiled from it.
#[derive(Debug)]
pub struct DeviceProgram {
    source: DeviceSource,
    /// Each kernel, with its device and number.
    compiled: RwLock<Vec<((u16, u32), FunctionId)>>,
}

impl DeviceProgram {
    /// A source: `text`, after the texts of `headers`. Its name stands in messages of the compiler.
    pub const fn new(
        name: &'static str,
        headers: &'static [&'static str],
        text: &'static str,
    ) -> DeviceProgram {
        DeviceProgram { source: DeviceSource { name, headers, text }, compiled: RwLock::new(Vec::new()) }
    }

    /// The source.
    pub fn source(&self) -> &DeviceSource {
        &self.source
    }

    /// Launches the kernel `opsmith_kernel` that the line `instance` defines, in this thread's stream. Each parameter is the
    /// address of its value, which is read before this returns.
    ///
    /// # Errors
    /// If the backend compiles no source, the text has a mistake, or the device fails.
    ///
    /// # Safety
    /// Equal numbers have equal lines; the parameters are those of the kernel; the memory that it accesses is kept until the
    /// stream has passed this request.
    pub unsafe fn launch(
        &'static self,
        device: Device,
        number: u32,
        instance: impl FnOnce() -> String,
        grid: Grid,
        parameters: &[KernelParameter<'_>],
    ) -> Result<()> {
        let work = Work::on(device)?;
        let function = self.function(&work, (device.index, number), instance)?;
        // SAFETY: the caller's promise; the function is of the queue's device.
        unsafe { work.runtime().launch(work.queue(), function, grid, parameters) }
    }

    fn function(
        &'static self,
        work: &Work,
        key: (u16, u32),
        instance: impl FnOnce() -> String,
    ) -> Result<FunctionId> {
        let compiled = self.compiled.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, function)) = compiled.iter().find(|(known, _)| *known == key) {
            return Ok(*function);
        }
        drop(compiled);
        let function = work.runtime().function(key.0, &self.source, &instance())?;
        self.compiled.write().unwrap_or_else(PoisonError::into_inner).push((key, function));
        Ok(function)
    }
}
