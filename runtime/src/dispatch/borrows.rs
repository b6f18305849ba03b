//! Borrows of the storages of a call.
//!
//! In: the tensors that an operation reads and those that it writes. Out: all storages borrowed while the operation
//! runs, or an error where a traced function has no elements. Must not know operators or tracers.

use super::observer;
use crate::arg::Arg;
use crate::embedder;
use crate::error::{Error, Result};
use crate::scratch::Scratch;
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
#[derive(Default)]
pub struct Borrows<'a> {
    /// The storages that are read, one as often as it was borrowed.
    reads: Storages<'a>,
    /// The storages that are written, each once.
    writes: Storages<'a>,
}

/// Storages of an operation: of most a few, and of lists of tensors more, in cached memory, so that a warm graph does not
/// allocate.
#[derive(Default)]
struct Storages<'a> {
    /// The first ones.
    few: [Option<&'a Storage>; FEW],
    count: usize,
    more: Option<Scratch<&'a Storage>>,
}

/// Most storages that need no memory of their own.
const FEW: usize = 6;

impl<'a> Storages<'a> {
    #[inline]
    fn push(&mut self, storage: &'a Storage) {
        match self.few.get_mut(self.count) {
            Some(place) => *place = Some(storage),
            None => self.push_more(storage),
        }
        self.count += 1;
    }

    #[cold]
    #[inline(never)]
    fn push_more(&mut self, storage: &'a Storage) {
        self.more.get_or_insert_with(Scratch::new).push(storage);
    }

    #[inline]
    fn for_each(&self, mut visit: impl FnMut(&'a Storage)) {
        self.few.iter().map_while(|storage| *storage).for_each(&mut visit);
        if let Some(more) = &self.more {
            more.iter().for_each(|storage| visit(storage));
        }
    }

    #[inline]
    fn contains(&self, storage: &Storage) -> bool {
        if self.count == 0 {
            return false;
        }
        let mut found = false;
        self.for_each(|other| found |= other.same(storage));
        found
    }
}

/// Tensors that an operation reads: among arguments, or on their own.
pub(crate) trait Reads<'a>: Copy {
    /// Calls `visit` with each tensor until it returns `false`; whether it never did.
    fn all(self, visit: impl FnMut(&'a Tensor) -> bool) -> bool;
}

impl<'a> Reads<'a> for &[Arg<'a>] {
    #[inline(always)]
    fn all(self, mut visit: impl FnMut(&'a Tensor) -> bool) -> bool {
        let mut all = true;
        for arg in self {
            arg.for_each_tensor(|tensor| all = all && visit(tensor));
        }
        all
    }
}

impl<'a> Reads<'a> for &[&'a Tensor] {
    #[inline(always)]
    fn all(self, visit: impl FnMut(&'a Tensor) -> bool) -> bool {
        self.iter().copied().all(visit)
    }
}

impl<'a> Borrows<'a> {
    /// Borrows the storages of the tensors among `reads`, and those of `writes`, waiting while other
    /// threads use them.
    ///
    /// # Errors
    /// If a storage has no elements because it belongs to a traced function.
    pub fn acquire(reads: &[Arg<'a>], writes: &'a [Tensor]) -> Result<Borrows<'a>> {
        let mut held = Borrows::default();
        held.add(reads, writes)?;
        Ok(held)
    }

    /// As [`Borrows::acquire`], for a value that has no borrows yet and stays where it is, since it is long to move.
    #[inline(always)]
    pub(crate) fn add(&mut self, reads: impl Reads<'a>, writes: &'a [Tensor]) -> Result<()> {
        if self.try_acquire(reads, writes) { Ok(()) } else { self.wait(reads, writes) }
    }

    /// Waits for storages borrowed by other threads, and for devices that read those to be written, then borrows them.
    #[cold]
    #[inline(never)]
    fn wait(&mut self, reads: impl Reads<'a>, writes: &'a [Tensor]) -> Result<()> {
        let mut backoff = Backoff::with(embedder::sleep);
        loop {
            refuse_meta(reads, writes)?;
            for tensor in writes {
                tensor.storage().finish_reads_of_devices()?;
            }
            if self.try_acquire(reads, writes) {
                return Ok(());
            }
            backoff.wait();
        }
    }

    /// Borrows all, or none.
    #[inline(always)]
    fn try_acquire(&mut self, reads: impl Reads<'a>, writes: &'a [Tensor]) -> bool {
        let is_acquired =
            writes.iter().all(|tensor| self.try_write(tensor)) && reads.all(|tensor| self.try_read(tensor));
        if !is_acquired {
            self.abandon();
        }
        is_acquired
    }

    /// Borrows a tensor's storage for reading, unless it is borrowed for writing.
    #[inline]
    fn try_read(&mut self, tensor: &'a Tensor) -> bool {
        let (storage, is_final) = tensor.storage_to_borrow();
        if self.writes.contains(storage) {
            return true;
        }
        if !storage.try_read() {
            return false;
        }
        self.reads.push(storage);
        is_final || tensor.storage().same(storage)
    }

    /// Borrows a tensor's storage for writing, once.
    #[inline]
    fn try_write(&mut self, tensor: &'a Tensor) -> bool {
        let (storage, is_final) = tensor.storage_to_borrow();
        if self.writes.contains(storage) {
            return true;
        }
        if !storage.try_write() {
            return false;
        }
        self.writes.push(storage);
        is_final || tensor.storage().same(storage)
    }

    /// Ends borrows for writing that wrote nothing, and those for reading.
    #[cold]
    fn abandon(&mut self) {
        self.reads.for_each(Storage::end_read);
        self.writes.for_each(Storage::unlock);
        self.reads = Storages::default();
        self.writes = Storages::default();
    }
}

/// The storages of a call's few operands and of the tensor that it writes, as [`Borrows`], without a list of their own: each
/// tensor has elements, so that it is never replaced, and its storage is the same when the borrow ends.
pub(crate) struct OperandBorrows<'a> {
    reads: &'a [&'a Tensor],
    write: Option<&'a Storage>,
}

impl<'a> OperandBorrows<'a> {
    /// Borrows all, or none: `None` if a storage is in use, or a tensor has no elements.
    #[inline(always)]
    pub fn try_acquire(reads: &'a [&'a Tensor], write: Option<&'a Tensor>) -> Option<OperandBorrows<'a>> {
        let write = match write.map(Tensor::storage_to_borrow) {
            Some((storage, is_final)) if is_final && storage.try_write() => Some(storage),
            Some(_) => return None,
            None => None,
        };
        for (number, tensor) in reads.iter().enumerate() {
            let (storage, is_final) = tensor.storage_to_borrow();
            let is_written = write.is_some_and(|written| written.same(storage));
            if !(is_final && (is_written || storage.try_read())) {
                abandon_operands(&reads[..number], write);
                return None;
            }
        }
        Some(OperandBorrows { reads, write })
    }
}

impl Drop for OperandBorrows<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        end_reads(self.reads, self.write);
        if let Some(storage) = self.write {
            storage.end_write();
        }
    }
}

