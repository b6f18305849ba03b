//! The part of a tensor that an out form may replace: memory and layout.
//!
//! An out form gives a tensor without elements the result's shape, visible through every handle. Other threads may be
//! reading the old shape, so the old part stays in memory until the last handle is dropped: parts form a list behind
//! the first, and the newest is current.
//!
//! Code that needs matching memory and layout reads one part ([`Tensor::body`], once), or borrows the tensor's storage,
//! without which no replacement happens. A call that inferred shapes before it borrowed checks
//! [`Tensor::is_replaced_since`].

use super::Tensor;
use crate::layout::{
    Dims, Layout, copied, has_contiguous_strides, is_contiguous, numel, same_sizes, write_contiguous_strides,
    write_copied,
};
use crate::storage::Storage;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Memory and layout of a tensor. The fields that a kernel reads for elements in row-major order come first: with those
/// of a tensor before them they fill one cache line.
#[repr(C)]
pub(super) struct Body {
    pub storage: Storage,
    /// Address of the first element, which follows from storage, offset and dtype, so that no call computes it again.
    start: *mut u8,
    pub numel: i64,
    /// Whether the elements lie in row-major order without gaps.
    pub contiguous: bool,
    /// Whether the strides are exactly those of a new tensor, too.
    pub like_new: bool,
    /// Number of dimensions, of more than 255 that number: most tensors' shapes are compared without their sizes.
    pub dims: u8,
    pub layout: Layout,
}

// SAFETY: the address lies in the storage's data, is not dereferenced here, and changes only with the storage or the
// offset; the other fields are `Send`.
unsafe impl Send for Body {}
// SAFETY: as above; `&Body` gives a copy of the address.
unsafe impl Sync for Body {}

impl Body {
    /// Memory and layout of elements of the given size in bytes.
    #[inline]
    pub fn new(storage: Storage, layout: Layout, size: usize) -> Body {
        let (numel, contiguous) = (layout.numel(), layout.is_contiguous());
        let like_new = contiguous && has_contiguous_strides(&layout.sizes, &layout.strides);
        let (start, dims) = (first_element(&storage, layout.offset, size), few_dims(&layout.sizes));
        Body { storage, start, numel, contiguous, like_new, dims, layout }
    }

    /// Whether the shape is that of another part.
    #[inline(always)]
    pub fn has_shape_of(&self, other: &Body) -> bool {
        self.numel == other.numel
            && self.dims == other.dims
            && (self.dims <= 1 || same_sizes(&self.layout.sizes, &other.layout.sizes))
    }

    /// Address of the first element.
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Switches to other memory, and moves the offset by a number of elements of this size in bytes.
    pub fn point_at(&mut self, storage: &Storage, elements: i64, size: usize) {
        if !self.storage.same(storage) {
            self.storage = storage.clone();
        }
        self.layout.offset += elements;
        self.start = first_element(&self.storage, self.layout.offset, size);
    }

    /// Writes a row-major part over memory for `numel` elements, field by field at its final address.
    ///
    /// # Safety
    /// `place` is valid for writes and uninitialised.
    #[inline]
    pub unsafe fn write_contiguous(place: *mut Body, storage: Storage, sizes: &[i64], numel: i64) {
        // SAFETY: `place` is valid for writes, as the caller promises; every field is written exactly once, and the one
        // that is borrowed was written just before.
        unsafe {
            (&raw mut (*place).start).write(storage.data());
            (&raw mut (*place).storage).write(storage);
            (&raw mut (*place).layout.sizes).write(Dims::new());
            (&raw mut (*place).layout.strides).write(Dims::new());
            // A list made elsewhere would be moved here before its bytes are there.
            (*place).layout.sizes.extend_from_slice(sizes);
            write_contiguous_strides(sizes, &mut (*place).layout.strides);
            (&raw mut (*place).layout.offset).write(0);
            (&raw mut (*place).numel).write(numel);
            (&raw mut (*place).contiguous).write(true);
            (&raw mut (*place).like_new).write(true);
            (&raw mut (*place).dims).write(few_dims(sizes));
        }
    }

