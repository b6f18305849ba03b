//! Models of the pool of threads, run by loom in every order of steps that the memory model allows.
//!
//! In: the pool itself, with loom's locks and atomics. Out: a failure if an order exists in which a call is made twice
//! or not at all, a thread uses a function that has ended, or a thread waits for ever. Only `scripts/loom.sh` runs
//! them. Each model's comment lists the manual mutants that it has detected.

use loom::cell::UnsafeCell;

use super::*;

/// A pool that lives as long as the program, like the program's own.
fn leaked() -> &'static Pool {
    Box::leak(Box::new(pool!(std::array::from_fn(|_| AtomicUsize::new(0)))))
}

/// Ends the pool's threads, so that the model ends.
fn close(pool: &'static Pool) {
    {
        let mut state = lock(&pool.state);
        state.is_closed = true;
        pool.round.fetch_add(1, Ordering::Release);
    }
    pool.start.notify_all();
}

/// Numbers tracked by loom: the count of calls of each.
struct Calls(Vec<UnsafeCell<u32>>);

// SAFETY: loom reports two threads that access one number concurrently.
unsafe impl Sync for Calls {}

impl Calls {
    fn new(count: usize) -> Calls {
        Calls((0..count).map(|_| UnsafeCell::new(0)).collect())
    }

    fn note(&self, number: usize) {
        // SAFETY: each number is called once, which the models verify.
        self.0[number].with_mut(|calls| unsafe { *calls += 1 });
    }

    fn all_are(&mut self, wanted: u32) {
        for calls in &self.0 {
            // SAFETY: no job runs.
            calls.with_mut(|calls| assert_eq!(unsafe { *calls }, wanted));
        }
    }
}

/// A second job finds the thread of the first, asleep or about to sleep. Detected mutants: `withdraw` without the wait
/// for active threads, and without withdrawing the job. A job whose round grows outside of the lock passes: a thread
/// that misses it leaves its calls to the others.
#[test]
fn each_number_of_two_jobs_is_called_once() {
    loom::model(|| {
        let pool = leaked();
        for _ in 0..2 {
            let mut calls = Calls::new(2);
            pool.run(2, 2, &|number| calls.note(number));
            calls.all_are(1);
        }
        close(pool);
    });
}

/// A job within a call of a job, which the pool's thread helps with wherever calls are left. Detected mutant: `withdraw`
/// with a notification of one thread alone, which may be the other job's user.
#[test]
fn a_job_within_a_job_ends() {
    loom::model(|| {
        let pool = leaked();
        let mut calls = Calls::new(4);
        pool.run(2, 2, &|outer| pool.run(2, 2, &|inner| calls.note(2 * outer + inner)));
        calls.all_are(1);
        close(pool);
    });
}

/// Two threads help with one job. Detected mutant: `take_calls` with a load and a store in place of `fetch_add`.
#[test]
fn two_helpers_and_their_user_share_the_numbers() {
    loom::model(|| {
        let pool = leaked();
        let mut calls = Calls::new(2);
        pool.run(3, 2, &|number| calls.note(number));
        calls.all_are(1);
        close(pool);
    });
}

/// Found a defect: a panic poisoned the pool's lock, after which every run was single-threaded. Detected mutants: a
/// panic that is not caught in `work`, and one that `withdraw` leaves for the next job.
#[test]
fn a_panic_of_a_helper_reaches_the_user_and_the_pool_goes_on() {
    loom::model(|| {
        let pool = leaked();
        let caught = catch_unwind(AssertUnwindSafe(|| {
            pool.run(2, 2, &|number| {
                if number == 1 {
                    resume_unwind(Box::new("a call failed"));
                }
            });
        }));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"a call failed"));
        let mut calls = Calls::new(2);
        pool.run(2, 2, &|number| calls.note(number));
        calls.all_are(1);
        close(pool);
    });
}
