//! Elements in another order, repeated, or with others around them.

use std::ffi::c_void;

use opsmith_runtime::backend::Elements;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{DeviceView, DeviceViewMut, Dims, Error, Result, Scalar};

use super::moves::{Part, copy, fill};
use super::scratch::{Dense, convert, write_dense};
use crate::cpu::expect_sizes;

pub use super::compact::{masked_scatter_backward, masked_select, nonzero};

/// Tensors of one shape under a new dimension.
///
/// # Errors
/// If the shapes do not fit together, or errors of the device.
pub fn stack(tensors: &[DeviceView<'_>], dim: i64, out: DeviceViewMut<'_>) -> Result<()> {
    let dim = wrap_dim(dim, out.sizes().len())?;
    let (mut sizes, mut strides): (Dims, Dims) = (out.sizes().into(), out.strides().into());
    if dim >= sizes.len() || sizes[dim] != tensors.len() as i64 {
        return Err(Error::shape("the output does not have a slice for each tensor"));
    }
    sizes.remove(dim);
    let step = strides.remove(dim);
    for (number, tensor) in tensors.iter().enumerate() {
        expect_sizes(tensor.sizes(), &sizes)?;
        let to = Part { sizes: &sizes, strides: &strides, offset: number as i64 * step };
        // SAFETY: a slice of the output, and the whole of a tensor of its shape.
        unsafe { copy(&out, to, tensor, whole(tensor))? };
    }
    Ok(())
}

/// The tensor side by side with itself along each dimension.
///
/// # Errors
/// If the output has not the shape of the repetition, or errors of the device.
pub fn repeat(self_: DeviceView<'_>, repeats: &[i64], out: DeviceViewMut<'_>) -> Result<()> {
    let rank = out.sizes().len();
    if repeats.len() != rank || self_.sizes().len() > rank {
        return Err(Error::shape("there is not a number of repetitions for each dimension of the output"));
    }
    let missing = rank - self_.sizes().len();
    // Each dimension of the output as two: the repetitions, and the input's own.
    let (mut sizes, mut from, mut to) = (Dims::new(), Dims::new(), Dims::new());
    for (dim, &times) in repeats.iter().enumerate() {
        let (size, stride) = match dim.checked_sub(missing) {
            Some(own) => (self_.sizes()[own], self_.strides()[own]),
            None => (1, 0),
        };
        if out.sizes()[dim] != size * times {
            return Err(Error::shape("the output does not have the shape of the repetition"));
        }
        sizes.extend_from_slice(&[times, size]);
        from.extend_from_slice(&[0, stride]);
        to.extend_from_slice(&[out.strides()[dim] * size, out.strides()[dim]]);
    }
    let to = Part { sizes: &sizes, strides: &to, offset: 0 };
    // SAFETY: the same elements of both under more dimensions.
    unsafe { copy(&out, to, &self_, Part { strides: &from, ..to }) }
}

/// The elements in reversed order along dimensions: `[1, 2, 3]` becomes `[3, 2, 1]`.
///
/// # Errors
/// If a dimension is out of range, or errors of the device.
pub fn flip(self_: DeviceView<'_>, dims: &[i64], out: DeviceViewMut<'_>) -> Result<()> {
    expect_sizes(out.sizes(), self_.sizes())?;
    let mut strides: Dims = self_.strides().into();
    let mut offset = 0;
    for &dim in dims {
        let dim = wrap_dim(dim, strides.len())?;
        if let Some(stride) = strides.get_mut(dim) {
            offset += *stride * (self_.sizes()[dim] - 1);
            *stride = -*stride;
        }
    }
    if self_.numel() == 0 {
        return Ok(());
    }
    let from = Part { sizes: self_.sizes(), strides: &strides, offset };
    // SAFETY: the same elements, walked from the other end, and the whole output.
    unsafe { copy(&out, whole_mut(&out), &self_, from) }
}

/// The elements moved along dimensions, the last ones to the front: `[1, 2, 3]` by 1 is `[3, 1, 2]`.
/// Without dimensions, in row-major order.
///
/// # Errors
/// If a dimension is out of range, or errors of the device.
pub fn roll(self_: DeviceView<'_>, shifts: &[i64], dims: &[i64], out: DeviceViewMut<'_>) -> Result<()> {
    expect_sizes(out.sizes(), self_.sizes())?;
    let count = self_.numel() as i64;
    if count == 0 {
        return Ok(());
    }
    let mut moves = Dims::from_elem(0, self_.sizes().len());
    if dims.is_empty() {
        return roll_flat(&self_, shifts.first().copied().unwrap_or(0).rem_euclid(count), out);
    }
    for (&shift, &dim) in shifts.iter().zip(dims) {
        let dim = wrap_dim(dim, self_.sizes().len())?;
        if let (Some(total), Some(&size)) = (moves.get_mut(dim), self_.sizes().get(dim)) {
            *total = (*total + shift.rem_euclid(size)).rem_euclid(size);
        }
    }
    // Each moved dimension has a part that stays in order and one that comes to the front.
    let moved: Vec<usize> = (0..moves.len()).filter(|&dim| moves[dim] != 0).collect();
    for choice in 0..1u64 << moved.len() {
        let mut sizes: Dims = self_.sizes().into();
        let (mut from, mut to) = (0, 0);
        for (bit, &dim) in moved.iter().enumerate() {
            let (size, shift) = (self_.sizes()[dim], moves[dim]);
            if choice >> bit & 1 == 0 {
                sizes[dim] = size - shift;
                to += out.strides()[dim] * shift;
            } else {
                sizes[dim] = shift;
                from += self_.strides()[dim] * (size - shift);
            }
        }
        let target = Part { sizes: &sizes, strides: out.strides(), offset: to };
        let source = Part { sizes: &sizes, strides: self_.strides(), offset: from };
        // SAFETY: parts of the operands, of the same sizes.
        unsafe { copy(&out, target, &self_, source)? };
    }
    Ok(())
}

/// The elements moved in row-major order.
fn roll_flat(self_: &DeviceView<'_>, shift: i64, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = self_.dtype();
    let (device, count, elements) = (out.device(), self_.numel() as i64, Dense::of(self_)?);
    write_dense(out, |first| {
        for (size, from, to) in [(count - shift, 0, shift), (shift, count - shift, 0)] {
            let part =
                |start: *mut c_void, sizes| Elements { start: start.cast(), dtype, sizes, strides: &[1] };
            let sizes = [size];
            let source = part(elements.at(from as usize).cast_mut(), &sizes);
            let target = part(first.wrapping_byte_add(to as usize * dtype.size()), &sizes);
            // SAFETY: parts of elements in row-major order, of which the output is none of the inputs.
            unsafe { convert(device, target, source)? };
        }
        Ok(())
    })
}

/// A tensor with a value around it; `pad` holds how much before and after each dimension, from the last
/// one on, and cuts off where it is negative.
///
/// # Errors
/// If the output's shape is not the padded one, or errors of the device.
pub fn constant_pad_nd(
    self_: DeviceView<'_>,
    pad: &[i64],
    value: Scalar,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let rank = self_.sizes().len();
    if !pad.len().is_multiple_of(2) || pad.len() / 2 > rank || out.sizes().len() != rank {
        return Err(Error::shape("there are not two numbers for each padded dimension"));
    }
    if pad.iter().any(|&pad| pad > 0) {
        // SAFETY: the whole output.
        unsafe { fill(&out, whole_mut(&out), value)? };
    }
    let mut sizes: Dims = self_.sizes().into();
    let (mut from, mut to) = (0, 0);
    for (place, pad) in pad.chunks_exact(2).enumerate() {
        let dim = rank - 1 - place;
        let (before, after) = (pad[0], pad[1]);
        if out.sizes()[dim] != self_.sizes()[dim] + before + after {
            return Err(Error::shape("the output's shape is not the padded one"));
        }
        sizes[dim] += before.min(0) + after.min(0);
        if sizes[dim] <= 0 {
            return Ok(());
        }
        from += self_.strides()[dim] * (-before).max(0);
        to += out.strides()[dim] * before.max(0);
    }
    let target = Part { sizes: &sizes, strides: out.strides(), offset: to };
    // SAFETY: the rest of the input after cutting, and its place in the output.
    unsafe { copy(&out, target, &self_, Part { sizes: &sizes, strides: self_.strides(), offset: from }) }
}

fn whole<'a>(view: &DeviceView<'a>) -> Part<'a> {
    Part { sizes: view.sizes(), strides: view.strides(), offset: 0 }
}

fn whole_mut<'a>(view: &DeviceViewMut<'a>) -> Part<'a> {
    Part { sizes: view.sizes(), strides: view.strides(), offset: 0 }
}
