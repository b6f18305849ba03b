//! Streams, one for each thread and device, and points in them.
//!
//! In: contexts; points to pass, follow and wait for. Out: the driver's streams and events. Must not know memory or
//! kernels.
//!
//! ```text
//! ticket = number of the stream (16 bits) · number of tickets issued before on it (48 bits)
//!
//! stream   ──work──①──work──②──work──┬─ event, recorded at the first request for ① or ②: covers both
//! other    ──────────follow(②)───────▼── waits for the event
//! ```
//!
//! A ticket is a counter, so that noting a use of memory costs no call of the driver. An event is recorded when another
//! stream follows the ticket, the host waits for it, or the allocator asks whether it has passed. That is later than the
//! ticket, so the event covers it. Streams are never destroyed: that of a thread that ended serves the next new thread.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::ffi::c_uint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use opsmith_runtime::backend::{Queue, StreamId, Ticket};
use opsmith_runtime::{Error, Result};

use crate::driver::api::Handle;
use crate::driver::{Context, codes};
use crate::ticket::{count_of, number_of, ticket};

/// Events of a stream that may be pending at once; beyond, the newest is recorded again.
const PENDING: usize = 8;

/// A stream of a device.
pub struct Stream {
    /// The context of the device.
    pub context: &'static Context,
    /// Its number among all streams, from 1.
    pub number: u16,
    raw: Handle,
    /// Number of tickets issued.
    issued: AtomicU64,
    /// The latest ticket known to have passed.
    passed: AtomicU64,
    events: Mutex<Events>,
    /// The latest ticket of each other stream, by its number, that this one follows.
    followed: Mutex<HashMap<u16, u64>>,
}

/// The lock on a stream's events, which other threads wait for.
pub struct Held(#[expect(dead_code, reason = "held as long as the value lives")] MutexGuard<'static, Events>);

// SAFETY: streams and events may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: the driver takes a stream from any thread; events are behind a lock.
unsafe impl Sync for Stream {}

#[derive(Default)]
struct Events {
    /// Recorded events with the latest ticket that each covers, in order.
    pending: VecDeque<(u64, Handle)>,
    spare: Vec<Handle>,
}

#[derive(Default)]
struct Registry {
    streams: Vec<&'static Stream>,
    by_handle: Option<HashMap<u64, &'static Stream>>,
    /// Streams of threads that ended.
    idle: Vec<&'static Stream>,
}

static REGISTRY: RwLock<Registry> =
    RwLock::new(Registry { streams: Vec::new(), by_handle: None, idle: Vec::new() });

/// The streams of a thread, at most one for each device.
struct Own(Vec<&'static Stream>);

impl Drop for Own {
    fn drop(&mut self) {
        let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
        registry.idle.append(&mut self.0);
    }
}

thread_local! {
    static OWN: RefCell<Own> = const { RefCell::new(Own(Vec::new())) };
    static RECORDING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the work that this thread submits to its stream is recorded instead of run.
#[inline]
pub fn is_recording() -> bool {
    RECORDING.get()
}

/// Sets whether the work of this thread is recorded.
pub fn set_recording(recording: bool) {
    RECORDING.set(recording);
}

#[cold]
fn cannot_record(what: &str) -> Error {
    Error::device(format!("work that is recorded cannot contain {what}"))
        .with_help("submit the work each time")
}

/// This thread's stream on a device, created at the first request.
///
/// # Errors
/// Errors of the device, or if the thread is ending.
pub fn own(context: &'static Context) -> Result<&'static Stream> {
    let found = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
        if let Some(stream) = own.0.iter().find(|stream| stream.context.index == context.index) {
            return Ok(*stream);
        }
        let stream = idle_or_new(context)?;
        own.0.push(stream);
        Ok(stream)
    });
    found.unwrap_or_else(|_| {
        Err(Error::device("a thread that is ending has no stream")
            .with_help("use devices before its locals are dropped"))
    })
}

/// The stream of a queue.
///
/// # Errors
/// If it is not one of this module's.
pub fn of(queue: Queue) -> Result<&'static Stream> {
    let mine = OWN.try_with(|own| own.borrow().0.iter().find(|stream| stream.id() == queue.stream).copied());
    if let Ok(Some(stream)) = mine {
        return Ok(stream);
    }
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    let known = registry.by_handle.as_ref().and_then(|streams| streams.get(&queue.stream.0));
    known.copied().ok_or_else(|| {
        Error::device(format!("{:#x} is no stream of device {}", queue.stream.0, queue.device))
            .with_help("use the stream that `DeviceRuntime::stream` returns")
    })
}

/// The stream that issued a ticket; `None` if the ticket is that of a point that has passed.
pub fn of_ticket(ticket: Ticket) -> Option<&'static Stream> {
    let number = number_of(ticket);
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    registry.streams.get(usize::from(number).checked_sub(1)?).copied()
}

