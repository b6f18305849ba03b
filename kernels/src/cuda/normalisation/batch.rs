//! Batch normalisation: over samples and places, with statistics for each channel.

use opsmith_runtime::{DeviceView, DeviceViewMut, Result};

use super::channels::{Channels, Given};
use super::{address_of, factor, output, write};
use crate::cpu::normalisation::{self, CHANNEL_FACTOR, asked, expect_count, no_running_statistics};
use crate::cpu::{expect_operand, expect_sizes};
use crate::cuda::scratch::{Dense, DenseMut};

/// `(x - mean) * invstd * weight + bias` for each channel, the second dimension; also the means and
/// `invstd`, 1 / √(variance + eps).
///
/// With `training` the statistics are the batch's; otherwise they are `running_mean` and `running_var`,
/// and the other two outputs have no elements.
///
/// # Errors
/// If a size does not fit, or there are neither running statistics nor `training`; errors of the device.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_batch_norm(
    input: DeviceView<'_>,
    weight: Option<DeviceView<'_>>,
    bias: Option<DeviceView<'_>>,
    running_mean: Option<DeviceView<'_>>,
    running_var: Option<DeviceView<'_>>,
    training: bool,
    eps: f64,
    out: DeviceViewMut<'_>,
    save_mean: DeviceViewMut<'_>,
    save_invstd: DeviceViewMut<'_>,
) -> Result<()> {
    let batch = Batch { weight, bias, running: [running_mean, running_var], training, eps };
    batch.normalise(&input, out, [save_mean, save_invstd], None)
}

/// [`native_batch_norm`] of a batch without running statistics.
///
/// # Errors
/// If a size does not fit, or errors of the device.
pub fn native_batch_norm_no_stats(
    input: DeviceView<'_>,
    weight: Option<DeviceView<'_>>,
    bias: Option<DeviceView<'_>>,
    eps: f64,
    out: DeviceViewMut<'_>,
    save_mean: DeviceViewMut<'_>,
    save_invstd: DeviceViewMut<'_>,
) -> Result<()> {
    native_batch_norm(input, weight, bias, None, None, true, eps, out, save_mean, save_invstd)
}

/// [`native_batch_norm`] and the new running statistics: `momentum` parts of the batch's (the variance
/// divided by one less than the number of elements), the rest of the old. Without `training` the old.
///
/// # Errors
/// If a size does not fit, or errors of the device.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_batch_norm_functional(
    input: DeviceView<'_>,
    weight: Option<DeviceView<'_>>,
    bias: Option<DeviceView<'_>>,
    running_mean: DeviceView<'_>,
    running_var: DeviceView<'_>,
    training: bool,
    momentum: f64,
    eps: f64,
    out: DeviceViewMut<'_>,
    save_mean: DeviceViewMut<'_>,
    save_invstd: DeviceViewMut<'_>,
    running_mean_out: DeviceViewMut<'_>,
    running_var_out: DeviceViewMut<'_>,
) -> Result<()> {
    let batch = Batch { weight, bias, running: [Some(running_mean), Some(running_var)], training, eps };
    let running = Some((momentum, [running_mean_out, running_var_out]));
    batch.normalise(&input, out, [save_mean, save_invstd], running)
}

/// The operands of a batch norm besides its input.
struct Batch<'a> {
    weight: Option<DeviceView<'a>>,
    bias: Option<DeviceView<'a>>,
    running: [Option<DeviceView<'a>>; 2],
    training: bool,
    eps: f64,
}

