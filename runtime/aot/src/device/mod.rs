//! Where a kernel's operands live: in host memory, or on a device, where tensors of the device are used as they are, and
//! those of the host are copied to it and results back.
//!
//! In: a kernel that is ready, and the addresses of a call's tensors. Out: the same tensors filled. The modules that
//! declare, build, load and check kernels know [`Place`] only, and `driver` alone knows the
//! driver. Must not know dispatch.
//!
//! ```text
//! Place ─► call ─┬─ on tensors of the device: the kernel in this thread's stream, workspaces of its allocator
//!                └─ on those of the host: copies to, the kernel, copies back ─► stream, memory (kept) ─► driver
//! ```

mod call;
mod driver;
mod memory;

use std::path::Path;

use opsmith_core::Backend;

pub(super) use call::{Image, run_by_copies, run_in_stream, run_on_images};
pub(super) use driver::Entered;
pub use memory::release_device_memory;

use super::compiler::Language;
use opsmith_runtime::error::{Error, Result};

/// Where a kernel's operands live. A kernel has one place: its code takes addresses of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In the memory of this process.
    Host,
    /// On the device, in the context that CUDA's runtime uses too.
    Device,
}

impl Place {
    /// The place of a kernel in this file with these targets, or with none, so that its file says it.
    ///
    /// # Errors
    /// If they contradict each other.
    pub fn of(source: &Path, targets: &[Backend]) -> Result<Place> {
        let language = Language::of(source);
        match (targets.contains(&Backend::Cpu), targets.contains(&Backend::Cuda)) {
            (true, true) => Err(Error::argument("the kernel is declared for CPU and for CUDA").with_help(
                "its operands live in host memory or on the device, so it has one target; declare an operator for each",
            )),
            (true, false) if language == Some(Language::Cuda) => Err(Error::argument(format!(
                "{} is a source for CUDA, and is declared for CPU",
                source.display()
            ))
            .with_help(
                "declare the target CUDA, or none: tensors of the host are copied to the device and back; \
                 a kernel that runs on the host belongs into a .cc file",
            )),
            (true, false) => Ok(Place::Host),
            (false, true) => Ok(Place::Device),
            (false, false) if language == Some(Language::Cuda) => Ok(Place::Device),
            (false, false) => Ok(Place::Host),
        }
    }

    /// The backend whose devices it is on.
    pub fn backend(self) -> Backend {
        match self {
            Place::Host => Backend::Cpu,
            Place::Device => Backend::Cuda,
        }
    }

    /// Makes this thread ready to call functions of a kernel, until the returned value is dropped.
    ///
    /// # Errors
    /// If there is no device, or it cannot be used any more.
    pub fn enter(self) -> Result<Option<Entered>> {
        match self {
            Place::Host => Ok(None),
            Place::Device => Entered::new().map(Some),
        }
    }

    /// Refuses a copy of this process for a kernel that could not run in it.
    ///
    /// # Errors
    /// If the device is in use here: copies of such a process cannot use it.
    pub fn check_copy(self) -> Result<()> {
        match self {
            Place::Host => Ok(()),
            Place::Device => driver::check_copy(),
        }
    }
}
