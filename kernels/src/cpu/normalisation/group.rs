//! Group normalisation: over the channels of a group and all places, with a factor and a shift for
//! each channel.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::layer::{asked, write_if};
use super::{Real, factors, gradient_of_row, statistics, total, widen};
use crate::cpu::copy::with_slice;
use crate::cpu::simd::widest;
use crate::cpu::strides::{expect_operand, expect_sizes};

/// Sizes of a grouped input: `samples` times `groups` rows of `channels` times `places` elements.
pub(crate) struct Groups {
    pub samples: usize,
    pub groups: usize,
    pub channels: usize,
    pub places: usize,
}

impl Groups {
    #[allow(non_snake_case, reason = "the operator's argument names")]
    pub(crate) fn new(numel: usize, N: i64, C: i64, HxW: i64, group: i64) -> Result<Groups> {
        let whole = N.checked_mul(C).and_then(|rows| rows.checked_mul(HxW));
        if group <= 0 || C % group != 0 {
            return Err(Error::value(format!("{C} channels do not make {group} equal groups")));
        }
        if whole != Some(numel as i64) || N < 0 || C < 0 {
            return Err(Error::shape(format!("the input has {numel} elements instead of {N} * {C} * {HxW}")));
        }
        let [samples, groups, channels, places] = [N, group, C / group, HxW].map(|size| size as usize);
        Ok(Groups { samples, groups, channels, places })
    }

    fn row(&self) -> usize {
        (self.channels * self.places).max(1)
    }

    pub(crate) fn all_channels(&self) -> usize {
        self.groups * self.channels
    }

    /// The first channel of a row.
    fn channel(&self, row: usize) -> usize {
        row % self.groups * self.channels
    }
}

/// `(x - mean) * rstd * weight + bias` over each group of channels of each sample; also each group's
/// mean and `rstd`, 1 / √(variance + eps). Wants `input` contiguous.
///
/// # Errors
/// If the sizes do not agree, or the groups are not equal.
#[allow(non_snake_case, clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_group_norm<T: Element<Compute: Real>>(
    input: View<'_, T>,
    weight: Option<View<'_, T>>,
    bias: Option<View<'_, T>>,
    N: i64,
    C: i64,
    HxW: i64,
    group: i64,
    eps: f64,
    mut out: ViewMut<'_, T>,
    mut mean: ViewMut<'_, T>,
    mut rstd: ViewMut<'_, T>,
) -> Result<()> {
    let groups = Groups::new(input.numel(), N, C, HxW, group)?;
    expect_sizes(out.sizes(), input.sizes())?;
    let weight = factors(weight.as_ref(), groups.all_channels(), "weight")?;
    let bias = factors(bias.as_ref(), groups.all_channels(), "bias")?;
    let eps = T::Compute::from_scalar(Scalar::Float(eps));
    let elements = input.to_contiguous();
    let (mut row, mut means, mut rstds) = (Scratch::new(), Scratch::new(), Scratch::new());
    with_slice(&mut out, |out| {
        let rows = elements.chunks_exact(groups.row()).zip(out.chunks_exact_mut(groups.row()));
        for (number, (input, out)) in rows.enumerate() {
            widen(input, &mut row);
            let (mean, rstd) = statistics(&row, eps);
            means.push(T::from_compute(mean));
            rstds.push(T::from_compute(rstd));
            let first = groups.channel(number);
            let channels = row.chunks_exact(groups.places).zip(out.chunks_exact_mut(groups.places));
            for (channel, (row, out)) in (first..).zip(channels) {
                let scale = weight.as_ref().map_or(rstd, |weight| Arithmetic::mul(rstd, weight[channel]));
                let shift = bias.as_ref().map_or(T::Compute::ZERO, |bias| bias[channel]);
                widest(
                    #[inline(always)]
                    || {
                        for (out, &x) in out.iter_mut().zip(row) {
                            let scaled = Arithmetic::mul(Arithmetic::sub(x, mean), scale);
                            *out = T::from_compute(Arithmetic::add(scaled, shift));
                        }
                    },
                );
            }
        }
    })?;
    mean.write(means)?;
    rstd.write(rstds)
}

