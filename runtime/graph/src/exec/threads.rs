//! The pool of threads for nodes of one schedule level.
//!
//! In: a number of calls, and a function of the call's number. Out: all calls made, by this thread and others. The
//! threads live as long as the program; giving them work does not allocate. One graph uses them at a time: another
//! that runs meanwhile runs alone.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Turns that a thread looks for work before it sleeps: some twenty microseconds, as long as waking takes.
const TURNS: usize = 4000;

static POOL: Pool = Pool {
    busy: Mutex::new(0),
    shared: Shared {
        state: Mutex::new(State { job: None, active: 0, panic: None }),
        round: AtomicU64::new(0),
        next: AtomicUsize::new(0),
        start: Condvar::new(),
        done: Condvar::new(),
    },
};

struct Pool {
    /// The number of threads; locked by their user.
    busy: Mutex<usize>,
    shared: Shared,
}

struct Shared {
    state: Mutex<State>,
    /// Grows with every job.
    round: AtomicU64,
    /// The next call to make.
    next: AtomicUsize,
    start: Condvar,
    done: Condvar,
}

struct State {
    job: Option<Job>,
    /// Threads that work on the job.
    active: usize,
    panic: Option<Box<dyn Any + Send>>,
}

/// Calls to make.
#[derive(Clone, Copy)]
struct Job {
    call: *const (dyn Fn(usize) + Sync),
    count: usize,
    /// How many threads may help; the others look on.
    helpers: usize,
}

// SAFETY: the function may be called from several threads, and lives until all have finished (`run` waits).
unsafe impl Send for Job {}

/// Calls a function with every number below `count`, in up to `threads` threads.
pub(crate) fn run(threads: usize, count: usize, call: &(dyn Fn(usize) + Sync)) {
    let busy = if threads > 1 && count > 1 { POOL.busy.try_lock().ok() } else { None };
    let Some(mut known) = busy else { return (0..count).for_each(call) };
    let wanted = threads - 1;
    while *known < wanted {
        let number = *known;
        // The round so far: the thread waits for the next one.
        let seen = POOL.shared.round.load(Ordering::Acquire);
        let spawned =
            std::thread::Builder::new().name("opsmith-graph".to_owned()).spawn(move || work(number, seen));
        if spawned.is_err() {
            // Fewer threads give the same results.
            break;
        }
        *known += 1;
    }
    let shared = &POOL.shared;
    // SAFETY: only the lifetime is forgotten; this function returns, or unwinds, when no thread has the job
    // and none can take it any more.
    let call: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(call) };
    shared.next.store(0, Ordering::Relaxed);
    {
        let mut state = lock(&shared.state);
        state.job = Some(Job { call, count, helpers: wanted });
        shared.round.fetch_add(1, Ordering::Release);
    }
    // Threads that wake up too late find nothing to do, and nobody waits for them.
    shared.start.notify_all();
    let own = catch_unwind(AssertUnwindSafe(|| take_calls(call, count)));
    let mut state = lock(&shared.state);
    state.job = None;
    while state.active > 0 {
        state = shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    let panic = state.panic.take();
    drop(state);
    if let Err(panic) = own {
        resume_unwind(panic);
    }
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_calls(call: &(dyn Fn(usize) + Sync), count: usize) {
    loop {
        let number = POOL.shared.next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return;
        }
        call(number);
    }
}

/// The loop of each thread. `number` counts the threads, `seen` the jobs before it.
fn work(number: usize, mut seen: u64) {
    let shared = &POOL.shared;
    loop {
        let Some(job) = next_job(shared, number, &mut seen) else { continue };
        // SAFETY: who gave the job out waits until this thread, which is counted, has counted itself off below.
        let call = unsafe { &*job.call };
        let result = catch_unwind(AssertUnwindSafe(|| take_calls(call, job.count)));
        let mut state = lock(&shared.state);
        if let Err(panic) = result {
            state.panic.get_or_insert(panic);
        }
        state.active -= 1;
        if state.active == 0 {
            shared.done.notify_one();
        }
    }
}

/// Waits for a job that this thread has not seen, and joins it if it still is there and wants this thread.
fn next_job(shared: &Shared, number: usize, seen: &mut u64) -> Option<Job> {
    for _ in 0..TURNS {
        if shared.round.load(Ordering::Acquire) != *seen {
            break;
        }
        std::hint::spin_loop();
    }
    let mut state = lock(&shared.state);
    while shared.round.load(Ordering::Acquire) == *seen {
        state = shared.start.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    *seen = shared.round.load(Ordering::Acquire);
    let job = state.job.filter(|job| number < job.helpers)?;
    state.active += 1;
    Some(job)
}
