//! New tensors: over given memory, over new memory, from elements.
//!
//! In: sizes, dtype and device, or elements. Out: tensors, each written field by field at its final address.

use std::sync::atomic::AtomicU8;

use opsmith_core::DType;

use super::body::{Body, Later};
use super::{Inner, Tensor, observer};
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result, ShapeText};
use crate::layout::{Dims, Layout, checked_numel};
use crate::scalar::Scalar;
use crate::shared::Room;
use crate::storage::Storage;
use crate::sync::Brief;

/// A tensor that is written field by field at its final address: moving two hundred bytes twice takes as long as all the rest.
pub(super) struct NewTensor(Room<Inner>);

impl NewTensor {
    #[inline(always)]
    pub fn new() -> NewTensor {
        NewTensor(Room::new())
    }

    /// The address of memory and layout, valid for writes.
    #[inline(always)]
    pub fn body(&self) -> *mut Body {
        // SAFETY: the address lies inside the tensor's memory.
        unsafe { &raw mut (*self.0.place()).first }
    }

    /// The tensor, with these fields.
    ///
    /// # Safety
    /// Memory and layout were written.
    #[inline(always)]
    pub unsafe fn with(self, dtype: DType, device: Device, flags: u8, base: Option<Tensor>) -> Tensor {
        let place = self.0.place();
        // SAFETY: the place is valid for writes, and every field is written exactly once, `first` by the caller.
        unsafe {
            (&raw mut (*place).later).write(Later::default());
            (&raw mut (*place).dtype).write(dtype);
            (&raw mut (*place).device).write(device);
            (&raw mut (*place).flags).write(AtomicU8::new(flags));
            (&raw mut (*place).base).write(base);
            (&raw mut (*place).autograd).write(Brief::default());
            Tensor(self.0.filled())
        }
    }
}

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

    /// As [`Tensor::from_parts`], with sizes and strides that are copied.
    ///
    /// # Safety
    /// As [`Tensor::from_parts`].
    #[inline]
    pub(crate) unsafe fn over(
        storage: &Storage,
        dims: [&Dims; 2],
        offset: i64,
        dtype: DType,
        device: Device,
    ) -> Tensor {
        let new = NewTensor::new();
        // SAFETY: the address is valid for writes, and has a whole body then.
        unsafe {
            Body::write_layout(new.body(), storage.clone(), dims, offset, dtype.size());
            new.with(dtype, device, 0, None)
        }
    }

    #[inline]
    pub(super) fn from_inner(
        storage: Storage,
        layout: Layout,
        dtype: DType,
        device: Device,
        flags: u8,
        base: Option<Tensor>,
    ) -> Tensor {
        debug_assert!(storage.is_meta() || storage.device() == device, "memory of another device");
        let new = NewTensor::new();
        // SAFETY: the address is valid for writes, and has a whole body then.
        unsafe {
            new.body().write(Body::new(storage, layout, dtype.size()));
            new.with(dtype, device, flags, base)
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
        let new = NewTensor::new();
        // SAFETY: the address is valid for writes, and has a whole body then.
        unsafe {
            Body::write_contiguous(new.body(), storage, sizes, numel);
            Ok(new.with(dtype, device, 0, None))
        }
    }

    /// As [`Tensor::uninitialized`], of the shape and device of another tensor.
    #[inline]
    pub(crate) fn uninitialized_like(like: &Tensor, dtype: DType) -> Result<Tensor> {
        let (body, device) = (like.body(), like.device());
        if !body.like_new || observer::observer().is_some() {
            return Tensor::uninitialized(&body.layout.sizes, dtype, device);
        }
        let storage = Storage::on(device, body.numel as usize * dtype.size())?;
        let new = NewTensor::new();
        // SAFETY: the address is valid for writes, and has a whole body then.
        unsafe {
            Body::write_alike(new.body(), storage, body, 0, dtype.size());
            Ok(new.with(dtype, device, 0, None))
        }
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
}