/// Whether a point has passed.
///
/// # Errors
/// Errors of the device.
pub fn has_passed(ticket: Ticket) -> Result<bool> {
    of_ticket(ticket).map_or(Ok(true), |stream| stream.has_passed(count_of(ticket)))
}

/// Waits for a point.
///
/// # Errors
/// Errors of the work before it.
pub fn wait(ticket: Ticket) -> Result<()> {
    of_ticket(ticket).map_or(Ok(()), |stream| stream.wait(count_of(ticket)))
}

#[cold]
fn idle_or_new(context: &'static Context) -> Result<&'static Stream> {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = registry.idle.iter().position(|stream| stream.context.index == context.index) {
        return Ok(registry.idle.swap_remove(found));
    }
    let number = u16::try_from(registry.streams.len() + 1).map_err(|_| {
        Error::device("this process has 65535 streams").with_help("use devices in fewer threads at a time")
    })?;
    let _entered = context.enter()?;
    let mut raw = std::ptr::null_mut();
    // SAFETY: the context is entered, and the result is a local variable.
    let code = unsafe { (context.api().cuStreamCreate)(&mut raw, codes::STREAM_BLOCKING as c_uint) };
    context.check(code, "create a stream")?;
    let stream: &'static Stream = Box::leak(Box::new(Stream {
        context,
        number,
        raw,
        issued: AtomicU64::new(0),
        passed: AtomicU64::new(0),
        events: Mutex::default(),
        followed: Mutex::default(),
    }));
    registry.streams.push(stream);
    registry.by_handle.get_or_insert_default().insert(stream.id().0, stream);
    Ok(stream)
}

impl Stream {
    /// The identifier in the interface of devices: the driver's handle.
    pub fn id(&self) -> StreamId {
        StreamId(self.raw.expose_provenance() as u64)
    }

    /// The driver's handle.
    pub fn raw(&self) -> Handle {
        self.raw
    }

    /// The point after all work so far, also of work that others submitted to the handle.
    #[inline]
    pub fn ticket(&self) -> Ticket {
        let count = self.issued.fetch_add(1, Ordering::AcqRel) + 1;
        ticket(self.number, count)
    }

