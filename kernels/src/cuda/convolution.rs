//! Convolutions, their gradients, and columns of windows: the twin of [`cpu::convolution`](crate::cpu::convolution).
//!
//! Convolutions are products in tiles whose operands are read where they lie; no columns are written. Sums of 16-bit floats
//! are rounded once. A convolution is offered to the library of the device's vendor first.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::ConvolutionPart;
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Error, Result, Scalar};

use super::convolution_library::{Operand, by_library};
use super::launch::{each, strided};
use super::moves::{Part, fill};
use super::product::{Functor, Product, ProductShape};
use super::window::{Images, Sliding, are_dense, each_place};
use crate::cpu::convolution::{Plan, check_columns};
use crate::cpu::expect_sizes;
use crate::device::CONVOLUTION;
use crate::device::strided::Strided;
use crate::window::{Window, spatial_sizes};

static PROGRAM: DeviceProgram =
    DeviceProgram::new("convolution.cuh", CONVOLUTION, include_str!("../../cuda/convolution.cuh"));

/// Field by field as in `convolution.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Convolution {
    shape: ProductShape,
    large: Images,
    small: Images,
    weight: Images,
    bias: *const c_void,
    bias_stride: i64,
    groups: u64,
    large_channels: u64,
    small_channels: u64,
    sliding: Sliding,
    dense: u64,
}

// SAFETY: the shape is the first field.
unsafe impl Product for Convolution {}

/// Field by field as in `convolution.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Channels {
    shape: ProductShape,
    images: Images,
    places: [u64; 3],
    out: *const c_void,
    out_stride: i64,
}

// SAFETY: the shape is the first field.
unsafe impl Product for Channels {}

#[derive(Clone, Copy)]
#[repr(C)]
struct ToColumns {
    places: Strided<1>,
    images: Images,
    sliding: Sliding,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct FromColumns {
    places: Strided<1>,
    columns: *const c_void,
    strides: [i64; 3],
    sliding: Sliding,
}

/// Directions of a convolution.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    ToSmall,
    ToLarge,
    OfWeight,
}

/// The convolution of samples with a weight: `(samples, channels, places…)` with
/// `(outputs, channels / groups, window…)` gives `(samples, outputs, positions…)`.
///
/// A transposed one swaps the roles of input and output; `output_padding` matters for its shape.
///
/// By the vendor's library (cuDNN) where it is found and takes dtype and layout, else by `product.cuh`.
///
/// # Errors
/// If the shapes or parameters do not fit, or errors of the device.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn convolution(
    input: DeviceView<'_>,
    weight: DeviceView<'_>,
    bias: Option<DeviceView<'_>>,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    transposed: bool,
    _output_padding: &[i64],
    groups: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = input.dtype();
    let plan =
        Plan::new(input.sizes(), weight.sizes(), out.sizes(), stride, padding, dilation, transposed, groups)?;
    let channels = out.sizes()[1];
    if let Some(bias) = bias.filter(|bias| bias.sizes() != [channels]) {
        return Err(Error::shape(format!(
            "the bias has the shape {} instead of ({channels})",
            ShapeText(bias.sizes())
        )));
    }
    let (given, result) = (Operand::of(&input), Operand::of_mut(&out));
    let (large, small, direction) = match transposed {
        true => (result, given, Direction::ToLarge),
        false => (given, result, Direction::ToSmall),
    };
    let operands = [large, small, Operand::of(&weight)];
    let bias = bias.map(|bias| (bias.address().cast(), bias.strides()[0]));
    // SAFETY: the plan checked the sizes, and the views vouch for their elements.
    unsafe { compute(dtype, &plan, direction, operands, bias, out.device()) }
}

