//! One call of a kernel that runs on the device.
//!
//! In: a kernel that is ready, and operands in the device's memory, or in the host's, from which they are copied. Out:
//! outputs in the same memory. A kernel on tensors of the device is work of this thread's stream, as every operator is, with
//! workspaces of the device's allocator. A call with copies has a stream of its own and waits for its end, whatever
//! happens: until then the device may use the memory of the call. Must not know how the device is driven.

use std::ffi::c_void;

use opsmith_runtime::Device;
use opsmith_runtime::backend::{self, DeviceMemory};
use opsmith_runtime::error::{Error, Result};
use smallvec::SmallVec;

use super::super::instance::{GUARD, Instance, PADDING, overrun};
use super::driver::{Entered, Stream};
use super::memory::{self, Block};

/// Calls a kernel on tensors of a device, in this thread's stream of it; `addresses` are those of inputs (null if absent)
/// and outputs. Returns when the kernel has submitted its work.
///
/// # Errors
/// If the kernel fails, or there is no memory for workspaces. A failure of its work is that of a later wait.
///
/// # Safety
/// Each address leads to memory of the device of its slot's size; inputs may be read and outputs written by this thread's
/// stream.
#[cold]
pub(in super::super) unsafe fn run_in_stream(
    instance: &mut Instance,
    function: &str,
    addresses: &[*mut c_void],
    device: Device,
) -> Result<()> {
    let _entered = Entered::new()?;
    let work = backend::Work::on(device)?;
    if let Some((_, ticket)) = instance.last_use {
        // The kernel may have data of its own on the device, which the call before, of another thread, may still use.
        work.follow(ticket)?;
    }
    let memory = |size: &usize| DeviceMemory::new(device, *size);
    let workspaces: SmallVec<[DeviceMemory; 2]> =
        instance.workspaces().iter().map(memory).collect::<Result<_>>()?;
    let params = addresses.iter().copied().chain(workspaces.iter().map(|memory| memory.start().cast()));
    let params: SmallVec<[*mut c_void; 12]> = params.collect();
    let stream = std::ptr::with_exposed_provenance_mut(work.queue().stream.0 as usize);
    // SAFETY: every address leads to memory of the device of its slot's size, or of the size that the kernel asked for.
    let called = unsafe { instance.call(function, stream, params.into_iter()) };
    // A kernel that failed may have submitted work before.
    workspaces.iter().try_for_each(|memory| memory.note_use(&work))?;
    instance.last_use = Some((device, work.ticket()?));
    match called {
        Ok(()) => work.runtime().submitted(work.queue()).map_err(|error| during(error, function, instance)),
        Err(error) => Err(with_failure_of(error, work.wait())),
    }
}

/// Calls a kernel on tensors of the host, by copies; `addresses` are those of inputs (null if absent) and outputs.
///
/// # Errors
/// If the kernel or the device fails, there is not enough memory on it, or a workspace was overrun.
///
/// # Safety
/// Each address leads to memory of the host of its slot's size; inputs may be read and outputs written meanwhile.
#[cold]
pub(in super::super) unsafe fn run_by_copies(
    instance: &mut Instance,
    function: &str,
    addresses: &[*mut c_void],
) -> Result<()> {
    // Before the parts that wait for the device when they are dropped, so that this is there as long as the device may
    // write to it.
    let mut guards: SmallVec<[[u8; GUARD.len()]; 2]> = SmallVec::new();
    guards.resize(instance.workspaces().len(), [0; GUARD.len()]);
    let mut work = Work::new()?;
    // SAFETY: each address leads to memory of the host of its slot's size, which stays until `finish`.
    let mut params = unsafe { work.send_inputs(instance, addresses)? };
    let first_workspace = work.blocks.len();
    for size in instance.workspaces() {
        let padded = size.checked_add(PADDING + GUARD.len()).unwrap_or(usize::MAX);
        let block = work.room(padded)?;
        params.push(work.blocks[block].as_raw());
        // SAFETY: the block has room for size, padding and guard, which is a constant.
        unsafe { work.send(block, size + PADDING, &GUARD)? };
    }
    let stream = work.stream()?.as_raw();
    // SAFETY: every address leads to memory of the device of its slot's size, or of the size that the kernel asked for.
    let called = unsafe { instance.call(function, stream, params.into_iter()) };
    work.after(called)?;
    for (index, (size, guard)) in instance.workspaces().iter().zip(&mut guards).enumerate() {
        // SAFETY: the block of a workspace ends with the guard; `guards` is read after `finish`.
        unsafe { work.fetch(first_workspace + index, size + PADDING, guard)? };
    }
    // SAFETY: as of `send_inputs`; outputs are read when the call has ended.
    unsafe { work.fetch_outputs(instance, addresses)? };
    work.finish().map_err(|error| during(error, function, instance))?;
    match guards.iter().position(|guard| *guard != GUARD) {
        None => Ok(()),
        Some(index) => Err(overrun(function, &instance.library.source, index, instance.workspaces()[index])),
    }
}

