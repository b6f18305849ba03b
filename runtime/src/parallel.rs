//! Ranges of one loop in several threads: whether, how many and how long is decided here, for all kernels.
//!
//! In: a number of items, and a function of a range of them. Out: all items done. The first range is timed, so the
//! decision follows from the cost of this loop on this machine at this moment, not from a table of counts. Must not
//! know the meaning of an item.
//!
//! ```
//! use opsmith_runtime::parallel;
//! use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! let sum = AtomicUsize::new(0);
//! parallel::for_each_range(100_000, 4096, |range| {
//!     let part: usize = range.sum();
//!     sum.fetch_add(part, Ordering::Relaxed);
//! });
//! assert_eq!(sum.into_inner(), 4_999_950_000);
//! ```

mod pool;
mod shares;

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) use pool::HeldPool;
use shares::Shares;

/// Elements of a range for loops that do little with each: some microseconds.
pub const CHUNK: usize = 1 << 13;
/// Maximal number of threads.
pub const MAX_THREADS: usize = 1024;
/// Elements of a loop that takes some tens of microseconds, however little it does with each.
const LONG: usize = 1 << 18;
/// Shortest remaining time of a loop that several threads share: a few times the time until another one has joined, which may
/// be asleep.
const LEAST: Duration = Duration::from_micros(20);
/// As [`LEAST`], of a loop for which the others are ready.
const LEAST_OF_READY: Duration = Duration::from_micros(3);
/// The number of loops shorter than [`LEAST`], one soon after the other, after which threads are woken for the next ones.
const TRAIN: u32 = 4;
/// Approximate time from one visit to the pool to the next, far above the cost of a visit.
const VISIT: Duration = Duration::from_micros(8);

/// The number of threads; 0 until it is known.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The start of this thread's last loop that was too short for threads that sleep, and the number of such loops in a row.
    static SHORT_LOOPS: Cell<Option<(Instant, u32)>> = const { Cell::new(None) };
}

/// The number of threads that a call may use, its own included: that of `set_num_threads`, else the environment's
/// `OPSMITH_NUM_THREADS`, else one for each processor of this process.
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => initial_threads(),
        known => known,
    }
}

/// Sets the number of threads that calls may use from now on. Results are the same bits with any number.
///
/// # Errors
/// If the number is 0 or more than [`MAX_THREADS`].
pub fn set_num_threads(count: usize) -> Result<()> {
    if !(1..=MAX_THREADS).contains(&count) {
        return Err(Error::value(format!("the number of threads is {count}, not from 1 to {MAX_THREADS}")));
    }
    THREADS.store(count, Ordering::Relaxed);
    Ok(())
}

#[cold]
fn initial_threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let count = match std::env::var("OPSMITH_NUM_THREADS") {
        Err(_) => processors,
        Ok(text) => match text.trim().parse() {
            Ok(count) if (1..=MAX_THREADS).contains(&count) => count,
            _ => {
                eprintln!(
                    "warning: OPSMITH_NUM_THREADS is `{text}`, not a number from 1 to {MAX_THREADS}: calls use \
                     {processors} threads"
                );
                processors
            }
        },
    };
    // Another thread may have set a number in between, which stays.
    match THREADS.compare_exchange(0, count, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => count,
        Err(known) => known,
    }
}

/// Calls `body` with ranges that together cover `0..count`, in several threads if the loop takes long enough.
///
/// Each range but the last begins and ends at a multiple of `chunk`, which should take a few microseconds: the first
/// chunk is timed, and loops of one chunk are not even that. A sum that must not depend on the number of threads is
/// kept for each chunk.
///
/// # Panics
/// If `chunk` is 0, or with the panic of `body`.
#[inline]
pub fn for_each_range(count: usize, chunk: usize, body: impl Fn(Range<usize>) + Sync) {
    if count <= chunk {
        if count > 0 {
            body(0..count);
        }
    } else {
        split(count, chunk, &body);
    }
}

/// As [`for_each_range`], of items of about so many `elements` each: a chunk has [`CHUNK`] elements, or one item.
///
/// No item is timed of a loop that takes long by its number of elements, with each of which it does as little as may be, if its
/// items are chunks: the first of a few would be a large part of the loop. All threads begin together.
///
/// # Panics
/// With the panic of `body`.
///
/// ```
/// use opsmith_runtime::parallel;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let lines = [vec![1; 300_000], vec![2; 300_000]];
/// let sum = AtomicU64::new(0);
/// parallel::for_each_range_of(300_000, lines.len(), |range| {
///     sum.fetch_add(lines[range].iter().flatten().sum(), Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 900_000);
/// ```
#[inline]
pub fn for_each_range_of(elements: usize, count: usize, body: impl Fn(Range<usize>) + Sync) {
    let chunk = (CHUNK / elements.max(1)).max(1);
    if count > chunk && elements >= CHUNK && elements.saturating_mul(count) >= LONG {
        together(elements, count, &body);
    } else {
        for_each_range(count, chunk, body);
    }
}

/// As [`for_each_range_of`], for a function that can fail; errors are those of [`try_for_each_range`].
///
/// # Errors
/// The error of `body`.
///
/// # Panics
/// As [`for_each_range_of`].
pub fn try_for_each_range_of(
    elements: usize,
    count: usize,
    body: impl Fn(Range<usize>) -> Result<()> + Sync,
) -> Result<()> {
    let failure = FirstError::default();
    for_each_range_of(elements, count, |range| failure.note(range.start, body(range)));
    failure.into_result()
}

