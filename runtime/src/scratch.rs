//! Scratch: working memory of a kernel, from the tensors' cache.
//!
//! In: a capacity. Out: a [`Scratch`], used like a `Vec`. Blocks are reused, so a repeated kernel call requests nothing
//! from the system; this lets a warm graph run without allocations. Scratch is not a tensor, and
//! [`live_bytes`](crate::allocator::live_bytes) does not count it.
//!
//! ```
//! use opsmith_runtime::Scratch;
//!
//! fn medians(rows: &[[f32; 3]], out: &mut [f32]) {
//!     let mut sorted: Scratch<f32> = Scratch::new();
//!     for (row, median) in rows.iter().zip(out) {
//!         sorted.clear();
//!         sorted.extend(row.iter().copied());
//!         sorted.sort_by(f32::total_cmp);
//!         *median = sorted[1];
//!     }
//! }
//!
//! let mut out = [0.0; 2];
//! medians(&[[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]], &mut out);
//! assert_eq!(out, [2.0, 8.0]);
//! ```

use std::alloc::Layout;
use std::any::Any;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::panic::{self, AssertUnwindSafe};
use std::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};
use allocator_api2::vec::{IntoIter, Vec as GrowingVec};

use crate::allocator;
use crate::error::{Error, Result};
use crate::parallel;

/// A vector of elements in cached memory.
///
/// Dereferences to a `Vec` with the cache for an allocator, so it has a vector's methods.
#[derive(Clone, Debug)]
pub struct Scratch<T>(GrowingVec<T, Cached>);

/// The cache of blocks as an allocator for vectors.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cached;

thread_local! {
    /// Whether [`until_out_of_memory`] runs in this thread.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// The panic payload of a failed scratch allocation.
struct OutOfMemory(usize);

/// Runs a kernel; a failed scratch allocation is an error of its call.
///
/// # Errors
/// Errors of the kernel, and if there is no memory for scratch.
#[inline]
pub(crate) fn or_out_of_memory(kernel: impl FnOnce() -> Result<()>) -> Result<()> {
    until_out_of_memory(kernel).unwrap_or_else(Err)
}

/// Runs a function that calls kernels by [`Kernel::run_in_turn`](crate::op::Kernel): a failed scratch allocation ends it.
///
/// # Errors
/// If there is no memory for scratch; the function did not come to its end then.
#[inline]
pub(crate) fn until_out_of_memory<T>(kernels: impl FnOnce() -> T) -> Result<T> {
    let outer = CAUGHT.replace(true);
    // An unwound kernel leaves its outputs half written, as one that returns an error does.
    let result = panic::catch_unwind(AssertUnwindSafe(kernels));
    CAUGHT.set(outer);
    result.map_err(refused)
}

/// The error of a failed scratch allocation, from the payload of its panic.
#[cold]
fn refused(payload: Box<dyn Any + Send>) -> Error {
    match payload.downcast::<OutOfMemory>() {
        Ok(wanted) => Error::memory(format!("there is no memory for {} bytes to work in", wanted.0))
            .with_help("use smaller tensors, or free others"),
        Err(other) => panic::resume_unwind(other),
    }
}

/// Unwinds from the running kernel. Outside of one, the caller must abort the process, as a `Vec` does.
#[cold]
fn give_up(bytes: usize) -> AllocError {
    // The panic of a thread that helps is that of the kernel's own.
    if CAUGHT.get() || parallel::is_helper() {
        // Without a panic's message: the kernel has no defect.
        panic::resume_unwind(Box::new(OutOfMemory(bytes)));
    }
    AllocError
}

// SAFETY: blocks are at least as large and as aligned as requested, no other code has them until they are released, and
// every copy of the allocator uses the same cache.
unsafe impl Allocator for Cached {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.align() > allocator::ALIGNMENT {
            return Err(AllocError);
        }
        let (pointer, bytes) = allocator::take(layout.size()).ok_or_else(|| give_up(layout.size()))?;
        Ok(NonNull::slice_from_raw_parts(pointer, bytes))
    }

    #[inline]
    unsafe fn deallocate(&self, pointer: NonNull<u8>, layout: Layout) {
        // SAFETY: the pointer came from `allocate`, for a layout of the same class.
        unsafe { allocator::give_back(pointer, layout.size()) }
    }
}

impl<T> Scratch<T> {
    /// An empty vector without memory.
    #[inline]
    pub const fn new() -> Scratch<T> {
        Scratch(GrowingVec::new_in(Cached))
    }

    /// An empty vector with memory for `elements` elements.
    #[inline]
    pub fn with_capacity(elements: usize) -> Scratch<T> {
        Scratch(GrowingVec::with_capacity_in(elements, Cached))
    }

