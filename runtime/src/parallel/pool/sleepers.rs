//! The pool's sleeping threads, and the processors on which they wake.
//!
//! In: threads that fall asleep, and one that wakes them. Out: none wakes on the processor that this one keeps busy. A scheduler
//! that takes all other processors to be busy, as that of a virtual machine takes those that are halted, wakes a thread on the
//! processor of the waking one, and moves it when it balances loads the next time: until then, for tens of milliseconds, two
//! threads take turns on one processor beside an idle one. Elsewhere than on Linux, the scheduler decides alone.

#[cfg(all(target_os = "linux", not(any(loom, miri))))]
pub(super) use linux::{Sleeper, ThreadId, processor};
#[cfg(not(all(target_os = "linux", not(any(loom, miri)))))]
pub(super) use other::{Sleeper, ThreadId, processor};

/// The number of no processor.
pub(super) const NONE: usize = usize::MAX;

/// The threads that sleep.
pub(super) struct Sleepers(Vec<Sleeper>);

impl Sleepers {
    pub const fn new() -> Sleepers {
        Sleepers(Vec::new())
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Makes room for so many threads, so that none allocates when it falls asleep.
    pub fn reserve(&mut self, threads: usize) {
        self.0.reserve(threads.saturating_sub(self.0.len()));
    }

    pub fn add(&mut self, sleeper: Sleeper) {
        self.0.push(sleeper);
    }

    pub fn remove(&mut self, thread: ThreadId) -> Option<Sleeper> {
        let place = self.0.iter().position(|sleeper| sleeper.thread() == thread)?;
        Some(self.0.swap_remove(place))
    }

    /// Forgets threads that do not exist in a copy of the process.
    #[cfg(all(target_os = "linux", not(loom)))]
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Keeps all from waking on a processor.
    pub fn keep_off(&mut self, processor: usize) {
        self.0.iter_mut().for_each(|sleeper| sleeper.keep_off(processor));
    }
}

#[cfg(all(target_os = "linux", not(any(loom, miri))))]
mod linux {
    use std::mem::MaybeUninit;

    /// A thread, as the kernel numbers it.
    #[derive(Clone, Copy, PartialEq)]
    pub struct ThreadId(libc::pid_t);

    impl ThreadId {
        pub fn of_this_thread() -> ThreadId {
            // SAFETY: the call has no arguments and cannot fail.
            ThreadId(unsafe { libc::gettid() })
        }
    }

    /// The number of the calling thread's processor.
    pub fn processor() -> usize {
        // SAFETY: the call has no arguments.
        usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(super::NONE)
    }

    /// A thread that sleeps.
    pub struct Sleeper {
        thread: ThreadId,
        /// The processor on which it does not wake, and those that it may run on when it is awake.
        kept_off: Option<(usize, libc::cpu_set_t)>,
    }

    impl Sleeper {
        pub fn new(thread: ThreadId) -> Sleeper {
            Sleeper { thread, kept_off: None }
        }

        pub fn thread(&self) -> ThreadId {
            self.thread
        }

        /// Keeps the thread from waking on a processor. Where the kernel refuses, or there is no other processor, nothing changes.
        pub fn keep_off(&mut self, processor: usize) {
            if processor >= libc::CPU_SETSIZE as usize
                || self.kept_off.is_some_and(|(known, _)| known == processor)
            {
                return;
            }
            self.let_roam();
            let Some(usual) = self.allowed() else { return };
            let others = without(usual, processor);
            // SAFETY: the set is initialised.
            if unsafe { libc::CPU_COUNT(&others) } > 0 && self.allow(&others) {
                self.kept_off = Some((processor, usual));
            }
        }

        /// Lets the thread, which is awake, run on all of its processors again.
        pub fn roam(mut self) {
            self.let_roam();
        }

        fn let_roam(&mut self) {
            let Some((processor, usual)) = self.kept_off.take() else { return };
            // Unless another program, such as `taskset`, has given it other processors in the meantime.
            // SAFETY: both sets are initialised.
            let is_ours = |now| unsafe { libc::CPU_EQUAL(&now, &without(usual, processor)) };
            if self.allowed().is_some_and(is_ours) {
                self.allow(&usual);
            }
        }

        /// Moves the calling thread to another processor, if there is one.
        pub fn leave(thread: ThreadId, processor: usize) {
            let mut moved = Sleeper::new(thread);
            moved.keep_off(processor);
            moved.roam();
        }

