//! The pool of threads for calls that need no order: parts of a kernel's loop, nodes of one schedule level.
//!
//! In: a number of calls, and a function of the call's number. Out: all calls made, by this thread and the pool's. The
//! pool's threads live as long as the program; a job does not allocate. Several jobs run at a time, also one inside of
//! another: threads help wherever calls are left.

mod sleepers;

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

#[cfg(loom)]
use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, yield_now},
};
#[cfg(not(loom))]
use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, yield_now},
};

use sleepers::{Sleeper, Sleepers, ThreadId, processor};

/// Time for which a thread stays awake without a job: several loops that are too short to wake it for. In a loom model a thread
/// sleeps at once, which is one of the possible orders.
const AWAKE: Duration = if cfg!(loom) { Duration::ZERO } else { Duration::from_micros(100) };

/// Time for which a thread that has made its own calls waits for those of others before it sleeps, which would take longer to end than
/// most of them.
const PATIENCE: Duration = Duration::from_millis(1);

/// Maximal number of jobs at a time; a further one runs in its own thread alone.
const JOBS: usize = if cfg!(loom) { 2 } else { 16 };

/// A pool without threads; a macro, since loom's locks have no constant constructor.
macro_rules! pool {
    ($active:expr) => {
        Pool {
            state: Mutex::new(State {
                jobs: [const { None }; JOBS],
                wanted: 0,
                threads: 0,
                asleep: Sleepers::new(),
                waiting: 0,
                is_closed: false,
            }),
            round: AtomicU64::new(0),
            ready: AtomicUsize::new(0),
            active: $active,
            waking: AtomicUsize::new(sleepers::NONE),
            start: Condvar::new(),
            done: Condvar::new(),
        }
    };
}

/// The pool of the program.
#[cfg(not(loom))]
static POOL: Pool = pool!([const { AtomicUsize::new(0) }; JOBS]);

/// Calls a function with every number below `count`, in up to `threads` threads.
#[cfg(not(loom))]
pub(super) fn run(threads: usize, count: usize, call: &(dyn Fn(usize) + Sync)) {
    if threads > 1 && count > 1 { POOL.run(threads, count, call) } else { (0..count).for_each(call) }
}

/// As the pool's `run`, for loom models of other parts, which have no pool: a model's threads must end with it.
#[cfg(loom)]
pub(super) fn run(_threads: usize, count: usize, call: &(dyn Fn(usize) + Sync)) {
    (0..count).for_each(call);
}

/// Whether so many threads wait for a job without being asleep, so that they begin with one at once.
pub(super) fn is_ready(helpers: usize) -> bool {
    #[cfg(not(loom))]
    let ready = POOL.ready.load(Ordering::Relaxed);
    #[cfg(loom)]
    let ready = 0;
    ready >= helpers
}

/// Wakes so many threads, which are ready for a while ([`AWAKE`]).
pub(super) fn wake(helpers: usize) {
    #[cfg(not(loom))]
    {
        let state = POOL.with_threads(helpers);
        POOL.announce(state, helpers);
    }
    #[cfg(loom)]
    let _ = helpers;
}

