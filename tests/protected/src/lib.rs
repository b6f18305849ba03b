//! A backend for tests: device memory that the host cannot read, and a stream whose work runs when somebody waits.
//!
//! Its devices are in the place of CUDA's. Memory is pages that are protected while no work of the device runs, so that
//! an access by the host ends the process. What is asked of a stream runs as late as the seam allows: when a point of it
//! is waited for, when another stream follows it, or when the queue is full. Kernels are those of the host, over the same
//! memory. So whatever equals the host's results here takes the memory, the order and the waits of a device into account.
//!
//! In: the rows of kernels that [`install`] copies. Out: [`opsmith_runtime::backend`]'s view of the devices.

mod kernels;
mod memory;
mod runtime;
mod stream;

pub use kernels::{install, launch};
pub use memory::live_bytes;
pub use runtime::DEVICES;

use opsmith_runtime::{Backend, Device};

/// The backend whose place the devices take.
pub const BACKEND: Backend = Backend::Cuda;

/// One of the devices.
pub fn device(index: u16) -> Device {
    Device { backend: BACKEND, index }
}
