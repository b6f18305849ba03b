//! Reference-counted memory shared by a tensor and its views.
//!
//! The header precedes the data in one block, so a small tensor costs one cached allocation. It has two words that make
//! sharing safe: a borrow state (readers, or one writer) that kernels hold while they run, and a version counter that
//! grows with every write, by which automatic differentiation detects that a saved tensor was changed. Must not know
//! tensors, operators or tracers; the borrows of a call belong to the dispatcher (`dispatch::borrows`).
//!
//! The header is always on the host. Data on a device, or from another library, belongs to an owner that the header
//! keeps.

use std::ptr::NonNull;

use opsmith_core::Backend;

use crate::allocator::{self, ALIGNMENT, Block};
use crate::backend::{Address, DeviceMemory, PinnedMemory, Work};
use crate::device::Device;
use crate::embedder;
use crate::error::{Error, Result};
use crate::sync::Backoff;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// A handle to shared memory; cloning counts references.
pub struct Storage(NonNull<Header>);

#[repr(C, align(64))]
struct Header {
    references: AtomicUsize,
    version: AtomicU64,
    /// Number of readers, plus [`WRITER`] while a writer is active.
    borrow: AtomicU32,
    class: u32,
    bytes: usize,
    data: *mut u8,
    /// The name of the form that last wrote, for messages.
    writer: AtomicPtr<&'static str>,
    /// The owner of memory outside the header's block; lives as long as the storage.
    owner: Option<Box<dyn Owner>>,
}

/// The owner of memory outside a header's block.
trait Owner: Send + Sync {
    /// The memory, if it is on a device.
    fn on_device(&self) -> Option<&DeviceMemory> {
        None
    }

    /// The memory, if it is pinned memory of the host.
    fn pinned(&self) -> Option<&PinnedMemory> {
        None
    }
}

impl Owner for DeviceMemory {
    fn on_device(&self) -> Option<&DeviceMemory> {
        Some(self)
    }
}

impl Owner for PinnedMemory {
    fn pinned(&self) -> Option<&PinnedMemory> {
        Some(self)
    }
}

/// An external owner of host memory.
struct Keeper<T>(T);

impl<T: Send + Sync> Owner for Keeper<T> {}

const WRITER: u32 = 1 << 31;
const HEADER_SIZE: usize = size_of::<Header>();
// Loom's atomics are larger.
const _: () = assert!(
    (HEADER_SIZE == allocator::HEADROOM || cfg!(loom) && HEADER_SIZE < allocator::HEADROOM)
        && HEADER_SIZE.is_multiple_of(ALIGNMENT)
);

// SAFETY: the words of the header are atomic or never change, its owner is `Send` and `Sync`, and the last handle may
// drop it in any thread. The data is not dereferenced here; code that does holds the borrow state.
unsafe impl Send for Storage {}
// SAFETY: `&Storage` gives the atomic words, constants, and an address.
unsafe impl Sync for Storage {}

impl Storage {
    /// Memory for `bytes` bytes of arbitrary content: every byte is initialised, so every dtype but `bool` may be read
    /// from it.
    ///
    /// # Errors
    /// If the system has not enough memory.
    #[inline]
    pub fn uninitialized(bytes: usize) -> Result<Storage> {
        let Some(block) = allocator::allocate(bytes) else {
            return Err(out_of_memory(bytes));
        };
        // SAFETY: the block is larger than the header.
        let data = unsafe { block.pointer.as_ptr().add(HEADER_SIZE) };
        Ok(Self::with_header(block, bytes, data, None))
    }

    /// Memory for `bytes` bytes of arbitrary content on a device, initialised as far as the device distinguishes that.
    ///
    /// # Errors
    /// If the device does not exist, or its memory is exhausted.
    #[inline]
    pub fn on(device: Device, bytes: usize) -> Result<Storage> {
        match device.backend {
            Backend::Cpu => Storage::uninitialized(bytes),
            _ => Storage::on_device(device, bytes),
        }
    }

    #[cold]
    fn on_device(device: Device, bytes: usize) -> Result<Storage> {
        Storage::of_memory(DeviceMemory::new(device, bytes)?, bytes)
    }

    fn of_memory(memory: DeviceMemory, bytes: usize) -> Result<Storage> {
        let block = allocator::allocate(0).ok_or_else(|| out_of_memory(0))?;
        let data = memory.start();
        Ok(Self::with_header(block, bytes, data, Some(Box::new(memory))))
    }

    /// Pinned memory of the host for `bytes` bytes of arbitrary content.
    ///
    /// # Errors
    /// If no linked crate provides such memory, or there is not enough.
    pub(crate) fn pinned(bytes: usize) -> Result<Storage> {
        let memory = PinnedMemory::new(bytes)?;
        let block = allocator::allocate(0).ok_or_else(|| out_of_memory(0))?;
        let data = memory.start();
        Ok(Self::with_header(block, bytes, data, Some(Box::new(memory))))
    }