thread_local! {
    /// Whether this is a thread of a pool.
    static IS_HELPER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is a thread of the pool, whose panics reach the thread that wanted its help.
pub(super) fn is_helper() -> bool {
    IS_HELPER.get()
}

struct Pool {
    state: Mutex<State>,
    /// The number of jobs so far.
    round: AtomicU64,
    /// The number of threads that look for the next job before they sleep.
    ready: AtomicUsize,
    /// For each job, the number of the pool's threads that work on it; written under the lock.
    active: [AtomicUsize; JOBS],
    /// The processor of the last thread that announced a job, which may announce the next one.
    waking: AtomicUsize,
    start: Condvar,
    done: Condvar,
}

/// The lock on the pool of the program.
#[cfg(all(target_os = "linux", not(loom)))]
pub struct HeldPool(MutexGuard<'static, State>);

#[cfg(all(target_os = "linux", not(loom)))]
impl HeldPool {
    /// Waits for the lock.
    pub fn lock() -> HeldPool {
        HeldPool(lock(&POOL.state))
    }

    /// Begins anew in a copy of the process, which has neither the threads nor the jobs of others.
    pub fn forget_threads(&mut self) {
        (self.0.threads, self.0.wanted, self.0.waiting) = (0, 0, 0);
        self.0.asleep.clear();
        POOL.ready.store(0, Ordering::Relaxed);
        for (entry, active) in self.0.jobs.iter_mut().zip(&POOL.active) {
            // A job belongs to a thread that does not exist, and so does the memory of its panic.
            std::mem::forget(entry.take());
            active.store(0, Ordering::Release);
        }
    }
}

struct State {
    jobs: [Option<Entry>; JOBS],
    /// The number of threads that all jobs together still want.
    wanted: usize,
    /// The number of threads.
    threads: usize,
    /// The threads that wait for `start`.
    asleep: Sleepers,
    /// The number of users that wait for `done`.
    waiting: usize,
    /// Whether threads should end instead of wait; only loom models close a pool.
    is_closed: bool,
}

/// Calls to make; in the frame of the thread that wants them.
struct Job<'a> {
    call: &'a (dyn Fn(usize) + Sync),
    count: usize,
    /// The number of the next call.
    next: AtomicUsize,
}

/// A job in the pool.
struct Entry {
    job: *const Job<'static>,
    /// Maximal number of further helping threads.
    wanted: usize,
    panic: Option<Box<dyn Any + Send>>,
}

// SAFETY: the job's function may be called from several threads, and it lives until all have finished, for which `run`
// waits.
unsafe impl Send for Entry {}

impl Job<'_> {
    /// Makes calls until none is left.
    fn take_calls(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                return;
            }
            (self.call)(number);
        }
    }
}

impl Pool {
    fn run(&'static self, threads: usize, count: usize, call: &(dyn Fn(usize) + Sync)) {
        let job = Job { call, count, next: AtomicUsize::new(0) };
        let Some(place) = self.add(&job, threads.min(count) - 1) else { return (0..count).for_each(call) };
        let own = catch_unwind(AssertUnwindSafe(|| job.take_calls()));
        let panic = self.withdraw(place);
        if let Some(panic) = own.err().or(panic) {
            resume_unwind(panic);
        }
    }

    /// Gives a job to the threads; its place, unless there are too many jobs. The caller must call `withdraw` before
    /// the job ends.
    fn add(&'static self, job: &Job<'_>, helpers: usize) -> Option<usize> {
        let mut state = self.with_threads(helpers);
        let place = state.jobs.iter().position(Option::is_none)?;
        // Only the lifetime is erased: `withdraw` waits until no thread has the job and none can get it.
        let job = std::ptr::from_ref(job).cast::<Job<'static>>();
        state.jobs[place] = Some(Entry { job, wanted: helpers, panic: None });
        state.wanted += helpers;
        self.announce(state, helpers);
        Some(place)
    }

