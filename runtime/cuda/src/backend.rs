//! The implementation of the interface of devices.
//!
//! In: requests of the runtime. Out: work of streams. Must not know tensors.

use std::ptr::NonNull;

use opsmith_core::Backend;
use opsmith_runtime::backend::{
    Address, CaptureId, DeviceRuntime, DeviceSource, Elements, FunctionId, Grid, HostMemory, KernelParameter,
    LibraryConvolution, LibraryProduct, LibraryTransform, Mark, Queue, StreamId, Ticket,
};
use opsmith_runtime::{Error, Result, Scalar};

use crate::capture::{self, Record};
use crate::compile::Function;
use crate::device::{device, existing};
use crate::driver::{self, codes};
use crate::host_memory::Pinned;
use crate::launch;
use crate::marks;
use crate::movement::{self, Place};
use crate::properties::properties;
use crate::requests;
use crate::stream;

/// The major number of the first compute capability whose `mma` has tiles of 16 x 8 x 16 elements of 16 bits.
const FIRST_WITH_TENSOR_CORES: usize = 8;

struct Cuda;

opsmith_runtime::backend::register!(Backend::Cuda, &Cuda);

fn place(queue: Queue) -> Result<Place> {
    Ok(Place { device: device(queue.device)?, stream: stream::of(queue)? })
}

// SAFETY: blocks of the allocator do not overlap, and are reused in the order of streams; a wait returns when the driver's
// stream has passed the point; bytes of the host are copied before `transfer` returns.
unsafe impl DeviceRuntime for Cuda {
    fn model(&self, index: u16) -> String {
        properties(index).map(|properties| properties.name).unwrap_or_default()
    }

    fn allocate(&self, index: u16, bytes: usize) -> Result<NonNull<u8>> {
        let device = device(index)?;
        if let Some(start) = capture::reused(bytes) {
            return Ok(start);
        }
        capture::allocated(device, bytes, || device.memory.allocate(device.context, bytes))
    }

    unsafe fn release(&self, index: u16, memory: NonNull<u8>, _: usize, last_use: Ticket) {
        if let Some(device) = existing(index)
            && !capture::keeps(memory)
        {
            device.memory.release(memory, last_use);
        }
    }

