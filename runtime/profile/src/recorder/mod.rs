//! Recording: the listener of the runtime's spans, with a ring of records a thread.
//!
//! In: spans as they begin and end, and blocks of memory. Out: the rings of all threads, when a session ends. A thread writes
//! its own ring without a lock: it marks itself busy while a span is open, and whoever ends the session waits until no
//! thread is.

mod barrier;
pub(crate) mod clock;
pub(crate) mod launches;
mod operands;
pub(crate) mod record;
mod ring;

use std::cell::{Cell, RefCell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use opsmith_core::Backend;
use opsmith_runtime::Device;
use opsmith_runtime::arg::Arg;
use opsmith_runtime::internals::{self, Span, SpanListener, StepSite};

use clock::ticks;
use launches::Launches;
use record::{Change, NO_OPERANDS, Name, OPEN, Record, Subject, What};
pub(crate) use ring::Ring;

/// The settings of a session, for the threads.
struct Settings {
    /// The number of the session; 0 before the first.
    session: AtomicU64,
    /// Most records of a thread; those before are overwritten.
    capacity: AtomicUsize,
    shapes: AtomicBool,
    memory: AtomicBool,
    sites: AtomicBool,
    devices: AtomicBool,
}

/// The parts of records that a session wants beside names and times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Operands of calls and kernels.
    pub shapes: bool,
    /// Each change of memory.
    pub memory: bool,
    /// Places of calls.
    pub sites: bool,
    /// Times of streams of devices.
    pub devices: bool,
}

static SETTINGS: Settings = Settings {
    session: AtomicU64::new(0),
    capacity: AtomicUsize::new(0),
    shapes: AtomicBool::new(false),
    memory: AtomicBool::new(false),
    sites: AtomicBool::new(false),
    devices: AtomicBool::new(false),
};

/// The rings of all threads that recorded something.
static THREADS: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());

/// A ring, and whether its thread may be writing it.
struct Shared {
    busy: AtomicBool,
    ring: UnsafeCell<Ring>,
}

// SAFETY: only the thread that owns the ring uses it while `busy` is set, and another one only while it is not and the
// session has ended, after which the owner writes nothing (`Local::occupy`).
unsafe impl Sync for Shared {}

/// A span that is open in a thread.
#[derive(Clone, Copy)]
struct Open {
    /// The number of the session; 0 for a span that is not recorded.
    session: u64,
    id: u64,
    place: usize,
    /// The arguments of a call, as long as it is open, and their number among the operands.
    args: usize,
    arg_count: u32,
    operands: u32,
    /// Whether it keeps its thread busy: a range that user code opened may last as long as the program.
    occupies: bool,
}

/// A span that is not recorded.
const CLOSED: Open =
    Open { session: 0, id: 0, place: 0, args: 0, arg_count: 0, operands: NO_OPERANDS, occupies: false };

