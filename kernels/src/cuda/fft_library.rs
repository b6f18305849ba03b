//! Fourier transforms by a library of the device's vendor, whose numbers are in row-major order and have no factor.
//!
//! In: sides of any strides, and the dimensions to transform. Out: work in the stream of the calling thread, or none if no library
//! computes it. Sides of another order are copied. Must not know libraries.

use std::ffi::c_void;

use opsmith_runtime::backend::{Elements, LibraryTransform, Work};
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Dims, Result};

use super::fft::scale_numbers;
use super::scratch::{Room, convert, is_dense};
use crate::cpu::fft::half_of;

/// Dimensions that a library transforms at once.
const MOST_DIMS: usize = 3;

/// A transform along one dimension.
pub(super) struct Step {
    pub dim: usize,
    /// Its numbers.
    pub size: i64,
    /// Whether the source has the first half of them.
    pub is_half: bool,
}

/// Numbers that are read or written.
pub(super) struct Side {
    pub start: *mut c_void,
    pub dtype: DType,
    pub sizes: Dims,
    pub strides: Dims,
}

impl Side {
    pub fn of(view: &DeviceView<'_>) -> Side {
        let dtype = view.dtype();
        let start = view.address().cast_mut().cast();
        Side { start, dtype, sizes: view.sizes().into(), strides: view.strides().into() }
    }

    pub fn of_mut(view: &DeviceViewMut<'_>) -> Side {
        let dtype = view.dtype();
        let start = view.address().cast();
        Side { start, dtype, sizes: view.sizes().into(), strides: view.strides().into() }
    }

    pub fn elements(&self) -> Elements<'_> {
        Elements { start: self.start.cast(), dtype: self.dtype, sizes: &self.sizes, strides: &self.strides }
    }
}

/// Transforms along some dimensions, if a library computes them.
///
/// # Errors
/// Errors of the device and the library.
pub(super) fn by_library(
    device: Device,
    steps: &[Step],
    (from, to): (&Side, &Side),
    scale: f64,
    is_inverse: bool,
) -> Result<bool> {
    let runtime = Work::on(device)?.runtime();
    if has_all_frequencies(steps, from, to) {
        let count = from.sizes.iter().product::<i64>() as u64;
        let whole: Dims = (0..from.sizes.len() as i64).collect();
        let complex =
            Side { start: std::ptr::null_mut(), dtype: to.dtype, ..packed_side(from.start, from, &whole) };
        if Call::of(device, steps, (&complex, to), is_inverse).is_none() || !runtime.has_transforms()? {
            return Ok(false);
        }
        let room = Room::of_dtype(device, to.dtype, count)?;
        let complex = Side { start: room.address(), ..complex };
        // SAFETY: both sides have the same sizes, and the target is memory of this call.
        unsafe { convert(device, complex.elements(), from.elements())? };
        return by_library(device, steps, (&complex, to), scale, is_inverse);
    }
    let Some(call) = Call::of(device, steps, (from, to), is_inverse) else { return Ok(false) };
    if !runtime.has_transforms()? {
        return Ok(false);
    }
    if to.dtype.is_complex() { call.to_complex(scale) } else { call.to_real(scale) }
}

/// Whether all frequencies of real numbers are asked for, of which a library computes the first half; it has them as complex numbers.
fn has_all_frequencies(steps: &[Step], from: &Side, to: &Side) -> bool {
    let is_one_precision = from.dtype.to_real() == to.dtype.to_real();
    let is_longer = |step: &Step| step.size != half_of(step.size) && to.sizes[step.dim] == step.size;
    !from.dtype.is_complex()
        && to.dtype.is_complex()
        && is_one_precision
        && steps.first().is_some_and(is_longer)
}

/// Transforms that a library may compute.
struct Call<'a> {
    device: Device,
    from: &'a Side,
    to: &'a Side,
    /// The dimensions to transform, that with half of the frequencies last if one side is real.
    dims: Dims,
    /// Numbers along each dimension before a half is taken.
    whole: Dims,
    is_inverse: bool,
}

/// Numbers in row-major order of some order of dimensions.
struct Packed {
    start: *mut c_void,
    /// Memory of this call's own.
    room: Option<Room>,
}