/// The gradients of [`convolution`] for input, weight and bias; those not asked for in `output_mask` are zeros.
///
/// By the vendor's library (cuDNN) where it is found and takes dtype and layout, else by `product.cuh`.
///
/// # Errors
/// As [`convolution`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn convolution_backward(
    grad_output: DeviceView<'_>,
    input: DeviceView<'_>,
    weight: DeviceView<'_>,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    transposed: bool,
    _output_padding: &[i64],
    groups: i64,
    output_mask: &[bool],
    grad_input: DeviceViewMut<'_>,
    grad_weight: DeviceViewMut<'_>,
    grad_bias: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad_output.dtype();
    let (x_sizes, y_sizes) = (input.sizes(), grad_output.sizes());
    let plan = Plan::new(x_sizes, weight.sizes(), y_sizes, stride, padding, dilation, transposed, groups)?;
    let spatial = weight.sizes().len() - 2;
    let grad = Images::of(&grad_output, spatial);
    let device = grad_output.device();
    let asked = |number: usize| output_mask.get(number).copied().unwrap_or(true);
    if asked(0) {
        expect_sizes(grad_input.sizes(), x_sizes)?;
        let (grad, result) = (Operand::of(&grad_output), Operand::of_mut(&grad_input));
        // The gradient of a convolution is a transposed one, and the other way around.
        let (large, small, direction) = match transposed {
            true => (grad, result, Direction::ToSmall),
            false => (result, grad, Direction::ToLarge),
        };
        let operands = [large, small, Operand::of(&weight)];
        // SAFETY: the plan checked the sizes, and the views vouch for their elements.
        unsafe { compute(dtype, &plan, direction, operands, None, device)? };
    } else {
        write_zeros(&grad_input)?;
    }
    if asked(1) {
        expect_sizes(grad_weight.sizes(), weight.sizes())?;
        let (x, grad) = (Operand::of(&input), Operand::of(&grad_output));
        let (large, small) = if transposed { (grad, x) } else { (x, grad) };
        let operands = [large, small, Operand::of_mut(&grad_weight)];
        // SAFETY: the sizes are those of the plan, as was checked, and the views vouch for their elements.
        unsafe { compute(dtype, &plan, Direction::OfWeight, operands, None, device)? };
    } else {
        write_zeros(&grad_weight)?;
    }
    if asked(2) { sum_channels(&grad_output, grad, &grad_bias) } else { write_zeros(&grad_bias) }
}