    /// One value `elements` times: `Scratch::filled(0.5, 2)` is `[0.5, 0.5]`.
    #[inline]
    pub fn filled(value: T, elements: usize) -> Scratch<T>
    where
        T: Copy,
    {
        let mut filled = Scratch::with_capacity(elements);
        filled.spare_capacity_mut()[..elements].fill(MaybeUninit::new(value));
        // SAFETY: these elements were written.
        unsafe { filled.set_len(elements) };
        filled
    }

    /// The results of `map` for each element, in a loop that the compiler can vectorise: twice `[1, 2]` is `[2, 4]`.
    #[inline(always)]
    pub fn mapped<S>(source: &[S], map: impl Fn(&S) -> T) -> Scratch<T> {
        let mut mapped = Scratch::new();
        mapped.extend_mapped(source, map);
        mapped
    }

    /// Adds the results of `map` for each element, as [`Scratch::mapped`].
    #[inline(always)]
    pub fn extend_mapped<S>(&mut self, source: &[S], map: impl Fn(&S) -> T) {
        let end = self.len() + source.len();
        self.reserve(source.len());
        for (target, element) in self.spare_capacity_mut().iter_mut().zip(source) {
            target.write(map(element));
        }
        // SAFETY: there was room for as many as the source has, and that many were written.
        unsafe { self.set_len(end) };
    }

    /// Adds elements, each computed from its number, in a loop that the compiler can vectorise.
    #[inline(always)]
    pub fn extend_from_fn(&mut self, elements: usize, make: impl Fn(usize) -> T) {
        let end = self.len() + elements;
        self.reserve(elements);
        for (number, target) in self.spare_capacity_mut()[..elements].iter_mut().enumerate() {
            target.write(make(number));
        }
        // SAFETY: as many elements were written.
        unsafe { self.set_len(end) };
    }
}

impl<T> Default for Scratch<T> {
    #[inline]
    fn default() -> Scratch<T> {
        Scratch::new()
    }
}

impl<T> Deref for Scratch<T> {
    type Target = GrowingVec<T, Cached>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T> DerefMut for Scratch<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<T> AsRef<[T]> for Scratch<T> {
    #[inline]
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> AsMut<[T]> for Scratch<T> {
    #[inline]
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T> FromIterator<T> for Scratch<T> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Scratch<T> {
        let mut collected = Scratch::new();
        collected.extend(values);
        collected
    }
}

impl<T> IntoIterator for Scratch<T> {
    type Item = T;
    type IntoIter = IntoIter<T, Cached>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Scratch<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Scratch<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_vector() {
        let mut numbers: Scratch<i64> = (0..1000).collect();
        numbers.push(7);
        assert_eq!((numbers.len(), numbers[999], numbers[1000]), (1001, 999, 7));
        numbers.truncate(2);
        assert_eq!(&numbers.clone()[..], [0, 1]);
        assert_eq!(numbers.into_iter().sum::<i64>(), 1);
        assert_eq!(&Scratch::filled(1.5, 3)[..], [1.5; 3]);
        let mut mapped = Scratch::mapped(&[1, 2], |x| 2 * x);
        mapped.extend_mapped(&[3], |x| 2 * x);
        mapped.extend_from_fn(2, |number| 10 * number);
        assert_eq!(&mapped[..], [2, 4, 6, 0, 10]);
        assert!(Scratch::filled(1u8, 0).is_empty() && Scratch::<()>::filled((), 5).len() == 5);
    }

    #[test]
    fn elements_are_dropped() {
        let shared = std::sync::Arc::new(());
        let several: Scratch<_> = (0..5).map(|_| shared.clone()).collect();
        let nested = Scratch::from_iter([several.clone(), several]);
        assert_eq!(std::sync::Arc::strong_count(&shared), 11);
        drop(nested);
        assert_eq!(std::sync::Arc::strong_count(&shared), 1);
    }

    #[test]
    fn no_memory_is_an_error_of_the_kernel() {
        let error = or_out_of_memory(|| {
            drop(Scratch::filled(1u8, 1 << 50));
            Ok(())
        });
        assert_eq!(error.unwrap_err().message(), "there is no memory for 1125899906842624 bytes to work in");
        assert!(panic::catch_unwind(|| or_out_of_memory(|| panic!("a defect"))).is_err());
        assert!(!CAUGHT.get());
    }

    #[test]
    fn memory_serves_again() {
        let work = || {
            let mut grown = Scratch::filled(1u64, 300);
            grown.extend(0..5000);
            grown.as_ptr() as usize
        };
        let first = work();
        assert_eq!(first % allocator::ALIGNMENT, 0);
        for _ in 0..10 {
            assert_eq!(work(), first);
        }
    }

    #[test]
    fn what_is_aligned_more_than_blocks_is_refused() {
        #[repr(align(128))]
        struct Wide;
        assert!(Cached.allocate(Layout::new::<Wide>()).is_err());
    }
}