#[inline(always)]
fn end_reads(reads: &[&Tensor], write: Option<&Storage>) {
    for tensor in reads {
        let storage = tensor.storage();
        if write.is_none_or(|written| !written.same(storage)) {
            storage.end_read();
        }
    }
}

/// Ends a borrow for writing that wrote nothing, and those for reading.
#[cold]
fn abandon_operands(reads: &[&Tensor], write: Option<&Storage>) {
    end_reads(reads, write);
    if let Some(storage) = write {
        storage.unlock();
    }
}

#[cold]
fn refuse_meta<'a>(reads: impl Reads<'a>, writes: &[Tensor]) -> Result<()> {
    let mut meta = writes.iter().any(|tensor| tensor.storage().is_meta());
    let mut changed = writes.iter().any(|tensor| observer::is_stale(tensor.storage()));
    reads.all(|tensor| {
        meta |= tensor.storage().is_meta();
        changed |= observer::is_stale(tensor.storage());
        true
    });
    if changed {
        return Err(Error::without_elements(
            "the traced function changes a tensor, and then asks for its elements",
        )
        .with_help("they exist when the graph runs: compute with the tensor instead of its elements"));
    }
    if !meta {
        return Ok(());
    }
    Err(Error::without_elements(
        "a tensor of a traced function has no elements: they exist when the graph runs",
    )
    .with_help("compute with the tensor instead of its elements; branch with `graph::cond`"))
}

impl Drop for Borrows<'_> {
    #[inline]
    fn drop(&mut self) {
        self.reads.for_each(Storage::end_read);
        self.writes.for_each(Storage::end_write);
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

    /// Whether no code has a borrow of the tensor's storage.
    fn is_free(tensor: &Tensor) -> bool {
        let free = tensor.storage().try_write();
        if free {
            tensor.storage().unlock();
        }
        free
    }

    #[test]
    fn borrows_of_operands_are_all_or_none_and_end() {
        let [a, b, out] = [1.0f32, 2.0, 3.0].map(|element| Tensor::of(&[element]));
        let (view, empty) = (a.detach(), Tensor::of::<f32>(&[]));
        let all_free = || [&a, &b, &out].into_iter().all(is_free);
        {
            let operands = [&a, &b, &a, &view];
            let _held = OperandBorrows::try_acquire(&operands, Some(&out)).unwrap();
            assert!(!is_free(&a) && !is_free(&b) && !is_free(&out));
            assert!(b.storage().try_read() && !out.storage().try_read());
            b.storage().end_read();
        }
        assert!(all_free() && out.version() == 1 && a.version() == 0);
        // An operand that is written as well, through another tensor of its storage.
        drop(OperandBorrows::try_acquire(&[&view, &b], Some(&a)).unwrap());
        assert!(all_free() && a.version() == 1);
        // The last operand is written by others, or has no elements and might be replaced.
        let written = Borrows::acquire(&[], std::slice::from_ref(&b)).unwrap();
        assert!(OperandBorrows::try_acquire(&[&a, &b], Some(&out)).is_none());
        drop(written);
        assert!(OperandBorrows::try_acquire(&[&a, &empty], Some(&out)).is_none());
        assert!(OperandBorrows::try_acquire(&[&a], Some(&empty)).is_none());
        assert!(all_free() && out.version() == 1 && is_free(&empty));
    }

    /// Processor time of this thread, as reported by Linux.
    #[cfg(target_os = "linux")]
    fn processor_time() -> std::time::Duration {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        std::time::Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[cfg_attr(miri, ignore = "measures the processor's time")]
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