    /// Makes later work wait for a point of another stream.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn follow(&self, ticket: Ticket) -> Result<()> {
        let number = number_of(ticket);
        if number == 0 || number == self.number {
            return Ok(());
        }
        let Some(other) = of_ticket(ticket) else { return Ok(()) };
        let count = count_of(ticket);
        if other.passed.load(Ordering::Acquire) >= count {
            return Ok(());
        }
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = followed.entry(number).or_default();
        if *latest >= count {
            return Ok(());
        }
        if is_recording() {
            return Err(cannot_record("a dependency on work of another thread"));
        }
        let mut events = other.events.lock().unwrap_or_else(PoisonError::into_inner);
        let event = other.recorded(&mut events, count)?;
        let _entered = self.context.enter()?;
        // SAFETY: both are of the driver and exist for the life of the process; the event keeps its record while the lock
        // is held.
        let code = unsafe { (self.context.api().cuStreamWaitEvent)(self.raw, event, 0) };
        self.context.check(code, "order two streams")?;
        *latest = count;
        Ok(())
    }

    /// Keeps other threads from taking events of this stream until the result is dropped. The thread that holds it takes none.
    pub fn hold_events(&'static self) -> Held {
        Held(self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until all work so far is done.
    ///
    /// # Errors
    /// Errors of that work.
    pub fn synchronize(&self) -> Result<()> {
        if is_recording() {
            return Err(cannot_record("a wait of the host"));
        }
        let issued = self.issued.load(Ordering::Acquire);
        let _entered = self.context.enter()?;
        // SAFETY: the stream exists for the life of the process.
        let code = unsafe { (self.context.api().cuStreamSynchronize)(self.raw) };
        self.context.check(code, "finish the work of a stream")?;
        self.passed.fetch_max(issued, Ordering::AcqRel);
        Ok(())
    }

    fn wait(&'static self, count: u64) -> Result<()> {
        if self.passed.load(Ordering::Acquire) >= count {
            return Ok(());
        }
        if OWN.try_with(|own| own.borrow().0.iter().any(|own| std::ptr::eq(*own, self))).unwrap_or(false) {
            return self.synchronize();
        }
        if is_recording() {
            return Err(cannot_record("a wait of the host"));
        }
        // The stream of another thread, which may go on: wait for the point alone, without the lock.
        let _entered = self.context.enter()?;
        let (covered, event) =
            self.new_record(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))?;
        // SAFETY: the event was recorded, and is used by this thread alone until it is returned.
        let code = unsafe { (self.context.api().cuEventSynchronize)(event) };
        self.context.check(code, "finish the work of a stream")?;
        self.passed.fetch_max(covered, Ordering::AcqRel);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).spare.push(event);
        Ok(())
    }

    fn has_passed(&self, count: u64) -> Result<bool> {
        if self.passed.load(Ordering::Acquire) >= count {
            return Ok(true);
        }
        // The driver answers no questions meanwhile.
        if is_recording() {
            return Ok(false);
        }
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        self.poll(&mut events)?;
        if self.passed.load(Ordering::Acquire) >= count {
            return Ok(true);
        }
        self.recorded(&mut events, count)?;
        self.poll(&mut events)?;
        Ok(self.passed.load(Ordering::Acquire) >= count)
    }

    /// Removes the events that are done.
    fn poll(&self, events: &mut Events) -> Result<()> {
        let _entered = self.context.enter()?;
        while let Some((covered, event)) = events.pending.front().copied() {
            // SAFETY: the event was recorded.
            match unsafe { (self.context.api().cuEventQuery)(event) } {
                codes::NOT_READY => return Ok(()),
                code => self.context.check(code, "finish the work of a stream")?,
            }
            self.passed.fetch_max(covered, Ordering::AcqRel);
            events.pending.pop_front();
            events.spare.push(event);
        }
        Ok(())
    }

    /// An event that covers a ticket.
    fn recorded(&self, events: &mut Events, count: u64) -> Result<Handle> {
        if let Some((_, event)) = events.pending.iter().find(|(covered, _)| *covered >= count) {
            return Ok(*event);
        }
        let _entered = self.context.enter()?;
        if events.pending.len() >= PENDING
            && let Some((_, event)) = events.pending.pop_back()
        {
            events.spare.push(event);
        }
        let (covered, event) = self.new_record(events)?;
        events.pending.push_back((covered, event));
        Ok(event)
    }

    /// An event recorded now, with the latest ticket that it covers. The context is entered.
    fn new_record(&self, events: &mut Events) -> Result<(u64, Handle)> {
        let api = self.context.api();
        let event = match events.spare.pop() {
            Some(event) => event,
            None => {
                let mut event = std::ptr::null_mut();
                // SAFETY: the context is entered, and the result is a local variable.
                let code = unsafe { (api.cuEventCreate)(&mut event, codes::EVENT_WITHOUT_TIME as c_uint) };
                self.context.check(code, "create an event")?;
                event
            }
        };
        // Work of the tickets issued so far was submitted before them.
        let covered = self.issued.load(Ordering::Acquire);
        // SAFETY: both are of this context.
        let code = unsafe { (api.cuEventRecord)(event, self.raw) };
        self.context.check(code, "record an event")?;
        Ok((covered, event))
    }
}
