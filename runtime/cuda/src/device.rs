//! The state of each device: context, memory, buffers, functions.
//!
//! In: indices. Out: the state, created at the first request. Must not know the interface of devices.

use std::sync::{Mutex, OnceLock, PoisonError};

use opsmith_runtime::Result;
use opsmith_runtime::backend::DeviceSource;

use crate::compile::{Function, Functions};
use crate::driver::{self, Context};
use crate::libraries::cublaslt::{CublasLt, Products};
use crate::libraries::cudnn::{Convolutions, Cudnn};
use crate::libraries::cufft::Transforms;
use crate::memory::Memory;
use crate::staging::Staging;
use crate::status::Status;

/// A device.
pub struct Device {
    /// Its context.
    pub context: &'static Context,
    /// Its memory.
    pub memory: Memory,
    /// Its pinned buffers.
    pub staging: Staging,
    /// Plans of Fourier transforms.
    pub transforms: Transforms,
    functions: Functions,
    status: OnceLock<Status>,
    products: OnceLock<Products>,
    convolutions: OnceLock<Convolutions>,
    /// Held while a library starts.
    starting: Mutex<()>,
}

static DEVICES: OnceLock<Vec<OnceLock<Device>>> = OnceLock::new();

/// A device.
///
/// # Errors
/// If there is no driver, or no such device.
pub fn device(index: u16) -> Result<&'static Device> {
    let context = driver::context(index)?;
    let devices = DEVICES.get_or_init(|| (0..context.driver.count).map(|_| OnceLock::new()).collect());
    let slot = &devices[usize::from(index)];
    if let Some(device) = slot.get() {
        return Ok(device);
    }
    let memory = Memory::new()?;
    Ok(slot.get_or_init(|| Device {
        context,
        memory,
        staging: Staging::default(),
        transforms: Transforms::default(),
        functions: Functions::default(),
        status: OnceLock::new(),
        products: OnceLock::new(),
        convolutions: OnceLock::new(),
        starting: Mutex::default(),
    }))
}

/// A device that is in use; `None` in a copy (fork) of the process that uses it.
pub fn existing(index: u16) -> Option<&'static Device> {
    driver::started()?;
    DEVICES.get()?.get(usize::from(index))?.get()
}

impl Device {
    /// The word for reports of kernels.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn status(&self) -> Result<&Status> {
        if let Some(status) = self.status.get() {
            return Ok(status);
        }
        let status = Status::new(self.context)?;
        Ok(self.status.get_or_init(|| status))
    }

    /// The library of products on this device, started at the first request.
    ///
    /// # Errors
    /// If it does not start.
    pub fn products(&self, library: &'static CublasLt) -> Result<&Products> {
        if let Some(products) = self.products.get() {
            return Ok(products);
        }
        let _one_at_a_time = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(products) = self.products.get() {
            return Ok(products);
        }
        let products = Products::new(library, self.context)?;
        Ok(self.products.get_or_init(|| products))
    }

    /// The library of convolutions on this device, started at the first request.
    ///
    /// # Errors
    /// If it does not start.
    pub fn convolutions(&self, library: &'static Cudnn) -> Result<&Convolutions> {
        if let Some(convolutions) = self.convolutions.get() {
            return Ok(convolutions);
        }
        let _one_at_a_time = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(convolutions) = self.convolutions.get() {
            return Ok(convolutions);
        }
        let convolutions = Convolutions::new(library, self.context)?;
        Ok(self.convolutions.get_or_init(|| convolutions))
    }

    /// The function of an instance of a source.
    ///
    /// # Errors
    /// If no archive has it and no compiler is found, the source has a mistake, or errors of the device.
    pub fn function(&self, source: &'static DeviceSource, instance: &str) -> Result<&'static Function> {
        self.functions.get(self.context, self.status()?, source, instance)
    }

    /// All functions that were loaded.
    pub fn functions(&self) -> Vec<&'static Function> {
        self.functions.loaded()
    }

    /// The error of kernels' reports since the last check.
    ///
    /// # Errors
    /// If a kernel reported one.
    pub fn check_reports(&self) -> Result<()> {
        self.status.get().map_or(Ok(()), Status::check)
    }
}
