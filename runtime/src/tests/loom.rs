//! Models of data shared between threads, run by loom in every order of steps that the memory model allows.
//!
//! In: the code itself, with loom's atomics (`crate::sync`). Out: a failure if an order exists in which two threads
//! access the same bytes, wait for ever, or lose each other's records. Only `scripts/loom.sh` runs them. Each comment
//! lists the manual mutants that its model detects. Data guarded by a lock alone (the process's cache of blocks) and
//! thread-local data (a thread's cache) have no model.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex as StdMutex, OnceLock};

use loom::cell::UnsafeCell;
use loom::thread;
use opsmith_core::Backend;

use crate::allocator::live::{Counters, count};
use crate::backend::{Address, DeviceMemory, DeviceRuntime, Elements, Queue, StreamId, Ticket, Work};
use crate::dispatch::Borrows;
use crate::error::Result;
use crate::shared::Shared;
use crate::storage::Storage;
use crate::sync::Brief;
use crate::{Arg, Device, Scalar, Tensor};

/// A storage, and bytes tracked by loom in place of its own.
struct Watched {
    storage: Storage,
    bytes: UnsafeCell<u32>,
}

// SAFETY: the bytes are accessed under the storage's borrow only, which the models verify.
unsafe impl Sync for Watched {}

impl Watched {
    fn new() -> Arc<Watched> {
        Arc::new(Watched { storage: Storage::uninitialized(4).unwrap(), bytes: UnsafeCell::new(0) })
    }

    fn read(&self) -> Option<u32> {
        self.storage.try_read().then(|| {
            // SAFETY: borrowed for reading.
            let seen = self.bytes.with(|bytes| unsafe { *bytes });
            self.storage.end_read();
            seen
        })
    }

    fn write(&self) -> bool {
        let entered = self.storage.try_write();
        if entered {
            // SAFETY: borrowed for writing.
            self.bytes.with_mut(|bytes| unsafe { *bytes += 1 });
            self.storage.end_write();
        }
        entered
    }
}

/// Detected mutants: `end_read` or `end_write` with `Relaxed` in place of `Release`, `try_read` or `try_write` with
/// `Relaxed` in place of `Acquire`, and a writer that enters despite readers.
#[test]
fn a_writer_is_alone_and_readers_see_its_bytes() {
    loom::model(|| {
        let shared = Watched::new();
        let others: Vec<_> = (0..2)
            .map(|number| {
                let shared = shared.clone();
                thread::spawn(move || {
                    if number == 0 { u32::from(shared.write()) } else { shared.read().unwrap_or(0) }
                })
            })
            .collect();
        let wrote = u32::from(shared.write());
        let seen: Vec<u32> = others.into_iter().map(|other| other.join().unwrap()).collect();
        assert_eq!(shared.read(), Some(wrote + seen[0]), "a reader that was refused left its mark");
        assert!(seen[1] <= 2 && shared.storage.version() == u64::from(wrote + seen[0]));
    });
}

/// Detected mutants: `try_write`, by which `lock` enters, with `Relaxed`, and `unlock` with `Relaxed`.
#[test]
fn a_lock_waits_for_readers() {
    loom::model(|| {
        let shared = Watched::new();
        let reader = thread::spawn({
            let shared = shared.clone();
            move || shared.read()
        });
        shared.storage.lock();
        // SAFETY: locked.
        shared.bytes.with_mut(|bytes| unsafe { *bytes = 7 });
        shared.storage.unlock();
        assert!(matches!(reader.join().unwrap(), None | Some(0 | 7)));
        assert_eq!(shared.read(), Some(7));
    });
}

/// The last handle frees the memory after every other thread's last use. Detected mutants: the subtraction in `drop`
/// with `Relaxed`, the fence after it removed, the load before it with `Relaxed`.
#[test]
fn the_last_handle_comes_after_all_uses() {
    /// Records a use, and the end of all uses when dropped.
    struct Uses(Arc<Watch>);
    struct Watch(UnsafeCell<()>);
    // SAFETY: loom reports two threads that access it concurrently.
    unsafe impl Sync for Watch {}
    // SAFETY: as `Sync`; it has no other data.
    unsafe impl Send for Watch {}
    impl Drop for Uses {
        fn drop(&mut self) {
            self.0.0.with_mut(|_| ());
        }
    }
    loom::model(|| {
        let watch = Arc::new(Watch(UnsafeCell::new(())));
        // SAFETY: the address is never dereferenced, and there are no bytes.
        let storage =
            unsafe { Storage::external(NonNull::<u8>::dangling().as_ptr(), 0, Uses(watch.clone())) };
        let other = thread::spawn({
            let (storage, watch) = (storage.clone(), watch.clone());
            move || {
                watch.0.with(|_| ());
                drop(storage);
            }
        });
        watch.0.with(|_| ());
        drop(storage);
        other.join().unwrap();
    });
}

