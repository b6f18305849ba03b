//! Copies of the process by `fork`, as programs of Python make them while other threads compute.
//!
//! In: nothing. Out: a copy of the process whose pool of threads and cache of memory work. The copy has one thread, so a lock that
//! another thread held at that moment would stay locked, and helpers would be waited for that do not exist. Must not know tensors.

/// Makes later copies of the process usable: they start threads of their own. A program that never forks while other threads run needs no
/// call. On systems other than Linux it does nothing.
pub fn keep_usable() {
    #[cfg(all(target_os = "linux", not(loom)))]
    linux::register();
}

#[cfg(all(target_os = "linux", not(loom)))]
mod linux {
    use std::cell::RefCell;
    use std::sync::Once;

    use crate::allocator::HeldCache;
    use crate::parallel::HeldPool;

    thread_local! {
        /// The locks that this thread holds while it copies the process.
        static HELD: RefCell<Option<(HeldPool, HeldCache)>> = const { RefCell::new(None) };
    }

    pub fn register() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the functions are of this program, and unwind nowhere.
            _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        });
    }

    unsafe extern "C" fn before() {
        // A thread that is ending has no locals any more, and does not copy the process.
        _ = HELD.try_with(|held| held.replace(Some((HeldPool::lock(), HeldCache::lock()))));
    }

    unsafe extern "C" fn in_parent() {
        _ = HELD.try_with(|held| drop(held.take()));
    }

    unsafe extern "C" fn in_child() {
        _ = HELD.try_with(|held| {
            if let Some((mut pool, cache)) = held.take() {
                pool.forget_threads();
                drop((pool, cache));
            }
        });
    }
}
