//! The interface of devices: memory and its movement, and kernels given as source.
//!
//! In: requests to allocate device memory, to move or fill elements, to synchronise, to compile and launch a kernel. Out:
//! the results of the backend's [`DeviceRuntime`]. The host needs none of this: its memory is the allocator's and its
//! loops are in `copy`, so a call on the host never reaches this module. An operator's kernels are rows of its table;
//! those that are source for a device call [`DeviceRuntime::function`] and [`DeviceRuntime::launch`].
//! Must not know operators, tensors or drivers; see `docs/design/devices.md`.

mod capture;
mod convolution;
mod foreign_stream;
mod held;
mod host_memory;
mod memory;
mod parameter;
mod product;
mod transform;
mod work;

use std::ptr::NonNull;

use opsmith_core::{Backend, DType};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::scalar::Scalar;

pub use capture::{Capture, Recording};
pub use convolution::{ConvolutionPart, LibraryConvolution};
pub use foreign_stream::ForeignStream;
pub(crate) use held::{hold_back, holds_back, submit_held};
pub use host_memory::HostMemory;
pub(crate) use host_memory::PinnedMemory;
pub use memory::{DeviceBlockProfiler, DeviceMemory, profile_blocks};
pub use parameter::KernelParameter;
pub use product::{Activation, LibraryProduct};
pub use transform::LibraryTransform;
pub use work::Work;

/// A stream of a device: a queue whose work runs in submission order. The number is chosen by the backend.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamId(pub u64);

/// A point in a stream, after all work submitted before it. The number is chosen by the backend; 0 is a point that has
/// passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ticket(pub u64);

/// A moment of a stream by its device's clock. The number is chosen by the backend; 0 where devices have no clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark(pub u64);

/// A stream of a device of the backend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    /// The index of the device.
    pub device: u16,
    /// One of its streams.
    pub stream: StreamId,
}

/// An address in the memory of a device or of the host.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// The device of the memory.
    pub device: Device,
    /// The first byte. Dereferenceable only if the device is the host.
    pub start: *mut u8,
}

/// Elements in the memory of a device, of any layout.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    /// The first element. Dereferenceable only if the device is the host.
    pub start: *mut u8,
    /// The type of the elements.
    pub dtype: DType,
    /// Number of elements along each dimension.
    pub sizes: &'a [i64],
    /// Stride in elements along each dimension; 0 where one element is repeated.
    pub strides: &'a [i64],
}

/// Source of kernels for a device: headers, then text. A line that instantiates a kernel completes it.
#[derive(Debug)]
pub struct DeviceSource {
    /// The name in messages of the compiler: a file, or an operator.
    pub name: &'static str,
    /// Texts before [`DeviceSource::text`], in order.
    pub headers: &'static [&'static str],
    /// The text of this source.
    pub text: &'static str,
}

/// A compiled kernel on one device. The number is chosen by the backend.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FunctionId(pub u64);

/// Recorded work of one device, which is submitted as a whole. The number is chosen by the backend.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CaptureId(pub u64);

/// The threads of a launch, along x, y and z.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// Number of blocks.
    pub blocks: [u32; 3],
    /// Number of threads of each block.
    pub threads: [u32; 3],
    /// Bytes of dynamic shared memory of each block.
    pub shared: u32,
}

/// Memory and movement on the devices of one backend.
///
/// Requests are asynchronous: they return when the device has accepted them. A stream runs its requests in order, and a
/// [`Ticket`] is a point to wait for. Every function may be called from any thread.
///
/// # Safety
/// The runtime relies on three properties: allocated memory overlaps no other memory in use, all work before a point is
/// done when a wait for it returns, and host memory is used no longer than each function states.
pub unsafe trait DeviceRuntime: Sync {
    /// The model of a device, which tells machines apart whose measurements are kept; empty if it is not known.
    fn model(&self, device: u16) -> String {
        _ = device;
        String::new()
    }

