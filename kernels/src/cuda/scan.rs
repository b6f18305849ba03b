//! Running sums, products and extremes along a dimension.
//!
//! The meaning is that of [`cpu::reduce`](crate::cpu::reduce); results of `f32` and `complex64` are kept in double precision.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{DeviceView, DeviceViewMut, Result};

use super::launch::{on_lines, too_many_dims};
use super::scratch::Room;
use crate::cpu::{expect_operand, expect_sizes};
use crate::device::{Lines, SOFTMAX_HEADERS, Shape};

static PROGRAM: DeviceProgram =
    DeviceProgram::new("scan.cuh", SOFTMAX_HEADERS, include_str!("../../cuda/scan.cuh"));

/// Running sums along a dimension.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn cumsum(self_: DeviceView<'_>, dim: i64, out: DeviceViewMut<'_>) -> Result<()> {
    running((0, "RunningSum"), &self_, dim, &out)
}

/// Running products along a dimension.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn cumprod(self_: DeviceView<'_>, dim: i64, out: DeviceViewMut<'_>) -> Result<()> {
    running((1, "RunningProduct"), &self_, dim, &out)
}

/// Running ln ∑ exp(x) along a dimension.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn logcumsumexp(self_: DeviceView<'_>, dim: i64, out: DeviceViewMut<'_>) -> Result<()> {
    running((2, "RunningLogSum"), &self_, dim, &out)
}

/// The largest element up to each along a dimension, and its place.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn cummax(
    self_: DeviceView<'_>,
    dim: i64,
    values: DeviceViewMut<'_>,
    indices: DeviceViewMut<'_>,
) -> Result<()> {
    running_best((3, "RunningLargest"), &self_, dim, &values, &indices)
}

/// The smallest element up to each along a dimension, and its place.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn cummin(
    self_: DeviceView<'_>,
    dim: i64,
    values: DeviceViewMut<'_>,
    indices: DeviceViewMut<'_>,
) -> Result<()> {
    running_best((4, "RunningSmallest"), &self_, dim, &values, &indices)
}

fn running(fold: (u8, &str), input: &DeviceView<'_>, dim: i64, out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = input.dtype();
    let dim = wrap_dim(dim, input.sizes().len())?;
    expect_sizes(out.sizes(), input.sizes())?;
    let (mut lines, shape) = Lines::along(dim, input.sizes(), [out.strides(), input.strides()])
        .ok_or_else(|| too_many_dims(input.sizes().len()))?;
    lines.pointers = [out.address().cast_const().cast(), input.address().cast()];
    let shape = columns_alone(&lines, shape);
    // SAFETY: the operands' elements are of the fold's types, and the lines are theirs.
    unsafe { on_lines(&PROGRAM, out.device(), (fold.0, "OPSMITH_SCAN", fold.1), dtype, (&lines, shape)) }
}

fn running_best(
    fold: (u8, &str),
    input: &DeviceView<'_>,
    dim: i64,
    values: &DeviceViewMut<'_>,
    indices: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = input.dtype();
    let dim = wrap_dim(dim, input.sizes().len())?;
    expect_sizes(values.sizes(), input.sizes())?;
    expect_sizes(indices.sizes(), input.sizes())?;
    let strides = [values.strides(), indices.strides(), input.strides()];
    let (mut lines, shape) =
        Lines::along(dim, input.sizes(), strides).ok_or_else(|| too_many_dims(input.sizes().len()))?;
    lines.pointers =
        [values.address().cast_const().cast(), indices.address().cast_const().cast(), input.address().cast()];
    let shape = columns_alone(&lines, shape);
    // SAFETY: the operands' elements are of the fold's types, and the lines are theirs.
    unsafe { on_lines(&PROGRAM, values.device(), (fold.0, "OPSMITH_SCAN", fold.1), dtype, (&lines, shape)) }
}

/// Lines whose neighbours are near, and so many that a thread for each fills a device.
const MANY: u64 = 1 << 14;

/// A launch with a thread for each line where lines lie side by side and are many, else the given one.
fn columns_alone<const N: usize>(lines: &Lines<N>, shape: Shape) -> Shape {
    if lines.along_x != 0 || lines.lines < MANY {
        return shape;
    }
    Shape { blocks: lines.lines.div_ceil(256) as u32, threads: [256, 1] }
}

/// The gradient of a running product along a dimension, exact where elements are zero too.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn cumprod_backward(
    grad: DeviceView<'_>,
    input: DeviceView<'_>,
    dim: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad.dtype();
    expect_operand("grad", grad.sizes(), input.sizes())?;
    expect_sizes(out.sizes(), input.sizes())?;
    let dim = wrap_dim(dim, input.sizes().len())?;
    if out.numel() == 0 {
        return Ok(());
    }
    let (mut lines, shape) =
        Lines::along(dim, input.sizes(), [out.strides(), grad.strides(), input.strides()])
            .ok_or_else(|| too_many_dims(input.sizes().len()))?;
    lines.pointers = [out.address().cast_const().cast(), grad.address().cast(), input.address().cast()];
    let shape = columns_alone(&lines, shape);
    // Numbers are kept in double precision.
    let bytes = if dtype.is_complex() { 16 } else { 8 };
    let room = Room::new::<u8>(out.device(), out.numel() as u64 * bytes)?;
    let sums: *mut c_void = room.address();
    let instance = || format!("OPSMITH_PRODUCT_GRADIENT(opsmith_kernel, opsmith::dtype::{})", dtype.ident());
    let grid =
        Grid { blocks: [shape.blocks, 1, 1], threads: [shape.threads[0], shape.threads[1], 1], shared: 0 };
    let parameters = [KernelParameter::of(&lines), KernelParameter::of(&sums)];
    // SAFETY: the lines are those of the operands, and there is a number for each element.
    unsafe { PROGRAM.launch(out.device(), 5 << 8 | dtype as u32, instance, grid, &parameters) }
}
