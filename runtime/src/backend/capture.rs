//! Recorded work of a device, owned by the program that replays it.
//!
//! In: work that this thread submits between the beginning and the end of a recording. Out: a [`Capture`], which submits it as a
//! whole. A recording that is dropped without an end records nothing. Must not know tensors.

use std::marker::PhantomData;

use super::{CaptureId, DeviceRuntime, Ticket, Work};
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicU64, Ordering};

/// The work of this thread on a device, recorded instead of run as long as the value lives.
pub struct Recording<'a> {
    work: &'a Work,
    /// A recording belongs to its thread.
    of_thread: PhantomData<*const ()>,
}

impl<'a> Recording<'a> {
    /// Begins to record.
    ///
    /// # Errors
    /// If the backend records no work, or this thread records already.
    pub fn begin(work: &'a Work) -> Result<Recording<'a>> {
        work.runtime().begin_capture(work.queue())?;
        Ok(Recording { work, of_thread: PhantomData })
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// If a part of the work could not be recorded, or errors of the device.
    pub fn end(self) -> Result<Capture> {
        let (runtime, queue) = (self.work.runtime(), self.work.queue());
        std::mem::forget(self);
        let id = runtime.end_capture(queue, true)?;
        let id = id.ok_or_else(|| Error::device("the backend kept no record of the work"))?;
        Ok(Capture { runtime, device: queue.device, id, last_use: AtomicU64::new(0) })
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        // The recording failed already, and its error says why.
        _ = self.work.runtime().end_capture(self.work.queue(), false);
    }
}

/// Recorded work of a device.
pub struct Capture {
    runtime: &'static dyn DeviceRuntime,
    device: u16,
    id: CaptureId,
    last_use: AtomicU64,
}

impl Capture {
    /// Submits the work to this thread's stream.
    ///
    /// # Errors
    /// If the stream is of another device, and errors of the device.
    ///
    /// # Safety
    /// The memory that the work accesses is valid until the stream has passed it, and its other uses are before it.
    pub unsafe fn replay(&self, work: &Work) -> Result<()> {
        if work.queue().device != self.device {
            return Err(Error::device(format!(
                "work of device {} cannot run on device {}",
                self.device,
                work.queue().device
            )));
        }
        work.follow(Ticket(self.last_use.load(Ordering::Acquire)))?;
        // SAFETY: the record is of this device; the caller promises the rest.
        unsafe { self.runtime.replay(work.queue(), self.id)? };
        self.last_use.store(work.ticket()?.0, Ordering::Release);
        Ok(())
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.runtime.release_capture(self.device, self.id, Ticket(self.last_use.load(Ordering::Acquire)));
    }
}
