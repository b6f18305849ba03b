//! Capture of a thread's work, and its replay: the driver's graphs.
//!
//! In: the work of a thread's stream between two calls. Out: a record that the driver submits as a whole. Must not know the
//! interface of devices.
//!
//! While a thread records, other threads cannot take events of its stream, since the driver would make them points of the record:
//! the lock on the stream's events is held. Requests that no record can contain are refused here, before the driver is asked, so
//! that the error names them; [`refuse`] is called where a request begins.
//!
//! Memory that is allocated meanwhile belongs to the record: its addresses are in the recorded work. Blocks that their owners
//! release serve later allocations of the same record, in the order of the stream.

use std::cell::RefCell;
use std::fmt;
use std::ptr::{NonNull, null_mut};

use opsmith_runtime::backend::Ticket;
use opsmith_runtime::{Error, Result};

use crate::device::{Device, existing};
use crate::driver::api::{Graphs, Handle};
use crate::driver::codes;
use crate::launch::is_synchronous;
use crate::stream::{self, Held, Stream};

/// A block of device memory.
struct Block {
    start: NonNull<u8>,
    bytes: usize,
}

/// The record that a thread makes.
struct Session {
    stream: &'static Stream,
    /// All blocks that were allocated.
    blocks: Vec<Block>,
    /// Those that their owners released, as positions in `blocks`.
    free: Vec<usize>,
    _events: Held,
}

/// Recorded work.
pub struct Record {
    executable: Handle,
    device: &'static Device,
    blocks: Vec<Block>,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Refuses a request that cannot be recorded.
///
/// # Errors
/// If this thread records.
pub fn refuse(what: impl fmt::Display) -> Result<()> {
    if !stream::is_recording() {
        return Ok(());
    }
    Err(Error::device(format!("work that is recorded cannot contain {what}"))
        .with_help("submit the work each time"))
}

fn functions(device: &Device) -> Result<&'static Graphs> {
    device.context.api().graphs().ok_or_else(|| {
        Error::not_implemented(format!("the driver of device {} has no graphs", device.context.index))
            .with_help("install a newer driver, or submit the work each time")
    })
}

/// Begins to record the work that this thread submits to its stream.
///
/// # Errors
/// If it records already, the driver has no graphs, or every launch is waited for.
pub fn begin(device: &'static Device, stream: &'static Stream) -> Result<()> {
    refuse("another record")?;
    if is_synchronous() {
        return Err(Error::device("work is not recorded while each launch is waited for")
            .with_help("unset OPSMITH_CUDA_SYNC"));
    }
    let graphs = functions(device)?;
    let _entered = device.context.enter()?;
    let events = stream.hold_events();
    // SAFETY: the context is entered, and the stream is one of it.
    let code = unsafe { (graphs.cuStreamBeginCapture_v2)(stream.raw(), codes::CAPTURE_THREAD_LOCAL) };
    device.context.check(code, "begin to record work")?;
    stream::set_recording(true);
    SESSION.set(Some(Session { stream, blocks: Vec::new(), free: Vec::new(), _events: events }));
    Ok(())
}

/// Ends the record of this thread.
///
/// # Errors
/// If the thread does not record, a part of the work could not be recorded, or memory of the record is still in use.
pub fn end(device: &'static Device, keep: bool) -> Result<Option<Record>> {
    let session = SESSION.take().ok_or_else(|| Error::device("this thread records no work"))?;
    stream::set_recording(false);
    let ended = finish(device, &session, keep);
    let Session { stream, blocks, free, _events } = session;
    drop(_events);
    match ended {
        Ok(Some(executable)) => Ok(Some(Record { executable, device, blocks })),
        other => {
            // Owners release the others themselves.
            for position in free {
                device.memory.release(blocks[position].start, stream.ticket());
            }
            other.map(|_| None)
        }
    }
}

