//! Borders whose elements are copies of others: the twin of [`cpu::padding`](crate::cpu::padding).

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DeviceView, DeviceViewMut, Result, Untyped};

use super::launch::{each, strided, too_many_dims};
use crate::cpu::expect_sizes;
use crate::cpu::padding::{Place, around, check_border, mirror, nearest};
use crate::device::EACH;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("padding.cuh", EACH, include_str!("../../cuda/padding.cuh"));

/// The most dimensions of a parameter.
const MOST_DIMS: usize = 8;

/// Field by field as in `padding.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Border {
    sizes: [i64; MOST_DIMS],
    before: [i64; MOST_DIMS],
    after: [i64; MOST_DIMS],
    strides: [i64; MOST_DIMS],
    mode: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Padded {
    places: Strided<1>,
    read: *const c_void,
    border: Border,
}

/// A way to choose the element that a place shows: its number in `padding.cuh`, and the host's function.
#[derive(Clone, Copy)]
struct Mode(u64, Place);

const MIRRORED: Mode = Mode(0, mirror);
const NEAREST: Mode = Mode(1, nearest);
const AROUND: Mode = Mode(2, around);

/// `self` with a border that mirrors it without repeating the edge: `[1, 2, 3]` with 2 on both sides
/// is `[3, 2, 1, 2, 3, 2, 1]`.
///
/// # Errors
/// If a border is as large as its dimension or the numbers do not fit the shape, or errors of the device.
pub fn reflection_pad(self_: DeviceView<'_>, padding: &[i64], out: DeviceViewMut<'_>) -> Result<()> {
    pad(&self_, padding, MIRRORED, &out)
}

/// The gradient of [`reflection_pad`].
///
/// # Errors
/// As [`reflection_pad`].
pub fn reflection_pad_backward(
    grad_output: DeviceView<'_>,
    self_: Untyped<'_>,
    padding: &[i64],
    out: DeviceViewMut<'_>,
) -> Result<()> {
    pad_backward(&grad_output, self_.sizes(), padding, MIRRORED, &out)
}

/// `self` with a border that repeats its edge: `[1, 2, 3]` with 2 on both sides is `[1, 1, 1, 2, 3, 3, 3]`.
///
/// # Errors
/// If the numbers do not fit the shape, or errors of the device.
pub fn replication_pad(self_: DeviceView<'_>, padding: &[i64], out: DeviceViewMut<'_>) -> Result<()> {
    pad(&self_, padding, NEAREST, &out)
}

/// The gradient of [`replication_pad`].
///
/// # Errors
/// As [`replication_pad`].
pub fn replication_pad_backward(
    grad_output: DeviceView<'_>,
    self_: Untyped<'_>,
    padding: &[i64],
    out: DeviceViewMut<'_>,
) -> Result<()> {
    pad_backward(&grad_output, self_.sizes(), padding, NEAREST, &out)
}

/// `self` with a border that goes on at the other side: `[1, 2, 3]` with 2 on both sides is `[2, 3, 1, 2, 3, 1, 2]`.
///
/// # Errors
/// If a border is larger than its dimension or the numbers do not fit the shape, or errors of the device.
pub fn circular_pad(self_: DeviceView<'_>, pad: &[i64], out: DeviceViewMut<'_>) -> Result<()> {
    self::pad(&self_, pad, AROUND, &out)
}

/// The gradient of [`circular_pad`].
///
/// # Errors
/// As [`circular_pad`].
pub fn circular_pad_backward(
    grad_output: DeviceView<'_>,
    self_: Untyped<'_>,
    pad: &[i64],
    out: DeviceViewMut<'_>,
) -> Result<()> {
    pad_backward(&grad_output, self_.sizes(), pad, AROUND, &out)
}

fn pad(input: &DeviceView<'_>, padding: &[i64], mode: Mode, out: &DeviceViewMut<'_>) -> Result<()> {
    check_border(input.sizes(), padding, out.sizes(), mode.1)?;
    let border = border(input.sizes(), padding, input.strides(), mode)?;
    launch(input.address().cast(), border, (0, "Padded"), out)
}

fn pad_backward(
    grad: &DeviceView<'_>,
    sizes: &[i64],
    padding: &[i64],
    mode: Mode,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    expect_sizes(out.sizes(), sizes)?;
    check_border(sizes, padding, grad.sizes(), mode.1)?;
    let border = border(sizes, padding, grad.strides(), mode)?;
    launch(grad.address().cast(), border, (1, "PaddedBackward"), out)
}

/// The parameter for an input of these sizes; the strides are those of the operand that is read.
fn border(sizes: &[i64], padding: &[i64], strides: &[i64], Mode(mode, _): Mode) -> Result<Border> {
    if sizes.len() > MOST_DIMS {
        return Err(too_many_dims(sizes.len()));
    }
    let zeros = [0; MOST_DIMS];
    let mut border = Border { sizes: zeros, before: zeros, after: zeros, strides: zeros, mode };
    border.sizes[..sizes.len()].copy_from_slice(sizes);
    border.strides[..strides.len()].copy_from_slice(strides);
    for (place, numbers) in padding.chunks_exact(2).enumerate() {
        let dim = sizes.len() - 1 - place;
        (border.before[dim], border.after[dim]) = (numbers[0], numbers[1]);
    }
    Ok(border)
}

fn launch(read: *const c_void, border: Border, functor: (u8, &str), out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    let places = strided(out.sizes(), [(out.address().cast_const().cast(), out.strides())])?;
    let parameter = Padded { places, read, border };
    // SAFETY: the struct has the fields of `padding.cuh`; sizes were checked, so that places are inside the operands.
    unsafe { each(&PROGRAM, out.device(), functor, dtype, &places, &parameter) }
}