    /// Writes a copy of another part over this memory, from this element of so many bytes on, field by field at its final
    /// address.
    ///
    /// # Safety
    /// The place is valid for writes; nothing of it was written before.
    #[inline]
    pub unsafe fn write_alike(place: *mut Body, storage: Storage, other: &Body, offset: i64, size: usize) {
        // SAFETY: the place is valid for writes, as the caller promises; every field is written exactly once.
        unsafe {
            (&raw mut (*place).start).write(first_element(&storage, offset, size));
            (&raw mut (*place).storage).write(storage);
            (&raw mut (*place).layout.sizes).write(copied(&other.layout.sizes));
            (&raw mut (*place).layout.strides).write(copied(&other.layout.strides));
            (&raw mut (*place).layout.offset).write(offset);
            (&raw mut (*place).numel).write(other.numel);
            (&raw mut (*place).contiguous).write(other.contiguous);
            (&raw mut (*place).like_new).write(other.like_new);
            (&raw mut (*place).dims).write(other.dims);
        }
    }

    /// Writes a part with a copy of a layout, of elements of this size in bytes, field by field at its final address.
    ///
    /// # Safety
    /// The place is valid for writes; nothing of it was written before.
    #[inline]
    pub unsafe fn write_layout(
        place: *mut Body,
        storage: Storage,
        dims: [&Dims; 2],
        offset: i64,
        size: usize,
    ) {
        let [sizes, strides] = dims;
        let contiguous = is_contiguous(sizes, strides);
        // SAFETY: the place is valid for writes, as the caller promises; every field is written exactly once.
        unsafe {
            (&raw mut (*place).start).write(first_element(&storage, offset, size));
            (&raw mut (*place).storage).write(storage);
            write_copied(&raw mut (*place).layout.sizes, sizes);
            write_copied(&raw mut (*place).layout.strides, strides);
            (&raw mut (*place).layout.offset).write(offset);
            (&raw mut (*place).numel).write(numel(sizes));
            (&raw mut (*place).contiguous).write(contiguous);
            let like_new = contiguous && has_contiguous_strides(sizes, strides);
            (&raw mut (*place).like_new).write(like_new);
            (&raw mut (*place).dims).write(few_dims(sizes));
        }
    }

    /// Takes over memory and layout of another part.
    pub fn copy_from(&mut self, other: &Body) {
        self.storage.clone_from(&other.storage);
        self.layout.clone_from(&other.layout);
        (self.start, self.dims) = (other.start, other.dims);
        (self.numel, self.contiguous, self.like_new) = (other.numel, other.contiguous, other.like_new);
    }
}

/// The number of dimensions, as [`Body`] has it.
#[inline(always)]
fn few_dims(sizes: &[i64]) -> u8 {
    sizes.len().min(usize::from(u8::MAX)) as u8
}

/// Address of the element at an offset of memory, of so many bytes each.
#[inline(always)]
fn first_element(storage: &Storage, offset: i64, size: usize) -> *mut u8 {
    // Wrapping, since a layout without elements may have any offset.
    storage.data().wrapping_offset((offset as isize).wrapping_mul(size as isize))
}

/// A part that replaced another. `body` is the first field, so that both have one address and reading the newest costs
/// no addition.
#[repr(C)]
struct Part {
    body: Body,
    /// The part before this one, owned by it; null for the first replacement.
    earlier: *mut Part,
    /// The count of replacements including this one.
    number: AtomicU64,
    /// Loom's model of the bytes above, which are written before the part is published.
    #[cfg(loom)]
    bytes: loom::cell::UnsafeCell<()>,
}

/// The replacements of a tensor's first part; null for almost all tensors.
#[derive(Default)]
pub(super) struct Later(AtomicPtr<Part>);

// SAFETY: parts belong to the list, which frees them with itself; a `Body` is `Send` and `Sync`, and a shared part does
// not change except for its number, which is atomic.
unsafe impl Send for Later {}
// SAFETY: `&Later` gives a `&Body`, or publishes a part by one atomic operation.
unsafe impl Sync for Later {}

