//! The tensor handle.

mod body;
mod device_use;
mod new;
pub(crate) mod observer;
mod tracking;

use std::sync::atomic::AtomicU8;

use opsmith_core::DType;

use crate::autograd::{self, AutogradMeta};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::shared::{Shared, WeakShared};
use crate::storage::Storage;
use crate::sync::Brief;
use crate::view::{View, ViewMut};
pub(crate) use body::replacements;
use body::{Body, Later};
pub(crate) use device_use::on_device;
use new::NewTensor;

/// An array of elements of one type, with a shape.
///
/// A handle: a clone is cheap and refers to the same tensor. Several tensors can be views of one storage. Handles may
/// be sent to and shared between threads; operations that write wait for operations that read.
#[derive(Clone)]
pub struct Tensor(Shared<Inner>);

/// Memory and layout of a tensor, as a loop over its elements compares them with others.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    body: &'a Body,
    dtype: DType,
}

impl Placed<'_> {
    /// Address of the first element.
    #[inline(always)]
    pub fn start(self) -> *mut u8 {
        self.body.start()
    }

    #[inline(always)]
    pub fn numel(self) -> i64 {
        self.body.numel
    }

    /// Whether the elements are of a dtype and lie in row-major order without gaps.
    #[inline(always)]
    pub fn is_row_major(self, dtype: DType) -> bool {
        self.dtype == dtype && self.body.contiguous
    }

    /// Whether there is at most one dimension.
    #[inline(always)]
    pub fn is_line(self) -> bool {
        self.body.dims <= 1
    }

    /// Whether there are as many dimensions as another has, of at most 255, or fewer.
    #[inline(always)]
    pub fn has_no_more_dims_than(self, other: Placed<'_>) -> bool {
        self.body.dims <= other.body.dims
    }
}

/// A handle that does not keep its tensor alive.
#[derive(Clone)]
pub struct WeakTensor(Option<WeakShared<Inner>>);

/// The order is that of memory: see [`Body`].
#[repr(C)]
pub(crate) struct Inner {
    later: Later,
    dtype: DType,
    flags: AtomicU8,
    device: Device,
    first: Body,
    /// The tensor this one is a view of, never itself such a view.
    base: Option<Tensor>,
    autograd: Brief<AutogradMeta>,
}

// A kernel finds all but sizes in the line that begins with the counts of handles. Loom's atomics are larger.
const _: () = assert!(
    size_of::<u64>() + std::mem::offset_of!(Inner, first) + std::mem::offset_of!(Body, layout) <= 64
        || cfg!(loom)
);

impl Inner {
    /// Mutable access to memory and layout; this is the only handle, so no replacement is in use.
    fn only_body(&mut self) -> &mut Body {
        self.later.take_into(&mut self.first);
        &mut self.first
    }
}

/// The tensor is part of a graph.
const TRACKED: u8 = 1;
/// The tensor was changed in place while it or the change was tracked; from then on its views check whether their edge
/// is up to date.
const CHANGED: u8 = 2;
/// The tensor is a view made without recording, so its base does not track it.
const UNRECORDED_VIEW: u8 = 4;
/// The tensor has had a tangent.
const DUAL: u8 = 8;

impl Tensor {
    #[inline]
    fn body(&self) -> &Body {
        self.0.later.newest().unwrap_or(&self.0.first)
    }

    /// Number of elements along each dimension.
    #[inline]
    pub fn shape(&self) -> &[i64] {
        &self.body().layout.sizes
    }

    /// Number of elements along one dimension; negative dimensions count from the end.
    ///
    /// # Errors
    /// If there is no such dimension.
    pub fn size(&self, dim: i64) -> Result<i64> {
        let wrapped = crate::layout::wrap_dim(dim, self.dim())?;
        self.shape()
            .get(wrapped)
            .copied()
            .ok_or_else(|| Error::index("a tensor without dimensions has no sizes"))
    }

    /// Stride in elements along each dimension.
    #[inline]
    pub fn strides(&self) -> &[i64] {
        &self.body().layout.strides
    }

