//! Working memory of a library's request, from the allocator, released in the order of the stream.
//!
//! In: a stream, and a number of bytes. Out: an address. Must not know libraries.

use std::ptr::{NonNull, null_mut};

use opsmith_runtime::Result;

use crate::movement::Place;
use crate::stream;

/// Working memory for requests of a stream.
pub struct Workspace {
    place: Place,
    memory: Option<NonNull<u8>>,
}

impl Workspace {
    /// Memory of as many bytes, maybe none.
    ///
    /// # Errors
    /// If the device has not as much.
    pub fn new(place: Place, bytes: usize) -> Result<Workspace> {
        if bytes == 0 {
            return Ok(Workspace { place, memory: None });
        }
        let memory = place.device.memory.allocate(place.stream.context, bytes)?;
        let workspace = Workspace { place, memory: Some(memory) };
        // Memory is that of the thread's own stream first.
        let own = stream::own(place.stream.context)?;
        if own.number != place.stream.number {
            place.stream.follow(own.ticket())?;
        }
        Ok(workspace)
    }

    /// Its address; null for no bytes.
    pub fn start(&self) -> *mut u8 {
        self.memory.map_or(null_mut(), NonNull::as_ptr)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Some(memory) = self.memory {
            self.place.device.memory.release(memory, self.place.stream.ticket());
        }
    }
}