fn finish(device: &'static Device, session: &Session, keep: bool) -> Result<Option<Handle>> {
    let (context, graphs) = (device.context, functions(device)?);
    let _entered = context.enter()?;
    let mut graph = null_mut();
    // SAFETY: the context is entered, this thread began the record, and the result is a local variable.
    let code = unsafe { (graphs.cuStreamEndCapture)(session.stream.raw(), &mut graph) };
    let ended = context.check(code, "end a record of work");
    if graph.is_null() {
        return ended.map(|()| None);
    }
    let mut executable = null_mut();
    let in_use = session.blocks.len() - session.free.len();
    let made = match () {
        () if !keep => Ok(()),
        () if in_use > 0 => {
            Err(Error::device(format!("{in_use} blocks of memory of recorded work are used beyond it")))
        }
        () => {
            // SAFETY: the graph was made just now, and the result is a local variable.
            let code = unsafe { (graphs.cuGraphInstantiateWithFlags)(&mut executable, graph, 0) };
            context.check(code, "prepare recorded work")
        }
    };
    // SAFETY: the executable graph is a copy, and no other user has the graph.
    _ = unsafe { (graphs.cuGraphDestroy)(graph) };
    ended.and(made)?;
    Ok((!executable.is_null()).then_some(executable))
}

/// Memory for the record of this thread; `None` if it makes none, or has no free block of this size.
pub fn reused(bytes: usize) -> Option<NonNull<u8>> {
    if !stream::is_recording() {
        return None;
    }
    SESSION.with_borrow_mut(|session| {
        let session = session.as_mut()?;
        let fits =
            |position: &usize| (bytes..=bytes.saturating_mul(2)).contains(&session.blocks[*position].bytes);
        let found = session.free.iter().position(fits)?;
        Some(session.blocks[session.free.swap_remove(found)].start)
    })
}

/// Memory that is allocated by a function: it belongs to the record of this thread, if it makes one.
///
/// # Errors
/// Errors of the function.
pub fn allocated(
    device: &'static Device,
    bytes: usize,
    allocate: impl FnOnce() -> Result<NonNull<u8>>,
) -> Result<NonNull<u8>> {
    if !stream::is_recording() {
        return allocate();
    }
    let graphs = functions(device)?;
    let mut mode = codes::CAPTURE_RELAXED;
    // SAFETY: the mode is a local variable. A new segment is no part of the record.
    unsafe { (graphs.cuThreadExchangeStreamCaptureMode)(&mut mode) };
    let start = allocate();
    // SAFETY: as above; the former mode is set again.
    unsafe { (graphs.cuThreadExchangeStreamCaptureMode)(&mut mode) };
    let start = start?;
    SESSION.with_borrow_mut(|session| {
        if let Some(session) = session {
            session.blocks.push(Block { start, bytes });
        }
    });
    Ok(start)
}

/// Keeps a block that its owner releases, if it belongs to the record of this thread; whether it does.
pub fn keeps(start: NonNull<u8>) -> bool {
    stream::is_recording()
        && SESSION.with_borrow_mut(|session| {
            let Some(session) = session else { return false };
            let found = session.blocks.iter().position(|block| block.start == start);
            session.free.extend(found);
            found.is_some()
        })
}

impl Record {
    /// Submits the work to a stream of its device.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// The memory that the work accesses, other than its own, stays valid until the stream has passed it.
    pub unsafe fn replay(&self, stream: &Stream) -> Result<()> {
        refuse("another record")?;
        let (context, graphs) = (self.device.context, functions(self.device)?);
        let _entered = context.enter()?;
        // SAFETY: the executable graph lives as long as the record; the caller promises the rest.
        let code = unsafe { (graphs.cuGraphLaunch)(self.executable, stream.raw()) };
        context.check(code, "submit recorded work")
    }

    /// Ends the use of the work, after its last replay.
    pub fn release(self, last_use: Ticket) {
        let index = self.device.context.index;
        // In a copy of the process, nothing of the driver is used.
        if existing(index).is_none() {
            return;
        }
        _ = stream::wait(last_use);
        if let (Ok(graphs), Ok(_entered)) = (functions(self.device), self.device.context.enter()) {
            // SAFETY: the work is done, and this was its last user.
            _ = unsafe { (graphs.cuGraphExecDestroy)(self.executable) };
        }
        for block in self.blocks {
            self.device.memory.release(block.start, last_use);
        }
    }
}
