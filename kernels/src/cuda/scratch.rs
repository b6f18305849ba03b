//! Memory of a device for one call, and elements in row-major order.
//!
//! In: a device and a number of elements, or an operand of any strides. Out: memory that is released, in the order of the
//! stream, when its owner is dropped. Must not know kernels.

use std::ffi::c_void;
use std::marker::PhantomData;

use opsmith_runtime::backend::{Address, DeviceMemory, Elements, Work};
use opsmith_runtime::layout::{contiguous_strides, numel};
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Element, Error, Result, Scalar, with_dtype};

/// Memory of a device for the work submitted while it lives.
pub(super) struct Room(DeviceMemory);

impl Room {
    /// Memory for elements of a type.
    ///
    /// # Errors
    /// If the device has not as much.
    pub fn new<E>(device: Device, count: u64) -> Result<Room> {
        Room::of_size(device, size_of::<E>(), count)
    }

    /// Memory for elements of a dtype.
    ///
    /// # Errors
    /// If the device has not as much.
    pub fn of_dtype(device: Device, dtype: DType, count: u64) -> Result<Room> {
        Room::of_size(device, dtype.size(), count)
    }

    fn of_size(device: Device, size: usize, count: u64) -> Result<Room> {
        let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
        let bytes = bytes.filter(|&bytes| bytes <= isize::MAX as usize).ok_or_else(|| {
            Error::memory(format!("{count} intermediate elements are more than any device has memory for"))
        })?;
        Ok(Room(DeviceMemory::new(device, bytes)?))
    }

    /// Memory with one number in every element.
    ///
    /// # Errors
    /// As [`Room::new`], or errors of the device.
    pub fn filled(device: Device, dtype: DType, count: u64, value: Scalar) -> Result<Room> {
        let room = Room::of_dtype(device, dtype, count)?;
        if count > 0 {
            let sizes = [count as i64];
            let work = Work::on(device)?;
            let to = Elements { start: room.address(), dtype, sizes: &sizes, strides: &[1] };
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

    /// Address of the element of that number.
    pub fn at(&self, dtype: DType, number: usize) -> *mut c_void {
        self.0.start().wrapping_add(number * dtype.size()).cast()
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

/// Reads an element of a dtype back, as [`read`] does.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// As for [`read`].
pub(super) unsafe fn read_number(device: Device, dtype: DType, from: *mut c_void) -> Result<Scalar> {
    // SAFETY: the caller's promise.
    with_dtype!(dtype, T => unsafe { read::<T>(device, from.cast_const().cast()) }.map(T::to_scalar))
}

/// Whether elements lie in row-major order without gaps.
pub(super) fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let row_major = contiguous_strides(sizes);
    numel(sizes) == 0 || (0..sizes.len()).all(|dim| sizes[dim] == 1 || strides[dim] == row_major[dim])
}

/// An operand's elements in row-major order.
pub(super) struct Dense<'a> {
    /// The address of the first.
    pub address: *const c_void,
    dtype: DType,
    _copy: Option<Room>,
    operand: PhantomData<DeviceView<'a>>,
}

impl<'a> Dense<'a> {
    /// The operand itself if it is row-major, else a copy.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn of(view: &DeviceView<'a>) -> Result<Dense<'a>> {
        let dtype = view.dtype();
        let row_major = contiguous_strides(view.sizes());
        if is_dense(view.sizes(), view.strides()) {
            return Ok(Dense { address: view.address(), dtype, _copy: None, operand: PhantomData });
        }
        let copy = Room::of_dtype(view.device(), dtype, view.numel() as u64)?;
        let to = elements(dtype, copy.address::<c_void>(), view.sizes(), &row_major);
        let from = elements(dtype, view.address().cast_mut(), view.sizes(), view.strides());
        // SAFETY: all elements of the operand, and as much memory of this call's own.
        unsafe { convert(view.device(), to, from)? };
        Ok(Dense { address: copy.address(), dtype, _copy: Some(copy), operand: PhantomData })
    }

    /// The address of the element of that number.
    pub fn at(&self, number: usize) -> *const c_void {
        self.address.wrapping_byte_add(number * self.dtype.size())
    }

    /// The address of an optional operand's elements, null without one.
    pub fn address_of(dense: &Option<Dense<'a>>) -> *const c_void {
        dense.as_ref().map_or(std::ptr::null(), |dense| dense.address)
    }
}

/// Room for an output's elements in row-major order.
pub(super) struct DenseMut<'a> {
    /// The address of the first.
    pub address: *mut c_void,
    dtype: DType,
    copy: Option<(Room, DeviceViewMut<'a>)>,
}

impl<'a> DenseMut<'a> {
    /// The output itself if it is row-major, else memory that [`DenseMut::write`] copies to it.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn of(view: DeviceViewMut<'a>) -> Result<DenseMut<'a>> {
        let dtype = view.dtype();
        if is_dense(view.sizes(), view.strides()) {
            return Ok(DenseMut { address: view.address(), dtype, copy: None });
        }
        let copy = Room::of_dtype(view.device(), dtype, view.numel() as u64)?;
        Ok(DenseMut { address: copy.address(), dtype, copy: Some((copy, view)) })
    }

    /// The address of the element of that number.
    pub fn at(&self, number: usize) -> *mut c_void {
        self.address.wrapping_byte_add(number * self.dtype.size())
    }

    /// Copies the elements to where the output has them.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn write(self) -> Result<()> {
        let Some((copy, view)) = self.copy else { return Ok(()) };
        let dtype = self.dtype;
        let to = elements(dtype, view.address(), view.sizes(), view.strides());
        let row_major = contiguous_strides(view.sizes());
        let from = elements(dtype, copy.address::<c_void>(), view.sizes(), &row_major);
        // SAFETY: all elements of the output, and as much memory of this call's own.
        unsafe { convert(view.device(), to, from) }
    }
}

/// Writes an output in row-major order: `write` gets the first of as many elements.
///
/// # Errors
/// Errors of `write` and the device.
pub(super) fn write_dense(
    out: DeviceViewMut<'_>,
    write: impl FnOnce(*mut c_void) -> Result<()>,
) -> Result<()> {
    let dense = DenseMut::of(out)?;
    write(dense.address)?;
    dense.write()
}

fn elements<'a>(dtype: DType, start: *mut c_void, sizes: &'a [i64], strides: &'a [i64]) -> Elements<'a> {
    Elements { start: start.cast(), dtype, sizes, strides }
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