        fn allowed(&self) -> Option<libc::cpu_set_t> {
            let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
            // SAFETY: the kernel writes at most so many bytes.
            let status = unsafe {
                libc::sched_getaffinity(self.thread.0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr())
            };
            // SAFETY: a set is bits, which are zero where the kernel wrote none.
            (status == 0).then(|| unsafe { set.assume_init() })
        }

        fn allow(&self, set: &libc::cpu_set_t) -> bool {
            // SAFETY: the kernel reads so many bytes.
            unsafe { libc::sched_setaffinity(self.thread.0, size_of::<libc::cpu_set_t>(), set) == 0 }
        }
    }

    /// A set without one of its processors.
    fn without(mut set: libc::cpu_set_t, processor: usize) -> libc::cpu_set_t {
        if processor < libc::CPU_SETSIZE as usize {
            // SAFETY: the set has a bit for each processor below its size.
            unsafe { libc::CPU_CLR(processor, &mut set) };
        }
        set
    }

    #[cfg(test)]
    mod tests {
        use std::sync::mpsc::channel;

        use super::*;

        #[test]
        fn a_thread_wakes_on_another_processor_and_may_roam_after() {
            let (to_sleeper, wakes) = channel();
            let (to_waker, sleeps) = channel();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let thread = ThreadId::of_this_thread();
                    let usual = Sleeper::new(thread).allowed().unwrap();
                    // SAFETY: the set is initialised.
                    let several = unsafe { libc::CPU_COUNT(&usual) } > 1;
                    for _ in 0..20 {
                        let mut sleeper = Sleeper::new(thread);
                        sleeper.keep_off(processor());
                        to_waker.send(sleeper).unwrap();
                        let (there, sleeper): (usize, Sleeper) = wakes.recv().unwrap();
                        assert_eq!(processor() != there, several, "{there}");
                        sleeper.roam();
                        let now = Sleeper::new(thread).allowed().unwrap();
                        // SAFETY: both sets are initialised.
                        assert!(unsafe { libc::CPU_EQUAL(&now, &usual) });
                    }
                });
                // The waking thread is on any processor, also on the one where the other fell asleep.
                for _ in 0..20 {
                    let mut sleeper = sleeps.recv().unwrap();
                    let here = processor();
                    sleeper.keep_off(here);
                    to_sleeper.send((here, sleeper)).unwrap();
                }
            });
        }

        #[test]
        fn processors_that_others_give_a_sleeping_thread_stay() {
            let check = || {
                let thread = ThreadId::of_this_thread();
                let mut sleeper = Sleeper::new(thread);
                let usual = sleeper.allowed().unwrap();
                // SAFETY: the set is initialised.
                if unsafe { libc::CPU_COUNT(&usual) } < 2 {
                    return;
                }
                let first = processor();
                sleeper.keep_off(first);
                // As `taskset` does: the thread may run where it was, and nowhere else.
                let others = without(usual, first);
                let mut given = usual;
                for number in 0..libc::CPU_SETSIZE as usize {
                    // SAFETY: the set has a bit for each number.
                    if unsafe { libc::CPU_ISSET(number, &others) } {
                        given = without(given, number);
                    }
                }
                assert!(sleeper.allow(&given));
                sleeper.roam();
                let now = Sleeper::new(thread).allowed().unwrap();
                // SAFETY: both sets are initialised.
                assert!(unsafe { libc::CPU_EQUAL(&now, &given) });
            };
            // A thread of its own, whose processors no other test shares.
            std::thread::spawn(check).join().unwrap();
        }
    }
}

#[cfg(not(all(target_os = "linux", not(any(loom, miri)))))]
mod other {
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A thread.
    #[derive(Clone, Copy, PartialEq)]
    pub struct ThreadId(usize);

    impl ThreadId {
        pub fn of_this_thread() -> ThreadId {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            ThreadId(NEXT.fetch_add(1, Ordering::Relaxed))
        }
    }

    /// The number of the calling thread's processor, which is not known.
    pub fn processor() -> usize {
        super::NONE
    }

    /// A thread that sleeps.
    pub struct Sleeper(ThreadId);

    impl Sleeper {
        pub fn new(thread: ThreadId) -> Sleeper {
            Sleeper(thread)
        }

        pub fn thread(&self) -> ThreadId {
            self.0
        }

        pub fn keep_off(&mut self, _processor: usize) {}

        pub fn roam(self) {}

        pub fn leave(_thread: ThreadId, _processor: usize) {}
    }
}