    /// Host memory that `owner` keeps alive, for instance an array received from another library.
    ///
    /// # Safety
    /// `data` is valid for reads and writes of `bytes` bytes while `owner` lives, all of them initialised, no other
    /// code writes to it in that time, and it is aligned for the elements of tensors over it (16 bytes are enough for
    /// every dtype).
    pub unsafe fn external<T: Send + Sync + 'static>(data: *mut u8, bytes: usize, owner: T) -> Storage {
        // The header alone is a hundred bytes; without memory for it no program can continue.
        let block = allocator::allocate(0)
            .unwrap_or_else(|| std::alloc::handle_alloc_error(std::alloc::Layout::new::<Header>()));
        Self::with_header(block, bytes, data, Some(Box::new(Keeper(owner))))
    }

    /// As [`Storage::external`], on a device: elements are in the device's memory.
    ///
    /// # Errors
    /// As [`DeviceMemory::new`]; or if there is no memory for the header.
    ///
    /// # Safety
    /// As [`DeviceMemory::external`]; the memory is aligned for the elements of tensors over it, and initialised.
    pub unsafe fn external_on<T: Send + Sync + 'static>(
        device: Device,
        data: NonNull<u8>,
        bytes: usize,
        owner: T,
    ) -> Result<Storage> {
        // SAFETY: the caller's promise.
        let memory = unsafe { DeviceMemory::external(device, data, bytes, owner)? };
        Storage::of_memory(memory, bytes)
    }

    /// The device of the memory.
    pub fn device(&self) -> Device {
        self.device_memory().map_or(Device::CPU, DeviceMemory::device)
    }

    /// The memory, if it is on a device other than the host.
    pub fn device_memory(&self) -> Option<&DeviceMemory> {
        self.header().owner.as_ref()?.on_device()
    }

    /// The memory, if it is pinned memory of the host.
    pub(crate) fn pinned_memory(&self) -> Option<&PinnedMemory> {
        self.header().owner.as_ref()?.pinned()
    }

    /// Submits a copy of this pinned memory to a device, which is a reader, as the caller is, until
    /// [`Storage::finish_reads_of_devices`]. If the caller's borrow is for writing, or other code writes without one, the copy is
    /// waited for.
    ///
    /// # Errors
    /// Errors of the device.
    ///
    /// # Safety
    /// As [`PinnedMemory::send`]; the caller has a borrow.
    pub(crate) unsafe fn send(
        &self,
        memory: &PinnedMemory,
        work: &Work,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { memory.send(work, to, from, bytes, || self.try_read())? };
        if memory.is_exposed() { self.finish_reads_of_devices() } else { Ok(()) }
    }

    /// Waits for copies of pinned memory to devices, before the host writes to it.
    ///
    /// # Errors
    /// If this thread cannot wait now, as while it records work of a device.
    #[cold]
    pub(crate) fn finish_reads_of_devices(&self) -> Result<()> {
        if let Some(memory) = self.pinned_memory()
            && memory.finish_reads()?
        {
            self.end_read();
        }
        Ok(())
    }

    /// Takes note that other code has the address, and may write there without a borrow: copies of pinned memory to devices are
    /// waited for from now on.
    ///
    /// # Errors
    /// If this thread cannot wait now, as while it records work of a device.
    pub fn expose(&self) -> Result<()> {
        if let Some(memory) = self.pinned_memory() {
            memory.expose();
            self.finish_reads_of_devices()?;
        }
        Ok(())
    }

    /// Meta storage: a size in bytes and no data, for tensors of traced functions. It cannot be borrowed.
    pub(crate) fn meta(bytes: usize) -> Result<Storage> {
        let block = allocator::allocate(0).ok_or_else(|| out_of_memory(0))?;
        let storage = Self::with_header(block, bytes, std::ptr::null_mut(), Some(Box::new(Keeper(()))));
        storage.header().borrow.store(WRITER, Ordering::Relaxed);
        Ok(storage)
    }

    /// True for meta storage (no data).
    #[inline]
    pub fn is_meta(&self) -> bool {
        self.header().data.is_null()
    }

    #[inline]
    fn with_header(block: Block, bytes: usize, data: *mut u8, owner: Option<Box<dyn Owner>>) -> Storage {
        let header = block.pointer.cast::<Header>();
        // SAFETY: the block is aligned and large enough for a header, and not shared yet.
        unsafe {
            header.as_ptr().write(Header {
                references: AtomicUsize::new(1),
                version: AtomicU64::new(0),
                borrow: AtomicU32::new(0),
                class: block.class,
                bytes,
                data,
                writer: AtomicPtr::new(std::ptr::null_mut()),
                owner,
            });
        }
        Storage(header)
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the header lives while a handle does.
        unsafe { self.0.as_ref() }
    }

    /// Start of the data, in the address space of its device.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.header().data
    }

    /// Size of the data in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.header().bytes
    }

    /// Whether both handles refer to the same memory.
    #[inline]
    pub fn same(&self, other: &Storage) -> bool {
        self.0 == other.0
    }

    /// Identity: a number that no other storage has while a handle lives.
    pub(crate) fn address(&self) -> usize {
        self.0.addr().get()
    }

    /// Number of handles.
    pub fn references(&self) -> usize {
        self.header().references.load(Ordering::Relaxed)
    }

    /// The version counter: grows by one with every write by an operator.
    #[inline]
    pub fn version(&self) -> u64 {
        self.header().version.load(Ordering::Relaxed)
    }

    /// Excludes readers and writers until [`Storage::unlock`]; waits for present ones.
    pub(crate) fn lock(&self) {
        let mut backoff = Backoff::with(embedder::sleep);
        while !self.try_write() {
            // A thread that records work of a device cannot wait for it; another may.
            _ = self.finish_reads_of_devices();
            backoff.wait();
        }
    }

    /// Ends [`Storage::lock`], or a borrow for writing without a write.
    pub(crate) fn unlock(&self) {
        self.header().borrow.store(0, Ordering::Release);
    }

    /// Counts a future write of a traced function.
    pub(crate) fn count_write(&self) {
        self.header().version.fetch_add(1, Ordering::Relaxed);
    }

    /// Stores the name of the form that changed the memory.
    #[inline]
    pub(crate) fn set_last_writer(&self, name: &'static &'static str) {
        self.header().writer.store(std::ptr::from_ref(name).cast_mut(), Ordering::Relaxed);
    }

    /// The name of the form that changed the memory last, if it was an operator's.
    pub(crate) fn last_writer(&self) -> Option<&'static str> {
        let writer = self.header().writer.load(Ordering::Relaxed);
        // SAFETY: the pointer is null or came from a reference to static data.
        unsafe { writer.as_ref() }.copied()
    }

    /// Enters as a reader; fails while a writer is active.
    #[inline]
    pub(crate) fn try_read(&self) -> bool {
        let borrow = &self.header().borrow;
        // The load may be old: a writer that it shows counts only if the exchange finds it.
        let mut readers = borrow.load(Ordering::Relaxed);
        if readers >= WRITER {
            readers = 0;
        }
        loop {
            // A refused read writes nothing: under a writer, the word changes by the writer alone.
            match borrow.compare_exchange_weak(readers, readers + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) if now >= WRITER => return false,
                Err(now) => readers = now,
            }
        }
    }

    /// Leaves as a reader.
    #[inline]
    pub(crate) fn end_read(&self) {
        self.header().borrow.fetch_sub(1, Ordering::Release);
    }

    /// Enters as the writer; fails while a reader or writer is active.
    #[inline]
    pub(crate) fn try_write(&self) -> bool {
        self.header().borrow.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Leaves as the writer and raises the version.
    #[inline]
    pub(crate) fn end_write(&self) {
        let header = self.header();
        // Only the writer changes them, so loads and stores are enough.
        header.version.store(header.version.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        header.borrow.store(0, Ordering::Release);
    }
}

#[cold]
fn out_of_memory(bytes: usize) -> Error {
    Error::memory(format!("there is no memory for a tensor of {bytes} bytes"))
        .with_help("use a smaller shape or dtype, or free other tensors")
}

impl Clone for Storage {
    #[inline]
    fn clone(&self) -> Storage {
        self.header().references.fetch_add(1, Ordering::Relaxed);
        Storage(self.0)
    }
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        // The only handle needs no atomic subtraction: no other thread can change the count.
        let references = &self.header().references;
        if references.load(Ordering::Acquire) != 1 {
            if references.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            fence(Ordering::Acquire);
        }
        let Header { class, bytes, ref owner, .. } = *self.header();
        let block = Block { pointer: self.0.cast(), class, bytes: if owner.is_some() { 0 } else { bytes } };
        // SAFETY: this was the last handle; the block came from the allocator.
        unsafe {
            std::ptr::drop_in_place(&raw mut (*self.0.as_ptr()).owner);
            allocator::free(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let storage = Storage::uninitialized(16).unwrap();
        assert!(storage.try_read() && storage.try_read());
        assert!(!storage.try_write());
        storage.end_read();
        storage.end_read();
        assert!(storage.try_write());
        assert!(!storage.try_read());
        assert_eq!(storage.version(), 0);
        storage.end_write();
        assert_eq!(storage.version(), 1);
    }

    #[test]
    fn an_external_owner_is_dropped_with_the_last_handle() {
        struct Owner(std::sync::Arc<AtomicUsize>, Vec<u8>);
        impl Drop for Owner {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let drops = std::sync::Arc::new(AtomicUsize::new(0));
        let mut owner = Box::new(Owner(drops.clone(), vec![1, 2, 3]));
        let data = owner.1.as_mut_ptr();
        // SAFETY: the vector's buffer does not move while the owner lives.
        let storage = unsafe { Storage::external(data, 3, owner) };
        let second = storage.clone();
        drop(storage);
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(second);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }
}
