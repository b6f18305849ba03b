//! Group normalisation: over the channels of a group and all places, with a factor and a shift for
//! each channel.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::layer::{asked, write_if};
use super::{Real, factors, gradient_of_row, statistics, total};
use crate::cpu::converted::widen_into;
use crate::cpu::copy::with_slice;
use crate::cpu::lanes::{computed, with_computed};
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

    /// Where a row lies, with its mean and `rstd`.
    fn place<C>(&self, row: usize, [mean, rstd]: [C; 2]) -> Place<C> {
        let (channels, places) = (self.channels, self.places.max(1));
        Place { first: self.channel(row), channels, places, mean, rstd }
    }

    /// The sums of each channel, of which each sample has two, one of them added over the samples in their order.
    fn over_samples<C: Real>(&self, sums: &[[C; 2]], number: usize) -> impl Iterator<Item = C> {
        let channels = self.all_channels();
        (0..channels).map(move |channel| {
            let samples = (0..self.samples).map(|sample| sums[sample * channels + channel][number]);
            samples.fold(C::ZERO, Arithmetic::add)
        })
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
    let (rows, of_row) = (groups.samples * groups.groups, groups.row());
    let mut statistics_of_rows = Scratch::filled((T::default(), T::default()), rows);
    let to_statistics = Shared(statistics_of_rows.as_mut_ptr());
    with_slice(&mut out, |out| {
        let target = Shared(out.as_mut_ptr());
        parallel::for_each_range_of(of_row, rows.min(elements.len() / of_row), |range| {
            let (mut row, mut normal) = (Scratch::new(), Scratch::new());
            for number in range {
                let row = computed(&elements[number * of_row..][..of_row], &mut row);
                let (mean, rstd) = statistics(row, eps);
                // SAFETY: the row is one of the output's, and each has one thread.
                let out = unsafe {
                    *to_statistics.at(number as i64) = (T::from_compute(mean), T::from_compute(rstd));
                    std::slice::from_raw_parts_mut(target.at((number * of_row) as i64), of_row)
                };
                let first = groups.channel(number);
                with_computed(out, &mut normal, |out| {
                    let channels = row.chunks_exact(groups.places).zip(out.chunks_exact_mut(groups.places));
                    for (channel, (row, out)) in (first..).zip(channels) {
                        let scale =
                            weight.as_ref().map_or(rstd, |weight| Arithmetic::mul(rstd, weight[channel]));
                        let shift = bias.as_ref().map_or(T::Compute::ZERO, |bias| bias[channel]);
                        normalise(row, mean, scale, shift, out);
                    }
                });
            }
        });
    })?;
    mean.write(statistics_of_rows.iter().map(|&(mean, _)| mean))?;
    rstd.write(statistics_of_rows.iter().map(|&(_, rstd)| rstd))
}

/// Writes `(x - mean) * scale + shift`. Compiled once for each compute type.
#[inline(never)]
fn normalise<C: Real>(row: &[C], mean: C, scale: C, shift: C, out: &mut [C]) {
    widest(
        #[inline(always)]
        move || {
            let out = &mut out[..row.len()];
            for index in 0..row.len() {
                let scaled = Arithmetic::mul(Arithmetic::sub(row[index], mean), scale);
                out[index] = Arithmetic::add(scaled, shift);
            }
        },
    );
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
    let of_row = groups.row();
    let rows = mean.numel().min(rstd.numel()).min(elements.len() / of_row);
    let (means, rstds) = (mean.to_contiguous(), rstd.to_contiguous());
    // The sums of each row, so that those of samples are added in their order, whichever thread has the rows.
    let mut sums = Scratch::filled([T::Compute::ZERO; 2], groups.samples * groups.all_channels());
    let mut gradient = Scratch::filled(T::default(), if asked(output_mask, 0) { elements.len() } else { 0 });
    let has_gradient = !gradient.is_empty();
    let (to_sums, to_gradient) = (Shared(sums.as_mut_ptr()), Shared(gradient.as_mut_ptr()));
    parallel::for_each_range_of(of_row, rows, |range| {
        let mut buffers = Buffers::default();
        for number in range {
            let part = number * of_row..(number + 1) * of_row;
            let place = groups.place(number, [means[number], rstds[number]].map(T::to_compute));
            // SAFETY: the sums are those of this row, which has one thread.
            let sums = unsafe {
                std::slice::from_raw_parts_mut(to_sums.at((number * groups.channels) as i64), groups.channels)
            };
            let along = buffers.sum(
                &grads[part.clone()],
                &elements[part.clone()],
                &place,
                weight.as_ref().map(|weight| &weight[..]),
                sums,
            );
            if has_gradient {
                // SAFETY: as above, of the row's gradient.
                let gradient =
                    unsafe { std::slice::from_raw_parts_mut(to_gradient.at(part.start as i64), of_row) };
                gradient_of_row(gradient, &buffers.dy, &buffers.x, place.rstd, along);
            }
        }
    });
    let total_of = |number: usize| groups.over_samples(&sums, number).map(T::from_compute);
    write_if(asked(output_mask, 0), gradient, &mut grad_input)?;
    write_if(asked(output_mask, 1), total_of(0), &mut grad_weight)?;
    write_if(asked(output_mask, 2), total_of(1), &mut grad_bias)
}

/// Where a row lies among the channels, and its statistics.
struct Place<C> {
    first: usize,
    channels: usize,
    places: usize,
    mean: C,
    rstd: C,
}

/// A row of a thread in the compute type.
struct Buffers<C> {
    /// The gradient, times the factors of the channels.
    dy: Scratch<C>,
    /// The normalised elements.
    x: Scratch<C>,
    products: Scratch<C>,
}

impl<C> Default for Buffers<C> {
    fn default() -> Buffers<C> {
        Buffers { dy: Scratch::new(), x: Scratch::new(), products: Scratch::new() }
    }
}

impl<C: Real> Buffers<C> {
    /// Reads a row; writes the sums of each channel for the factor and for the shift, and returns the parts along the mean and along
    /// the row, which the row's gradient loses.
    fn sum<T: Element<Compute = C>>(
        &mut self,
        grad: &[T],
        input: &[T],
        place: &Place<C>,
        weight: Option<&[C]>,
        sums: &mut [[C; 2]],
    ) -> (C, C) {
        widen_into(grad, &mut self.dy);
        widen_into(input, &mut self.x);
        for x in &mut self.x {
            *x = Arithmetic::mul(Arithmetic::sub(*x, place.mean), place.rstd);
        }
        let (mut along_mean, mut along_row) = (C::ZERO, C::ZERO);
        let channels = self.dy.chunks_exact_mut(place.places).zip(self.x.chunks_exact(place.places));
        for ((channel, sums), (dy, x)) in (place.first..).zip(sums).zip(channels) {
            self.products.clear();
            self.products.extend_from_slice(dy);
            self.products.iter_mut().zip(x).for_each(|(product, &x)| *product = Arithmetic::mul(*product, x));
            let (of_row, of_mean) = (total(&self.products), total(dy));
            *sums = [of_row, of_mean];
            let weight = weight.map_or(C::ONE, |weight| weight[channel]);
            along_row = Arithmetic::add(along_row, Arithmetic::mul(weight, of_row));
            along_mean = Arithmetic::add(along_mean, Arithmetic::mul(weight, of_mean));
            dy.iter_mut().for_each(|dy| *dy = Arithmetic::mul(*dy, weight));
        }
        let count = C::from_count(place.channels * place.places);
        (Arithmetic::div(along_mean, count), Arithmetic::div(along_row, count))
    }
}
