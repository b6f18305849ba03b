//! The order between a thread that marks itself busy before it reads a flag, and one that clears the flag before it reads marks: one of
//! both sees the other's write.
//!
//! The first is done at every call, the second at the end of a session. Where Linux orders the memory of all threads of a process
//! on request (`membarrier`), the second asks for it and the first costs a plain store; else both are ordered by themselves.

use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

/// Whether the system orders memory on request. Set before the first session, and never unset.
static ON_REQUEST: AtomicBool = AtomicBool::new(false);

/// Asks the system once whether it orders memory on request. Before the flag is set for the first time.
pub(super) fn prepare() {
    if !ON_REQUEST.load(Ordering::Relaxed) && system::register() {
        ON_REQUEST.store(true, Ordering::SeqCst);
    }
}

/// Sets a mark before whatever this thread reads next.
#[inline(always)]
pub(super) fn store_before_load(mark: &AtomicBool) {
    if ON_REQUEST.load(Ordering::Relaxed) {
        mark.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    } else {
        mark.store(true, Ordering::SeqCst);
    }
}

/// Orders this thread's writes before its reads, and those of the other threads.
pub(super) fn load_after_store() {
    fence(Ordering::SeqCst);
    if ON_REQUEST.load(Ordering::Relaxed) && !system::order() {
        // It was registered, and the request cannot fail then; if it does, marks of this moment may be missed for as long as a
        // store takes.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[cfg(target_os = "linux")]
mod system {
    /// `MEMBARRIER_CMD_PRIVATE_EXPEDITED`.
    const ORDER: libc::c_int = 1 << 3;
    /// `MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED`.
    const REGISTER: libc::c_int = 1 << 4;

    fn request(command: libc::c_int) -> bool {
        // SAFETY: the system call takes numbers alone, and reads or writes no memory of the program.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    pub fn register() -> bool {
        request(REGISTER) && order()
    }

    pub fn order() -> bool {
        request(ORDER)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub fn register() -> bool {
        false
    }

    pub fn order() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Two threads, each of which writes its own flag and reads the other's: at least one sees the other, every time.
    #[test]
    fn one_of_two_threads_sees_the_other() {
        prepare();
        for _ in 0..2000 {
            let (mark, flag, start) = (AtomicBool::new(false), AtomicBool::new(true), Barrier::new(2));
            let (went_on, seen) = std::thread::scope(|scope| {
                let caller = scope.spawn(|| {
                    start.wait();
                    store_before_load(&mark);
                    flag.load(Ordering::Relaxed)
                });
                start.wait();
                flag.store(false, Ordering::SeqCst);
                load_after_store();
                let seen = mark.load(Ordering::SeqCst);
                (caller.join().unwrap(), seen)
            });
            assert!(seen || !went_on);
        }
    }
}
