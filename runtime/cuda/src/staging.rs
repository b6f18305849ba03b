//! Pinned buffers through which bytes pass between host and device.
//!
//! In: bytes of one side. Out: the same bytes on the other, copied in the order of a stream. Bytes of the host are read when the
//! function returns: copies from memory that is not pinned do not promise that, since the driver may read it later where the device
//! can access it. So every copy to the device goes through pinned buffers, which a small copy fills in well under a microsecond and a
//! large one in turns, the host filling one buffer while the device reads the other. A large copy to the host takes the same way back,
//! since the driver's own copies to memory that is not pinned do not run beside the device's. Must not know tensors.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use opsmith_runtime::Result;
use opsmith_runtime::backend::Ticket;

use crate::driver::api::DeviceAddress;
use crate::memory::pinned;
use crate::stream::{self, Stream};

/// Bytes and greatest number of buffers of each kind.
const SMALL: (usize, usize) = (64 << 10, 32);
const LARGE: (usize, usize) = (4 << 20, 4);

struct Buffer {
    start: NonNull<u8>,
    last_use: Ticket,
}

// SAFETY: pinned memory may be used from any thread, and a buffer has one user at a time.
unsafe impl Send for Buffer {}

#[derive(Default)]
struct Buffers {
    /// Buffers that are not being filled, the oldest use first.
    waiting: VecDeque<Buffer>,
    count: usize,
}

/// The buffers of one device.
#[derive(Default)]
pub struct Staging {
    small: Mutex<Buffers>,
    large: Mutex<Buffers>,
}

impl Staging {
    /// Copies bytes of the host to the device. They are read when it returns.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// Both sides have as many bytes, and the target stays valid until the stream has passed the copy.
    pub unsafe fn send(
        &self,
        stream: &Stream,
        to: DeviceAddress,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        let (buffers, limits) = if bytes <= SMALL.0 { (&self.small, SMALL) } else { (&self.large, LARGE) };
        let mut sent = 0;
        while sent < bytes {
            let part = (bytes - sent).min(limits.0);
            let mut buffer = take(stream, buffers, limits)?;
            // SAFETY: the caller's promise; the buffer has as many bytes, and no copy uses it.
            unsafe { buffer.start.as_ptr().copy_from_nonoverlapping(from.add(sent), part) };
            // SAFETY: the caller's promise; the buffer is not filled again before the copy has passed.
            let copied = unsafe { send(stream, to + sent as u64, buffer.start.as_ptr(), part) };
            buffer.last_use = stream.ticket();
            buffers.lock().unwrap_or_else(PoisonError::into_inner).waiting.push_back(buffer);
            copied?;
            sent += part;
        }
        Ok(())
    }
}

impl Staging {
    /// Copies bytes of the device to the host: a large copy is done when it returns, a small one when the stream has passed it.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// Both sides have as many bytes, and stay valid until the stream has passed the copy.
    pub unsafe fn receive(
        &self,
        stream: &Stream,
        to: *mut u8,
        from: DeviceAddress,
        bytes: usize,
    ) -> Result<()> {
        if bytes <= SMALL.0 {
            // SAFETY: the caller's promise; the driver writes host bytes before the stream has passed the copy.
            return unsafe { fetch(stream, to, from, bytes) };
        }
        let mut before: Option<(Buffer, usize, usize)> = None;
        let (mut asked, mut result) = (0, Ok(()));
        while result.is_ok() && (asked < bytes || before.is_some()) {
            let part = (bytes - asked).min(LARGE.0);
            let next = match part {
                0 => None,
                _ => take(stream, &self.large, LARGE).map_err(|error| result = Err(error)).ok(),
            };
            let next = next.map(|mut buffer| {
                // SAFETY: the caller's promise; the buffer has as many bytes, and no copy uses it.
                result = unsafe { fetch(stream, buffer.start.as_ptr(), from + asked as u64, part) };
                buffer.last_use = stream.ticket();
                (buffer, asked, part)
            });
            asked += part;
            // The host empties one buffer while the device fills the other.
            if let Some((buffer, start, part)) = std::mem::replace(&mut before, next) {
                result = result.and(stream::wait(buffer.last_use));
                if result.is_ok() {
                    // SAFETY: the copy to the buffer has passed, and the host side has as many bytes from there on.
                    unsafe { to.add(start).copy_from_nonoverlapping(buffer.start.as_ptr(), part) };
                }
                self.give_back(buffer);
            }
        }
        if let Some((buffer, ..)) = before {
            self.give_back(buffer);
        }
        result
    }

    fn give_back(&self, buffer: Buffer) {
        self.large.lock().unwrap_or_else(PoisonError::into_inner).waiting.push_back(buffer);
    }
}

/// A buffer that no copy uses: the oldest if its copy has passed, a new one, or the oldest after a wait.
fn take(stream: &Stream, buffers: &Mutex<Buffers>, (bytes, most): (usize, usize)) -> Result<Buffer> {
    let oldest = {
        let mut buffers = buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = match buffers.waiting.front() {
            Some(oldest) => stream::has_passed(oldest.last_use)?,
            None => false,
        };
        if passed || buffers.count >= most { buffers.waiting.pop_front() } else { None }
    };
    if let Some(oldest) = oldest {
        stream::wait(oldest.last_use)?;
        return Ok(oldest);
    }
    // Threads that fill all buffers at once get one more each.
    let start = pinned(stream.context, bytes)?;
    buffers.lock().unwrap_or_else(PoisonError::into_inner).count += 1;
    Ok(Buffer { start, last_use: Ticket::default() })
}

/// Asks the driver to copy bytes of pinned memory to the device.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// Both sides have as many bytes and stay valid until the stream has passed the copy.
pub unsafe fn send(stream: &Stream, to: DeviceAddress, from: *const u8, bytes: usize) -> Result<()> {
    let context = stream.context;
    let _entered = context.enter()?;
    // SAFETY: the caller's promise.
    let code = unsafe { (context.api().cuMemcpyHtoDAsync_v2)(to, from.cast(), bytes, stream.raw()) };
    context.check(code, format_args!("copy {bytes} bytes to the device"))
}

/// Asks the driver to copy bytes of the device to the host.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// Both sides have as many bytes and stay valid until the stream has passed the copy.
pub unsafe fn fetch(stream: &Stream, to: *mut u8, from: DeviceAddress, bytes: usize) -> Result<()> {
    let context = stream.context;
    let _entered = context.enter()?;
    // SAFETY: the caller's promise.
    let code = unsafe { (context.api().cuMemcpyDtoHAsync_v2)(to.cast(), from, bytes, stream.raw()) };
    context.check(code, format_args!("copy {bytes} bytes to the host"))
}
