//! Typed, strided views: a kernel's access to a tensor.
//!
//! The dispatcher hands them out while it holds the storages' borrows, so a kernel may read every element of a
//! [`View`] and write every element of a [`ViewMut`] without further checks. The elements of a [`ViewMut`] may be
//! read as well: they are initialised, though with any values until the kernel has written them.

use std::marker::PhantomData;
use std::ops::Deref;

use crate::axes::{Axes, Walk, axes, merge};
use crate::element::Element;
use crate::error::{Error, Result, ShapeText};
use crate::layout::{broadcast_strides, is_contiguous};
use crate::scratch::Scratch;

/// A tensor's elements for reading.
#[derive(Clone, Copy)]
pub struct View<'a, T> {
    data: *const T,
    sizes: &'a [i64],
    strides: &'a [i64],
    marker: PhantomData<&'a T>,
}

/// A tensor's elements for writing.
pub struct ViewMut<'a, T> {
    data: *mut T,
    sizes: &'a [i64],
    strides: &'a [i64],
    marker: PhantomData<&'a mut T>,
}

// SAFETY: a view is a shared borrow of elements that are Sync.
unsafe impl<T: Sync> Send for View<'_, T> {}
// SAFETY: `&View` gives no more than a copy of the view, and elements that are Sync.
unsafe impl<T: Sync> Sync for View<'_, T> {}
// SAFETY: a mutable view is a unique borrow of elements that are Send.
unsafe impl<T: Send> Send for ViewMut<'_, T> {}

macro_rules! shared_methods {
    () => {
        /// Number of elements along each dimension.
        #[inline]
        pub fn sizes(&self) -> &'a [i64] {
            self.sizes
        }

        /// Elements to step in memory for one step along each dimension.
        #[inline]
        pub fn strides(&self) -> &'a [i64] {
            self.strides
        }

        /// Number of elements along one dimension.
        #[inline]
        pub fn size(&self, dim: usize) -> usize {
            self.sizes[dim] as usize
        }

        /// Number of dimensions.
        #[inline]
        pub fn dim(&self) -> usize {
            self.sizes.len()
        }

        /// Number of elements.
        #[inline]
        pub fn numel(&self) -> usize {
            self.sizes.iter().product::<i64>() as usize
        }

        /// Whether the elements lie in memory in row-major order without gaps.
        #[inline]
        pub fn is_contiguous(&self) -> bool {
            is_contiguous(self.sizes, self.strides)
        }

        /// The memory position, relative to the first element, of each element in row-major order.
        pub fn positions(&self) -> Positions {
            Positions::new(self.sizes, self.strides)
        }
    };
}