impl Later {
    #[inline]
    fn part(&self) -> Option<&Part> {
        // SAFETY: a published part lives as long as the list, and was written before it was published.
        let part = unsafe { self.0.load(Ordering::Acquire).as_ref() };
        #[cfg(loom)]
        if let Some(part) = part {
            part.bytes.with(|_| ());
        }
        part
    }

    /// The newest part, if there is one.
    #[inline]
    pub fn newest(&self) -> Option<&Body> {
        self.part().map(|part| &part.body)
    }

    /// Makes the newest part the first one; `&mut` excludes other readers.
    pub fn take_into(&mut self, first: &mut Body) {
        if let Some(newest) = self.newest() {
            first.copy_from(newest);
        }
        self.clear();
    }

    /// Publishes a new newest part, and counts the replacement.
    fn add(&self, body: Body) {
        let new = Box::into_raw(Box::new(Part {
            body,
            earlier: std::ptr::null_mut(),
            number: AtomicU64::new(u64::MAX),
            #[cfg(loom)]
            bytes: loom::cell::UnsafeCell::new(()),
        }));
        let mut known = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: no other code has the new part yet.
            unsafe { (*new).earlier = known };
            #[cfg(loom)]
            // SAFETY: no other code has it; this is the write that the list's readers must see.
            unsafe { &*new }.bytes.with_mut(|_| ());
            match self.0.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(other) => known = other,
            }
        }
        // After the part is published: a thread that reads this number sees the part.
        let number = REPLACEMENTS.fetch_add(1, Ordering::Release) + 1;
        // SAFETY: the list keeps its parts until it is dropped or cleared, which needs `&mut`.
        unsafe { &*new }.number.store(number, Ordering::Relaxed);
    }

    fn clear(&mut self) {
        let mut part = self.0.load(Ordering::Relaxed);
        self.0.store(std::ptr::null_mut(), Ordering::Relaxed);
        while !part.is_null() {
            // SAFETY: parts come from boxes and each belongs to the one after it, the last to the list, which is
            // borrowed mutably: no reference to a part remains.
            part = unsafe { Box::from_raw(part) }.earlier;
        }
    }
}

impl Drop for Later {
    #[inline]
    fn drop(&mut self) {
        if !self.0.load(Ordering::Relaxed).is_null() {
            self.clear();
        }
    }
}

/// Number of replacements of tensors in this process.
#[cfg(not(loom))]
static REPLACEMENTS: AtomicU64 = AtomicU64::new(0);
#[cfg(loom)]
loom::lazy_static! { static ref REPLACEMENTS: AtomicU64 = AtomicU64::new(0); }

/// The number of replacements of tensors in this process so far.
#[inline]
pub(crate) fn replacements() -> u64 {
    REPLACEMENTS.load(Ordering::Acquire)
}

impl Tensor {
    /// Gives a tensor without elements the memory and layout of another tensor of its dtype and device, visible through
    /// every handle, as an out form does. Returns whether it did; a tensor with elements is never replaced.
    ///
    /// Waits for all borrows of its storage to end. `is_locked`: this thread holds them itself, as a tracer does for
    /// the storages that its function writes.
    pub(crate) fn become_like(&self, other: &Tensor, is_locked: bool) -> bool {
        debug_assert!(self.dtype() == other.dtype() && self.device() == other.device());
        loop {
            let storage = self.storage().clone();
            // Meta storage cannot be borrowed.
            let is_free = is_locked || storage.is_meta();
            if !is_free {
                storage.lock();
            }
            let shown = self.body();
            let is_shown = shown.storage.same(&storage);
            let replaces = is_shown && shown.numel == 0;
            if replaces {
                let other = other.body();
                let (storage, layout) = (other.storage.clone(), other.layout.clone());
                self.0.later.add(Body::new(storage, layout, self.dtype().size()));
            }
            if !is_free {
                storage.unlock();
            }
            if is_shown {
                return replaces;
            }
        }
    }

