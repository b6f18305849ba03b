//! Work of this thread in a stream of other code, such as the current stream of another library.
//!
//! In: a device, and the handle of a stream. Out: a guard, during which all work of this thread on the device is in that stream, so
//! that neither side waits for the other. Must not know the other code.

use std::marker::PhantomData;

use super::{DeviceRuntime, Queue, StreamId, submit_held};
use crate::device::Device;
use crate::error::Result;

/// Work of this thread on a device is in a stream of other code until this is dropped.
#[must_use = "the stream is left when the guard is dropped"]
pub struct ForeignStream {
    runtime: &'static dyn DeviceRuntime,
    queue: Queue,
    before: StreamId,
    /// Streams are those of a thread.
    _of_this_thread: PhantomData<*const ()>,
}

impl ForeignStream {
    /// Enters a stream, after the work that this thread held back.
    ///
    /// # Errors
    /// Those of [`DeviceRuntime::enter_stream`], and of that work.
    ///
    /// # Safety
    /// As of [`DeviceRuntime::enter_stream`].
    pub unsafe fn enter(device: Device, stream: StreamId) -> Result<ForeignStream> {
        submit_held()?;
        let runtime = super::of(device)?;
        let queue = Queue { device: device.index, stream };
        // SAFETY: the caller's promise.
        let before = unsafe { runtime.enter_stream(queue)? };
        Ok(ForeignStream { runtime, queue, before, _of_this_thread: PhantomData })
    }

    /// The stream.
    pub fn queue(&self) -> Queue {
        self.queue
    }

    /// Leaves the stream, after the work that this thread held back.
    ///
    /// # Errors
    /// Errors of that work.
    pub fn leave(self) -> Result<()> {
        submit_held()
    }
}

impl Drop for ForeignStream {
    fn drop(&mut self) {
        // The call that held work back has failed, and reports its own error.
        _ = submit_held();
        let queue = Queue { device: self.queue.device, stream: self.before };
        // SAFETY: it is the stream that this thread had before. An error would be that of a device that lost its context, which every
        // later call reports.
        _ = unsafe { self.runtime.enter_stream(queue) };
    }
}
