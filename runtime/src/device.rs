//! The device of a tensor's memory.

use std::fmt;

use opsmith_core::Backend;

/// A backend and the index of one of its devices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    /// The family of devices.
    pub backend: Backend,
    /// The index among devices of the family, from 0.
    pub index: u16,
}

impl Device {
    /// The host processor.
    pub const CPU: Device = Device { backend: Backend::Cpu, index: 0 };

    /// The GPU with the given index.
    pub const fn cuda(index: u16) -> Device {
        Device { backend: Backend::Cuda, index }
    }

    /// Parses `cpu`, `cuda` or `cuda:1`.
    pub fn from_name(name: &str) -> Option<Device> {
        let (backend, index) = match name.split_once(':') {
            Some((backend, index)) => (backend, index.parse().ok()?),
            None => (name, 0),
        };
        Some(Device { backend: Backend::from_name(backend)?, index })
    }
}

impl Default for Device {
    fn default() -> Self {
        Device::CPU
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.backend {
            Backend::Cpu => f.write_str("cpu"),
            backend => write!(f, "{backend}:{}", self.index),
        }
    }
}