impl Open {
    /// The number of a call's operands, if it is one with these very arguments.
    #[inline]
    fn operands_of(&self, args: &[Arg<'_>]) -> Option<u32> {
        let same = self.args == args.as_ptr().addr() && self.arg_count as usize == args.len();
        (same && self.operands != NO_OPERANDS).then_some(self.operands)
    }
}

/// A thread's own part.
struct Local {
    shared: Arc<Shared>,
    open: RefCell<Vec<Open>>,
    /// Open spans that keep the thread busy.
    occupied: Cell<u32>,
    allocated: Cell<u64>,
    freed: Cell<u64>,
}

thread_local! {
    static LOCAL: Local = Local::register();
}

fn threads() -> MutexGuard<'static, Vec<Arc<Shared>>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Local {
    fn register() -> Local {
        let thread = std::thread::current();
        let name = thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned);
        let shared =
            Arc::new(Shared { busy: AtomicBool::new(false), ring: UnsafeCell::new(Ring::new(name)) });
        threads().push(shared.clone());
        Local {
            shared,
            open: RefCell::default(),
            occupied: Cell::new(0),
            allocated: Cell::new(0),
            freed: Cell::new(0),
        }
    }

    /// Makes the thread busy, unless the session ended meanwhile.
    #[inline]
    fn occupy(&self) -> bool {
        if self.occupied.get() == 0 {
            // Before the check, in one order for all threads: who ends a session sees the mark, or this thread the end.
            barrier::store_before_load(&self.shared.busy);
            if !is_recording() {
                self.shared.busy.store(false, Ordering::Release);
                return false;
            }
        }
        self.occupied.set(self.occupied.get() + 1);
        true
    }

    #[inline]
    fn release(&self) {
        let left = self.occupied.get() - 1;
        self.occupied.set(left);
        if left == 0 {
            self.shared.busy.store(false, Ordering::Release);
        }
    }

    /// The ring, empty at the first use in a session.
    ///
    /// # Safety
    /// The thread is busy, and no other borrow of the ring is used.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the ring belongs to this thread while it is busy")]
    unsafe fn ring(&self) -> &mut Ring {
        // SAFETY: the caller's promise.
        let ring = unsafe { &mut *self.shared.ring.get() };
        let session = SETTINGS.session.load(Ordering::Relaxed);
        if ring.session != session {
            ring.restart(session, SETTINGS.capacity.load(Ordering::Relaxed).max(1));
        }
        ring
    }

    /// Opens a span that `describe` writes into the ring.
    #[inline]
    fn begin(
        &self,
        occupies: bool,
        args: &[Arg<'_>],
        describe: impl FnOnce(&mut Ring, Option<&Open>) -> Subject,
    ) {
        let Ok(mut open) = self.open.try_borrow_mut() else { return };
        if !self.occupy() {
            return open.push(CLOSED);
        }
        // SAFETY: the thread is busy, and the borrow ends here.
        let ring = unsafe { self.ring() };
        let session = ring.session;
        let parent = open.last().filter(|parent| parent.session == session);
        let subject = describe(ring, parent);
        let up = parent.map_or(0, |parent| u32::try_from(ring.begun - parent.id).unwrap_or(0));
        let (allocated, freed) = (self.allocated.get(), self.freed.get());
        let start = ticks();
        let operands = subject.operands;
        let (id, place) = ring.push(Record { subject, start, end: OPEN, up, allocated, freed, node: 0 });
        let (args, arg_count) = (args.as_ptr().addr(), args.len() as u32);
        open.push(Open { session, id, place, args, arg_count, operands, occupies });
        if !occupies {
            self.release();
        }
    }

    fn end(&self) {
        let now = ticks();
        let Ok(mut open) = self.open.try_borrow_mut() else { return };
        let Some(span) = open.pop() else { return };
        if span.session == 0 {
            return;
        }
        if !span.occupies && !self.occupy() {
            return;
        }
        // SAFETY: the thread is busy since the span began, or now; the borrow ends here.
        let ring = unsafe { &mut *self.shared.ring.get() };
        let (allocated, freed) = (self.allocated.get(), self.freed.get());
        if ring.session == span.session
            && let Some(record) = ring.record(span.id, span.place)
        {
            record.end = now;
            record.allocated = allocated.wrapping_sub(record.allocated);
            record.freed = freed.wrapping_sub(record.freed);
        }
        self.release();
    }

    fn note(&self, device: Device, address: usize, bytes: isize) {
        if device != Device::CPU {
            // Totals of events are of the host's memory.
        } else if bytes >= 0 {
            self.allocated.set(self.allocated.get().wrapping_add(bytes as u64));
        } else {
            self.freed.set(self.freed.get().wrapping_add(bytes.unsigned_abs() as u64));
        }
        if !SETTINGS.memory.load(Ordering::Relaxed) || !self.occupy() {
            return;
        }
        let top = self.open.try_borrow().ok().and_then(|open| open.last().copied());
        // SAFETY: the thread is busy, and the borrow ends here: nothing allocates tensors while the ring is borrowed.
        let ring = unsafe { self.ring() };
        let inside = top.filter(|top| top.session == ring.session).map_or(u64::MAX, |top| top.id);
        ring.note(Change { at: ticks(), address: address as u64, bytes: bytes as i64, inside, device });
        self.release();
    }
}