/// Computes a direction of a convolution, by a library if one does; operands are the large side, the small side and the weight.
///
/// # Safety
/// Operands have the sizes of the plan and lie inside their memory on the device.
unsafe fn compute(
    dtype: DType,
    plan: &Plan,
    direction: Direction,
    operands: [Operand<'_>; 3],
    bias: Option<(*const c_void, i64)>,
    device: Device,
) -> Result<()> {
    let part = match direction {
        Direction::ToSmall => ConvolutionPart::Output,
        Direction::ToLarge => ConvolutionPart::Image,
        Direction::OfWeight => ConvolutionPart::Weight,
    };
    // SAFETY: the caller's promise.
    if unsafe { by_library(dtype, device, plan, part, &operands, bias)? } {
        return Ok(());
    }
    let spatial = plan.sliding.window.spatial;
    let weight = &operands[2];
    let dense = direction != Direction::OfWeight && are_dense(&weight.sizes[1..], &weight.strides[1..]);
    let images = operands.map(|operand| Images::at(operand.start, operand.strides, spatial));
    // SAFETY: the caller's promise.
    unsafe { launch(dtype, plan, direction, images, dense, bias, device) }
}

/// Launches a direction of a convolution; operands are the large side, the small side and the weight.
///
/// # Safety
/// Operands have the sizes of the plan and lie inside their memory on the device.
unsafe fn launch(
    dtype: DType,
    plan: &Plan,
    direction: Direction,
    [large, small, weight]: [Images; 3],
    dense: bool,
    bias: Option<(*const c_void, i64)>,
    device: Device,
) -> Result<()> {
    let sliding = Sliding::new(&plan.sliding.window, plan.sliding.input, plan.sliding.output);
    let (elements, places) = (sliding.elements(), sliding.input.iter().product::<u64>());
    let positions = sliding.output.iter().product::<u64>();
    let [samples, groups, of_large, of_small] =
        [plan.samples, plan.groups, plan.large, plan.small].map(|number| number as u64);
    let (name, [stacks, rows, columns, inner]) = match direction {
        Direction::ToSmall => ("ToSmall", [samples * groups, of_small, positions, of_large * elements]),
        Direction::ToLarge => ("ToLarge", [samples * groups, of_large, places, of_small * elements]),
        Direction::OfWeight => ("OfWeight", [groups, of_small, of_large * elements, samples * positions]),
    };
    let is_small = sliding.is_small() && [columns, inner].iter().all(|&number| number < 1 << 31);
    let number = if is_small { "u32" } else { "u64" };
    let name = format!("{name}<opsmith::dtype::{}, opsmith::{number}>", dtype.ident());
    let (bias, bias_stride) = bias.unwrap_or((std::ptr::null(), 0));
    let parameter = Convolution {
        shape: ProductShape::new(stacks, rows, columns, inner),
        large,
        small,
        weight,
        bias,
        bias_stride,
        groups,
        large_channels: of_large,
        small_channels: of_small,
        sliding,
        dense: u64::from(dense),
    };
    let number = direction as u32 * 2 + u32::from(is_small);
    let functor = Functor { program: &PROGRAM, number, dtype, name: &name };
    // SAFETY: the caller's promise.
    unsafe { functor.product(device, parameter) }
}

/// The sums of each channel over samples and places.
fn sum_channels(grad: &DeviceView<'_>, images: Images, out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = grad.dtype();
    let sizes = grad.sizes();
    expect_sizes(out.sizes(), &sizes[1..2])?;
    let places = spatial_sizes(sizes, sizes.len() - 2)?.map(|size| size as u64);
    let inner = sizes[0] as u64 * places.iter().product::<u64>();
    let parameter = Channels {
        shape: ProductShape::new(1, sizes[1] as u64, 1, inner),
        images,
        places,
        out: out.address().cast_const().cast(),
        out_stride: out.strides()[0],
    };
    let name = format!("Channels<opsmith::dtype::{}>", dtype.ident());
    let functor = Functor { program: &PROGRAM, number: 6, dtype, name: &name };
    // SAFETY: the places are those of the views, which vouch for their elements.
    unsafe { functor.rows(out.device(), parameter, true) }
}

fn write_zeros(out: &DeviceViewMut<'_>) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let whole = Part { sizes: out.sizes(), strides: out.strides(), offset: 0 };
    // SAFETY: the whole output.
    unsafe { fill(out, whole, Scalar::Int(0)) }
}

/// The elements of a window at each of its positions over the last two dimensions, as a column.
///
/// # Errors
/// If the shapes or parameters do not fit, or errors of the device.
pub fn im2col(
    self_: DeviceView<'_>,
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = self_.dtype();
    let window = Window::new(2, kernel_size, stride, padding, dilation)?;
    let input = spatial_sizes(self_.sizes(), 2)?;
    let output = check_columns(window, input, self_.numel(), out.numel())?.output;
    let sliding = Sliding::new(&window, input, output);
    let (sizes, strides) = columns(out.sizes(), out.strides())?;
    let places = strided(&sizes, [(out.address().cast_const().cast(), &strides)])?;
    let parameter = ToColumns { places, images: Images::of(&self_, 2), sliding };
    // SAFETY: the sizes were checked, and the views vouch for their elements.
    unsafe { each(&PROGRAM, out.device(), (128, "ToColumns"), dtype, &places, &parameter) }
}

/// The sum, at each place, of the columns' elements that [`im2col`] would have taken from it.
///
/// # Errors
/// As [`im2col`].
pub fn col2im(
    self_: DeviceView<'_>,
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = self_.dtype();
    let window = Window::new(2, kernel_size, stride, padding, dilation)?;
    let input = spatial_sizes(out.sizes(), 2)?;
    let output = check_columns(window, input, out.numel(), self_.numel())?.output;
    let sliding = Sliding::new(&window, input, output);
    let (_, strides) = columns(self_.sizes(), self_.strides())?;
    let places = each_place(&out, 2)?;
    let parameter = FromColumns { places, columns: self_.address().cast(), strides, sliding };
    // SAFETY: the sizes were checked, and the views vouch for their elements.
    unsafe { each(&PROGRAM, out.device(), (129, "FromColumns"), dtype, &places, &parameter) }
}

/// Sizes and strides of columns: samples, which may be absent, elements and positions.
fn columns(sizes: &[i64], strides: &[i64]) -> Result<([i64; 3], [i64; 3])> {
    match (sizes, strides) {
        (&[a, b], &[x, y]) => Ok(([1, a, b], [0, x, y])),
        (&[n, a, b], &[s, x, y]) => Ok(([n, a, b], [s, x, y])),
        _ => Err(Error::shape(format!(
            "columns have two or three dimensions, not the shape {}",
            ShapeText(sizes)
        ))),
    }
}
