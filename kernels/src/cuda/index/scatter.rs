//! Single elements at indices along one dimension.

use std::ffi::c_void;

use opsmith_runtime::{DeviceView, DeviceViewMut, Result, Scalar};

use super::lead::{Along, How, Kind, Led, SUM, gather_at, input, output, put_number, without};
use crate::cpu::expect_sizes;
use crate::cpu::index::{check_index, check_source, unknown_reduction};
use crate::cuda::moves::{Part, copy, fill};

/// Elements of `self` at the indices: `out[i][j] = self[index[i][j]][j]` for dimension 0.
///
/// # Errors
/// If the index is larger than `self` in another dimension, or errors of the device.
pub fn gather(self_: DeviceView<'_>, dim: i64, index: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    expect_sizes(out.sizes(), index.sizes())?;
    let dim = check_index(self_.sizes(), dim, index.sizes())?;
    let fixed = without(self_.strides(), dim);
    let operands = [output(&out, out.strides()), input(&self_, &fixed), input(&index, index.strides())];
    let along = along(self_.sizes(), self_.strides(), dim);
    // SAFETY: the index's places are places of the operands, which were checked.
    unsafe { gather_at(out.dtype(), out.device(), index.sizes(), operands, along) }
}

/// Along a dimension of an operand; a scalar counts as one element of one dimension.
fn along(sizes: &[i64], strides: &[i64], dim: usize) -> Along {
    let of = |list: &[i64]| if list.is_empty() { 1 } else { list[dim] };
    Along { size: of(sizes), step: of(strides) }
}

/// Puts elements of `src` at the indices: `out[index[i][j]][j] = src[i][j]` for dimension 0. Where an index repeats, the last element in row-major order stays.
///
/// # Errors
/// If the shapes do not fit, or errors of the device.
pub fn scatter(dim: i64, index: DeviceView<'_>, src: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = src.dtype();
    let led = led(dim, &index, &src, &out)?;
    // SAFETY: the elements that lead somewhere were checked.
    unsafe { led.put(dtype, out.device(), &[], [output(&out, &[]), input(&src, &[])]) }
}

fn led(dim: i64, index: &DeviceView<'_>, src: &DeviceView<'_>, out: &DeviceViewMut<'_>) -> Result<Led> {
    let dim = check_index(out.sizes(), dim, index.sizes())?;
    check_source(index.sizes(), src.sizes())?;
    let (fixed, along) = (without(out.strides(), dim), along(out.sizes(), out.strides(), dim));
    let from = (index.address().cast(), index.strides());
    // SAFETY: the index's elements.
    unsafe { Led::new(out.device(), index.sizes(), from, [&fixed, src.strides()], along, None) }
}

/// Puts one value at the indices.
///
/// # Errors
/// If the shapes do not fit, or errors of the device.
pub fn scatter_value(dim: i64, index: DeviceView<'_>, value: Scalar, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    let dim = check_index(out.sizes(), dim, index.sizes())?;
    let fixed = without(out.strides(), dim);
    let operands = [output(&out, &fixed), input(&index, index.strides())];
    let along = along(out.sizes(), out.strides(), dim);
    // SAFETY: the index's places are places of the output, which were checked.
    unsafe { put_number(dtype, out.device(), index.sizes(), operands, along, value) }
}

/// Adds elements of `src` at the indices.
///
/// # Errors
/// If the shapes do not fit, or errors of the device.
pub fn scatter_add(
    dim: i64,
    index: DeviceView<'_>,
    src: DeviceView<'_>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = src.dtype();
    let led = led(dim, &index, &src, &out)?;
    // SAFETY: the elements that lead somewhere were checked.
    unsafe { led.join(dtype, out.device(), &[], [output(&out, &[]), input(&src, &[])], SUM) }
}

/// The sum of the weights of each number, in their order; there is a place in the output for each number from 0 on. Others
/// are reported.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// `count` numbers and weights are at the addresses, in memory of the device; the output has at most one dimension.
pub(in crate::cuda) unsafe fn sums_by_number(
    numbers: *const i64,
    weights: *const c_void,
    count: usize,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = out.dtype();
    if out.numel() > 0 {
        let whole = Part { sizes: out.sizes(), strides: out.strides(), offset: 0 };
        // SAFETY: the whole output.
        unsafe { fill(out, whole, Scalar::Int(0))? };
    }
    let along = Along { size: out.numel() as i64, step: out.strides().first().copied().unwrap_or(0) };
    let how = How { with_own: false, ..SUM };
    // SAFETY: the caller's promise.
    unsafe {
        let led = Led::new(out.device(), &[count as i64], (numbers, &[1]), [&[0], &[1]], along, None)?;
        led.join(dtype, out.device(), &[], [output(out, &[]), (weights.cast(), &[])], how)
    }
}

/// For each place, the reduction of the elements of `src` that the indices send there, and of
/// `self`'s own element if `include_self`. `reduce` is `sum`, `prod`, `mean`, `amax` or `amin`.
///
/// A mean of integers is rounded toward minus infinity.
///
/// # Errors
/// As [`scatter`], and if `reduce` is another word.
pub fn scatter_reduce_two(
    self_: DeviceView<'_>,
    dim: i64,
    index: DeviceView<'_>,
    src: DeviceView<'_>,
    reduce: &str,
    include_self: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = self_.dtype();
    let kind = match reduce {
        "sum" => Kind::Sum,
        "mean" => Kind::Mean,
        "prod" => Kind::Product,
        "amax" => Kind::Maximum,
        "amin" => Kind::Minimum,
        other => return Err(unknown_reduction(other)),
    };
    expect_sizes(out.sizes(), self_.sizes())?;
    let led = led(dim, &index, &src, &out)?;
    if out.address().cast_const() != self_.address() && out.numel() > 0 {
        let part = |strides| Part { sizes: out.sizes(), strides, offset: 0 };
        // SAFETY: the whole of both, which are apart.
        unsafe { copy(&out, part(out.strides()), &self_, part(self_.strides()))? };
    }
    let how = How { kind, with_own: include_self, ..SUM };
    // SAFETY: the elements that lead somewhere were checked.
    unsafe { led.join(dtype, out.device(), &[], [output(&out, &[]), input(&src, &[])], how) }
}
