//! The seam of devices: memory and its movement, as the runtime asks for them.
//!
//! In: requests for memory on a device, to move or fill elements there, and to wait. Out: what the backend's
//! [`DeviceRuntime`] did. The host needs none of this: its memory is the allocator's and its loops are in `copy`, so a
//! call on the host never comes here. Kernels are not here either: they are rows of an operator's table. Must know no
//! operator, no tensor and no driver; see `docs/design/devices.md`.

mod memory;
mod work;

use std::ptr::NonNull;

use opsmith_core::{Backend, DType};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

pub use memory::DeviceMemory;
pub use work::Work;

/// A queue of a device, whose work runs in the order in which it was asked for. Its number is the backend's own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamId(pub u64);

/// A point in a stream: all that was asked of it before. Its number is the backend's own; 0 is a point that has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ticket(pub u64);

/// A stream of a device of the backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    /// The index of the device.
    pub device: u16,
    /// One of its streams.
    pub stream: StreamId,
}

/// Bytes in the memory of some device, of the host too.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// The device that has them.
    pub device: Device,
    /// The first byte. Only on the host may it be read.
    pub start: *mut u8,
}

/// Elements in the memory of a device, of any layout.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    /// The first element. Only on the host may it be read.
    pub start: *mut u8,
    /// The type of the elements.
    pub dtype: DType,
    /// Number of elements along each dimension.
    pub sizes: &'a [i64],
    /// Elements to step for one step along each dimension; 0 where one is repeated.
    pub strides: &'a [i64],
}

/// Memory and movement on the devices of one backend.
///
/// Requests return when the device has taken them and not when it has done them: what a stream is asked for runs in
/// order, and a [`Ticket`] names a point to wait for. Every function may be called from any thread.
///
/// # Safety
/// The runtime relies on it: memory that is allocated belongs to nothing else, work is done when a wait for a later point
/// returns, and bytes of the host are used for as long as the functions say and no longer.
pub unsafe trait DeviceRuntime: Sync {
    /// Memory for at least one and at least so many bytes, aligned to 64, of any content.
    ///
    /// # Errors
    /// If the device is not there, or has no such memory.
    fn allocate(&self, device: u16, bytes: usize) -> Result<NonNull<u8>>;

    /// Takes memory back, for use by others once `last_use` has passed.
    ///
    /// # Safety
    /// It came from [`DeviceRuntime::allocate`] for as many bytes, and nobody asks for anything with it after `last_use`.
    unsafe fn release(&self, device: u16, memory: NonNull<u8>, bytes: usize, last_use: Ticket);

    /// Copies bytes between the host and a device of the backend, or between two of its devices. Bytes of the host are
    /// read before it returns; those written to the host are there when the stream has come so far.
    ///
    /// # Errors
    /// If the device refuses.
    ///
    /// # Safety
    /// Both sides have as many bytes, do not overlap, and stay until the stream has come so far.
    unsafe fn transfer(&self, queue: Queue, to: Address, from: Address, bytes: usize) -> Result<()>;

    /// Converts elements to the dtype of others of the same sizes, on one device, as `copy` on the host would.
    ///
    /// # Errors
    /// If the device refuses.
    ///
    /// # Safety
    /// Both are in memory of the queue's device that stays until the stream has come so far, and do not overlap.
    unsafe fn convert(&self, queue: Queue, to: Elements<'_>, from: Elements<'_>) -> Result<()>;

    /// Writes one number into all elements.
    ///
    /// # Errors
    /// If the device refuses.
    ///
    /// # Safety
    /// As [`DeviceRuntime::convert`].
    unsafe fn fill(&self, queue: Queue, to: Elements<'_>, value: Scalar) -> Result<()>;

    /// Adds elements to others of the same dtype and sizes, of which several may be one: each is added to it, in
    /// row-major order.
    ///
    /// # Errors
    /// If the device refuses, or the dtype has no sum.
    ///
    /// # Safety
    /// As [`DeviceRuntime::convert`].
    unsafe fn accumulate(&self, queue: Queue, to: Elements<'_>, from: Elements<'_>) -> Result<()>;

    /// The stream that this thread's requests to a device go to.
    ///
    /// # Errors
    /// If the device is not there.
    fn stream(&self, device: u16) -> Result<StreamId>;

    /// The point that a stream has come to when all is done that was asked of it.
    ///
    /// # Errors
    /// If the device refuses.
    fn ticket(&self, queue: Queue) -> Result<Ticket>;

    /// Lets what a stream is asked for from here on wait for a point of another.
    ///
    /// # Errors
    /// If the device refuses.
    fn follow(&self, queue: Queue, ticket: Ticket) -> Result<()>;

    /// Waits for a point.
    ///
    /// # Errors
    /// If something before it failed, which is told by the first who waits for it.
    fn wait(&self, device: u16, ticket: Ticket) -> Result<()>;
}

/// The runtime of a backend, as a linked crate registers it.
pub struct RegisteredBackend {
    /// The family of devices.
    pub backend: Backend,
    /// Their memory and movement.
    pub runtime: &'static dyn DeviceRuntime,
}

inventory::collect!(RegisteredBackend);

/// Makes the runtime of a backend known to the whole program.
#[macro_export]
macro_rules! __register_backend {
    ($backend:expr, $runtime:expr) => {
        $crate::inventory::submit! { $crate::backend::RegisteredBackend { backend: $backend, runtime: $runtime } }
    };
}
pub use crate::__register_backend as register;

/// The runtime of a device's backend.
///
/// # Errors
/// If no crate for the backend is linked into the program, or two are.
pub fn of(device: Device) -> Result<&'static dyn DeviceRuntime> {
    let mut found =
        inventory::iter::<RegisteredBackend>().filter(|registered| registered.backend == device.backend);
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only.runtime),
        (Some(_), Some(_)) => {
            Err(Error::device(format!("two crates of this program bring memory of {}", device.backend))
                .with_help("link one of them"))
        }
        (None, _) => Err(Error::device(format!(
            "there is no memory on {device}: no crate of this program brings memory of {}",
            device.backend
        ))
        .with_help("use the CPU")),
    }
}
