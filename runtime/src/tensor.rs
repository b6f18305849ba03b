//! The tensor handle.

mod body;
mod device_use;
pub(crate) mod observer;
mod tracking;

use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Mutex, Weak};

use opsmith_core::DType;

use crate::autograd::{self, AutogradMeta};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result, ShapeText};
use crate::layout::{Layout, checked_numel};
use crate::scalar::Scalar;
use crate::storage::Storage;
use crate::view::{View, ViewMut};
pub(crate) use body::replacements;
use body::{Body, Later};
pub(crate) use device_use::on_device;

/// An array of elements of one type, with a shape.
///
/// A handle: a clone is cheap and refers to the same tensor. Several tensors can be views of one storage. Handles may
/// be sent to and shared between threads; operations that write wait for operations that read.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

/// A handle that does not keep its tensor alive.
#[derive(Clone)]
pub struct WeakTensor(Weak<Inner>);

pub(crate) struct Inner {
    first: Body,
    later: Later,
    dtype: DType,
    device: Device,
    flags: AtomicU8,
    /// The tensor this one is a view of, never itself such a view.
    base: Option<Tensor>,
    autograd: Mutex<AutogradMeta>,
}

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
    /// A tensor over part of a storage.
    ///
    /// # Safety
    /// Every element the layout reaches lies inside the storage, which is the device's, and is initialised before it is
    /// read.
    #[inline]
    pub unsafe fn from_parts(storage: Storage, layout: Layout, dtype: DType, device: Device) -> Tensor {
        Self::from_inner(storage, layout, dtype, device, 0, None)
    }

    #[inline]
    fn from_inner(
        storage: Storage,
        layout: Layout,
        dtype: DType,
        device: Device,
        flags: u8,
        base: Option<Tensor>,
    ) -> Tensor {
        debug_assert!(storage.is_meta() || storage.device() == device, "memory of another device");
        // SAFETY: the address is valid for writes, and the function writes a whole body.
        unsafe { Self::in_place(|body| body.write(Body::new(storage, layout)), dtype, device, flags, base) }
    }

    /// A tensor written field by field at its final address: moving two hundred bytes twice takes as long as all the rest.
    ///
    /// # Safety
    /// `write` writes memory and layout to its address, which is valid for writes.
    #[inline(always)]
    unsafe fn in_place(
        write: impl FnOnce(*mut Body),
        dtype: DType,
        device: Device,
        flags: u8,
        base: Option<Tensor>,
    ) -> Tensor {
        let mut inner = Arc::<Inner>::new_uninit();
        let place = Arc::get_mut(&mut inner).expect("nobody else has the new handle").as_mut_ptr();
        // SAFETY: `place` is valid for writes, and every field of `Inner` is written exactly once, `first` by the caller's
        // function.
        unsafe {
            write(&raw mut (*place).first);
            (&raw mut (*place).later).write(Later::default());
            (&raw mut (*place).dtype).write(dtype);
            (&raw mut (*place).device).write(device);
            (&raw mut (*place).flags).write(AtomicU8::new(flags));
            (&raw mut (*place).base).write(base);
            (&raw mut (*place).autograd).write(Mutex::new(AutogradMeta::default()));
            Tensor(inner.assume_init())
        }
    }

    /// A row-major tensor with uninitialised elements, for kernels and factories. Until they are written, the elements
    /// are arbitrary, and the bytes may be invalid for `bool`: [`op::make_valid`](crate::op::make_valid) initialises
    /// them at once.
    ///
    /// `sizes` must be non-negative and fit in memory, as inference guarantees.
    ///
    /// While a function is traced this is a meta tensor; code that writes the elements itself needs
    /// [`Tensor::with_memory`].
    #[inline]
    pub(crate) fn uninitialized(sizes: &[i64], dtype: DType, device: Device) -> Result<Tensor> {
        if let Some(observer) = observer::observer() {
            let tensor = Tensor::meta(sizes, dtype, device)?;
            observer.allocated(&tensor);
            return Ok(tensor);
        }
        Tensor::with_memory(sizes, dtype, device)
    }

    /// A row-major meta tensor, for traced functions.
    pub(crate) fn meta(sizes: &[i64], dtype: DType, device: Device) -> Result<Tensor> {
        let storage = Storage::meta(crate::layout::numel(sizes) as usize * dtype.size())?;
        Ok(Self::from_inner(storage, Layout::contiguous(sizes), dtype, device, 0, None))
    }

    /// A row-major tensor with uninitialised elements, also while a function is traced.
    #[inline]
    pub(crate) fn with_memory(sizes: &[i64], dtype: DType, device: Device) -> Result<Tensor> {
        let numel = crate::layout::numel(sizes);
        let storage = Storage::on(device, numel as usize * dtype.size())?;
        // SAFETY: the address is valid for writes.
        let write = |body| unsafe { Body::write_contiguous(body, storage, sizes, numel) };
        // SAFETY: the function writes memory and layout.
        Ok(unsafe { Self::in_place(write, dtype, device, 0, None) })
    }

    /// A tensor with the given elements in row-major order.
    ///
    /// # Errors
    /// If the number of elements is not the product of the sizes.
    pub fn from_slice<T: Element>(elements: &[T], shape: &[i64]) -> Result<Tensor> {
        let numel = checked_numel(shape)?;
        if numel != elements.len() as i64 {
            return Err(Error::shape(format!(
                "{} elements cannot have the shape {}, which needs {numel}",
                elements.len(),
                ShapeText(shape)
            )));
        }
        let tensor = Tensor::with_memory(shape, T::DTYPE, Device::CPU)?;
        // SAFETY: the new storage holds `numel` elements of T and no other code has it.
        unsafe {
            std::ptr::copy_nonoverlapping(elements.as_ptr(), tensor.data_ptr().cast::<T>(), elements.len());
        }
        if let Some(observer) = observer::observer() {
            observer.made(&tensor);
        }
        Ok(tensor)
    }

    /// A tensor of one dimension with the given elements.
    ///
    /// # Panics
    /// If there is no memory for them, as `Vec` does; [`Tensor::from_slice`] returns an error.
    pub fn of<T: Element>(elements: &[T]) -> Tensor {
        Tensor::from_slice(elements, &[elements.len() as i64])
            .expect("the shape is the length, and there is memory")
    }

    /// A tensor without dimensions that holds one number, of the given dtype.
    ///
    /// # Panics
    /// If there is no memory for one element, in which case no program can continue.
    pub fn scalar(value: impl Into<Scalar>, dtype: DType) -> Tensor {
        let tensor = Tensor::scalar_untraced(value.into(), dtype).expect("memory for one element");
        if let Some(observer) = observer::observer() {
            observer.made(&tensor);
        }
        tensor
    }

    /// As [`Tensor::scalar`], without an event for a tracer.
    pub(crate) fn scalar_untraced(value: Scalar, dtype: DType) -> Result<Tensor> {
        let tensor = Tensor::with_memory(&[], dtype, Device::CPU)?;
        // SAFETY: the new storage holds one element of the dtype and no other code has it.
        crate::with_dtype!(dtype, T => unsafe { tensor.data_ptr().cast::<T>().write(T::from_scalar(value)) });
        Ok(tensor)
    }

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
        Arc::ptr_eq(&self.0, &other.0)
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
        WeakTensor(Arc::downgrade(&self.0))
    }

    /// Address of the first element, in the memory of the tensor's device. Access through it requires the storage's
    /// borrow, and that the device is the host.
    #[inline]
    pub fn data_ptr(&self) -> *mut u8 {
        // Wrapping, since a layout without elements may have any offset.
        let body = self.body();
        let offset = (body.layout.offset as isize).wrapping_mul(self.0.dtype.size() as isize);
        body.storage.data().wrapping_offset(offset)
    }

    /// A view: another layout of the same storage. `autograd` adds its edge.
    ///
    /// # Errors
    /// If the layout reaches outside the storage.
    pub(crate) fn with_layout(&self, layout: Layout) -> Result<Tensor> {
        let storage = self.storage();
        layout.check_inside((storage.bytes() / self.0.dtype.size()) as i64)?;
        Ok(self.view_inside(storage, layout))
    }

    /// Switches to another storage, `elements` further on, with a new handle if this one is shared. For memory that a
    /// plan owns: the storage holds the same elements for this layout as the old one.
    pub(crate) fn point_at(&mut self, storage: &Storage, elements: i64) {
        match Arc::get_mut(&mut self.0) {
            Some(inner) => {
                let body = inner.only_body();
                if !body.storage.same(storage) {
                    body.storage = storage.clone();
                }
                body.layout.offset += elements;
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
        let Some(inner) = Arc::get_mut(&mut self.0) else { return false };
        inner.only_body().copy_from(other.body());
        (inner.dtype, inner.device) = (other.dtype(), other.device());
        (inner.flags, inner.base) = (AtomicU8::new(0), None);
        inner.autograd = Mutex::new(AutogradMeta::default());
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
        // SAFETY: the address is valid for writes.
        let write = |address| unsafe { Body::write_alike(address, body) };
        // SAFETY: the function writes memory and layout.
        unsafe { Self::in_place(write, self.0.dtype, self.0.device, flags, base) }
    }

    /// A view with a layout that lies inside the tensor's storage.
    fn view_inside(&self, storage: &Storage, layout: Layout) -> Tensor {
        let (flags, base) = self.view_flags();
        Self::from_inner(storage.clone(), layout, self.0.dtype, self.0.device, flags, base)
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
        WeakTensor(Weak::new())
    }

    /// The tensor, if it still exists.
    pub fn upgrade(&self) -> Option<Tensor> {
        self.0.upgrade().map(Tensor)
    }
}
