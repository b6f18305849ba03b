//! Running sums, products and extremes along a dimension.
//!
//! The meaning is that of [`cpu::reduce`](crate::cpu::reduce); results of `f32` and `complex64` are kept in double precision.

use opsmith_runtime::device_loop::DeviceProgram;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{DeviceView, DeviceViewMut, Element, Result};

use super::launch::{each, on_lines, strided, too_many_dims};
use crate::cpu::expect_sizes;
use crate::device::strided::Strided;
use crate::device::{EACH, Lines, SOFTMAX_HEADERS, Shape};

static PROGRAM: DeviceProgram =
    DeviceProgram::new("scan.cuh", SOFTMAX_HEADERS, include_str!("../../cuda/scan.cuh"));
static ALONG: DeviceProgram = DeviceProgram::new("chosen.cuh", EACH, include_str!("../../cuda/chosen.cuh"));

/// Running sums along a dimension.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn cumsum<T: Element>(self_: DeviceView<'_, T>, dim: i64, out: DeviceViewMut<'_, T>) -> Result<()> {
    running((0, "RunningSum"), &self_, dim, &out)
}

/// Running products along a dimension.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn cumprod<T: Element>(self_: DeviceView<'_, T>, dim: i64, out: DeviceViewMut<'_, T>) -> Result<()> {
    running((1, "RunningProduct"), &self_, dim, &out)
}

/// Running ln ∑ exp(x) along a dimension.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn logcumsumexp<T: Element>(self_: DeviceView<'_, T>, dim: i64, out: DeviceViewMut<'_, T>) -> Result<()> {
    running((2, "RunningLogSum"), &self_, dim, &out)
}

/// The largest element up to each along a dimension, and its place.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn cummax<T: Element>(
    self_: DeviceView<'_, T>,
    dim: i64,
    values: DeviceViewMut<'_, T>,
    indices: DeviceViewMut<'_, i64>,
) -> Result<()> {
    running_best((3, "RunningLargest"), &self_, dim, &values, &indices)
}

/// The smallest element up to each along a dimension, and its place.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn cummin<T: Element>(
    self_: DeviceView<'_, T>,
    dim: i64,
    values: DeviceViewMut<'_, T>,
    indices: DeviceViewMut<'_, i64>,
) -> Result<()> {
    running_best((4, "RunningSmallest"), &self_, dim, &values, &indices)
}

fn running<T: Element>(
    fold: (u8, &str),
    input: &DeviceView<'_, T>,
    dim: i64,
    out: &DeviceViewMut<'_, T>,
) -> Result<()> {
    let dim = wrap_dim(dim, input.sizes().len())?;
    expect_sizes(out.sizes(), input.sizes())?;
    let (mut lines, shape) = Lines::along(dim, input.sizes(), [out.strides(), input.strides()])
        .ok_or_else(|| too_many_dims(input.sizes().len()))?;
    lines.pointers = [out.address().cast_const().cast(), input.address().cast()];
    let shape = columns_alone(&lines, shape);
    // SAFETY: the operands' elements are of the fold's types, and the lines are theirs.
    unsafe { on_lines(&PROGRAM, out.device(), (fold.0, "OPSMITH_SCAN", fold.1), T::DTYPE, (&lines, shape)) }
}

fn running_best<T: Element>(
    fold: (u8, &str),
    input: &DeviceView<'_, T>,
    dim: i64,
    values: &DeviceViewMut<'_, T>,
    indices: &DeviceViewMut<'_, i64>,
) -> Result<()> {
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
    unsafe {
        on_lines(&PROGRAM, values.device(), (fold.0, "OPSMITH_SCAN", fold.1), T::DTYPE, (&lines, shape))
    }
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

#[derive(Clone, Copy)]
#[repr(C)]
struct CumprodBackward {
    places: Strided<3>,
    dim: u64,
}

/// The gradient of a running product along a dimension, exact where elements are zero too.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn cumprod_backward<T: Element>(
    grad: DeviceView<'_, T>,
    input: DeviceView<'_, T>,
    dim: i64,
    out: DeviceViewMut<'_, T>,
) -> Result<()> {
    expect_sizes(grad.sizes(), input.sizes())?;
    expect_sizes(out.sizes(), input.sizes())?;
    let dim = wrap_dim(dim, input.sizes().len())? as u64;
    let places = strided(
        out.sizes(),
        [
            (out.address().cast_const().cast(), out.strides()),
            (grad.address().cast(), grad.strides()),
            (input.address().cast(), input.strides()),
        ],
    )?;
    let parameter = CumprodBackward { places, dim };
    // SAFETY: the struct has the fields of `chosen.cuh`, and places are those of the views.
    unsafe { each(&ALONG, out.device(), (1, "CumprodBackward"), T::DTYPE, &places, &parameter) }
}