/// An operand with the guards around it.
pub(in super::super) struct Image<'a> {
    /// All of it; afterwards as the kernel left it.
    pub bytes: &'a mut [u8],
    /// Where the operand starts in it.
    pub start: usize,
    /// Whether the kernel gets its address, or null.
    pub given: bool,
}

/// Calls a kernel with operands among other bytes: all are copied to the device, and all back.
///
/// # Errors
/// If the kernel or the device fails, or there is not enough memory on it.
///
/// # Safety
/// The operands have the sizes of the kernel's slots, and of its workspaces.
pub(in super::super) unsafe fn run_on_images(
    instance: &mut Instance,
    function: &str,
    images: &mut [Image<'_>],
) -> Result<()> {
    let mut work = Work::new()?;
    let mut params: Vec<*mut c_void> = Vec::new();
    for image in images.iter() {
        let block = work.room(image.bytes.len())?;
        // SAFETY: the block has the image's size, and the image stays until `finish`.
        unsafe { work.send(block, 0, image.bytes)? };
        params.push(match image.given {
            true => work.blocks[block].as_raw().wrapping_byte_add(image.start),
            false => std::ptr::null_mut(),
        });
    }
    let stream = work.stream()?.as_raw();
    // SAFETY: an address is that of an operand within its image's block, of the size of the kernel's slot or workspace.
    let called = unsafe { instance.call(function, stream, params.into_iter()) };
    work.after(called)?;
    for (block, image) in images.iter_mut().enumerate() {
        // SAFETY: the block has the image's size; the image is not read before `finish`.
        unsafe { work.fetch(block, 0, image.bytes)? };
    }
    work.finish().map_err(|error| during(error, function, instance))
}

/// An error of the device with the kernel that it ran.
#[cold]
fn during(error: Error, function: &str, instance: &Instance) -> Error {
    error.with_note(format!("it ran the kernel `{function}` ({})", instance.library.source.display()))
}

/// The error of a kernel with the failure of the device, if it failed too, which says more.
#[cold]
fn with_failure_of(error: Error, device: Result<()>) -> Error {
    let Err(said) = device else { return error };
    let error = error.with_note(said.message().to_owned());
    said.notes().iter().fold(error, |error, note| error.with_note(note.clone()))
}

/// The blocks and the stream of a call by copies.
struct Work {
    blocks: SmallVec<[Block; 8]>,
    /// There until it is given back.
    stream: Option<Stream>,
    finished: bool,
    entered: Entered,
}

impl Work {
    fn new() -> Result<Work> {
        let entered = Entered::new()?;
        let stream = Some(memory::stream(&entered)?);
        Ok(Work { blocks: SmallVec::new(), stream, finished: true, entered })
    }

    fn stream(&self) -> Result<&Stream> {
        self.stream.as_ref().ok_or_else(|| Error::device("the call has given its stream back"))
    }

    /// Copies the inputs to blocks of their own, and makes blocks for the outputs, in the order of the slots that are
    /// there; the addresses, null for an input that is absent.
    ///
    /// # Safety
    /// Each address of an input leads to memory of the host of its slot's size, which stays until [`Work::finish`].
    unsafe fn send_inputs(
        &mut self,
        instance: &Instance,
        addresses: &[*mut c_void],
    ) -> Result<SmallVec<[*mut c_void; 12]>> {
        let mut params = SmallVec::new();
        for (index, (slot, address)) in instance.shape.slots.iter().zip(addresses).enumerate() {
            if slot.dtype.is_none() {
                params.push(std::ptr::null_mut());
                continue;
            }
            let block = self.room(slot.bytes())?;
            params.push(self.blocks[block].as_raw());
            if index < instance.shape.inputs && slot.bytes() > 0 {
                // SAFETY: the address leads to as many bytes, which stay, by this function's contract; the block has
                // room for them.
                unsafe {
                    let bytes = std::slice::from_raw_parts(address.cast::<u8>(), slot.bytes());
                    self.send(block, 0, bytes)?;
                }
            }
        }
        Ok(params)
    }

    /// Copies the outputs back, from the blocks that [`Work::send_inputs`] made.
    ///
    /// # Safety
    /// Each address of an output leads to memory of the host of its slot's size that is not read before
    /// [`Work::finish`].
    unsafe fn fetch_outputs(&mut self, instance: &Instance, addresses: &[*mut c_void]) -> Result<()> {
        let slots = instance.shape.slots.iter().zip(addresses).enumerate();
        for (block, (index, (slot, address))) in
            slots.filter(|(_, (slot, _))| slot.dtype.is_some()).enumerate()
        {
            if index >= instance.shape.inputs && slot.bytes() > 0 {
                // SAFETY: the address leads to as many bytes that are not read, by this function's contract, and the
                // block has as many.
                unsafe {
                    let bytes = std::slice::from_raw_parts_mut(address.cast::<u8>(), slot.bytes());
                    self.fetch(block, 0, bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Room for so many bytes; the number of its block.
    fn room(&mut self, bytes: usize) -> Result<usize> {
        self.blocks.push(Block::new(bytes, &self.entered)?);
        Ok(self.blocks.len() - 1)
    }

    /// # Safety
    /// The block has room for the bytes there, which stay until [`Work::finish`].
    unsafe fn send(&mut self, block: usize, offset: usize, from: &[u8]) -> Result<()> {
        self.finished = false;
        // SAFETY: the block has room for the bytes there, and they stay until `finish`, by this function's contract.
        unsafe { self.stream()?.send(self.blocks[block].address() + offset as u64, from) }
    }

    /// # Safety
    /// The block has as many bytes there, and `to` is not read before [`Work::finish`].
    unsafe fn fetch(&mut self, block: usize, offset: usize, to: &mut [u8]) -> Result<()> {
        self.finished = false;
        // SAFETY: the block has as many bytes there, and `to` stays until `finish`, by this function's contract.
        unsafe { self.stream()?.fetch(to, self.blocks[block].address() + offset as u64) }
    }

    /// The result of a kernel that has returned: its work on the stream may still run. If it failed, so
    /// may the device have, which says more.
    fn after(&mut self, called: Result<()>) -> Result<()> {
        self.finished = false;
        called.map_err(|error| with_failure_of(error, self.finish()))
    }

    /// Waits until everything is done.
    fn finish(&mut self) -> Result<()> {
        self.finished = true;
        self.stream()?.wait()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.finished {
            // The call fails already, for a reason that came before.
            _ = self.finish();
        }
        self.blocks.drain(..).for_each(Block::give_back);
        self.stream.take().into_iter().for_each(memory::give_back);
    }
}
