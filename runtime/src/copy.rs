//! Copying elements: between tensors of any layout and dtype, and out of tensors.
//!
//! In: tensors. Out: tensors of the same elements, or the elements as numbers of Rust. Copies of which a device has a side
//! are in `devices`. Must know no operator.

mod convert_from;
mod devices;
mod host;
pub(crate) mod kernel;

pub use convert_from::ConvertFrom;
pub use host::{accumulate_elements, convert_elements, fill_elements};

use opsmith_core::DType;

use crate::device::Device;
use crate::dispatch::{Borrows, endless};
use crate::element::{Element, rounded_to_odd, with_computing_dtype};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::moves::{Side, area, move_rows, stream};
pub use crate::moves::{copy_bytes, copy_elements, copy_part};
use crate::pointwise::{
    Loop, MAX_OPERANDS, Row, Rows, Versions, Visit, for_each_row, for_each_rows, map_any,
};
use crate::scalar::Scalar;
use crate::storage::Storage;
use crate::tensor::{Tensor, observer};
use crate::view::View;
use crate::with_dtype;

/// Writes the elements of `source`, broadcast and converted, into `target`.
///
/// Conversion is C's where C defines it: floats truncate toward zero, integers wrap, anything but zero
/// (NaN too) is true, a complex number loses its imaginary part in a real type. A negative float wraps
/// into an unsigned type as its integer would. Beyond that, a float saturates at the bounds of `int32`,
/// `int64` and `uint64`, and at those of `int64` before it wraps into another type; NaN becomes 0.
///
/// # Errors
/// If the two overlap and there is no memory for a copy of `source`.
pub fn copy(target: &Tensor, source: &Tensor) -> Result<()> {
    // Elements that overlap at other positions would be read after they were written.
    if target.overlaps(source) && target.layout() != source.layout() {
        return copy(target, &source.cast_untracked(source.dtype())?);
    }
    if let Some(observer) = observer::observer() {
        return observer.copied(target, source);
    }
    let mut held = Borrows::default();
    held.add(&[source][..], std::slice::from_ref(target))?;
    convert(target, source)
}

/// [`copy`] of two tensors whose borrows are held.
pub(crate) fn convert(target: &Tensor, source: &Tensor) -> Result<()> {
    if !(target.is_on_host() && source.is_on_host()) {
        return devices::convert_between(target, source);
    }
    if target.dtype() == source.dtype() {
        let size = target.dtype().size();
        let streams = stream::is_streamed(target.numel() as usize * size);
        let move_tile = |rows: &Rows<'_>| {
            let Row { pointers, strides, length } = rows.first;
            let side = |operand: usize| Side {
                start: pointers[operand],
                step: strides[operand],
                row: rows.steps[operand],
            };
            // SAFETY: the plan keeps both inside their tensors, the borrows are held, and elements that both have are the
            // same.
            unsafe { move_rows(size, side(0), side(1), [rows.count, length], streams) }
            if streams {
                stream::finish();
            }
        };
        // A tile past the caches ends with a wait for memory.
        let area = if streams { 4 * area(size) } else { area(size) };
        return for_each_rows(&[target, source], area, Visit::InThreads(&move_tile));
    }
    // SAFETY: the loop of these dtypes, which are those of the tensors, or the dtype that one which only stores is converted by; the borrows are held.
    let run = |wanted, body| unsafe { map_any(target, source, wanted, body) };
    match source.dtype() {
        DType::F64 if target.dtype().is_stored() && target.dtype().is_float() => {
            // SAFETY: the loop is one of these types.
            let body = unsafe { Loop::new(&(), const { &Versions::one(round_row) }) };
            run([DType::F32, DType::F64], body)
        }
        _ => with_computing_dtype!(source.dtype(), S => with_computing_dtype!(target.dtype(), D => {
            // SAFETY: the loop is one of these types.
            let body = unsafe { Loop::new(&(), const { &Versions::one(convert_row::<S, D>) }) };
            run([D::DTYPE, S::DTYPE], body)
        })),
    }
}

/// Rounds elements that lie one after the other to odd: a second rounding, to fewer bits, rounds the element itself.
///
/// # Safety
/// `length` elements of `f32` are valid for writes at the first pointer, and of `f64` for reads at the second.
unsafe fn round_row(_: &(), pointers: &[*mut u8; MAX_OPERANDS], length: usize) {
    let (to, from) = (pointers[0].cast::<f32>(), pointers[1].cast::<f64>());
    for position in 0..length {
        // SAFETY: the caller's promise; nothing is asked of how the addresses are aligned.
        unsafe { to.add(position).write_unaligned(rounded_to_odd(from.add(position).read_unaligned())) }
    }
}

