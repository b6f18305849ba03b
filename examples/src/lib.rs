//! Shared code of the examples.

// Makes the devices of CUDA known to programs.
use opsmith_cuda as _;

pub mod classifier;
pub mod digits;

use anyhow::{Context as _, Result};
use opsmith::Device;

/// The device of a name.
///
/// # Errors
/// If no device has it.
pub fn device_named(name: &str) -> Result<Device> {
    Device::from_name(name).with_context(|| format!("`{name}` is no device; try `cpu`, `cuda` or `cuda:1`"))
}

/// The device that the variable `OPSMITH_DEVICE` names; the host without it.
///
/// # Errors
/// As [`device_named`].
pub fn device_of_environment() -> Result<Device> {
    device_named(&std::env::var("OPSMITH_DEVICE").unwrap_or_else(|_| "cpu".to_owned()))
}