    fn host_memory(&self) -> Option<&'static dyn HostMemory> {
        Some(&Pinned)
    }

    unsafe fn transfer(&self, queue: Queue, to: Address, from: Address, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if to.device != from.device {
            capture::refuse("a copy from or to another device")?;
        }
        let place = place(queue)?;
        let address = |address: Address| address.start.addr() as u64;
        match (to.device.backend, from.device.backend) {
            (Backend::Cuda, Backend::Cuda) if to.device == from.device => {
                // SAFETY: the caller's promise.
                unsafe { movement::copy(place, to.start, from.start, bytes) }
            }
            (Backend::Cuda, Backend::Cuda) => {
                let context = place.stream.context;
                let (target, source) =
                    (driver::context(to.device.index)?, driver::context(from.device.index)?);
                let _entered = context.enter()?;
                let peer = if target.index == context.index { source } else { target };
                context.open_peer(peer);
                let (target, source) = (target.raw(), source.raw());
                // SAFETY: the caller's promise; both contexts are retained for the life of the process.
                let code = unsafe {
                    let copy = context.api().cuMemcpyPeerAsync;
                    copy(address(to), target, address(from), source, bytes, place.stream.raw())
                };
                context.check(code, format_args!("copy {bytes} bytes to {}", to.device))
            }
            (Backend::Cuda, _) => {
                // SAFETY: the caller's promise.
                unsafe { place.device.staging.send(place.stream, address(to), from.start, bytes) }
            }
            _ => {
                // SAFETY: the caller's promise.
                unsafe { place.device.staging.receive(place.stream, to.start, address(from), bytes) }
            }
        }
    }

    unsafe fn convert(&self, queue: Queue, to: Elements<'_>, from: Elements<'_>) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { movement::convert(place(queue)?, to, from) }
    }

    unsafe fn fill(&self, queue: Queue, to: Elements<'_>, value: Scalar) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { movement::fill(place(queue)?, to, value) }
    }

    unsafe fn accumulate(&self, queue: Queue, to: Elements<'_>, from: Elements<'_>) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { movement::accumulate(place(queue)?, to, from) }
    }

    fn stream(&self, index: u16) -> Result<StreamId> {
        Ok(stream::own(driver::context(index)?)?.id())
    }

    unsafe fn enter_stream(&self, queue: Queue) -> Result<StreamId> {
        // SAFETY: the caller's promise.
        unsafe { stream::enter(driver::context(queue.device)?, queue.stream) }
    }

    fn is_foreign(&self, queue: Queue) -> bool {
        stream::of(queue).is_ok_and(|stream| stream.is_foreign)
    }

    fn ticket(&self, queue: Queue) -> Result<Ticket> {
        Ok(stream::of(queue)?.ticket())
    }

    fn follow(&self, queue: Queue, ticket: Ticket) -> Result<()> {
        stream::of(queue)?.follow(ticket)
    }

    fn wait(&self, index: u16, ticket: Ticket) -> Result<()> {
        stream::wait(ticket)?;
        existing(index).map_or(Ok(()), |device| device.check_reports())
    }

    fn submitted(&self, queue: Queue) -> Result<()> {
        if launch::is_synchronous() { stream::of(queue)?.synchronize() } else { Ok(()) }
    }

    fn mark(&self, queue: Queue) -> Result<Mark> {
        capture::refuse("a measured moment")?;
        marks::mark(stream::of(queue)?)
    }

    fn nanoseconds_between(&self, index: u16, first: Mark, second: Mark) -> Result<f64> {
        marks::nanoseconds_between(driver::context(index)?, first, second)
    }

    fn forget(&self, index: u16, mark: Mark) {
        marks::forget(index, mark);
    }

    fn function(&self, index: u16, source: &'static DeviceSource, instance: &str) -> Result<FunctionId> {
        let function = device(index)?.function(source, instance)?;
        Ok(FunctionId(std::ptr::from_ref(function).expose_provenance() as u64))
    }

    unsafe fn launch(
        &self,
        queue: Queue,
        function: FunctionId,
        grid: Grid,
        parameters: &[KernelParameter<'_>],
    ) -> Result<()> {
        let place = place(queue)?;
        let function = std::ptr::with_exposed_provenance::<Function>(function.0 as usize);
        // SAFETY: the caller's promise: the function is one of `function`, which live as long as the process.
        unsafe { launch::launch(place.stream, place.device.status()?, &*function, grid, parameters) }
    }

    unsafe fn product(&self, queue: Queue, product: &LibraryProduct<'_>) -> Result<bool> {
        // SAFETY: the caller's promise.
        unsafe { requests::product(place(queue)?, product) }
    }

    unsafe fn convolution(&self, queue: Queue, convolution: &LibraryConvolution<'_>) -> Result<bool> {
        // SAFETY: the caller's promise.
        unsafe { requests::convolution(place(queue)?, convolution) }
    }

    fn has_tensor_cores(&self, device: u16) -> Result<bool> {
        let major = driver::context(device)?.attribute(codes::COMPUTE_CAPABILITY_MAJOR)?;
        Ok(major >= FIRST_WITH_TENSOR_CORES)
    }

    fn has_transforms(&self) -> Result<bool> {
        requests::is_used()
    }

    unsafe fn transform(&self, queue: Queue, transform: &LibraryTransform<'_>) -> Result<bool> {
        // SAFETY: the caller's promise.
        unsafe { requests::transform(place(queue)?, transform) }
    }

    fn begin_capture(&self, queue: Queue) -> Result<()> {
        let place = place(queue)?;
        if place.stream.id() != stream::own(place.stream.context)?.id() {
            return Err(Error::device("a thread records the work of its own stream alone"));
        }
        capture::begin(place.device, place.stream)
    }

    fn end_capture(&self, queue: Queue, keep: bool) -> Result<Option<CaptureId>> {
        let record = capture::end(device(queue.device)?, keep)?;
        Ok(record.map(|record| CaptureId(Box::into_raw(Box::new(record)).expose_provenance() as u64)))
    }

    unsafe fn replay(&self, queue: Queue, capture: CaptureId) -> Result<()> {
        let stream = stream::of(queue)?;
        let record = std::ptr::with_exposed_provenance::<Record>(capture.0 as usize);
        // SAFETY: the record is one of `end_capture`, whose owner has not released it; the caller promises the rest.
        unsafe { (*record).replay(stream) }
    }

    fn release_capture(&self, _: u16, capture: CaptureId, last_use: Ticket) {
        let record = std::ptr::with_exposed_provenance_mut::<Record>(capture.0 as usize);
        // SAFETY: the record is one of `end_capture`, and its owner releases it once.
        let record = unsafe { Box::from_raw(record) };
        record.release(last_use);
    }
}