    /// Sizes, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.body().layout
    }

    /// Number of dimensions.
    #[inline]
    pub fn dim(&self) -> usize {
        self.body().layout.sizes.len()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> i64 {
        self.body().numel
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The device of the elements.
    #[inline]
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// Whether the elements lie in memory in row-major order without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.body().contiguous
    }

    /// The tensor's memory, possibly shared with views.
    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.body().storage
    }

    /// The version counter: number of writes to the memory by operators.
    pub fn version(&self) -> u64 {
        self.body().storage.version()
    }

    /// Whether both handles refer to the same tensor.
    #[inline]
    pub fn same(&self, other: &Tensor) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }

    /// Whether both tensors use the same storage.
    #[inline]
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        self.body().storage.same(&other.body().storage)
    }

    /// Whether the address ranges of both tensors in one storage overlap.
    pub(crate) fn overlaps(&self, other: &Tensor) -> bool {
        if !self.shares_storage(other) {
            return false;
        }
        let bytes = |tensor: &Tensor| {
            let size = tensor.dtype().size() as i64;
            tensor.layout().extent().map(|(low, high)| (low * size, high * size))
        };
        match (bytes(self), bytes(other)) {
            (Some((low, high)), Some((other_low, other_high))) => low < other_high && other_low < high,
            _ => false,
        }
    }

    /// A handle that does not keep the tensor alive.
    pub fn downgrade(&self) -> WeakTensor {
        WeakTensor(Some(Shared::downgrade(&self.0)))
    }

    /// Address of the first element, in the memory of the tensor's device. Access through it requires the storage's
    /// borrow, and that the device is the host.
    #[inline]
    pub fn data_ptr(&self) -> *mut u8 {
        self.body().start()
    }

    /// Whether the shape is that of another tensor.
    #[inline(always)]
    pub(crate) fn has_shape_of(&self, other: &Tensor) -> bool {
        self.body().has_shape_of(other.body())
    }

    /// Memory and layout, read once for several questions: those that the tensor was made with, which are its own if they have
    /// elements, because an out form replaces only those of a tensor without.
    #[inline(always)]
    pub(crate) fn placed_first(&self) -> Placed<'_> {
        Placed { body: &self.0.first, dtype: self.0.dtype }
    }

    /// A view: another layout of the same storage. `autograd` adds its edge.
    ///
    /// # Errors
    /// If the layout reaches outside the storage.
    pub(crate) fn with_layout(&self, layout: &Layout) -> Result<Tensor> {
        let storage = self.storage();
        let size = self.0.dtype.size();
        debug_assert!(size.is_power_of_two(), "the size of every dtype is");
        layout.check_inside((storage.bytes() >> size.trailing_zeros()) as i64)?;
        Ok(self.view_inside(storage, layout))
    }

    /// Switches to another storage, `elements` further on, with a new handle if this one is shared. For memory that a
    /// plan owns: the storage holds the same elements for this layout as the old one.
    pub(crate) fn point_at(&mut self, storage: &Storage, elements: i64) {
        match Shared::get_mut(&mut self.0) {
            Some(inner) => {
                let size = inner.dtype.size();
                inner.only_body().point_at(storage, elements, size);
            }
            None => {
                let mut layout = self.layout().clone();
                layout.offset += elements;
                *self = Self::from_inner(storage.clone(), layout, self.0.dtype, self.0.device, 0, None);
            }
        }
    }

    /// Takes over memory and layout of another tensor, outside any graph, if this is the only handle; returns whether
    /// it was.
    pub(crate) fn show(&mut self, other: &Tensor) -> bool {
        let Some(inner) = Shared::get_mut(&mut self.0) else { return false };
        inner.only_body().copy_from(other.body());
        (inner.dtype, inner.device) = (other.dtype(), other.device());
        (inner.flags, inner.base) = (AtomicU8::new(0), None);
        inner.autograd = Brief::default();
        true
    }

    /// Moves the offset by a number of elements.
    pub(crate) fn shift(&mut self, elements: i64) {
        let storage = self.storage().clone();
        self.point_at(&storage, elements);
    }

    /// A view of all elements.
    pub(crate) fn view_of_all(&self) -> Tensor {
        let (flags, base) = self.view_flags();
        self.all_elements(flags, base)
    }

    /// A tensor with the same memory and layout.
    #[inline]
    fn all_elements(&self, flags: u8, base: Option<Tensor>) -> Tensor {
        let body = self.body();
        let new = NewTensor::new();
        // SAFETY: the address is valid for writes, and has a whole body then.
        unsafe {
            let (storage, size) = (body.storage.clone(), self.0.dtype.size());
            Body::write_alike(new.body(), storage, body, body.layout.offset, size);
            new.with(self.0.dtype, self.0.device, flags, base)
        }
    }

    /// A view with a layout that lies inside the tensor's storage.
    fn view_inside(&self, storage: &Storage, layout: &Layout) -> Tensor {
        let (flags, base) = self.view_flags();
        let new = NewTensor::new();
        // SAFETY: the address is valid for writes, and has a whole body then.
        unsafe {
            let (dims, size) = ([&layout.sizes, &layout.strides], self.0.dtype.size());
            Body::write_layout(new.body(), storage.clone(), dims, layout.offset, size);
            new.with(self.0.dtype, self.0.device, flags, base)
        }
    }

    /// The flags of a view of this tensor, and the tensor that it is a view of, if that is recorded.
    fn view_flags(&self) -> (u8, Option<Tensor>) {
        let recorded = autograd::recording() && !self.has(UNRECORDED_VIEW);
        let base =
            (recorded || autograd::forward_is_active()).then(|| self.0.base.as_ref().unwrap_or(self).clone());
        (if recorded { 0 } else { UNRECORDED_VIEW }, base)
    }

    /// The same elements outside any graph; shares memory and version.
    pub fn detach(&self) -> Tensor {
        self.all_elements(0, None)
    }

    /// A typed view for reading.
    ///
    /// # Safety
    /// The dtype is T's, the elements are in host memory, and the storage's borrow is held for reading or writing while
    /// the view lives.
    #[inline]
    pub(crate) unsafe fn view_unchecked<T: Element>(&self) -> View<'_, T> {
        debug_assert!(self.dtype() == T::DTYPE && self.is_on_host());
        // SAFETY: the layout stays inside the storage.
        unsafe { View::from_raw(self.data_ptr().cast(), self.shape(), self.strides()) }
    }

    /// A typed view for writing.
    ///
    /// # Safety
    /// The dtype is T's, the elements are in host memory, and the storage's borrow is held for writing while the view
    /// lives.
    #[inline]
    pub(crate) unsafe fn view_mut_unchecked<T: Element>(&self) -> ViewMut<'_, T> {
        debug_assert!(self.dtype() == T::DTYPE && self.is_on_host());
        // SAFETY: the layout stays inside the storage.
        unsafe { ViewMut::from_raw(self.data_ptr().cast(), self.shape(), self.strides()) }
    }
}

impl WeakTensor {
    /// A handle to no tensor.
    pub(crate) fn dangling() -> WeakTensor {
        WeakTensor(None)
    }

    /// The tensor, if it still exists.
    pub fn upgrade(&self) -> Option<Tensor> {
        self.0.as_ref()?.upgrade().map(Tensor)
    }
}
