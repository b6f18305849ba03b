//! Losses that are more than an expression of each element.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Result, Scalar, Untyped};

use super::fold::{Fold, Operands, fold};
use super::moves::{Part, fill};
use super::scratch::{Dense, DenseMut};
use crate::cpu::loss::Scores;
use crate::cpu::{expect_operand, expect_sizes};
use crate::device::REDUCTION_HEADERS;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("nll.cuh", REDUCTION_HEADERS, include_str!("../../cuda/nll.cuh"));

/// The parameter of the kernels, field by field as in `nll.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Likelihood {
    scores: *const c_void,
    weight: *const c_void,
    grad: *const c_void,
    targets: *const c_void,
    total: *mut c_void,
    out: *mut c_void,
    count: u64,
    classes: u64,
    places: u64,
    ignored: i64,
    reduction: u64,
}

/// The negative log likelihood of the classes in `target`, and the sum of the weights that a mean divides by.
///
/// `reduction` is 0 for a loss each (and no sum), 1 for their mean, 2 for their sum.
///
/// # Errors
/// If the shapes do not go together; errors of the device, which reports a class that does not exist.
pub fn nll_loss_forward(
    self_: DeviceView<'_>,
    target: DeviceView<'_>,
    weight: Option<DeviceView<'_>>,
    reduction: i64,
    ignore_index: i64,
    out: DeviceViewMut<'_>,
    total_weight: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = self_.dtype();
    let shape = Scores::new(self_.sizes(), target.sizes(), weight.as_ref().map(|weight| weight.sizes()))?;
    expect_sizes(out.sizes(), if reduction == 0 { target.sizes() } else { &[] })?;
    expect_sizes(total_weight.sizes(), &[])?;
    let device = out.device();
    let count = target.numel();
    let (scores, target) = (Dense::of(&self_)?, Dense::of(&target)?);
    let weight = weight.as_ref().map(Dense::of).transpose()?;
    let out = DenseMut::of(out)?;
    let likelihood = Likelihood {
        scores: scores.address.cast(),
        weight: Dense::address_of(&weight).cast(),
        grad: std::ptr::null(),
        targets: target.address.cast(),
        total: total_weight.address().cast(),
        out: out.address.cast(),
        count: count as u64,
        classes: shape.classes as u64,
        places: shape.places as u64,
        ignored: ignore_index,
        reduction: reduction as u64,
    };
    if reduction == 0 {
        // As in PyTorch, scores without samples have a total even where nothing is reduced.
        let alone = self_.sizes().len() == 1;
        let total = if alone { likelihood.total } else { std::ptr::null_mut() };
        if !alone {
            // SAFETY: the whole output.
            unsafe { fill(&total_weight, Part { sizes: &[], strides: &[], offset: 0 }, Scalar::Int(0))? };
        }
        // SAFETY: addresses are those of elements in the numbers of the shape.
        unsafe { launch(dtype, (1, "losses"), device, &Likelihood { total, ..likelihood })? };
        return out.write();
    }
    let loss = Fold {
        program: &PROGRAM,
        number: dtype as u32,
        text: || format!("Loss<opsmith::dtype::{}>", dtype.ident()),
        value: likelihood,
        ordered: true,
    };
    let operands = Operands {
        device,
        sizes: &[count as i64],
        reduced: &[true],
        input: (likelihood.targets, &[1]),
        out: (likelihood.out, &[0]),
    };
    // SAFETY: the fold is of targets, and its output is of the type of scores.
    unsafe { fold(&loss, &operands)? };
    out.write()
}

/// The gradient of [`nll_loss_forward`] by the scores.
///
/// # Errors
/// As [`nll_loss_forward`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn nll_loss_backward(
    grad_output: DeviceView<'_>,
    self_: Untyped<'_>,
    target: DeviceView<'_>,
    weight: Option<DeviceView<'_>>,
    reduction: i64,
    ignore_index: i64,
    total_weight: DeviceView<'_>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad_output.dtype();
    let shape = Scores::new(self_.sizes(), target.sizes(), weight.as_ref().map(|weight| weight.sizes()))?;
    expect_operand("grad_output", grad_output.sizes(), if reduction == 0 { target.sizes() } else { &[] })?;
    expect_sizes(out.sizes(), self_.sizes())?;
    let device = out.device();
    let (grads, target) = (Dense::of(&grad_output)?, Dense::of(&target)?);
    let weight = weight.as_ref().map(Dense::of).transpose()?;
    let out = DenseMut::of(out)?;
    let likelihood = Likelihood {
        scores: std::ptr::null(),
        weight: Dense::address_of(&weight).cast(),
        grad: grads.address.cast(),
        targets: target.address.cast(),
        total: total_weight.address().cast_mut().cast(),
        out: out.address.cast(),
        count: (shape.samples * shape.classes * shape.places) as u64,
        classes: shape.classes as u64,
        places: shape.places as u64,
        ignored: ignore_index,
        reduction: reduction as u64,
    };
    // SAFETY: addresses are those of elements in the numbers of the shape.
    unsafe { launch(dtype, (2, "score_gradients"), device, &likelihood)? };
    out.write()
}

/// Launches a kernel for `count` targets or scores.
///
/// # Safety
/// The addresses that the kernel needs are those of its operands.
unsafe fn launch(
    dtype: DType,
    (number, name): (u32, &str),
    device: Device,
    likelihood: &Likelihood,
) -> Result<()> {
    if likelihood.count == 0 {
        return Ok(());
    }
    // Folds have two numbers each.
    let number = (number << 8 | dtype as u32) << 1;
    let instance = || format!("OPSMITH_NLL(opsmith_kernel, {name}, dtype::{})", dtype.ident());
    let blocks = likelihood.count.div_ceil(1024).min(1 << 20) as u32;
    let grid = Grid { blocks: [blocks, 1, 1], threads: [256, 1, 1], shared: 0 };
    let parameters = [KernelParameter::of(likelihood)];
    // SAFETY: the caller's promise; the parameter is that of `nll.cuh`.
    unsafe { PROGRAM.launch(device, number, instance, grid, &parameters) }
}