impl Batch<'_> {
    fn normalise(
        &self,
        input: &DeviceView<'_>,
        out: DeviceViewMut<'_>,
        saved: [DeviceViewMut<'_>; 2],
        mixed: Option<(f64, [DeviceViewMut<'_>; 2])>,
    ) -> Result<()> {
        let mut channels = channels_of(input)?;
        let count = channels.norm.channels as usize;
        let of_channels = |view: &Option<_>| factor(view.as_ref(), count, CHANNEL_FACTOR);
        let (weight, bias) = (of_channels(&self.weight)?, of_channels(&self.bias)?);
        let (old_mean, old_variance) = (of_channels(&self.running[0])?, of_channels(&self.running[1])?);
        if !self.training && (old_mean.is_none() || old_variance.is_none()) {
            return Err(no_running_statistics());
        }
        expect_sizes(out.sizes(), input.sizes())?;
        let input = Dense::of(input)?;
        let out = DenseMut::of(out)?;
        let [mean, invstd] = saved;
        let saved = match self.training {
            true => {
                expect_count(mean.numel(), count, CHANNEL_FACTOR)?;
                expect_count(invstd.numel(), count, CHANNEL_FACTOR)?;
                [Some(DenseMut::of(mean)?), Some(DenseMut::of(invstd)?)]
            }
            false => [None, None],
        };
        let (momentum, mixed) = match mixed {
            Some((momentum, [mean, variance])) => {
                expect_count(mean.numel(), count, CHANNEL_FACTOR)?;
                expect_count(variance.numel(), count, CHANNEL_FACTOR)?;
                (momentum, [Some(DenseMut::of(mean)?), Some(DenseMut::of(variance)?)])
            }
            None => (0.0, [None, None]),
        };
        let elements = channels.count() as f64;
        let norm = &mut channels.norm;
        (norm.given, norm.eps, norm.momentum) = (given(self.training), self.eps, momentum);
        norm.unbiased = elements / (elements - 1.0);
        (norm.input, norm.out) = (input.address.cast(), out.address.cast());
        (norm.weight, norm.bias) = (Dense::address_of(&weight).cast(), Dense::address_of(&bias).cast());
        norm.given_mean = Dense::address_of(&old_mean).cast();
        norm.given_spread = Dense::address_of(&old_variance).cast();
        (norm.mean, norm.rstd) = (address_of(&saved[0]), address_of(&saved[1]));
        (norm.running_mean, norm.running_var) = (address_of(&mixed[0]), address_of(&mixed[1]));
        // SAFETY: addresses are those of as many elements as the channels have.
        unsafe {
            channels.settle()?;
            channels.normalise()?;
        }
        out.write()?;
        saved.into_iter().chain(mixed).try_for_each(write)
    }
}

/// The source of the statistics.
fn given(training: bool) -> Given {
    if training { Given::Nothing } else { Given::Variances }
}

fn channels_of(input: &DeviceView<'_>) -> Result<Channels> {
    let dtype = input.dtype();
    let sizes = normalisation::Channels::new(input.sizes())?;
    Channels::shared(dtype, input.device(), [sizes.samples, sizes.count, sizes.places])
}

/// The gradients of [`native_batch_norm`] for input, weight and bias; those not asked for in
/// `output_mask` are zeros.
///
/// # Errors
/// If a size does not fit, or the statistics for the mode are missing; errors of the device.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_batch_norm_backward(
    grad_out: DeviceView<'_>,
    input: DeviceView<'_>,
    weight: Option<DeviceView<'_>>,
    running_mean: Option<DeviceView<'_>>,
    running_var: Option<DeviceView<'_>>,
    save_mean: Option<DeviceView<'_>>,
    save_invstd: Option<DeviceView<'_>>,
    train: bool,
    eps: f64,
    output_mask: &[bool],
    grad_input: DeviceViewMut<'_>,
    grad_weight: DeviceViewMut<'_>,
    grad_bias: DeviceViewMut<'_>,
) -> Result<()> {
    let mut channels = channels_of(&input)?;
    expect_operand("grad_out", grad_out.sizes(), input.sizes())?;
    let count = channels.norm.channels as usize;
    let of_channels = |view: &Option<_>| factor(view.as_ref(), count, CHANNEL_FACTOR);
    let saved = (of_channels(&save_mean)?, of_channels(&save_invstd)?);
    let (mean, spread, given) = match (train, saved) {
        (true, (Some(mean), Some(invstd))) => (Some(mean), Some(invstd), Given::Deviations),
        (true, _) => (None, None, Given::Nothing),
        (false, _) => match (of_channels(&running_mean)?, of_channels(&running_var)?) {
            (Some(mean), Some(variance)) => (Some(mean), Some(variance), Given::Variances),
            _ => return Err(no_running_statistics()),
        },
    };
    let weight = of_channels(&weight)?;
    let of_input = output(asked(output_mask, 0), grad_input)?;
    let of_weight = output(asked(output_mask, 1), grad_weight)?;
    let of_bias = output(asked(output_mask, 2), grad_bias)?;
    let (grads, elements) = (Dense::of(&grad_out)?, Dense::of(&input)?);
    let norm = &mut channels.norm;
    (norm.given, norm.eps) = (given, eps);
    (norm.given_mean, norm.given_spread) =
        (Dense::address_of(&mean).cast(), Dense::address_of(&spread).cast());
    (norm.input, norm.grad, norm.weight) =
        (elements.address.cast(), grads.address.cast(), Dense::address_of(&weight).cast());
    (norm.out, norm.grad_weight, norm.grad_bias) =
        (address_of(&of_input), address_of(&of_weight), address_of(&of_bias));
    // SAFETY: addresses are those of as many elements as the channels have.
    unsafe {
        channels.settle()?;
        channels.gradients(train)?;
    }
    write(of_input)?;
    write(of_weight)?;
    write(of_bias)
}