/// The listener of the runtime's spans.
struct Recorder;

impl SpanListener for Recorder {
    fn begin(&self, span: &Span<'_>) {
        let shapes = SETTINGS.shapes.load(Ordering::Relaxed);
        let sites = SETTINGS.sites.load(Ordering::Relaxed);
        let args = match *span {
            Span::Call { args, .. } => args,
            _ => &[],
        };
        let _ = LOCAL.try_with(|local| {
            local.begin(true, args, |ring, parent| match *span {
                Span::Call { op, form, args, site } => {
                    let operands = if shapes { ring.operands.of_call(site, args) } else { NO_OPERANDS };
                    let site = sites.then_some(site);
                    Subject { op: Some(op), operands, ..Subject::new(What::Call(form)) }.at(site)
                }
                Span::Kernel { op, kernel, args, outs } => {
                    // The arguments of most kernels are those of their call, which are known already.
                    let known = || parent.and_then(|call| call.operands_of(args));
                    let operands =
                        if shapes { ring.operands.of_kernel(op, args, known(), outs) } else { NO_OPERANDS };
                    let backend = outs.first().map_or(Backend::Cpu, |out| out.device().backend);
                    Subject { op: Some(op), operands, ..Subject::of_kernel(backend, kernel) }
                }
                Span::Copy { source, target } => {
                    let operands = if shapes { ring.operands.of_copy(source, target) } else { NO_OPERANDS };
                    let name = ring.name(&format!("copy {} to {}", source.device(), target.device()));
                    Subject { name, operands, ..Subject::new(What::Copy) }
                }
                Span::Backward { name, op, .. } => {
                    Subject { op, name: ring.name(name), ..Subject::new(What::Backward) }
                }
                Span::Step { op, site, .. } => {
                    let (site, elsewhere) = match site {
                        _ if !sites => (None, Name::NONE),
                        StepSite::Unknown => (None, Name::NONE),
                        StepSite::Here(location) => (Some(location), Name::NONE),
                        StepSite::Elsewhere(text) => (None, ring.name(text)),
                    };
                    Subject { op: Some(op), elsewhere, ..Subject::new(What::Step) }.at(site)
                }
                Span::Phase { name } => Subject { name: ring.name(name), ..Subject::new(What::Range) },
            });
            match *span {
                Span::Backward { node, .. } => local.note_node(node),
                // 0 is no node.
                Span::Step { node, .. } => local.note_node(u64::from(node) + 1),
                _ => {}
            }
        });
    }

    fn recorded(&self, node: u64) {
        let _ = LOCAL.try_with(|local| local.note_node(node));
    }

    fn end(&self) {
        let _ = LOCAL.try_with(Local::end);
    }

    fn submits(&self, device: Device, stream: u64) {
        if !SETTINGS.devices.load(Ordering::Relaxed) {
            return;
        }
        let _ = LOCAL.try_with(|local| {
            local.on_launches(|launches, span| launches.begin(span.session, span.id, device, stream));
        });
    }

    fn submitted(&self, device: Device, stream: u64) {
        if !SETTINGS.devices.load(Ordering::Relaxed) {
            return;
        }
        let _ = LOCAL.try_with(|local| {
            local.on_launches(|launches, span| launches.end(span.id, device, stream));
        });
    }
}

impl Local {
    /// Changes the kernels on devices for the innermost open span.
    fn on_launches(&self, change: impl FnOnce(&mut Launches, &Open)) {
        let Ok(open) = self.open.try_borrow() else { return };
        let Some(span) = open.last().filter(|span| span.session != 0 && span.occupies) else { return };
        // SAFETY: the thread is busy since the span began, and the borrow ends here: a backend calls no operators.
        let ring = unsafe { &mut *self.shared.ring.get() };
        if ring.session == span.session {
            change(&mut ring.launches, span);
        }
    }

