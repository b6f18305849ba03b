//! A backend for tests: device memory that the host cannot access, and streams that run their work lazily.
//!
//! Its devices replace CUDA's. Memory consists of pages that are protected while no work of the device runs, so that a
//! host access ends the process. Work runs as late as the interface allows: when a point of its stream is waited for,
//! when another stream follows it, or when the queue is full. Kernels are those of the host, over the same memory.
//! Results equal to the host's therefore show that memory, order and synchronisation of a device are respected.
//!
//! In: the kernels that [`install`] copies. Out: an implementation of [`opsmith_runtime::backend`].

mod kernels;
mod memory;
mod runtime;
mod stream;

pub use kernels::{install, launch};
pub use memory::live_bytes;
pub use runtime::DEVICES;

use opsmith_runtime::{Backend, Device};

/// The backend that the devices replace.
pub const BACKEND: Backend = Backend::Cuda;

/// One of the devices.
pub fn device(index: u16) -> Device {
    Device { backend: BACKEND, index }
}