/// Converts elements that lie one after the other.
///
/// # Safety
/// `length` elements of `D` are valid for writes at the first pointer, and of `S` for reads at the second.
unsafe fn convert_row<S: Copy, D: ConvertFrom<S>>(_: &(), pointers: &[*mut u8; MAX_OPERANDS], length: usize) {
    // SAFETY: the caller's promise.
    unsafe { D::convert_row(pointers[1].cast::<S>(), pointers[0].cast::<D>(), length) }
}

/// The only element of a tensor whose borrow is held.
///
/// # Errors
/// If a device has it, and fails.
pub(crate) fn read_one(tensor: &Tensor) -> Result<Scalar> {
    if tensor.is_on_host() {
        return Ok(value_at(tensor));
    }
    let copy = Tensor::with_memory(&[], tensor.dtype(), Device::CPU)?;
    convert(
        &copy,
        &tensor.with_layout(&Layout { offset: tensor.layout().offset, ..Layout::contiguous(&[]) })?,
    )?;
    Ok(value_at(&copy))
}

/// Writes zeros, of any dtype, into the memory of a tensor without other users.
///
/// # Errors
/// If a device has it, and fails.
pub(crate) fn clear(tensor: &Tensor) -> Result<()> {
    if !tensor.is_on_host() {
        return devices::fill(tensor, Scalar::Bool(false));
    }
    convert(tensor, &Tensor::scalar_untraced(Scalar::Bool(false), tensor.dtype())?)
}

/// The bytes of a storage, read without a borrow: the caller has excluded writers.
///
/// # Errors
/// If a device has them, and fails; or there is no memory for them.
pub(crate) fn bytes_of(storage: &Storage) -> Result<Vec<u8>> {
    let layout = Layout::contiguous(&[storage.bytes() as i64]);
    // SAFETY: the bytes of a storage are its own, and initialised.
    let all = unsafe { Tensor::from_parts(storage.clone(), layout, DType::U8, storage.device()) };
    let copy = Tensor::with_memory(all.shape(), DType::U8, Device::CPU)?;
    convert(&copy, &all)?;
    copy.to_vec()
}

/// The first element, which is the host's, of a tensor that has one and whose borrow is held.
fn value_at(tensor: &Tensor) -> Scalar {
    debug_assert!(tensor.is_on_host() && tensor.numel() > 0);
    // SAFETY: the element is there, it is of the dtype, and the borrow is held.
    with_dtype!(tensor.dtype(), T => unsafe { *tensor.data_ptr().cast::<T>() }.to_scalar())
}

/// Adds elements to those of a tensor of the same dtype and shape that may show one at several indices: each is added
/// to it, in any order. The borrows are held.
pub(crate) fn accumulate(target: &Tensor, source: &Tensor) -> Result<()> {
    match (target.device() == source.device(), target.is_on_host()) {
        (true, true) => host_sum(target, source),
        (true, false) => devices::accumulate(target, source),
        (false, _) => Err(Error::device(format!(
            "elements on {} cannot be added to those on {}",
            source.device(),
            target.device()
        ))
        .with_help("move them to one device first")),
    }
}

macro_rules! host_sum {
    ($({ $variant:ident: $rust:ty, $name:literal, $kind:ident, $($columns:tt)* })*) => {
        fn host_sum(target: &Tensor, source: &Tensor) -> Result<()> {
            match target.dtype() { $(DType::$variant => host_sum!(@$kind $rust, target, source),)* }
        }
    };
    (@Bool $rust:ty, $target:ident, $source:ident) => { no_sum($target.dtype()) };
    (@Unsigned $rust:ty, $target:ident, $source:ident) => { no_sum($target.dtype()) };
    (@Signed $rust:ty, $target:ident, $source:ident) => { no_sum($target.dtype()) };
    (@Stored $rust:ty, $target:ident, $source:ident) => { no_sum($target.dtype()) };
    (@Signed4 $rust:ty, $target:ident, $source:ident) => { no_sum($target.dtype()) };
    (@Unsigned4 $rust:ty, $target:ident, $source:ident) => { no_sum($target.dtype()) };
    (@$differentiable:ident $rust:ty, $target:ident, $source:ident) => { add_typed::<$rust>($target, $source) };
}

opsmith_core::for_each_dtype!(host_sum);

fn no_sum(dtype: DType) -> Result<()> {
    Err(Error::dtype(format!("a gradient of dtype {dtype} cannot be added")))
}

