//! Group normalisation: over the channels of a group and all places, with a factor and a shift for
//! each channel.

use opsmith_runtime::{DeviceView, DeviceViewMut, Result};

use super::channels::{Channels, Given};
use super::{address_of, factor, output, write};
use crate::cpu::normalisation::{Groups, asked, expect_count};
use crate::cpu::{expect_operand, expect_sizes};
use crate::cuda::scratch::{Dense, DenseMut};

/// `(x - mean) * rstd * weight + bias` over each group of channels of each sample; also each group's
/// mean and `rstd`, 1 / √(variance + eps).
///
/// # Errors
/// If the sizes do not agree, or the groups are not equal; errors of the device.
#[allow(non_snake_case, clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_group_norm(
    input: DeviceView<'_>,
    weight: Option<DeviceView<'_>>,
    bias: Option<DeviceView<'_>>,
    N: i64,
    C: i64,
    HxW: i64,
    group: i64,
    eps: f64,
    out: DeviceViewMut<'_>,
    mean: DeviceViewMut<'_>,
    rstd: DeviceViewMut<'_>,
) -> Result<()> {
    let groups = Groups::new(input.numel(), N, C, HxW, group)?;
    expect_sizes(out.sizes(), input.sizes())?;
    let weight = factor(weight.as_ref(), groups.all_channels(), "weight")?;
    let bias = factor(bias.as_ref(), groups.all_channels(), "bias")?;
    let mut channels = channels_of(&groups, &input)?;
    expect_count(mean.numel(), channels.statistics(), "mean")?;
    expect_count(rstd.numel(), channels.statistics(), "rstd")?;
    let input = Dense::of(&input)?;
    let (out, mean, rstd) = (DenseMut::of(out)?, DenseMut::of(mean)?, DenseMut::of(rstd)?);
    let norm = &mut channels.norm;
    (norm.eps, norm.input) = (eps, input.address.cast());
    (norm.weight, norm.bias) = (Dense::address_of(&weight).cast(), Dense::address_of(&bias).cast());
    (norm.out, norm.mean, norm.rstd) = (out.address.cast(), mean.address.cast(), rstd.address.cast());
    // SAFETY: addresses are those of as many elements as the channels have.
    unsafe {
        channels.settle()?;
        channels.normalise()?;
    }
    out.write()?;
    mean.write()?;
    rstd.write()
}

fn channels_of(groups: &Groups, input: &DeviceView<'_>) -> Result<Channels> {
    let dtype = input.dtype();
    let sizes = [groups.samples, groups.groups, groups.channels, groups.places];
    Channels::grouped(dtype, input.device(), sizes)
}

/// The gradients of [`native_group_norm`] for input, weight and bias; those not asked for in
/// `output_mask` are zeros.
///
/// # Errors
/// As [`native_group_norm`].
#[allow(non_snake_case, clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_group_norm_backward(
    grad_out: DeviceView<'_>,
    input: DeviceView<'_>,
    mean: DeviceView<'_>,
    rstd: DeviceView<'_>,
    weight: Option<DeviceView<'_>>,
    N: i64,
    C: i64,
    HxW: i64,
    group: i64,
    output_mask: &[bool],
    grad_input: DeviceViewMut<'_>,
    grad_weight: DeviceViewMut<'_>,
    grad_bias: DeviceViewMut<'_>,
) -> Result<()> {
    let groups = Groups::new(input.numel(), N, C, HxW, group)?;
    expect_operand("grad_out", grad_out.sizes(), input.sizes())?;
    expect_operand("mean", &[mean.numel() as i64], &[(groups.samples * groups.groups) as i64])?;
    expect_operand("rstd", rstd.sizes(), mean.sizes())?;
    let weight = factor(weight.as_ref(), groups.all_channels(), "weight")?;
    let of_input = output(asked(output_mask, 0), grad_input)?;
    let of_weight = output(asked(output_mask, 1), grad_weight)?;
    let of_bias = output(asked(output_mask, 2), grad_bias)?;
    let mut channels = channels_of(&groups, &input)?;
    let (grads, elements) = (Dense::of(&grad_out)?, Dense::of(&input)?);
    let (mean, rstd) = (Dense::of(&mean)?, Dense::of(&rstd)?);
    let norm = &mut channels.norm;
    (norm.given, norm.given_mean, norm.given_spread) =
        (Given::Deviations, mean.address.cast(), rstd.address.cast());
    (norm.input, norm.grad, norm.weight) =
        (elements.address.cast(), grads.address.cast(), Dense::address_of(&weight).cast());
    (norm.out, norm.grad_weight, norm.grad_bias) =
        (address_of(&of_input), address_of(&of_weight), address_of(&of_bias));
    // SAFETY: addresses are those of as many elements as the channels have.
    unsafe {
        channels.settle()?;
        channels.gradients(true)?;
    }
    write(of_input)?;
    write(of_weight)?;
    write(of_bias)
}