impl<'a> Call<'a> {
    fn of(
        device: Device,
        steps: &[Step],
        (from, to): (&'a Side, &'a Side),
        is_inverse: bool,
    ) -> Option<Call<'a>> {
        let takes = |dtype| matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128);
        let is_one_precision = from.dtype.to_real() == to.dtype.to_real();
        if !takes(from.dtype) || !is_one_precision || steps.is_empty() || steps.len() > MOST_DIMS {
            return None;
        }
        let half = match (from.dtype.is_complex(), to.dtype.is_complex()) {
            (true, true) => None,
            // The first step is that of the last dimension.
            (false, true) => Some(steps[0].dim),
            (true, false) => Some(steps[steps.len() - 1].dim),
            (false, false) => return None,
        };
        let mut whole = if to.dtype.is_complex() { from.sizes.clone() } else { to.sizes.clone() };
        if let Some(half) = half {
            whole[half] = steps.iter().find(|step| step.dim == half).map_or(0, |step| step.size);
            let other = if to.dtype.is_complex() { to } else { from };
            // A source may have more than half.
            if other.sizes[half] != half_of(whole[half]) {
                return None;
            }
        }
        let mut dims: Dims = steps.iter().map(|step| step.dim as i64).collect();
        dims.sort_unstable();
        if let Some(half) = half {
            dims.retain(|dim| *dim != half as i64);
            dims.push(half as i64);
        }
        Some(Call { device, from, to, dims, whole, is_inverse })
    }

    /// All dimensions, `last` of them behind the others.
    fn order(&self, last: &[i64]) -> Dims {
        let first = (0..self.whole.len() as i64).filter(|dim| !last.contains(dim));
        first.chain(last.iter().copied()).collect()
    }

    fn to_complex(&self, scale: f64) -> Result<bool> {
        let order = self.order(&self.dims);
        let from = self.packed(self.from, &order)?;
        let out = self.target(&order)?;
        if !self.transform(from.start, out.start, [self.from.dtype, self.to.dtype], &self.dims)? {
            return Ok(false);
        }
        self.finish(out, &order, scale)
    }

    /// Along the last dimension numbers become real; along the others they are transformed before.
    fn to_real(&self, scale: f64) -> Result<bool> {
        let Some((&half, others)) = self.dims.split_last() else { return Ok(false) };
        let dtype = self.from.dtype;
        let last = self.order(&[half]);
        let count = self.from.sizes.iter().product::<i64>() as u64;
        // The library overwrites its source.
        let halves = Room::of_dtype(self.device, dtype, count)?;
        let middle = if others.is_empty() {
            self.copy(packed_side(halves.address(), self.from, &last), permuted(self.from, &last))?;
            halves
        } else {
            let order = self.order(&[&[half], others].concat());
            let from = self.packed(self.from, &order)?;
            if !self.transform(from.start, halves.address(), [dtype, dtype], others)? {
                return Ok(false);
            }
            let middle = Room::of_dtype(self.device, dtype, count)?;
            let transformed = packed_side(halves.address(), self.from, &order);
            // The same numbers with the half last.
            let position = |dim: &i64| order.iter().position(|other| other == dim).unwrap_or(0) as i64;
            let turn: Dims = last.iter().map(position).collect();
            self.copy(packed_side(middle.address(), self.from, &last), permuted(&transformed, &turn))?;
            middle
        };
        let out = self.target(&last)?;
        if !self.transform(middle.address(), out.start, [dtype, self.to.dtype], &[half])? {
            return Ok(false);
        }
        self.finish(out, &last, scale)
    }

    /// The numbers of a side in an order of dimensions.
    fn packed(&self, side: &Side, order: &[i64]) -> Result<Packed> {
        let view = permuted(side, order);
        if is_dense(&view.sizes, &view.strides) {
            return Ok(Packed { start: side.start, room: None });
        }
        let room = Room::of_dtype(self.device, side.dtype, side.sizes.iter().product::<i64>() as u64)?;
        self.copy(packed_side(room.address(), side, order), view)?;
        Ok(Packed { start: room.address(), room: Some(room) })
    }

    /// Room for the numbers of the result in an order of dimensions.
    fn target(&self, order: &[i64]) -> Result<Packed> {
        let view = permuted(self.to, order);
        if is_dense(&view.sizes, &view.strides) {
            return Ok(Packed { start: self.to.start, room: None });
        }
        let room = Room::of_dtype(self.device, self.to.dtype, self.to.sizes.iter().product::<i64>() as u64)?;
        Ok(Packed { start: room.address(), room: Some(room) })
    }

    /// Multiplies the result by the factor, and copies it to where the output has it.
    fn finish(&self, out: Packed, order: &[i64], scale: f64) -> Result<bool> {
        if scale != 1.0 {
            let count = self.to.sizes.iter().product::<i64>() as u64;
            scale_numbers(self.device, self.to.dtype, out.start, count, scale)?;
        }
        if out.room.is_some() {
            self.copy(permuted(self.to, order), packed_side(out.start, self.to, order))?;
        }
        Ok(true)
    }

    fn copy(&self, to: Side, from: Side) -> Result<()> {
        // SAFETY: both sides have the same sizes; one is an operand, and the other memory of this call.
        unsafe { convert(self.device, to.elements(), from.elements()) }
    }

    /// Transforms numbers whose last dimensions are `dims`.
    fn transform(
        &self,
        from: *mut c_void,
        to: *mut c_void,
        dtypes: [DType; 2],
        dims: &[i64],
    ) -> Result<bool> {
        let sizes: Dims = dims.iter().map(|&dim| self.whole[dim as usize]).collect();
        let is_among = |dim: usize| dims.contains(&(dim as i64));
        // Of dimensions that are not transformed now, both sides have as many numbers as the source.
        let rest = (0..self.whole.len()).filter(|&dim| !is_among(dim)).map(|dim| self.from.sizes[dim]);
        let transform = LibraryTransform {
            from: from.cast(),
            to: to.cast(),
            dtypes,
            sizes: &sizes,
            count: rest.product(),
            is_inverse: self.is_inverse,
        };
        let work = Work::on(self.device)?;
        // SAFETY: both sides have these numbers in row-major order, and are operands or memory of this call.
        unsafe { work.runtime().transform(work.queue(), &transform) }
    }
}

/// A side with its dimensions in another order.
fn permuted(side: &Side, order: &[i64]) -> Side {
    let turned = |list: &Dims| order.iter().map(|&dim| list[dim as usize]).collect();
    Side { start: side.start, dtype: side.dtype, sizes: turned(&side.sizes), strides: turned(&side.strides) }
}

/// Memory with the numbers of a side in an order of dimensions.
fn packed_side(start: *mut c_void, side: &Side, order: &[i64]) -> Side {
    let mut packed = permuted(side, order);
    packed.strides = contiguous_strides(&packed.sizes);
    Side { start, ..packed }
}
