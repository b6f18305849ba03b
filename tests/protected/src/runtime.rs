//! The implementation of the backend interface.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

use opsmith_runtime::backend::{Address, DeviceRuntime, Elements, HostMemory, Queue, StreamId, Ticket};
use opsmith_runtime::copy::{accumulate_elements, convert_elements, fill_elements};
use opsmith_runtime::{DType, Error, Result, Scalar};

use crate::memory::{self, Open};
use crate::stream;

/// Number of devices.
pub const DEVICES: u16 = 2;

struct Protected;

opsmith_runtime::backend::register!(replacing crate::BACKEND, &Protected);

/// An address that another thread may use later.
#[derive(Clone, Copy)]
struct Start(*mut u8);

// SAFETY: a request's caller promises exclusive use of the memory until the work is done.
unsafe impl Send for Start {}

/// Owned description of elements.
struct Owned {
    start: Start,
    dtype: DType,
    sizes: Vec<i64>,
    strides: Vec<i64>,
}

impl Owned {
    fn new(elements: Elements<'_>) -> Owned {
        let Elements { start, dtype, sizes, strides } = elements;
        Owned { start: Start(start), dtype, sizes: sizes.to_vec(), strides: strides.to_vec() }
    }

    fn elements(&self) -> Elements<'_> {
        Elements { start: self.start.0, dtype: self.dtype, sizes: &self.sizes, strides: &self.strides }
    }
}

// SAFETY: memory is a new mapping, work runs in order before a wait for a later point returns, and host bytes are
// copied immediately, or written while the stream is waited for.
unsafe impl DeviceRuntime for Protected {
    fn allocate(&self, device: u16, bytes: usize) -> Result<NonNull<u8>> {
        check(device)?;
        memory::allocate(bytes).ok_or_else(|| Error::memory(format!("the device has no {bytes} bytes")))
    }

    unsafe fn release(&self, _: u16, memory: NonNull<u8>, _: usize, last_use: Ticket) {
        stream::pass(last_use);
        memory::free(memory);
    }

    fn host_memory(&self) -> Option<&'static dyn HostMemory> {
        Some(&Protected)
    }

    unsafe fn transfer(&self, queue: Queue, to: Address, from: Address, bytes: usize) -> Result<()> {
        let (target, source) = (Start(to.start), Start(from.start));
        if from.device.backend != crate::BACKEND {
            // SAFETY: the caller's promise: this number of host bytes is valid, and they are read immediately.
            let bytes = unsafe { std::slice::from_raw_parts(source.0, bytes) }.to_vec();
            stream::ask(queue.stream, move || {
                let target = target;
                let _open = Open::new([target.0].into_iter());
                // SAFETY: the caller's promise, and the memory is open.
                unsafe { target.0.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                Ok(())
            });
            return Ok(());
        }
        stream::ask(queue.stream, move || {
            let (target, source) = (target, source);
            let _open = Open::new([target.0, source.0].into_iter());
            // SAFETY: the caller's promise, and the memory of both is open.
            unsafe { target.0.copy_from_nonoverlapping(source.0, bytes) };
            Ok(())
        });
        Ok(())
    }

    unsafe fn convert(&self, queue: Queue, to: Elements<'_>, from: Elements<'_>) -> Result<()> {
        let (to, from) = (Owned::new(to), Owned::new(from));
        stream::ask(queue.stream, move || {
            let _open = Open::new([to.start.0, from.start.0].into_iter());
            // SAFETY: the caller's promise, and the memory is open.
            unsafe { convert_elements(to.elements(), from.elements()) }
        });
        Ok(())
    }

    unsafe fn fill(&self, queue: Queue, to: Elements<'_>, value: Scalar) -> Result<()> {
        let to = Owned::new(to);
        stream::ask(queue.stream, move || {
            let _open = Open::new([to.start.0].into_iter());
            // SAFETY: the caller's promise, and the memory is open.
            unsafe { fill_elements(to.elements(), value) }
        });
        Ok(())
    }

    unsafe fn accumulate(&self, queue: Queue, to: Elements<'_>, from: Elements<'_>) -> Result<()> {
        let (to, from) = (Owned::new(to), Owned::new(from));
        stream::ask(queue.stream, move || {
            let _open = Open::new([to.start.0, from.start.0].into_iter());
            // SAFETY: the caller's promise, and the memory of both is open.
            unsafe { accumulate_elements(to.elements(), from.elements()) }
        });
        Ok(())
    }

    fn stream(&self, device: u16) -> Result<StreamId> {
        check(device)?;
        Ok(stream::own())
    }

    fn ticket(&self, queue: Queue) -> Result<Ticket> {
        Ok(stream::ticket(queue.stream))
    }

    fn follow(&self, queue: Queue, ticket: Ticket) -> Result<()> {
        if ticket.0 >> 48 != queue.stream.0 {
            stream::pass(ticket);
        }
        Ok(())
    }

    fn wait(&self, _: u16, ticket: Ticket) -> Result<()> {
        stream::reach(ticket)
    }
}

/// The layout of pinned memory, which is the host's and open at any time.
fn pinned(bytes: usize) -> Result<Layout> {
    Layout::from_size_align(bytes.max(1), 64)
        .map_err(|_| Error::memory(format!("the host has no {bytes} bytes")))
}

// SAFETY: memory is the allocator's; copies run in order before a wait for a later point returns.
unsafe impl HostMemory for Protected {
    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        // SAFETY: the layout has at least one byte.
        let start = unsafe { alloc(pinned(bytes)?) };
        let start =
            NonNull::new(start).ok_or_else(|| Error::memory(format!("the host has no {bytes} bytes")))?;
        // SAFETY: the memory is new, with as many bytes.
        unsafe { start.as_ptr().write_bytes(memory::CONTENT, bytes) };
        Ok(start)
    }

    unsafe fn release(&self, memory: NonNull<u8>, bytes: usize, last_use: Ticket) {
        stream::pass(last_use);
        // SAFETY: the caller's promise; the layout was valid before.
        unsafe { dealloc(memory.as_ptr(), pinned(bytes).expect("a layout that was allocated")) };
    }

    unsafe fn transfer(&self, queue: Queue, to: Address, from: Address, bytes: usize) -> Result<()> {
        let (target, source) = (Start(to.start), Start(from.start));
        stream::ask(queue.stream, move || {
            let (target, source) = (target, source);
            let _open = Open::new([target.0, source.0].into_iter());
            // SAFETY: the caller's promise, and the memory of both is open.
            unsafe { target.0.copy_from_nonoverlapping(source.0, bytes) };
            Ok(())
        });
        Ok(())
    }

    fn wait(&self, point: Ticket) -> Result<()> {
        stream::pass(point);
        Ok(())
    }
}

fn check(device: u16) -> Result<()> {
    if device < DEVICES {
        return Ok(());
    }
    Err(Error::device(format!("there is no device {device}"))
        .with_help(format!("there are {DEVICES}, from 0")))
}