    /// The tensor's storage, and whether that is final: only a tensor without elements can be replaced.
    #[inline]
    pub(crate) fn storage_to_borrow(&self) -> (&Storage, bool) {
        let body = self.body();
        (&body.storage, body.numel != 0)
    }

    /// Whether it was replaced after the given count of [`replacements`]. Its storage must be borrowed.
    pub(crate) fn is_replaced_since(&self, replacements: u64) -> bool {
        self.0.later.part().is_some_and(|part| part.number.load(Ordering::Relaxed) > replacements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_is_replaced_for_all_handles_while_it_has_no_elements() {
        let tensor = Tensor::of::<f32>(&[]);
        let (handle, before) = (tensor.clone(), replacements());
        assert!(tensor.become_like(&Tensor::of(&[1.0f32, 2.0]), false));
        assert_eq!(handle.to_vec::<f32>().unwrap(), [1.0, 2.0]);
        assert!(tensor.is_replaced_since(before) && !tensor.is_replaced_since(replacements()));
        assert!(!tensor.become_like(&Tensor::of(&[3.0f32]), false));
        assert_eq!(tensor.detach().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn the_address_of_the_first_element_follows_every_change() {
        let expect = |tensor: &Tensor| {
            let bytes = tensor.layout().offset as usize * tensor.dtype().size();
            assert_eq!(tensor.data_ptr(), tensor.storage().data().wrapping_add(bytes));
        };
        let mut tensor = Tensor::of(&[1i32, 2, 3, 4, 5]);
        expect(&tensor);
        let layout = |offset| Layout { offset, ..Layout::contiguous(&[2]) };
        let view = tensor.with_layout(&layout(3)).unwrap();
        [&view, &view.detach(), &view.view_of_all()].into_iter().for_each(expect);
        assert_eq!(view.to_vec::<i32>().unwrap(), [4, 5]);
        let mut moved = view.clone();
        for (storage, elements) in
            [(tensor.storage().clone(), -2), (Tensor::of(&[7i32; 9]).storage().clone(), 4)]
        {
            moved.point_at(&storage, elements);
            expect(&moved);
        }
        assert_eq!(moved.to_vec::<i32>().unwrap(), [7, 7]);
        let mut alone = Tensor::of(&[1.0f64]);
        assert!(alone.show(&moved));
        expect(&alone);
        alone.shift(-1);
        expect(&alone);
        tensor.shift(0);
        let replaced = Tensor::of::<i32>(&[]);
        assert!(replaced.become_like(&view, false));
        expect(&replaced);
        assert_eq!(replaced.detach().to_vec::<i32>().unwrap(), [4, 5]);
    }

    #[test]
    fn shapes_are_compared_in_every_number_of_dimensions() {
        let same = |a: &[i64], b: &[i64]| {
            let tensor = |shape: &[i64]| {
                Tensor::with_memory(shape, opsmith_core::DType::U8, crate::Device::CPU).unwrap()
            };
            tensor(a).has_shape_of(&tensor(b))
        };
        assert!(same(&[], &[]) && same(&[3], &[3]) && same(&[2, 3], &[2, 3]) && same(&[0, 4], &[0, 4]));
        assert!(!same(&[], &[1]) && !same(&[3], &[4]) && !same(&[2, 3], &[3, 2]) && !same(&[6], &[2, 3]));
        assert!(!same(&[0, 4], &[0, 5]) && !same(&[1; 300], &[1; 299]) && same(&[1; 300], &[1; 300]));
    }

    #[test]
    fn readers_see_all_of_a_tensor_or_nothing_while_it_is_replaced() {
        for _ in 0..200 {
            let tensor = Tensor::of::<i64>(&[]);
            std::thread::scope(|scope| {
                scope.spawn(|| tensor.become_like(&Tensor::of(&[7i64; 1000]), false));
                for _ in 0..20 {
                    let seen = tensor.to_vec::<i64>().unwrap();
                    assert!(seen.is_empty() || seen == [7; 1000]);
                }
            });
            assert!(tensor.storage().try_write(), "a borrow was given back to another storage");
        }
    }
}