/// The gradients of [`native_group_norm`] for input, weight and bias; those not asked for in
/// `output_mask` are zeros. Wants `grad_out` and `input` contiguous.
///
/// # Errors
/// As [`native_group_norm`].
#[allow(non_snake_case, clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_group_norm_backward<T: Element<Compute: Real>>(
    grad_out: View<'_, T>,
    input: View<'_, T>,
    mean: View<'_, T>,
    rstd: View<'_, T>,
    weight: Option<View<'_, T>>,
    N: i64,
    C: i64,
    HxW: i64,
    group: i64,
    output_mask: &[bool],
    mut grad_input: ViewMut<'_, T>,
    mut grad_weight: ViewMut<'_, T>,
    mut grad_bias: ViewMut<'_, T>,
) -> Result<()> {
    let groups = Groups::new(input.numel(), N, C, HxW, group)?;
    expect_operand("grad_out", grad_out.sizes(), input.sizes())?;
    expect_operand("mean", &[mean.numel() as i64], &[(groups.samples * groups.groups) as i64])?;
    let weight = factors(weight.as_ref(), groups.all_channels(), "weight")?;
    let (grads, elements) = (grad_out.to_contiguous(), input.to_contiguous());
    let mut weight_sums = Scratch::filled(T::Compute::ZERO, groups.all_channels());
    let mut bias_sums = weight_sums.clone();
    let mut gradient = Scratch::filled(T::default(), if asked(output_mask, 0) { elements.len() } else { 0 });
    let (mut dy, mut x, mut products) = (Scratch::new(), Scratch::new(), Scratch::new());
    let rows = grads.chunks_exact(groups.row()).zip(elements.chunks_exact(groups.row()));
    for (number, ((grad, input), (mean, rstd))) in rows.zip(mean.iter().zip(rstd.iter())).enumerate() {
        let (mean, rstd) = (mean.to_compute(), rstd.to_compute());
        let first = groups.channel(number);
        widen(grad, &mut dy);
        widen(input, &mut x);
        for x in &mut x {
            *x = Arithmetic::mul(Arithmetic::sub(*x, mean), rstd);
        }
        let (mut along_mean, mut along_row) = (T::Compute::ZERO, T::Compute::ZERO);
        let channels = dy.chunks_exact_mut(groups.places.max(1)).zip(x.chunks_exact(groups.places.max(1)));
        for (channel, (dy, x)) in (first..).zip(channels) {
            products.clear();
            products.extend_from_slice(dy);
            products.iter_mut().zip(x).for_each(|(product, &x)| *product = Arithmetic::mul(*product, x));
            let (of_row, of_mean) = (total(&products), total(dy));
            weight_sums[channel] = Arithmetic::add(weight_sums[channel], of_row);
            bias_sums[channel] = Arithmetic::add(bias_sums[channel], of_mean);
            let weight = weight.as_ref().map_or(T::Compute::ONE, |weight| weight[channel]);
            along_row = Arithmetic::add(along_row, Arithmetic::mul(weight, of_row));
            along_mean = Arithmetic::add(along_mean, Arithmetic::mul(weight, of_mean));
            dy.iter_mut().for_each(|dy| *dy = Arithmetic::mul(*dy, weight));
        }
        let count = T::Compute::from_count(groups.row());
        let along = (Arithmetic::div(along_mean, count), Arithmetic::div(along_row, count));
        let range = number * groups.row()..(number + 1) * groups.row();
        let Some(gradient) = gradient.get_mut(range) else { continue };
        gradient_of_row(gradient, &dy, &x, rstd, along);
    }
    write_if(asked(output_mask, 0), gradient, &mut grad_input)?;
    write_if(asked(output_mask, 1), weight_sums.into_iter().map(T::from_compute), &mut grad_weight)?;
    write_if(asked(output_mask, 2), bias_sums.into_iter().map(T::from_compute), &mut grad_bias)?;
    Ok(())
}