/// A value that threads use, and that writes when it is dropped.
struct Used(UnsafeCell<u32>);

// SAFETY: loom reports two threads that access it concurrently, one of them for writes.
unsafe impl Sync for Used {}

impl Used {
    fn look(&self) -> u32 {
        // SAFETY: nothing writes at the same time, which the models verify.
        self.0.with(|value| unsafe { *value })
    }

    fn set(&self, new: u32) {
        // SAFETY: nothing else has access at the same time, which the models verify.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        assert_eq!(self.look(), 7, "dropped twice");
        self.set(0);
    }
}

/// A shared value is dropped once, after every use through another handle, one made of a weak handle among them. Detected
/// mutants: the load in `drop` or `get_mut` with `Relaxed`, the subtraction in `give_up` with `Relaxed`, the fence in
/// `drop_value` removed.
#[test]
fn a_shared_value_is_dropped_after_all_uses() {
    loom::model(|| {
        let mut handle = Shared::new(Used(UnsafeCell::new(7)));
        let others = [handle.clone(), handle.clone()].map(|other| {
            thread::spawn(move || {
                assert_eq!(other.look(), 7);
                drop(other);
            })
        });
        if let Some(alone) = Shared::get_mut(&mut handle) {
            alone.set(7);
        }
        drop(handle);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    loom::model(|| {
        let handle = Shared::new(Used(UnsafeCell::new(7)));
        let weak = Shared::downgrade(&handle);
        let other = thread::spawn(move || weak.upgrade().map_or(7, |handle| handle.look()));
        drop(handle);
        assert_eq!(other.join().unwrap(), 7);
    });
}

/// One thread at a time has the value of a brief lock. Detected mutants: either step with `Relaxed`.
#[test]
fn a_brief_lock_is_held_by_one() {
    loom::model(|| {
        let lock = Arc::new(Brief::<Used>::default());
        let add = |lock: &Brief<Used>| {
            let value = lock.lock();
            value.set(value.look() + 7);
        };
        let other = thread::spawn({
            let lock = lock.clone();
            move || add(&lock)
        });
        add(&lock);
        other.join().unwrap();
        let value = lock.lock();
        assert_eq!(value.look(), 14);
        value.set(7);
    });
}

impl Default for Used {
    fn default() -> Used {
        Used(UnsafeCell::new(0))
    }
}

/// Two calls that borrow two storages in opposite order both finish. Detected mutant: a call that keeps its borrows
/// while it waits for the rest (`abandon_writes` removed).
#[test]
fn calls_take_all_or_none() {
    loom::model(|| {
        let (a, b) = (Tensor::of(&[0i64]), Tensor::of(&[0i64]));
        let other = thread::spawn({
            let (a, b) = (a.clone(), b.clone());
            move || drop(Borrows::acquire(&[Arg::Tensor(&a)], std::slice::from_ref(&b)).unwrap())
        });
        drop(Borrows::acquire(&[Arg::Tensor(&b)], std::slice::from_ref(&a)).unwrap());
        other.join().unwrap();
        assert_eq!((a.version(), b.version()), (1, 1));
        assert!(a.storage().try_write() && b.storage().try_write());
    });
}

/// A tensor that is replaced while another thread borrows it keeps one storage and one layout until the borrow ends,
/// and the borrow of that same storage is ended. Detected mutants: the second check of the storage in
/// `borrows::try_read` removed, `become_like` without the lock, the part published with `Relaxed`, the replacement
/// counted before the part is published.
#[test]
fn a_borrowed_tensor_is_not_replaced() {
    loom::model(|| {
        let tensor = Tensor::of::<i64>(&[]);
        let (first, made) = (tensor.storage().clone(), Tensor::of(&[1i64, 2]));
        let other = thread::spawn({
            let (tensor, made) = (tensor.clone(), made.clone());
            move || assert!(tensor.become_like(&made, false))
        });
        let since = crate::tensor::replacements();
        let inferred = tensor.numel();
        let args = [Arg::Tensor(&tensor)];
        {
            let _held = Borrows::acquire(&args, &[]).unwrap();
            let (numel, storage) = (tensor.numel(), tensor.storage().clone());
            assert!(numel == inferred || tensor.is_replaced_since(since));
            thread::yield_now();
            assert_eq!((tensor.numel(), tensor.shape()[0]), (numel, numel));
            assert!(
                tensor.storage().same(&storage)
                    && storage.same(if numel == 0 { &first } else { made.storage() })
            );
        }
        other.join().unwrap();
        assert_eq!(tensor.numel(), 2);
        assert!(first.try_write() && made.storage().try_write());
    });
}

/// Of two threads that replace one tensor, one succeeds. Detected mutant: `become_like` without the check of the number
/// of elements.
#[test]
fn a_tensor_gets_elements_once() {
    loom::model(|| {
        let tensor = Tensor::of::<i64>(&[]);
        let other = thread::spawn({
            let tensor = tensor.clone();
            move || tensor.become_like(&Tensor::of(&[1i64]), false)
        });
        let this = tensor.become_like(&Tensor::of(&[1i64, 2]), false);
        assert!(this != other.join().unwrap());
        assert_eq!(tensor.numel(), if this { 2 } else { 1 });
    });
}

/// A thread that ends is counted once. Detected mutant: its count is added before the lock is taken.
#[test]
fn an_ending_thread_is_counted_once() {
    loom::model(|| {
        let counters = Arc::new(Counters::new());
        let other = thread::spawn({
            let counters = counters.clone();
            move || {
                let counter = counters.begin();
                count(&counter, 4);
                counters.end(&counter);
            }
        });
        assert!(matches!(counters.sum(), 0 | 4));
        other.join().unwrap();
        assert_eq!(counters.sum(), 4);
    });
}

/// A device with a stream per thread. A ticket denotes the progress of all streams at a point.
struct Streams;

static TICKETS: OnceLock<StdMutex<Tickets>> = OnceLock::new();

#[derive(Default)]
struct Tickets {
    /// By ticket, the progress of each stream that it is after.
    after: Vec<u8>,
    /// By stream, the progress of those that it follows, including itself.
    followed: [u8; 2],
}

fn tickets<R>(look: impl FnOnce(&mut Tickets) -> R) -> R {
    look(&mut TICKETS.get_or_init(StdMutex::default).lock().unwrap())
}

// SAFETY: allocations are plain numbers, and no memory is accessed.
unsafe impl DeviceRuntime for Streams {
    fn allocate(&self, _: u16, _: usize) -> Result<NonNull<u8>> {
        Ok(NonNull::dangling())
    }

    unsafe fn release(&self, _: u16, _: NonNull<u8>, _: usize, last_use: Ticket) {
        assert_eq!(
            tickets(|tickets| tickets.after[last_use.0 as usize - 1]),
            0b11,
            "a use comes after the release"
        );
    }

    unsafe fn transfer(&self, _: Queue, _: Address, _: Address, _: usize) -> Result<()> {
        unreachable!("nothing moves")
    }

    unsafe fn convert(&self, _: Queue, _: Elements<'_>, _: Elements<'_>) -> Result<()> {
        unreachable!("nothing is converted")
    }

    unsafe fn fill(&self, _: Queue, _: Elements<'_>, _: Scalar) -> Result<()> {
        unreachable!("nothing is filled")
    }

    unsafe fn accumulate(&self, _: Queue, _: Elements<'_>, _: Elements<'_>) -> Result<()> {
        unreachable!("nothing is added")
    }

    fn stream(&self, _: u16) -> Result<StreamId> {
        Ok(StreamId(0))
    }

    fn ticket(&self, queue: Queue) -> Result<Ticket> {
        tickets(|tickets| {
            tickets.after.push(tickets.followed[queue.stream.0 as usize]);
            Ok(Ticket(tickets.after.len() as u64))
        })
    }

    fn follow(&self, queue: Queue, ticket: Ticket) -> Result<()> {
        tickets(|tickets| tickets.followed[queue.stream.0 as usize] |= tickets.after[ticket.0 as usize - 1]);
        Ok(())
    }

    fn wait(&self, _: u16, _: Ticket) -> Result<()> {
        unreachable!("nobody waits")
    }
}

/// The last use is after the uses of both streams. Detected mutants: a store in place of `compare_exchange`, and the
/// loop without `follow` after a failed exchange.
#[test]
fn the_last_use_comes_after_all() {
    loom::model(|| {
        tickets(|tickets| *tickets = Tickets { after: Vec::new(), followed: [0, 0] });
        let device = Device { backend: Backend::Cuda, index: 0 };
        let memory = Arc::new(DeviceMemory::of_runtime(&Streams, device, 4).unwrap());
        // The ticket of the allocation is after neither use.
        tickets(|tickets| tickets.followed = [0b01, 0b10]);
        let work = |stream| Work::of_queue(&Streams, Queue { device: 0, stream: StreamId(stream) });
        let other = thread::spawn({
            let memory = memory.clone();
            move || memory.note_use(&work(1)).unwrap()
        });
        memory.note_use(&work(0)).unwrap();
        other.join().unwrap();
        drop(memory);
    });
}
