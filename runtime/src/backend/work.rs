//! Work of a thread on a device: its stream, and its order relative to other uses of the memory.
//!
//! In: a device, and the points that the work must follow. Out: a queue for the work, and the point at which it is
//! done. Must not know storages.

use super::{DeviceRuntime, Queue, Ticket};
use crate::device::Device;
use crate::error::Result;

impl Device {
    /// Waits until the work that this thread submitted to its stream of the device is done; that of the host is, when a call
    /// returns. A program that measures time calls it before it reads the clock.
    ///
    /// # Errors
    /// If the device does not exist, and errors of that work.
    pub fn synchronize(self) -> Result<()> {
        if self == Device::CPU { Ok(()) } else { Work::on(self)?.wait() }
    }
}

/// Work of this thread on one device.
pub struct Work {
    runtime: &'static dyn DeviceRuntime,
    queue: Queue,
}

impl Work {
    /// Work on a device, in this thread's stream of it, after the work that the thread held back.
    ///
    /// # Errors
    /// If the device does not exist, and errors of that work.
    pub fn on(device: Device) -> Result<Work> {
        super::submit_held()?;
        let runtime = super::of(device)?;
        let queue = Queue { device: device.index, stream: runtime.stream(device.index)? };
        Ok(Work { runtime, queue })
    }

    /// Work in a queue of a runtime.
    pub(crate) fn of_queue(runtime: &'static dyn DeviceRuntime, queue: Queue) -> Work {
        Work { runtime, queue }
    }

    /// The backend's implementation of memory and movement.
    pub fn runtime(&self) -> &'static dyn DeviceRuntime {
        self.runtime
    }

    /// The stream of the work.
    pub fn queue(&self) -> Queue {
        self.queue
    }

    /// Makes later work wait for a point of another stream.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn follow(&self, ticket: Ticket) -> Result<()> {
        if ticket == Ticket::default() { Ok(()) } else { self.runtime.follow(self.queue, ticket) }
    }

    /// The point after all work submitted so far.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn ticket(&self) -> Result<Ticket> {
        self.runtime.ticket(self.queue)
    }

    /// Waits until all work submitted so far is done.
    ///
    /// # Errors
    /// Errors of that work.
    pub fn wait(&self) -> Result<()> {
        self.runtime.wait(self.queue.device, self.ticket()?)
    }
}
