//! What a thread asks of a device in one go: its stream, and the uses of memory that come before and after.
//!
//! In: a device, and the points that the work must come after. Out: a queue for it, and the point at which it is done.
//! Must know no storage.

use super::{DeviceRuntime, Queue, Ticket};
use crate::device::Device;
use crate::error::Result;

/// Work of this thread on one device.
pub struct Work {
    runtime: &'static dyn DeviceRuntime,
    queue: Queue,
}

impl Work {
    /// Work on a device, in this thread's stream of it.
    ///
    /// # Errors
    /// If the device is not there.
    pub fn on(device: Device) -> Result<Work> {
        let runtime = super::of(device)?;
        let queue = Queue { device: device.index, stream: runtime.stream(device.index)? };
        Ok(Work { runtime, queue })
    }

    /// Work in a queue of a runtime.
    #[cfg(all(loom, test))]
    pub(crate) fn of_queue(runtime: &'static dyn DeviceRuntime, queue: Queue) -> Work {
        Work { runtime, queue }
    }

    /// The backend's memory and movement.
    pub fn runtime(&self) -> &'static dyn DeviceRuntime {
        self.runtime
    }

    /// The stream that the work is asked of.
    pub fn queue(&self) -> Queue {
        self.queue
    }

    /// Lets what is asked for from here on wait for a point of another stream.
    ///
    /// # Errors
    /// If the device refuses.
    pub fn follow(&self, ticket: Ticket) -> Result<()> {
        if ticket == Ticket::default() { Ok(()) } else { self.runtime.follow(self.queue, ticket) }
    }

    /// The point at which the work is done that was asked for so far.
    ///
    /// # Errors
    /// If the device refuses.
    pub fn ticket(&self) -> Result<Ticket> {
        self.runtime.ticket(self.queue)
    }

    /// Waits until the work is done that was asked for so far.
    ///
    /// # Errors
    /// Whatever failed on the device.
    pub fn wait(&self) -> Result<()> {
        self.runtime.wait(self.queue.device, self.ticket()?)
    }
}