impl<'a, T: Element> View<'a, T> {
    /// A view of raw memory.
    ///
    /// # Safety
    /// Every element that sizes and strides reach from `data` is initialised, valid for reads, and not written
    /// during `'a`.
    #[inline]
    pub unsafe fn from_raw(data: *const T, sizes: &'a [i64], strides: &'a [i64]) -> View<'a, T> {
        View { data, sizes, strides, marker: PhantomData }
    }

    shared_methods!();

    /// Address of the first element.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        self.data
    }

    /// The element at a memory position relative to the first element.
    ///
    /// # Safety
    /// `position` is reached by some index.
    #[inline(always)]
    pub unsafe fn at(&self, position: i64) -> T {
        // SAFETY: the caller promises it.
        unsafe { *self.data.offset(position as isize) }
    }

    /// The same elements as bits, for code that moves them.
    #[inline]
    pub fn bits(self) -> View<'a, T::Bits> {
        View { data: self.data.cast(), sizes: self.sizes, strides: self.strides, marker: PhantomData }
    }

    /// All elements as a slice, if they are contiguous.
    #[inline]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        // SAFETY: contiguous elements are `numel` valid elements from `data`.
        self.is_contiguous().then(|| unsafe { raw_slice(self.data, self.numel()) })
    }

    /// All elements in row-major order: borrowed if contiguous, else copied.
    pub fn to_contiguous(&self) -> RowMajor<'a, T> {
        match self.as_slice() {
            Some(slice) => RowMajor::Borrowed(slice),
            None => RowMajor::Copied(self.iter().collect()),
        }
    }

    /// The elements in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        let view = *self;
        // SAFETY: positions come from the view's own sizes and strides.
        self.positions().map(move |position| unsafe { view.at(position) })
    }

    /// The elements in the row-major order of a larger shape that the view broadcasts to, such as the output's: repeated where
    /// the view's size is 1 or a dimension is missing.
    ///
    /// # Errors
    /// If the view does not broadcast to the shape.
    pub fn iter_broadcast(&self, sizes: &[i64]) -> Result<impl Iterator<Item = T> + use<'a, T>> {
        let view = *self;
        let strides = broadcast_strides(self.sizes, self.strides, sizes)?;
        // SAFETY: an index of the larger shape reaches the view's element at the same index, or at 0 along a dimension of
        // size 1; a shape without elements has no index.
        Ok(Positions::new(sizes, &strides).map(move |position| unsafe { view.at(position) }))
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// A view of raw memory.
    ///
    /// # Safety
    /// Every element that sizes and strides reach from `data` is initialised and valid for reads and writes during
    /// `'a`, no two indices reach the same one, and there is no other access to them.
    #[inline]
    pub unsafe fn from_raw(data: *mut T, sizes: &'a [i64], strides: &'a [i64]) -> ViewMut<'a, T> {
        ViewMut { data, sizes, strides, marker: PhantomData }
    }

    shared_methods!();

    /// Address of the first element.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.data
    }

    /// Writes the element at a memory position relative to the first element.
    ///
    /// # Safety
    /// `position` is reached by some index.
    #[inline(always)]
    pub unsafe fn set(&mut self, position: i64, value: T) {
        // SAFETY: the caller promises it.
        unsafe { *self.data.offset(position as isize) = value }
    }

    /// The element at a memory position relative to the first element.
    ///
    /// # Safety
    /// `position` is reached by some index.
    #[inline(always)]
    pub unsafe fn at(&self, position: i64) -> T {
        // SAFETY: the caller promises it.
        unsafe { *self.data.offset(position as isize) }
    }

    /// All elements as a slice, if they are contiguous.
    #[inline]
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        if !self.is_contiguous() {
            return None;
        }
        let length = self.numel();
        if length == 0 {
            return Some(&mut []);
        }
        // SAFETY: contiguous elements are `numel` valid elements from `data`, borrowed uniquely.
        Some(unsafe { std::slice::from_raw_parts_mut(self.data, length) })
    }

    /// Writes every element, in row-major order, from the iterator, which may have more values than that.
    ///
    /// ```compile_fail
    /// # #![deny(unused_must_use)]
    /// # use opsmith_runtime::{Result, ViewMut};
    /// fn kernel(mut out: ViewMut<'_, f32>) -> Result<()> {
    ///     out.write([1.0, 2.0]);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// If there are fewer values than elements: some stay as they are.
    #[inline]
    pub fn write(&mut self, values: impl IntoIterator<Item = T>) -> Result<()> {
        let mut values = values.into_iter();
        for (written, position) in self.positions().enumerate() {
            let Some(value) = values.next() else { return Err(too_few(written, self.sizes)) };
            // SAFETY: positions come from the view's own sizes and strides.
            unsafe { self.set(position, value) }
        }
        Ok(())
    }

    /// The same elements as bits, for code that moves them.
    ///
    /// # Safety
    /// Everything written is the bits of a `T`.
    #[inline]
    pub unsafe fn bits(&mut self) -> ViewMut<'_, T::Bits> {
        ViewMut { data: self.data.cast(), sizes: self.sizes, strides: self.strides, marker: PhantomData }
    }

    /// The same memory for reading.
    pub fn as_view(&self) -> View<'_, T> {
        View { data: self.data, sizes: self.sizes, strides: self.strides, marker: PhantomData }
    }
}

#[cold]
fn too_few(written: usize, sizes: &[i64]) -> Error {
    Error::kernel(format!(
        "a kernel has {written} values for the {} elements of an output of the shape {}",
        sizes.iter().product::<i64>(),
        ShapeText(sizes)
    ))
    .with_help("a kernel writes every element of its outputs: their memory may hold any values before")
}

/// Elements in row-major order: a slice.
pub enum RowMajor<'a, T> {
    /// They lie so in the tensor.
    Borrowed(&'a [T]),
    /// They were put together from it.
    Copied(Scratch<T>),
}

impl<T> Deref for RowMajor<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            RowMajor::Borrowed(elements) => elements,
            RowMajor::Copied(elements) => elements,
        }
    }
}

/// A slice that may be empty over a dangling address.
///
/// # Safety
/// `length` elements from `data` are valid for reads during `'a`.
unsafe fn raw_slice<'a, T>(data: *const T, length: usize) -> &'a [T] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller promises it.
    unsafe { std::slice::from_raw_parts(data, length) }
}

/// Iterator over memory positions in row-major order.
#[derive(Clone)]
pub struct Positions(Walk<Axes<1>, 1>);

impl Positions {
    /// The positions of a layout, starting at 0.
    pub fn new(sizes: &[i64], strides: &[i64]) -> Positions {
        Positions(Walk::over(merge(axes(sizes, [strides], |_| true))))
    }
}

impl Iterator for Positions {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        self.0.next().map(|[position]| position)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for Positions {}