    /// Writes the node of backward, or of a graph, into the innermost open span.
    fn note_node(&self, node: u64) {
        let Ok(open) = self.open.try_borrow() else { return };
        let Some(span) = open.last().filter(|span| span.session != 0 && span.occupies) else { return };
        // SAFETY: the thread is busy since the span began, and the borrow ends here.
        let ring = unsafe { &mut *self.shared.ring.get() };
        if ring.session == span.session
            && let Some(record) = ring.record(span.id, span.place)
        {
            record.node = node;
        }
    }
}

/// Whether spans are recorded.
pub(crate) fn is_recording() -> bool {
    internals::is_listening()
}

/// Opens a range in this thread.
pub(crate) fn begin_range(name: &str) {
    let _ = LOCAL.try_with(|local| {
        local.begin(false, &[], |ring, _| Subject { name: ring.name(name), ..Subject::new(What::Range) });
    });
}

/// Ends the innermost range of this thread.
pub(crate) fn end_range() {
    let _ = LOCAL.try_with(Local::end);
}

/// Begins a session: the rings of all threads are empty at their next record.
///
/// # Errors
/// If another profiler listens in this process.
pub(crate) fn begin(capacity: usize, wanted: Wanted) -> Result<(), ()> {
    static RECORDER: Recorder = Recorder;
    if !internals::listen(&RECORDER) {
        return Err(());
    }
    barrier::prepare();
    SETTINGS.capacity.store(capacity, Ordering::Relaxed);
    SETTINGS.shapes.store(wanted.shapes, Ordering::Relaxed);
    SETTINGS.memory.store(wanted.memory, Ordering::Relaxed);
    SETTINGS.sites.store(wanted.sites, Ordering::Relaxed);
    SETTINGS.devices.store(wanted.devices, Ordering::Relaxed);
    SETTINGS.session.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

/// Starts or pauses recording within a session.
pub(crate) fn set_recording(recording: bool) {
    internals::profile_blocks(recording.then_some(note_block as fn(usize, isize)));
    internals::profile_device_blocks(recording.then_some(note_device_block as fn(Device, usize, isize)));
    internals::set_listening(recording);
}

fn note_block(address: usize, bytes: isize) {
    let _ = LOCAL.try_with(|local| local.note(Device::CPU, address, bytes));
}

fn note_device_block(device: Device, address: usize, bytes: isize) {
    let _ = LOCAL.try_with(|local| local.note(device, address, bytes));
}

/// How long the end of a session waits for a call of another thread.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends the session: the rings with records, and the names of threads whose calls did not end in time, without theirs.
pub(crate) fn finish() -> (Vec<Ring>, Vec<String>) {
    set_recording(false);
    barrier::load_after_store();
    let session = SETTINGS.session.load(Ordering::SeqCst);
    let own = LOCAL.try_with(|local| local.shared.clone()).ok();
    let deadline = Instant::now() + PATIENCE;
    let (mut rings, mut missing) = (Vec::new(), Vec::new());
    let mut threads = threads();
    for shared in threads.iter() {
        let is_own = own.as_ref().is_some_and(|own| Arc::ptr_eq(own, shared));
        while !is_own && shared.busy.load(Ordering::SeqCst) && Instant::now() < deadline {
            std::thread::yield_now();
        }
        if !is_own && shared.busy.load(Ordering::SeqCst) {
            missing.push("a thread whose call had not ended a second after the profile".to_owned());
            continue;
        }
        // SAFETY: the thread is not busy, and writes nothing after the end of the session; or it is this one, which is
        // not within a use of its ring here.
        let ring = unsafe { &mut *shared.ring.get() };
        if ring.session == session {
            let empty = Ring::new(ring.thread.clone());
            rings.push(std::mem::replace(ring, empty));
        }
    }
    // Rings of threads that ended are not used again.
    threads.retain(|shared| Arc::strong_count(shared) > 1);
    (rings, missing)
}
