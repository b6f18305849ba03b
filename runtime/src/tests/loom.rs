//! Models of what threads share, run by loom in every order of steps that the memory model allows.
//!
//! In: the code itself, with loom's atomics (`crate::sync`). Out: a failure if an order exists in which two threads touch
//! the same bytes, wait for ever, or lose what another noted. Only `scripts/loom.sh` runs them. Each names mutants, made
//! by hand, that it was seen to find. What only a lock guards (the process's cache of blocks) and what no other thread
//! sees (a thread's cache) has no model.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex as StdMutex, OnceLock};

use loom::cell::UnsafeCell;
use loom::thread;
use opsmith_core::Backend;

use crate::allocator::live::{Counters, count};
use crate::backend::{Address, DeviceMemory, DeviceRuntime, Elements, Queue, StreamId, Ticket, Work};
use crate::dispatch::Borrows;
use crate::error::Result;
use crate::storage::Storage;
use crate::{Arg, Device, Scalar, Tensor};

/// A storage, and bytes that loom watches in place of its own.
struct Watched {
    storage: Storage,
    bytes: UnsafeCell<u32>,
}

// SAFETY: the bytes are touched under the storage's borrow alone, which is what the models look at.
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

/// Found mutants: `end_read` or `end_write` with `Relaxed` in place of `Release`, `try_read` or `try_write` with
/// `Relaxed` in place of `Acquire`, and a writer that enters whatever the readers.
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

/// Found mutants: `try_write`, by which `lock` enters, with `Relaxed`, and `unlock` with `Relaxed`.
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

/// The last handle frees the memory after every other thread's last use. Found mutants: the subtraction in `drop` with
/// `Relaxed`, the fence after it removed, the load before it with `Relaxed`.
#[test]
fn the_last_handle_comes_after_all_uses() {
    /// Notes a use, and at the end that there is none any more.
    struct Uses(Arc<Watch>);
    struct Watch(UnsafeCell<()>);
    // SAFETY: loom says whether two threads are at it at once.
    unsafe impl Sync for Watch {}
    // SAFETY: as `Sync`; there is nothing in it.
    unsafe impl Send for Watch {}
    impl Drop for Uses {
        fn drop(&mut self) {
            self.0.0.with_mut(|_| ());
        }
    }
    loom::model(|| {
        let watch = Arc::new(Watch(UnsafeCell::new(())));
        // SAFETY: nobody follows the address, and there are no bytes.
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

/// Two calls that want two storages in opposite order both come to an end. Found mutant: a call that keeps what it has
/// while it waits for the rest (`abandon_writes` left out).
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

/// A tensor that is replaced while another thread borrows it shows one storage and one layout until the borrow ends,
/// and gives back the borrow of the storage that was borrowed. Found mutants: the second look at the storage in
/// `borrows::try_read` left out, `become_like` without the lock, the part put in place with `Relaxed`, the replacement
/// counted before the part is in place.
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

/// Of two threads that replace one tensor, one does. Found mutant: `become_like` without the look at the number of
/// elements.
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

/// A thread that ends is in the sum once. Found mutant: what it counted is added before the lock is taken.
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

/// A device of which each thread has a stream. A ticket stands for the streams that have come so far.
struct Streams;

static TICKETS: OnceLock<StdMutex<Tickets>> = OnceLock::new();

#[derive(Default)]
struct Tickets {
    /// By ticket, the streams whose work it comes after.
    after: Vec<u8>,
    /// By stream, those that it follows, itself too.
    followed: [u8; 2],
}

fn tickets<R>(look: impl FnOnce(&mut Tickets) -> R) -> R {
    look(&mut TICKETS.get_or_init(StdMutex::default).lock().unwrap())
}

// SAFETY: nothing is allocated from it but numbers, and no memory is touched.
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

/// The last use comes after the uses of both streams. Found mutants: a store in place of `compare_exchange`, and the
/// loop without `follow` after it was refused.
#[test]
fn the_last_use_comes_after_all() {
    loom::model(|| {
        tickets(|tickets| *tickets = Tickets { after: Vec::new(), followed: [0b01, 0b10] });
        let device = Device { backend: Backend::Cuda, index: 0 };
        let memory = Arc::new(DeviceMemory::of_runtime(&Streams, device, 4).unwrap());
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