    /// Allocates at least `bytes` bytes, and at least one, aligned to 64 and uninitialised. Work that this thread's stream
    /// was given before may still use them: the first use on another stream follows a ticket taken after this call.
    ///
    /// # Errors
    /// If the device does not exist, or its memory is exhausted.
    fn allocate(&self, device: u16, bytes: usize) -> Result<NonNull<u8>>;

    /// Releases memory, for reuse once `last_use` has passed.
    ///
    /// # Safety
    /// It came from [`DeviceRuntime::allocate`] with the same number of bytes, and no work after `last_use` uses it.
    unsafe fn release(&self, device: u16, memory: NonNull<u8>, bytes: usize, last_use: Ticket);

    /// Copies bytes between the host and a device of the backend, or between two of its devices. Host bytes are read
    /// before it returns; bytes written to the host are valid once the stream has passed this request.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// Both sides have at least `bytes` bytes, do not overlap, and stay valid until the stream has passed this request.
    unsafe fn transfer(&self, queue: Queue, to: Address, from: Address, bytes: usize) -> Result<()>;

    /// Memory of the host that the devices access themselves; `None` if the backend has none.
    fn host_memory(&self) -> Option<&'static dyn HostMemory> {
        None
    }

    /// Converts elements to the dtype of the target, which has the same sizes, on one device, as `copy` does on the
    /// host.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// Both are in memory of the queue's device, stay valid until the stream has passed this request, and do not
    /// overlap.
    unsafe fn convert(&self, queue: Queue, to: Elements<'_>, from: Elements<'_>) -> Result<()>;

    /// Writes one number into all elements.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// As [`DeviceRuntime::convert`].
    unsafe fn fill(&self, queue: Queue, to: Elements<'_>, value: Scalar) -> Result<()>;

    /// Adds elements to a target of the same dtype and sizes. Target elements may overlap: each addend is added, in
    /// row-major order.
    ///
    /// # Errors
    /// Errors of the device, or if the dtype has no sum.
    ///
    /// # Safety
    /// As [`DeviceRuntime::convert`].
    unsafe fn accumulate(&self, queue: Queue, to: Elements<'_>, from: Elements<'_>) -> Result<()>;

    /// The current stream of this thread on a device.
    ///
    /// # Errors
    /// If the device does not exist.
    fn stream(&self, device: u16) -> Result<StreamId>;

    /// Makes a stream that other code created this thread's on a device, and returns the one that was this thread's before, which
    /// the same function makes it again. It is named by the device's own handle, which [`StreamId`] is on such a backend.
    ///
    /// # Errors
    /// If the backend takes no streams of other code, other code records the work of the stream, or errors of the device.
    ///
    /// # Safety
    /// The handle is that of a stream of the device, which stays valid as long as memory that was used in it.
    unsafe fn enter_stream(&self, queue: Queue) -> Result<StreamId> {
        Err(Error::not_implemented(format!(
            "the backend of device {} has streams of its own alone",
            queue.device
        ))
        .with_help("exchange tensors by `__dlpack__`"))
    }

    /// Whether other code created a stream, and orders its own uses of memory by it.
    fn is_foreign(&self, queue: Queue) -> bool {
        _ = queue;
        false
    }

    /// The point after all work submitted to a stream so far.
    ///
    /// # Errors
    /// Errors of the device.
    fn ticket(&self, queue: Queue) -> Result<Ticket>;

    /// Makes later work of a stream wait for a point of another stream.
    ///
    /// # Errors
    /// Errors of the device.
    fn follow(&self, queue: Queue, ticket: Ticket) -> Result<()>;

    /// Waits for a point.
    ///
    /// # Errors
    /// If work before it failed; the first wait after a failure reports it.
    fn wait(&self, device: u16, ticket: Ticket) -> Result<()>;

    /// Takes note of work that other code submitted to a stream by its handle, which [`StreamId`] is on such a backend. A
    /// runtime that is set to report failures at the call that caused them waits here.
    ///
    /// # Errors
    /// Errors of that work, if the runtime waited.
    fn submitted(&self, queue: Queue) -> Result<()> {
        _ = queue;
        Ok(())
    }

    /// The moment when a stream passes this point, for profilers. It is kept until it is given to [`DeviceRuntime::forget`].
    ///
    /// # Errors
    /// Errors of the device.
    fn mark(&self, queue: Queue) -> Result<Mark> {
        _ = queue;
        Ok(Mark::default())
    }

    /// Nanoseconds from one moment to another of the same device. Waits until both have passed.
    ///
    /// # Errors
    /// If the device has no clock, or work before a moment failed.
    fn nanoseconds_between(&self, device: u16, first: Mark, second: Mark) -> Result<f64> {
        _ = (first, second);
        Err(Error::not_implemented(format!("device {device} has no clock"))
            .with_help("link a crate whose backend has one"))
    }

    /// Ends the use of a moment.
    fn forget(&self, device: u16, mark: Mark) {
        _ = (device, mark);
    }

    /// The kernel `opsmith_kernel` of a source that ends with the line `instance`, compiled at the first request and kept.
    ///
    /// # Errors
    /// If the backend compiles no source, no compiler is found, or the source has a mistake.
    fn function(&self, device: u16, source: &'static DeviceSource, instance: &str) -> Result<FunctionId> {
        _ = instance;
        Err(Error::not_implemented(format!(
            "the memory of device {device} compiles no kernels: {}",
            source.name
        ))
        .with_help("link a crate whose backend compiles them, or use the CPU"))
    }

    /// Launches a kernel, with parameters that are read before it returns.
    ///
    /// # Errors
    /// If the backend launches no kernels, the number or a size of the parameters is not the kernel's, the grid exceeds the
    /// device's limits, or errors of the device.
    ///
    /// # Safety
    /// The function is of the queue's device, the values have the types of its parameters, and the memory that it
    /// accesses stays valid until the stream has passed this request.
    unsafe fn launch(
        &self,
        queue: Queue,
        function: FunctionId,
        grid: Grid,
        parameters: &[KernelParameter<'_>],
    ) -> Result<()> {
        _ = (function, grid, parameters);
        Err(Error::not_implemented(format!("the memory of device {} launches no kernels", queue.device))
            .with_help("link a crate whose backend launches them, or use the CPU"))
    }

    /// Submits a product to a library of the device's vendor, if there is one that computes it, and returns whether it did: if
    /// not, nothing was written, and the caller's own kernel has to.
    ///
    /// # Errors
    /// If a library that the user named cannot be used, or errors of the library or the device.
    ///
    /// # Safety
    /// All operands are in memory of the queue's device, which stays valid until the stream has passed this request, and none
    /// overlaps the result.
    unsafe fn product(&self, queue: Queue, product: &LibraryProduct<'_>) -> Result<bool> {
        _ = (queue, product);
        Ok(false)
    }

    /// Submits a convolution to a library of the device's vendor, if there is one that computes it, and returns whether it did: if
    /// not, nothing was written.
    ///
    /// # Errors
    /// As [`DeviceRuntime::product`].
    ///
    /// # Safety
    /// As for [`DeviceRuntime::product`].
    unsafe fn convolution(&self, queue: Queue, convolution: &LibraryConvolution<'_>) -> Result<bool> {
        _ = (queue, convolution);
        Ok(false)
    }

    /// Whether the device itself multiplies tiles of 16-bit floats, by PTX's `mma` of 16 x 8 x 16 elements.
    ///
    /// # Errors
    /// If there is no such device.
    fn has_tensor_cores(&self, device: u16) -> Result<bool> {
        _ = device;
        Ok(false)
    }

    /// Whether a library of the device's vendor computes Fourier transforms, so that a caller need not move numbers in vain.
    ///
    /// # Errors
    /// If a library that the user named cannot be used.
    fn has_transforms(&self) -> Result<bool> {
        Ok(false)
    }

    /// Submits Fourier transforms to a library of the device's vendor, if there is one that computes them, and returns whether it
    /// did: if not, nothing was written.
    ///
    /// # Errors
    /// As [`DeviceRuntime::product`].
    ///
    /// # Safety
    /// Both sides have the described numbers in memory of the queue's device, which stays valid until the stream has passed this
    /// request, and do not overlap.
    unsafe fn transform(&self, queue: Queue, transform: &LibraryTransform<'_>) -> Result<bool> {
        _ = (queue, transform);
        Ok(false)
    }

    /// Records the work that this thread submits to a stream from now on, instead of running it. Until
    /// [`DeviceRuntime::end_capture`], a request that cannot be part of a record is an error: a wait, a copy from or to the host, a
    /// kernel that is not compiled yet, and to follow work of another stream that this one does not follow already. Memory that is
    /// allocated meanwhile belongs to the record, although its owner may release it.
    ///
    /// # Errors
    /// If the backend records no work, or this thread records already.
    fn begin_capture(&self, queue: Queue) -> Result<()> {
        Err(Error::not_implemented(format!("the backend of device {} records no work", queue.device))
            .with_help("submit the work each time"))
    }

    /// Ends the record that this thread began; it is dropped if `keep` is false, as after an error.
    ///
    /// # Errors
    /// If work could not be recorded, or errors of the device.
    fn end_capture(&self, queue: Queue, keep: bool) -> Result<Option<CaptureId>> {
        _ = keep;
        Err(Error::not_implemented(format!("the backend of device {} records no work", queue.device)))
    }

    /// Submits recorded work to a stream.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// The record is of the queue's device. The memory that its work accesses, other than its own, is valid until the stream has
    /// passed this request.
    unsafe fn replay(&self, queue: Queue, capture: CaptureId) -> Result<()> {
        _ = capture;
        Err(Error::not_implemented(format!("the backend of device {} records no work", queue.device)))
    }

    /// Ends the use of a record, whose last replay is before a point: its memory is reused after that.
    fn release_capture(&self, device: u16, capture: CaptureId, last_use: Ticket) {
        _ = (device, capture, last_use);
    }
}

/// The runtime of a backend, as a linked crate registers it.
pub struct RegisteredBackend {
    /// The family of devices.
    pub backend: Backend,
    /// The implementation of their memory and movement.
    pub runtime: &'static dyn DeviceRuntime,
    /// Whether it replaces another of the family, as one for tests does.
    pub replaces: bool,
}

inventory::collect!(RegisteredBackend);

/// Registers the runtime of a backend for the whole program; `replacing` one of another crate, if it begins so.
#[macro_export]
macro_rules! __register_backend {
    ($backend:expr, $runtime:expr) => {
        $crate::__register_backend! { @ $backend, $runtime, false }
    };
    (replacing $backend:expr, $runtime:expr) => {
        $crate::__register_backend! { @ $backend, $runtime, true }
    };
    (@ $backend:expr, $runtime:expr, $replaces:literal) => {
        $crate::inventory::submit! {
            $crate::backend::RegisteredBackend { backend: $backend, runtime: $runtime, replaces: $replaces }
        }
    };
}
pub use crate::__register_backend as register;

/// The runtime of a device's backend.
///
/// # Errors
/// If no crate for the backend is linked into the program, or two are.
pub fn of(device: Device) -> Result<&'static dyn DeviceRuntime> {
    let all = inventory::iter::<RegisteredBackend>;
    let of_family = || all().filter(|registered| registered.backend == device.backend);
    let replaced = of_family().any(|registered| registered.replaces);
    let mut found = of_family().filter(|registered| registered.replaces == replaced);
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
        .with_help("use the CPU, or for CUDA the feature `cuda` of `opsmith`")),
    }
}