    /// The lock on the pool, which has so many threads if they can be started.
    fn with_threads(&'static self, helpers: usize) -> MutexGuard<'static, State> {
        let mut state = lock(&self.state);
        while state.threads < helpers && self.spawn() {
            state.threads += 1;
            let threads = state.threads;
            state.asleep.reserve(threads);
        }
        state
    }

    /// Begins a round: threads look for a job, and so many of those that sleep are woken.
    fn announce(&self, mut state: MutexGuard<'_, State>, helpers: usize) {
        self.round.fetch_add(1, Ordering::Release);
        let (here, asleep) = (processor(), state.asleep.count());
        self.waking.store(here, Ordering::Relaxed);
        state.asleep.keep_off(here);
        drop(state);
        match asleep {
            0 => {}
            _ if helpers >= asleep => self.start.notify_all(),
            _ => (0..helpers).for_each(|_| self.start.notify_one()),
        }
    }

    /// Withdraws a job and waits for the threads that have it; returns the panic of one of them.
    fn withdraw(&self, place: usize) -> Option<Box<dyn Any + Send>> {
        let mut state = lock(&self.state);
        let unmet = state.jobs[place].as_mut().map_or(0, |entry| std::mem::take(&mut entry.wanted));
        state.wanted -= unmet;
        let active = &self.active[place];
        if active.load(Ordering::Acquire) > 0 && !AWAKE.is_zero() {
            drop(state);
            spin_while(PATIENCE, || active.load(Ordering::Acquire) > 0);
            state = lock(&self.state);
        }
        while active.load(Ordering::Acquire) > 0 {
            state.waiting += 1;
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.jobs[place].take().and_then(|entry| entry.panic)
    }

    /// Starts a thread; if that fails, fewer threads give the same results.
    fn spawn(&'static self) -> bool {
        Builder::new().name("opsmith".to_owned()).spawn(move || self.work()).is_ok()
    }

    /// The loop of each thread.
    fn work(&self) {
        IS_HELPER.set(true);
        let thread = ThreadId::of_this_thread();
        let mut state = lock(&self.state);
        while let Some((place, job)) = self.next_job(thread, state) {
            // SAFETY: `withdraw` waits until this thread, which is counted as active, leaves the count below.
            let job = unsafe { &*job };
            let result = catch_unwind(AssertUnwindSafe(|| job.take_calls()));
            state = lock(&self.state);
            if let (Err(panic), Some(entry)) = (result, &mut state.jobs[place]) {
                entry.panic.get_or_insert(panic);
            }
            if self.active[place].fetch_sub(1, Ordering::AcqRel) == 1 && state.waiting > 0 {
                // Every waiting user of the pool: each looks for its own job.
                self.done.notify_all();
            }
        }
    }

    /// Waits for a job that wants another thread, and joins it; `None` at the end of the pool.
    fn next_job<'a>(
        &'a self,
        thread: ThreadId,
        mut state: MutexGuard<'a, State>,
    ) -> Option<(usize, *const Job<'static>)> {
        loop {
            if let Some(found) = self.join_job(&mut state) {
                return Some(found);
            }
            if state.is_closed {
                return None;
            }
            let seen = self.round.load(Ordering::Acquire);
            drop(state);
            if !AWAKE.is_zero() {
                self.ready.fetch_add(1, Ordering::Relaxed);
                spin_while(AWAKE, || self.round.load(Ordering::Acquire) == seen);
                self.ready.fetch_sub(1, Ordering::Relaxed);
            }
            if self.round.load(Ordering::Acquire) == seen {
                self.sleep_after(seen, thread);
            } else {
                // Awake beside the thread that announced a job: one of the two would wait for the other.
                let announcing = self.waking.load(Ordering::Relaxed);
                if announcing == processor() {
                    Sleeper::leave(thread, announcing);
                }
            }
            state = lock(&self.state);
        }
    }

    /// Sleeps until a thread is wanted, unless a round has begun after this one.
    fn sleep_after(&self, seen: u64, thread: ThreadId) {
        // Without the lock, since the thread may have to move.
        let mut sleeper = Sleeper::new(thread);
        sleeper.keep_off(self.waking.load(Ordering::Relaxed));
        let mut state = lock(&self.state);
        let awake = if self.round.load(Ordering::Acquire) == seen {
            state.asleep.add(sleeper);
            state = self.start.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.asleep.remove(thread)
        } else {
            Some(sleeper)
        };
        drop(state);
        awake.into_iter().for_each(Sleeper::roam);
    }

    /// Joins the first job that wants another thread.
    fn join_job(&self, state: &mut State) -> Option<(usize, *const Job<'static>)> {
        if state.wanted == 0 {
            return None;
        }
        let mut jobs = state.jobs.iter_mut().enumerate();
        let (place, entry) = jobs.find_map(|(place, entry)| {
            entry.as_mut().filter(|entry| entry.wanted > 0).map(|entry| (place, entry))
        })?;
        entry.wanted -= 1;
        state.wanted -= 1;
        self.active[place].fetch_add(1, Ordering::AcqRel);
        Some((place, entry.job))
    }
}

/// Waits while a condition holds, for so long at most. The length of a turn differs between processors by a factor of ten, and a question
/// for the time may take as long as many of them.
fn spin_while(limit: Duration, condition: impl Fn() -> bool) {
    const TURNS: usize = 500;
    let start = Instant::now();
    while start.elapsed() < limit {
        for _ in 0..TURNS {
            if !condition() {
                return;
            }
            spin_loop();
        }
        // The thread that is waited for may be waiting for this processor.
        yield_now();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, loom))]
mod model;