fn add_typed<T: Element + std::ops::Add<Output = T>>(target: &Tensor, source: &Tensor) -> Result<()> {
    assert!(target.dtype() == T::DTYPE && source.dtype() == T::DTYPE);
    for_each_row(&[target, source], &mut |row| {
        for position in 0..row.length as isize {
            // SAFETY: the plan keeps both inside their tensors, whose dtype is T, and the borrows
            // are held.
            unsafe {
                let out = row.pointers[0].offset(row.strides[0] * position).cast::<T>();
                *out = *out + *row.pointers[1].offset(row.strides[1] * position).cast::<T>();
            }
        }
    })
}

impl Tensor {
    /// The elements in row-major order, copied.
    ///
    /// # Errors
    /// If `T` is not the tensor's element type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.with_elements(|view: View<'_, T>| {
            let mut elements = Vec::new();
            if !crate::allocator::fits(view.numel() * size_of::<T>())
                || elements.try_reserve_exact(view.numel()).is_err()
            {
                return Err(Error::memory(format!(
                    "there is no memory for a copy of {} elements",
                    view.numel()
                ))
                .with_help("take parts of the tensor one after the other"));
            }
            match view.as_slice() {
                Some(slice) => elements.extend_from_slice(slice),
                None => elements.extend(view.iter()),
            }
            Ok(elements)
        })?
    }

    /// The result of a function that visits each element; a tensor expanded far beyond its memory is an error. If the host
    /// has the elements, they are not copied. Meanwhile no operator can write them.
    ///
    /// # Errors
    /// If `T` is not the tensor's element type, if there are more elements than a program can visit, or a device has them and
    /// fails.
    #[doc(hidden)]
    pub fn with_view<T: Element, R>(&self, read: impl FnOnce(View<'_, T>) -> R) -> Result<R> {
        match endless(self) {
            Some(excess) => Err(Error::value(format!("a tensor whose elements decide a shape {excess}"))
                .with_help("do this before the tensor is expanded")),
            None => self.with_elements(read),
        }
    }

    /// The result of a function of the elements, borrowed for reading.
    fn with_elements<T: Element, R>(&self, read: impl FnOnce(View<'_, T>) -> R) -> Result<R> {
        if self.dtype() != T::DTYPE {
            return Err(Error::dtype(format!("the tensor holds {}, not {}", self.dtype(), T::DTYPE))
                .with_help("convert it first, or ask for the type it holds"));
        }
        if !self.is_on_host() {
            return devices::downloaded(self)?.with_elements(read);
        }
        let mut held = Borrows::default();
        held.add(&[self][..], &[])?;
        // SAFETY: the dtype was checked and the borrow is held.
        Ok(read(unsafe { self.view_unchecked::<T>() }))
    }

    /// The only element.
    ///
    /// # Errors
    /// If there is not exactly one.
    pub fn item(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            return Err(Error::shape(format!("a tensor with {} elements has no single value", self.numel()))
                .with_help("reduce it or select one element first"));
        }
        if !self.is_on_host() {
            return devices::downloaded(self)?.item();
        }
        let mut held = Borrows::default();
        held.add(&[self][..], &[])?;
        Ok(value_at(self))
    }

    /// The tensor itself if a device has it, else a copy there; outside any graph.
    ///
    /// # Errors
    /// If the device is not there, has no memory, or fails.
    pub(crate) fn on(self, device: Device) -> Result<Tensor> {
        if self.device() == device { Ok(self) } else { self.moved_untracked(device) }
    }

    /// The tensor itself if the host has its elements, else a row-major copy on the host; outside any graph and any
    /// trace.
    ///
    /// # Errors
    /// If the tensor has no elements yet, as in a traced function, there is no memory, or the device fails.
    pub(crate) fn on_host(&self) -> Result<Tensor> {
        if self.is_on_host() { Ok(self.clone()) } else { devices::downloaded(self) }
    }

    /// A copy of the elements on another device, outside any graph; a traced function records the copy.
    ///
    /// # Errors
    /// If the device is not there, has no memory, or fails.
    pub(crate) fn moved_untracked(&self, device: Device) -> Result<Tensor> {
        let result = Tensor::uninitialized(self.shape(), self.dtype(), device)?;
        copy(&result, self)?;
        Ok(result)
    }

    /// A copy of the elements with another dtype, outside any graph.
    pub(crate) fn cast_untracked(&self, dtype: DType) -> Result<Tensor> {
        let result = Tensor::uninitialized(self.shape(), dtype, self.device())?;
        copy(&result, self)?;
        Ok(result)
    }

    /// The tensor itself if it is row-major, else a row-major copy outside any graph.
    pub(crate) fn contiguous_untracked(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.cast_untracked(self.dtype()) }
    }
}
