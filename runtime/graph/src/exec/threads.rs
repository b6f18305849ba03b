//! The pool of threads for nodes of one schedule level.
//!
//! In: a number of calls, and a function of the call's number. Out: all calls made, by this thread and the pool's. The
//! pool's threads live as long as the program; a job does not allocate. One graph uses the pool at a time: another
//! concurrent run uses only its own thread.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;

#[cfg(loom)]
use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::Builder,
};
#[cfg(not(loom))]
use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::Builder,
};

/// Iterations of a thread's spin before it sleeps: some twenty microseconds, as long as waking takes. In a loom model a
/// thread sleeps at once, which is one of the possible orders.
const TURNS: usize = if cfg!(loom) { 0 } else { 4000 };

/// A pool without threads; a macro, since loom's locks have no constant constructor.
macro_rules! pool {
    () => {
        Pool {
            busy: Mutex::new(0),
            shared: Shared {
                state: Mutex::new(State { job: None, active: 0, panic: None, is_closed: false }),
                round: AtomicU64::new(0),
                next: AtomicUsize::new(0),
                start: Condvar::new(),
                done: Condvar::new(),
            },
        }
    };
}

#[cfg(not(loom))]
static POOL: Pool = pool!();

/// Calls a function with every number below `count`, in up to `threads` threads.
#[cfg(not(loom))]
pub(crate) fn run(threads: usize, count: usize, call: &(dyn Fn(usize) + Sync)) {
    POOL.run(threads, count, call);
}

/// As the pool's `run`, for loom models of other parts, which have no pool: a model's threads must end with it.
#[cfg(loom)]
pub(crate) fn run(_threads: usize, count: usize, call: &(dyn Fn(usize) + Sync)) {
    (0..count).for_each(call);
}

struct Pool {
    /// The number of threads; locked by the pool's present user.
    busy: Mutex<usize>,
    shared: Shared,
}

struct Shared {
    state: Mutex<State>,
    /// The number of jobs so far.
    round: AtomicU64,
    /// The number of the next call.
    next: AtomicUsize,
    start: Condvar,
    done: Condvar,
}

struct State {
    job: Option<Job>,
    /// Number of threads that work on the job.
    active: usize,
    panic: Option<Box<dyn Any + Send>>,
    /// Whether threads should end instead of wait; only loom models close a pool.
    is_closed: bool,
}

/// Calls to make.
#[derive(Clone, Copy)]
struct Job {
    call: *const (dyn Fn(usize) + Sync),
    count: usize,
    /// Maximal number of helping threads.
    helpers: usize,
}

// SAFETY: the function may be called from several threads, and lives until all have finished, for which `run` waits.
unsafe impl Send for Job {}

impl Pool {
    fn run(&'static self, threads: usize, count: usize, call: &(dyn Fn(usize) + Sync)) {
        let busy = if threads > 1 && count > 1 { self.busy.try_lock().ok() } else { None };
        let Some(mut known) = busy else { return (0..count).for_each(call) };
        let (wanted, shared) = (threads - 1, &self.shared);
        while *known < wanted && shared.spawn(*known) {
            *known += 1;
        }
        // SAFETY: only the lifetime is erased; this function returns, or unwinds, when no thread has the job and none
        // can get it.
        let call: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(call) };
        shared.next.store(0, Ordering::Relaxed);
        {
            let mut state = lock(&shared.state);
            state.job = Some(Job { call, count, helpers: wanted });
            shared.round.fetch_add(1, Ordering::Release);
        }
        // Threads that wake up too late find no job, and `withdraw` does not wait for them.
        shared.start.notify_all();
        let own = catch_unwind(AssertUnwindSafe(|| shared.take_calls(call, count)));
        let panic = shared.withdraw();
        if let Some(panic) = own.err().or(panic) {
            // Unwinding with the lock held would poison it, and every later run would be single-threaded.
            drop(known);
            resume_unwind(panic);
        }
    }
}

impl Shared {
    /// Starts a thread of the pool; if that fails, fewer threads give the same results.
    fn spawn(&'static self, number: usize) -> bool {
        // The present round: the thread waits for the next one.
        let seen = self.round.load(Ordering::Acquire);
        Builder::new().name("opsmith-graph".to_owned()).spawn(move || self.work(number, seen)).is_ok()
    }

    /// Makes calls of a job until none is left.
    fn take_calls(&self, call: &(dyn Fn(usize) + Sync), count: usize) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            call(number);
        }
    }

    /// Withdraws the job and waits for the threads that have it; returns the panic of one of them.
    fn withdraw(&self) -> Option<Box<dyn Any + Send>> {
        let mut state = lock(&self.state);
        state.job = None;
        while state.active > 0 {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.panic.take()
    }

    /// The loop of each thread. `number` counts the threads, `seen` the jobs before it.
    fn work(&self, number: usize, mut seen: u64) {
        loop {
            let job = match self.next_job(number, &mut seen) {
                Next::Job(job) => job,
                Next::Missed => continue,
                Next::Closed => return,
            };
            // SAFETY: `withdraw` waits until this thread, which is counted as active, leaves the count below.
            let call = unsafe { &*job.call };
            let result = catch_unwind(AssertUnwindSafe(|| self.take_calls(call, job.count)));
            let mut state = lock(&self.state);
            if let Err(panic) = result {
                state.panic.get_or_insert(panic);
            }
            state.active -= 1;
            if state.active == 0 {
                self.done.notify_one();
            }
        }
    }

    /// Waits for a new job, and joins it if it is not withdrawn and needs this thread.
    fn next_job(&self, number: usize, seen: &mut u64) -> Next {
        for _ in 0..TURNS {
            if self.round.load(Ordering::Acquire) != *seen {
                break;
            }
            spin_loop();
        }
        let mut state = lock(&self.state);
        while self.round.load(Ordering::Acquire) == *seen {
            state = self.start.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        *seen = self.round.load(Ordering::Acquire);
        match state.job.filter(|job| number < job.helpers) {
            Some(job) => {
                state.active += 1;
                Next::Job(job)
            }
            None if state.is_closed => Next::Closed,
            None => Next::Missed,
        }
    }
}

/// The end of a thread's wait.
enum Next {
    /// A job, which counts the thread as active.
    Job(Job),
    /// A job that was withdrawn before, or that needs fewer threads.
    Missed,
    /// The end of the pool.
    Closed,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, loom))]
mod model;
