//! Streams: work that is deferred until its result is needed.
//!
//! In: work, and points of streams to wait for. Out: the work, run in order, as late as allowed.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use opsmith_runtime::backend::{StreamId, Ticket};
use opsmith_runtime::{Error, Result};

/// Maximal number of pending works of a stream.
const CAPACITY: usize = 64;

type Work = Box<dyn FnOnce() -> Result<()> + Send>;

#[derive(Default)]
struct Stream {
    waiting: VecDeque<Work>,
    /// The number of works submitted, and the number done.
    asked: u64,
    done: u64,
    /// The first failure that was not reported yet.
    failed: Option<Error>,
}

static STREAMS: RwLock<Vec<Arc<Mutex<Stream>>>> = RwLock::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OWN: Cell<Option<StreamId>> = const { Cell::new(None) };
}

/// The stream of this thread. All devices share it: order between them is stricter than the interface requires.
pub fn own() -> StreamId {
    OWN.get().unwrap_or_else(|| {
        let mut streams = STREAMS.write().unwrap_or_else(PoisonError::into_inner);
        streams.push(Arc::default());
        let id = StreamId(NEXT.fetch_add(1, Ordering::Relaxed));
        assert_eq!(id.0 + 1, streams.len() as u64, "streams are numbered in order");
        OWN.set(Some(id));
        id
    })
}

fn stream(id: u64) -> Arc<Mutex<Stream>> {
    STREAMS.read().unwrap_or_else(PoisonError::into_inner)[id as usize].clone()
}

/// Submits work to a stream.
pub fn ask(id: StreamId, work: impl FnOnce() -> Result<()> + Send + 'static) {
    let stream = stream(id.0);
    let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
    stream.asked += 1;
    stream.waiting.push_back(Box::new(work));
    if stream.waiting.len() > CAPACITY {
        let half = stream.done + CAPACITY as u64 / 2;
        stream.run(half);
    }
}

/// The point after all work submitted to a stream.
pub fn ticket(id: StreamId) -> Ticket {
    let stream = stream(id.0);
    let asked = stream.lock().unwrap_or_else(PoisonError::into_inner).asked;
    assert!(id.0 < 1 << 16 && asked < 1 << 48, "a ticket has room for both");
    // No work was submitted: a point that has passed.
    if asked == 0 { Ticket(0) } else { Ticket(id.0 << 48 | asked) }
}

/// Runs the work before a point.
///
/// # Errors
/// The error of the first work that failed, unless an earlier wait reported it.
pub fn reach(ticket: Ticket) -> Result<()> {
    if ticket.0 == 0 {
        return Ok(());
    }
    let (id, point) = (ticket.0 >> 48, ticket.0 & ((1 << 48) - 1));
    let stream = stream(id);
    let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
    stream.run(point);
    stream.failed.take().map_or(Ok(()), Err)
}

/// Runs the work before a point, and leaves its failures to the next wait for the stream.
pub fn pass(ticket: Ticket) {
    if ticket.0 != 0 {
        let stream = stream(ticket.0 >> 48);
        stream.lock().unwrap_or_else(PoisonError::into_inner).run(ticket.0 & ((1 << 48) - 1));
    }
}

impl Stream {
    fn run(&mut self, until: u64) {
        while self.done < until
            && let Some(work) = self.waiting.pop_front()
        {
            self.done += 1;
            if let Err(error) = work()
                && self.failed.is_none()
            {
                self.failed = Some(error);
            }
        }
    }
}
