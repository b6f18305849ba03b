//! Borrows of the storages of a call.
//!
//! In: the tensors that an operation reads and those that it writes. Out: all storages borrowed while the operation
//! runs, or an error where a traced function has no elements. Must not know operators or tracers.

use super::observer;
use crate::arg::Arg;
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::sync::Backoff;
use crate::tensor::Tensor;

/// The storages an operation reads and writes, borrowed while it runs.
///
/// Borrows all or none, so that operations cannot deadlock. A storage that is written is not also borrowed for reading;
/// one that is read twice is counted twice.
///
/// Another thread may replace a tensor without elements (as an out form does), for which it borrows the tensor's
/// storage for writing. Such tensors are therefore checked again after their storage was borrowed: from then on storage
/// and layout stay the same until the borrow ends.
pub struct Borrows<'a> {
    reads: &'a [Arg<'a>],
    writes: &'a [Tensor],
}

impl<'a> Borrows<'a> {
    /// Borrows the storages of the tensors among `reads`, and those of `writes`, waiting while other
    /// threads use them.
    ///
    /// # Errors
    /// If a storage has no elements because it belongs to a traced function.
    #[inline]
    pub fn acquire(reads: &'a [Arg<'a>], writes: &'a [Tensor]) -> Result<Borrows<'a>> {
        if !try_acquire(reads, writes) {
            wait(reads, writes)?;
        }
        Ok(Borrows { reads, writes })
    }
}

/// Waits for storages borrowed by other threads, then borrows them.
#[cold]
fn wait(reads: &[Arg<'_>], writes: &[Tensor]) -> Result<()> {
    let mut backoff = Backoff::default();
    loop {
        refuse_meta(reads, writes)?;
        backoff.wait();
        if try_acquire(reads, writes) {
            return Ok(());
        }
    }
}

#[cold]
fn refuse_meta(reads: &[Arg<'_>], writes: &[Tensor]) -> Result<()> {
    let mut meta = writes.iter().any(|tensor| tensor.storage().is_meta());
    let mut changed = writes.iter().any(|tensor| observer::is_stale(tensor.storage()));
    for arg in reads {
        arg.for_each_tensor(|tensor| {
            meta |= tensor.storage().is_meta();
            changed |= observer::is_stale(tensor.storage());
        });
    }
    if changed {
        return Err(Error::graph("the traced function changes a tensor, and then asks for its elements")
            .with_help("they exist when the graph runs: compute with the tensor instead of its elements"));
    }
    if !meta {
        return Ok(());
    }
    Err(Error::graph("a tensor of a traced function has no elements: they exist when the graph runs")
        .with_help("compute with the tensor instead of its elements; branch with `graph::cond`"))
}

/// Whether an earlier tensor of the list uses the same storage.
#[inline]
fn is_repeated(writes: &[Tensor], index: usize) -> bool {
    writes[..index].iter().any(|earlier| earlier.storage().same(writes[index].storage()))
}

#[inline]
fn is_written(writes: &[Tensor], storage: &Storage) -> bool {
    writes.iter().any(|tensor| tensor.storage().same(storage))
}

#[inline]
fn for_each_read<'a>(reads: &[Arg<'a>], writes: &[Tensor], mut visit: impl FnMut(&'a Tensor)) {
    for arg in reads {
        arg.for_each_tensor(|tensor| {
            if !is_written(writes, tensor.storage()) {
                visit(tensor);
            }
        });
    }
}

/// Borrows a tensor's storage for reading.
#[inline]
fn try_read(tensor: &Tensor) -> bool {
    let (storage, is_final) = tensor.storage_to_borrow();
    if !storage.try_read() {
        return false;
    }
    let shown = is_final || tensor.storage().same(storage);
    if !shown {
        storage.end_read();
    }
    shown
}

/// Borrows a tensor's storage for writing.
#[inline]
fn try_write(tensor: &Tensor) -> bool {
    let (storage, is_final) = tensor.storage_to_borrow();
    if !storage.try_write() {
        return false;
    }
    let shown = is_final || tensor.storage().same(storage);
    if !shown {
        storage.unlock();
    }
    shown
}

#[inline]
fn try_acquire(reads: &[Arg<'_>], writes: &[Tensor]) -> bool {
    for (index, tensor) in writes.iter().enumerate() {
        if !is_repeated(writes, index) && !try_write(tensor) {
            abandon_writes(&writes[..index]);
            return false;
        }
    }
    let (mut held, mut refused) = (0usize, false);
    for_each_read(reads, writes, |tensor| {
        if !refused {
            if try_read(tensor) { held += 1 } else { refused = true }
        }
    });
    if refused {
        for_each_read(reads, writes, |tensor| {
            if held > 0 {
                tensor.storage().end_read();
                held -= 1;
            }
        });
        abandon_writes(writes);
    }
    !refused
}

/// Ends borrows for writing without a write.
#[cold]
fn abandon_writes(writes: &[Tensor]) {
    for (index, tensor) in writes.iter().enumerate() {
        if !is_repeated(writes, index) {
            tensor.storage().unlock();
        }
    }
}

impl Drop for Borrows<'_> {
    #[inline]
    fn drop(&mut self) {
        for_each_read(self.reads, self.writes, |tensor| tensor.storage().end_read());
        for (index, tensor) in self.writes.iter().enumerate() {
            if !is_repeated(self.writes, index) {
                tensor.storage().end_write();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_in_many_threads_exclude_each_other() {
        let tensor = Tensor::of(&[0i64]);
        let storage = tensor.storage();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let _held = Borrows::acquire(&[], std::slice::from_ref(&tensor)).unwrap();
                        // SAFETY: borrowed for writing.
                        unsafe { *storage.data().cast::<u64>() += 1 };
                    }
                });
            }
        });
        // SAFETY: the threads have ended.
        assert_eq!(unsafe { *storage.data().cast::<u64>() }, 4000);
        assert_eq!(storage.version(), 4000);
    }

    /// Processor time of this thread, as reported by Linux.
    #[cfg(target_os = "linux")]
    fn processor_time() -> std::time::Duration {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        std::time::Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_long_wait_costs_no_processor() {
        let tensor = Tensor::of(&[0i64]);
        let held = Borrows::acquire(&[], std::slice::from_ref(&tensor)).unwrap();
        let spent = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let before = processor_time();
                drop(Borrows::acquire(&[Arg::Tensor(&tensor)], &[]).unwrap());
                processor_time() - before
            });
            std::thread::sleep(std::time::Duration::from_millis(400));
            drop(held);
            waiting.join().unwrap()
        });
        assert!(spent.as_millis() < 100, "{spent:?} of 400 ms");
    }
}
