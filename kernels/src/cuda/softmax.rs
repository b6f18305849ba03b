//! Softmax and its logarithm along a dimension, and their derivatives.

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{DeviceView, DeviceViewMut, Result};

use super::launch::{on_lines, too_many_dims};
use crate::cpu::{expect_operand, expect_sizes};
use crate::device::{Lines, SOFTMAX_HEADERS};

static PROGRAM: DeviceProgram = DeviceProgram::new("softmax.cuh", SOFTMAX_HEADERS, "");

/// exp(x) along a dimension, divided by its sum.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn softmax(self_: DeviceView<'_>, dim: i64, out: DeviceViewMut<'_>) -> Result<()> {
    forward((0, "Softmax"), &self_, dim, &out)
}

/// The logarithm of [`softmax`], accurate where that is tiny.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn log_softmax(self_: DeviceView<'_>, dim: i64, out: DeviceViewMut<'_>) -> Result<()> {
    forward((1, "LogSoftmax"), &self_, dim, &out)
}

/// The gradient of [`softmax`]: `(grad_output - sum(grad_output * output)) * output`.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn softmax_backward_data(
    grad_output: DeviceView<'_>,
    output: DeviceView<'_>,
    dim: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    backward((2, "SoftmaxBackward"), &grad_output, &output, dim, &out)
}

/// The gradient of [`log_softmax`]: `grad_output - exp(output) * sum(grad_output)`.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn log_softmax_backward_data(
    grad_output: DeviceView<'_>,
    output: DeviceView<'_>,
    dim: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    backward((3, "LogSoftmaxBackward"), &grad_output, &output, dim, &out)
}

fn forward(rule: (u8, &str), input: &DeviceView<'_>, dim: i64, out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = input.dtype();
    let dim = wrap_dim(dim, input.sizes().len())?;
    expect_sizes(out.sizes(), input.sizes())?;
    let (mut lines, shape) = Lines::along(dim, input.sizes(), [out.strides(), input.strides()])
        .and_then(|(lines, _)| Some((lines, lines.in_chunks(dtype)?)))
        .ok_or_else(|| too_many_dims(input.sizes().len()))?;
    lines.pointers = [out.address().cast_const().cast(), input.address().cast()];
    let rule = (rule.0, "OPSMITH_SOFTMAX", rule.1);
    // SAFETY: the operands' elements are of the rule's type, and the lines are theirs.
    unsafe { on_lines(&PROGRAM, out.device(), rule, dtype, (&lines, shape)) }
}

fn backward(
    rule: (u8, &str),
    grad: &DeviceView<'_>,
    output: &DeviceView<'_>,
    dim: i64,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad.dtype();
    let dim = wrap_dim(dim, grad.sizes().len())?;
    expect_sizes(out.sizes(), grad.sizes())?;
    expect_operand("output", output.sizes(), grad.sizes())?;
    let strides = [out.strides(), grad.strides(), output.strides()];
    let (mut lines, shape) = Lines::along(dim, grad.sizes(), strides)
        .and_then(|(lines, _)| Some((lines, lines.in_chunks(dtype)?)))
        .ok_or_else(|| too_many_dims(grad.sizes().len()))?;
    lines.pointers = [out.address().cast_const().cast(), grad.address().cast(), output.address().cast()];
    let rule = (rule.0, "OPSMITH_SOFTMAX", rule.1);
    // SAFETY: the operands' elements are of the rule's type, and the lines are theirs.
    unsafe { on_lines(&PROGRAM, out.device(), rule, dtype, (&lines, shape)) }
}