/// As [`for_each_range`], for a function that can fail. Every range is visited, and the error is that of the first
/// range that failed, however the threads ran.
///
/// # Errors
/// The error of `body`.
///
/// # Panics
/// As [`for_each_range`].
pub fn try_for_each_range(
    count: usize,
    chunk: usize,
    body: impl Fn(Range<usize>) -> Result<()> + Sync,
) -> Result<()> {
    if count <= chunk {
        return if count > 0 { body(0..count) } else { Ok(()) };
    }
    let failure = FirstError::default();
    split(count, chunk, &|range| failure.note(range.start, body(range)));
    failure.into_result()
}

/// Calls `body` with every number below `count`, and with a `state` that each thread makes for itself and keeps.
///
/// Of a loop that `is_long`, some tens of microseconds by its number of operations, no call is timed, so that all threads begin
/// together; of others as [`for_each_range`] does, with chunks of one call.
///
/// # Panics
/// With the panic of `state` or `body`.
///
/// ```
/// use opsmith_runtime::parallel;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let sum = AtomicUsize::new(0);
/// parallel::for_each_with(true, 1000, Vec::new, |seen, number| {
///     seen.push(number);
///     sum.fetch_add(number, Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 499_500);
/// ```
pub fn for_each_with<S>(
    is_long: bool,
    count: usize,
    state: impl Fn() -> S + Sync,
    body: impl Fn(&mut S, usize) + Sync,
) {
    let threads = num_threads().min(count);
    if threads <= 1 || !is_long {
        return for_each_range(count, 1, |range| {
            let mut state = state();
            range.for_each(|number| body(&mut state, number));
        });
    }
    let shares = Shares::new(count, threads);
    pool::run(threads, threads, &|own| {
        let mut made = None;
        shares.take(own, |number| body(made.get_or_insert_with(&state), number));
    });
}

/// Calls a function with every number below `count`, each in whichever thread is free, in up to `threads` threads.
/// For work of which each call takes long; nothing is timed.
#[doc(hidden)]
pub fn run(threads: usize, count: usize, call: &(dyn Fn(usize) + Sync)) {
    pool::run(threads, count, call);
}

/// Whether this thread helps another one, which gets its panics.
pub(crate) fn is_helper() -> bool {
    pool::is_helper()
}

/// An address for several threads, of elements that each writes apart from the others.
#[derive(Debug)]
pub struct Shared<T>(pub *mut T);

impl<T> Shared<T> {
    /// The address so many elements further.
    #[inline]
    pub fn at(&self, offset: i64) -> *mut T {
        self.0.wrapping_offset(offset as isize)
    }
}

// SAFETY: the address alone gives no access; whoever uses it promises that threads write different elements.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

/// The first of several errors by number, however threads noted them.
#[doc(hidden)]
#[derive(Default)]
pub struct FirstError(Mutex<Option<(usize, Error)>>);

impl FirstError {
    /// Keeps the error of a result, unless one of a lower number is known.
    pub fn note(&self, number: usize, result: Result<()>) {
        let Err(error) = result else { return };
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(known, _)| number < *known) {
            *first = Some((number, error));
        }
    }

    /// The error, if one was noted.
    ///
    /// # Errors
    /// That error.
    pub fn into_result(self) -> Result<()> {
        let first = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}

#[inline(never)]
fn split(count: usize, chunk: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    let threads = num_threads();
    if threads == 1 {
        return body(0..count);
    }
    let start = Instant::now();
    body(0..chunk);
    let spent = start.elapsed().max(Duration::from_nanos(1));
    let left = (count - chunk).div_ceil(chunk);
    let rest = spent.saturating_mul(u32::try_from(left).unwrap_or(u32::MAX));
    if rest < LEAST && !(rest >= LEAST_OF_READY && pool::is_ready(threads - 1)) {
        body(chunk..count);
        if rest >= LEAST_OF_READY {
            note_short_loop(start, threads);
        }
        return;
    }
    // So many chunks a visit that visits cost nothing, and so few that no thread waits long for the last one.
    let per_visit = (VISIT.as_nanos() / spent.as_nanos()).max(1) as usize;
    let per_visit = per_visit.min(left / (4 * threads)).max(1) * chunk;
    share(chunk..count, per_visit, threads, body);
}

/// The loop of items of so many elements, in all threads from its beginning.
#[inline(never)]
fn together(elements: usize, count: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    let threads = num_threads();
    if threads == 1 {
        return body(0..count);
    }
    let per_visit = (8 * CHUNK / elements).min(count / (4 * threads)).max(1);
    share(0..count, per_visit, threads, body);
}

/// Calls `body` with ranges of `per_visit` numbers in so many threads.
fn share(numbers: Range<usize>, per_visit: usize, threads: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    let shares = Shares::new(numbers.len().div_ceil(per_visit), threads);
    pool::run(threads, threads, &|own| {
        shares.take(own, |visit| {
            let start = numbers.start + visit * per_visit;
            body(start..numbers.end.min(start + per_visit));
        });
    });
}

/// Notes a loop of one thread, which several that are awake would have shared: one of many in a row wakes them.
fn note_short_loop(start: Instant, threads: usize) {
    let row = SHORT_LOOPS.get().filter(|(last, _)| start.duration_since(*last) < 2 * LEAST);
    let count = row.map_or(1, |(_, count)| count + 1);
    if count == TRAIN {
        pool::wake(threads - 1);
    }
    SHORT_LOOPS.set(Some((start, count % TRAIN)));
}
