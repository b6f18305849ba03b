//! Memory of a device for one call, and elements in row-major order.
//!
//! In: a device and a number of elements, or an operand of any strides. Out: memory that is released, in the order of the
//! stream, when its owner is dropped. Must not know kernels.

use std::marker::PhantomData;

use opsmith_runtime::backend::{Address, DeviceMemory, Elements, Work};
use opsmith_runtime::layout::{contiguous_strides, numel};
use opsmith_runtime::{Device, DeviceView, DeviceViewMut, Element, Error, Result, Scalar};

/// Memory of a device for the work submitted while it lives.
pub(super) struct Room(DeviceMemory);

impl Room {
    /// Memory for elements of a type.
    ///
    /// # Errors
    /// If the device has not as much.
    pub fn new<E>(device: Device, count: u64) -> Result<Room> {
        let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(size_of::<E>()));
        let bytes = bytes.filter(|&bytes| bytes <= isize::MAX as usize).ok_or_else(|| {
            Error::memory(format!("{count} intermediate elements are more than any device has memory for"))
        })?;
        Ok(Room(DeviceMemory::new(device, bytes)?))
    }

    /// Memory with one number in every element.
    ///
    /// # Errors
    /// As [`Room::new`], or errors of the device.
    pub fn filled<E: Element>(device: Device, count: u64, value: Scalar) -> Result<Room> {
        let room = Room::new::<E>(device, count)?;
        if count > 0 {
            let sizes = [count as i64];
            let work = Work::on(device)?;
            let to = Elements { start: room.address(), dtype: E::DTYPE, sizes: &sizes, strides: &[1] };
            // SAFETY: the memory has that many elements, and is released after this request.
            unsafe { work.runtime().fill(work.queue(), to, value)? };
        }
        Ok(room)
    }

    /// Memory with the elements of a list.
    ///
    /// # Errors
    /// As [`Room::new`], or errors of the device.
    pub fn of<E: Element>(device: Device, elements: &[E]) -> Result<Room> {
        let room = Room::new::<E>(device, elements.len() as u64)?;
        let work = Work::on(device)?;
        let to = Address { device, start: room.address() };
        let from = Address { device: Device::CPU, start: elements.as_ptr().cast_mut().cast() };
        if !elements.is_empty() {
            // SAFETY: both have that many bytes; those of the host are read before this returns.
            unsafe { work.runtime().transfer(work.queue(), to, from, size_of_val(elements))? };
        }
        Ok(room)
    }

    /// Address of the first element.
    pub fn address<E>(&self) -> *mut E {
        self.0.start().cast()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // A device that fails here fails at the next wait too.
        if let Ok(work) = Work::on(self.0.device()) {
            _ = self.0.note_use(&work);
        }
    }
}

/// Reads an element back; all earlier work of this thread's stream is done then.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// An element is there, in memory of the device.
pub(super) unsafe fn read<E: Element>(device: Device, from: *const E) -> Result<E> {
    let mut element = E::default();
    let work = Work::on(device)?;
    let to = Address { device: Device::CPU, start: (&raw mut element).cast() };
    let from = Address { device, start: from.cast_mut().cast() };
    // SAFETY: the caller's promise; the element on the host is kept until the wait is over.
    unsafe { work.runtime().transfer(work.queue(), to, from, size_of::<E>())? };
    work.wait()?;
    Ok(element)
}

/// Whether elements lie in row-major order without gaps.
pub(super) fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let row_major = contiguous_strides(sizes);
    numel(sizes) == 0 || (0..sizes.len()).all(|dim| sizes[dim] == 1 || strides[dim] == row_major[dim])
}

/// An operand's elements in row-major order.
pub(super) struct Dense<'a, T> {
    /// The address of the first.
    pub address: *const T,
    _copy: Option<Room>,
    operand: PhantomData<&'a T>,
}

impl<'a, T: Element> Dense<'a, T> {
    /// The operand itself if it is row-major, else a copy.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn of(view: &DeviceView<'a, T>) -> Result<Dense<'a, T>> {
        let row_major = contiguous_strides(view.sizes());
        if is_dense(view.sizes(), view.strides()) {
            return Ok(Dense { address: view.address(), _copy: None, operand: PhantomData });
        }
        let copy = Room::new::<T>(view.device(), view.numel() as u64)?;
        let to = elements(copy.address::<T>(), view.sizes(), &row_major);
        let from = elements(view.address().cast_mut(), view.sizes(), view.strides());
        // SAFETY: all elements of the operand, and as much memory of this call's own.
        unsafe { convert(view.device(), to, from)? };
        Ok(Dense { address: copy.address(), _copy: Some(copy), operand: PhantomData })
    }

    /// The address of an optional operand's elements, null without one.
    pub fn address_of(dense: &Option<Dense<'a, T>>) -> *const T {
        dense.as_ref().map_or(std::ptr::null(), |dense| dense.address)
    }
}

/// Room for an output's elements in row-major order.
pub(super) struct DenseMut<'a, T> {
    /// The address of the first.
    pub address: *mut T,
    copy: Option<(Room, DeviceViewMut<'a, T>)>,
}

impl<'a, T: Element> DenseMut<'a, T> {
    /// The output itself if it is row-major, else memory that [`DenseMut::write`] copies to it.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn of(view: DeviceViewMut<'a, T>) -> Result<DenseMut<'a, T>> {
        if is_dense(view.sizes(), view.strides()) {
            return Ok(DenseMut { address: view.address(), copy: None });
        }
        let copy = Room::new::<T>(view.device(), view.numel() as u64)?;
        Ok(DenseMut { address: copy.address(), copy: Some((copy, view)) })
    }

    /// Copies the elements to where the output has them.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn write(self) -> Result<()> {
        let Some((copy, view)) = self.copy else { return Ok(()) };
        let to = elements(view.address(), view.sizes(), view.strides());
        let row_major = contiguous_strides(view.sizes());
        let from = elements(copy.address::<T>(), view.sizes(), &row_major);
        // SAFETY: all elements of the output, and as much memory of this call's own.
        unsafe { convert(view.device(), to, from) }
    }
}

/// Writes an output in row-major order: `write` gets the first of as many elements.
///
/// # Errors
/// Errors of `write` and the device.
pub(super) fn write_dense<T: Element>(
    out: DeviceViewMut<'_, T>,
    write: impl FnOnce(*mut T) -> Result<()>,
) -> Result<()> {
    let dense = DenseMut::of(out)?;
    write(dense.address)?;
    dense.write()
}

fn elements<'a, T: Element>(start: *mut T, sizes: &'a [i64], strides: &'a [i64]) -> Elements<'a> {
    Elements { start: start.cast(), dtype: T::DTYPE, sizes, strides }
}

/// Copies elements, converted to the target's type.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// Both sides are on the device, have the same sizes and do not overlap.
pub(super) unsafe fn convert(device: Device, to: Elements<'_>, from: Elements<'_>) -> Result<()> {
    let work = Work::on(device)?;
    // SAFETY: the caller's promise; the dispatcher or the owner keeps the memory until the use that it notes.
    unsafe { work.runtime().convert(work.queue(), to, from) }
}
