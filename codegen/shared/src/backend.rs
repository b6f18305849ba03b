//! The backends a kernel can be written for.

use std::fmt;

/// A family of devices that share kernels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Backend {
    /// The host processor.
    Cpu = 0,
    /// NVIDIA GPUs.
    Cuda = 1,
}

impl Backend {
    /// Every backend, in the order of dispatch tables.
    pub const ALL: [Backend; 2] = [Backend::Cpu, Backend::Cuda];
    /// How many backends there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The key used in a `dispatch:` table, e.g. `CPU`.
    pub const fn key(self) -> &'static str {
        match self {
            Backend::Cpu => "CPU",
            Backend::Cuda => "CUDA",
        }
    }

    /// The name of a device of this backend as users write it, e.g. `cpu`.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Cpu => "cpu",
            Backend::Cuda => "cuda",
        }
    }

    /// The backend with the given `dispatch:` key.
    pub fn from_key(key: &str) -> Option<Backend> {
        Self::ALL.into_iter().find(|backend| backend.key() == key)
    }

    /// The backend with the given device name.
    pub fn from_name(name: &str) -> Option<Backend> {
        Self::ALL.into_iter().find(|backend| backend.name() == name)
    }

    /// The name of the variant, for generated code.
    pub const fn ident(self) -> &'static str {
        match self {
            Backend::Cpu => "Cpu",
            Backend::Cuda => "Cuda",
        }
    }

    /// Position in dispatch tables.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
