//! Batch normalisation: over samples and places, with statistics for each channel.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::layer::{asked, write_if};
use super::{Real, factors};
use crate::cpu::copy::with_slice;
use crate::cpu::lanes::{NARROW, map_lanes, sum_terms};
use crate::cpu::simd::widest;
use crate::cpu::strides::{expect_operand, expect_sizes};

/// The running mean and variance, where they are kept.
type Running<C> = (Option<Scratch<C>>, Option<Scratch<C>>);

/// `(x - mean) * invstd * weight + bias` for each channel, the second dimension; also the means and
/// `invstd`, 1 / √(variance + eps).
///
/// With `training` the statistics are the batch's; otherwise they are `running_mean` and `running_var`,
/// and the other two outputs have no elements. Wants `input` contiguous.
///
/// # Errors
/// If a size does not fit, or there are neither running statistics nor `training`.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_batch_norm<T: Element<Compute: Real>>(
    input: View<'_, T>,
    weight: Option<View<'_, T>>,
    bias: Option<View<'_, T>>,
    running_mean: Option<View<'_, T>>,
    running_var: Option<View<'_, T>>,
    training: bool,
    eps: f64,
    out: ViewMut<'_, T>,
    mut save_mean: ViewMut<'_, T>,
    mut save_invstd: ViewMut<'_, T>,
) -> Result<()> {
    let channels = Channels::new(input.sizes())?;
    let running = (factor(&running_mean, &channels)?, factor(&running_var, &channels)?);
    let statistics = channels.statistics(&input, running, training)?;
    let invstd = statistics.invstd(eps);
    normalise(&input, &channels, &weight, &bias, &statistics.mean, &invstd, out)?;
    if training {
        write(&mut save_mean, &statistics.mean)?;
        write(&mut save_invstd, &invstd)?;
    }
    Ok(())
}

/// [`native_batch_norm`] of a batch without running statistics.
///
/// # Errors
/// If a size does not fit.
pub fn native_batch_norm_no_stats<T: Element<Compute: Real>>(
    input: View<'_, T>,
    weight: Option<View<'_, T>>,
    bias: Option<View<'_, T>>,
    eps: f64,
    out: ViewMut<'_, T>,
    save_mean: ViewMut<'_, T>,
    save_invstd: ViewMut<'_, T>,
) -> Result<()> {
    native_batch_norm(input, weight, bias, None, None, true, eps, out, save_mean, save_invstd)
}

/// [`native_batch_norm`] and the new running statistics: `momentum` parts of the batch's (the variance
/// divided by one less than the number of elements), the rest of the old. Without `training` the old.
///
/// # Errors
/// If a size does not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_batch_norm_functional<T: Element<Compute: Real>>(
    input: View<'_, T>,
    weight: Option<View<'_, T>>,
    bias: Option<View<'_, T>>,
    running_mean: View<'_, T>,
    running_var: View<'_, T>,
    training: bool,
    momentum: f64,
    eps: f64,
    out: ViewMut<'_, T>,
    mut save_mean: ViewMut<'_, T>,
    mut save_invstd: ViewMut<'_, T>,
    mut running_mean_out: ViewMut<'_, T>,
    mut running_var_out: ViewMut<'_, T>,
) -> Result<()> {
    let channels = Channels::new(input.sizes())?;
    let old_mean = factor(&Some(running_mean), &channels)?.unwrap_or_default();
    let old_variance = factor(&Some(running_var), &channels)?.unwrap_or_default();
    let running = (Some(old_mean.clone()), Some(old_variance.clone()));
    let statistics = channels.statistics(&input, running, training)?;
    let invstd = statistics.invstd(eps);
    normalise(&input, &channels, &weight, &bias, &statistics.mean, &invstd, out)?;
    if !training {
        write(&mut running_mean_out, &old_mean)?;
        write(&mut running_var_out, &old_variance)?;
        return Ok(());
    }
    write(&mut save_mean, &statistics.mean)?;
    write(&mut save_invstd, &invstd)?;
    let number = |value: f64| T::Compute::from_scalar(Scalar::Float(value));
    let mix = |old: &[T::Compute], new: &[T::Compute], scale: T::Compute| -> Scratch<T::Compute> {
        let part = Arithmetic::mul(number(momentum), scale);
        old.iter()
            .zip(new)
            .map(|(&old, &new)| {
                Arithmetic::add(Arithmetic::mul(old, number(1.0 - momentum)), Arithmetic::mul(new, part))
            })
            .collect()
    };
    let count = (channels.samples * channels.places) as f64;
    write(&mut running_mean_out, &mix(&old_mean, &statistics.mean, T::Compute::ONE))?;
    write(&mut running_var_out, &mix(&old_variance, &statistics.variance, number(count / (count - 1.0))))?;
    Ok(())
}

/// The gradients of [`native_batch_norm`] for input, weight and bias; those not asked for in
/// `output_mask` are zeros. Wants `grad_out` and `input` contiguous.
///
/// # Errors
/// If a size does not fit, or the statistics for the mode are missing.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn native_batch_norm_backward<T: Element<Compute: Real>>(
    grad_out: View<'_, T>,
    input: View<'_, T>,
    weight: Option<View<'_, T>>,
    running_mean: Option<View<'_, T>>,
    running_var: Option<View<'_, T>>,
    save_mean: Option<View<'_, T>>,
    save_invstd: Option<View<'_, T>>,
    train: bool,
    eps: f64,
    output_mask: &[bool],
    mut grad_input: ViewMut<'_, T>,
    mut grad_weight: ViewMut<'_, T>,
    mut grad_bias: ViewMut<'_, T>,
) -> Result<()> {
    let channels = Channels::new(input.sizes())?;
    expect_operand("grad_out", grad_out.sizes(), input.sizes())?;
    let saved = (factor(&save_mean, &channels)?, factor(&save_invstd, &channels)?);
    let (mean, invstd) = match (train, saved) {
        (true, (Some(mean), Some(invstd))) => (mean, invstd),
        _ => {
            let running = (factor(&running_mean, &channels)?, factor(&running_var, &channels)?);
            channels.statistics(&input, running, train)?.mean_and_invstd(eps)
        }
    };
    let weight =
        factor(&weight, &channels)?.unwrap_or_else(|| Scratch::filled(T::Compute::ONE, channels.count));
    let (dy, x) = (grad_out.to_contiguous(), input.to_contiguous());
    let [sums, products] = channels.sums(
        [&dy, &x],
        #[inline(always)]
        |channel, [dy, x]| {
            let (dy, x) = (dy.to_compute(), x.to_compute());
            [dy, Arithmetic::mul(dy, Arithmetic::sub(x, mean[channel]))]
        },
    );
    if asked(output_mask, 0) {
        let sums = train.then_some([&sums[..], &products[..]]);
        let scales: Scratch<T::Compute> =
            invstd.iter().zip(&weight).map(|(&invstd, &weight)| Arithmetic::mul(invstd, weight)).collect();
        with_slice(&mut grad_input, |out| {
            write_grad_input([&dy, &x], &channels, [&mean, &invstd, &scales], sums, out);
        })?;
    } else {
        write_if(false, [], &mut grad_input)?;
    }
    let of_weight = products.iter().zip(&invstd).map(|(&sum, &invstd)| Arithmetic::mul(sum, invstd));
    write_if(asked(output_mask, 1), of_weight.map(T::from_compute), &mut grad_weight)?;
    write_if(asked(output_mask, 2), sums.iter().map(|&sum| T::from_compute(sum)), &mut grad_bias)?;
    Ok(())
}

/// Writes the gradient by the input from that of the result and the input: with statistics of the batch less the parts along its
/// mean and along the batch itself, which have no effect; `sums` are those of the gradients and of their products with deviations.
fn write_grad_input<T: Element<Compute: Real>>(
    inputs: [&[T]; 2],
    channels: &Channels,
    [mean, invstd, scales]: [&[T::Compute]; 3],
    sums: Option<[&[T::Compute]; 2]>,
    out: &mut [T],
) {
    let count = T::Compute::from_count(channels.samples * channels.places);
    let parts = |channel: usize| {
        let Some([sums, products]) = sums else { return (T::Compute::ZERO, T::Compute::ZERO) };
        let squared = Arithmetic::mul(invstd[channel], invstd[channel]);
        let along = Arithmetic::div(Arithmetic::mul(products[channel], squared), count);
        (Arithmetic::div(sums[channel], count), along)
    };
    let trains = sums.is_some();
    channels.map_rows(
        inputs,
        out,
        #[inline(always)]
        |channel| {
            let (part, along) = parts(channel);
            let (mean, scale) = (mean[channel], scales[channel]);
            #[inline(always)]
            move |[dy, x]: [T; 2]| {
                let mut rest = dy.to_compute();
                if trains {
                    let deviation = Arithmetic::sub(x.to_compute(), mean);
                    rest = Arithmetic::sub(Arithmetic::sub(rest, part), Arithmetic::mul(deviation, along));
                }
                T::from_compute(Arithmetic::mul(rest, scale))
            }
        },
    );
}

/// The error of a batch that has neither statistics of its own nor others.
#[cold]
pub(crate) fn no_running_statistics() -> Error {
    Error::argument("there are no running statistics to normalise with")
        .with_help("give running_mean and running_var, or set training")
}

/// The name of a factor or a statistic in messages.
pub(crate) const CHANNEL_FACTOR: &str = "a factor or statistic of the channels";

fn factor<T: Element>(
    view: &Option<View<'_, T>>,
    channels: &Channels,
) -> Result<Option<Scratch<T::Compute>>> {
    factors(view.as_ref(), channels.count, CHANNEL_FACTOR)
}

fn write<T: Element>(out: &mut ViewMut<'_, T>, values: &[T::Compute]) -> Result<()> {
    out.write(values.iter().map(|&value| T::from_compute(value)))
}

fn normalise<T: Element<Compute: Real>>(
    input: &View<'_, T>,
    channels: &Channels,
    weight: &Option<View<'_, T>>,
    bias: &Option<View<'_, T>>,
    mean: &[T::Compute],
    invstd: &[T::Compute],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_sizes(out.sizes(), input.sizes())?;
    let (weight, bias) = (factor(weight, channels)?, factor(bias, channels)?);
    let elements = input.to_contiguous();
    with_slice(&mut out, |out| {
        channels.map_rows(
            [&elements],
            out,
            #[inline(always)]
            |channel| {
                let scale = weight.as_ref().map_or(T::Compute::ONE, |weight| weight[channel]);
                let (mean, scale) = (mean[channel], Arithmetic::mul(scale, invstd[channel]));
                let shift = bias.as_ref().map_or(T::Compute::ZERO, |bias| bias[channel]);
                #[inline(always)]
                move |[x]: [T; 1]| {
                    let deviation = Arithmetic::sub(x.to_compute(), mean);
                    T::from_compute(Arithmetic::add(Arithmetic::mul(deviation, scale), shift))
                }
            },
        );
    })
}

/// Sizes of a batch: rows of `places` elements, a row a channel of a sample.
pub(crate) struct Channels {
    pub samples: usize,
    pub count: usize,
    pub places: usize,
}

/// Means and variances (divided by the number of elements) of the channels.
struct Statistics<C> {
    mean: Scratch<C>,
    variance: Scratch<C>,
}

impl<C: Real> Statistics<C> {
    fn mean_and_invstd(self, eps: f64) -> (Scratch<C>, Scratch<C>) {
        let invstd = self.invstd(eps);
        (self.mean, invstd)
    }

    fn invstd(&self, eps: f64) -> Scratch<C> {
        let eps = C::from_scalar(Scalar::Float(eps));
        self.variance.iter().map(|&variance| crate::math::rsqrt(Arithmetic::add(variance, eps))).collect()
    }
}

impl Channels {
    pub(crate) fn new(sizes: &[i64]) -> Result<Channels> {
        match sizes {
            [samples, channels, places @ ..] => Ok(Channels {
                samples: *samples as usize,
                count: *channels as usize,
                places: places.iter().product::<i64>() as usize,
            }),
            _ => Err(Error::shape(format!(
                "expected samples and channels as the first dimensions, got the shape {}",
                ShapeText(sizes)
            ))),
        }
    }

    /// Writes to each element of `out` a function of those beside it in `inputs`, which `of_channel` gives for each channel.
    fn map_rows<T: Element, F: Fn([T; K]) -> T, const K: usize>(
        &self,
        inputs: [&[T]; K],
        out: &mut [T],
        of_channel: impl Fn(usize) -> F + Sync,
    ) {
        let target = Shared(out.as_mut_ptr());
        parallel::for_each_range_of(self.places, self.samples * self.count, |rows| {
            widest(
                #[inline(always)]
                || {
                    for row in rows.clone() {
                        let start = row * self.places;
                        // SAFETY: the rows of all channels of all samples make up `out`, and each has one thread.
                        let out =
                            unsafe { std::slice::from_raw_parts_mut(target.at(start as i64), self.places) };
                        let inputs = inputs.map(
                            #[inline(always)]
                            |input| &input[start..start + self.places],
                        );
                        map_lanes(inputs, out, of_channel(row % self.count));
                    }
                },
            );
        });
    }

    /// For each channel, the sums of N terms of its elements in `inputs`.
    fn sums<T: Element<Compute: Real>, const K: usize, const N: usize>(
        &self,
        inputs: [&[T]; K],
        term: impl Fn(usize, [T; K]) -> [T::Compute; N] + Sync,
    ) -> [Scratch<T::Compute>; N] {
        let mut totals = [(); N].map(|()| Scratch::filled(T::Compute::ZERO, self.count));
        let targets = totals.each_mut().map(|totals| Shared(totals.as_mut_ptr()));
        let add = |sums: &mut [f64; N], parts: [T::Compute; N]| {
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum += part.to_scalar().to_f64();
            }
        };
        parallel::for_each_range_of(self.samples * self.places, self.count, |channels| {
            for channel in channels {
                // Sums of rows are added in double precision: there may be many.
                let mut sums = [0f64; N];
                for sample in 0..self.samples {
                    let start = (sample * self.count + channel) * self.places;
                    if self.places < NARROW {
                        for place in start..start + self.places {
                            let parts = term(channel, inputs.map(|input| input[place]));
                            add(&mut sums, parts);
                        }
                        continue;
                    }
                    let row = inputs.map(|input| &input[start..start + self.places]);
                    let parts = widest(
                        #[inline(always)]
                        || {
                            sum_terms(
                                row,
                                #[inline(always)]
                                |elements| term(channel, elements),
                            )
                        },
                    );
                    add(&mut sums, parts);
                }
                for (target, sum) in targets.iter().zip(sums) {
                    // SAFETY: each channel has one thread.
                    unsafe { *target.at(channel as i64) = T::Compute::from_scalar(Scalar::Float(sum)) };
                }
            }
        });
        totals
    }

    fn statistics<T: Element<Compute: Real>>(
        &self,
        input: &View<'_, T>,
        running: Running<T::Compute>,
        training: bool,
    ) -> Result<Statistics<T::Compute>> {
        if !training {
            return match running {
                (Some(mean), Some(variance)) => Ok(Statistics { mean, variance }),
                _ => Err(no_running_statistics()),
            };
        }
        let elements = input.to_contiguous();
        let count = T::Compute::from_count(self.samples * self.places);
        let per_element = |[sums]: [Scratch<T::Compute>; 1]| -> Scratch<T::Compute> {
            sums.into_iter().map(|sum| Arithmetic::div(sum, count)).collect()
        };
        let mean = per_element(self.sums(
            [&elements],
            #[inline(always)]
            |_, [x]| [x.to_compute()],
        ));
        let variance = per_element(self.sums(
            [&elements],
            #[inline(always)]
            |channel, [x]| {
                let deviation = Arithmetic::sub(x.to_compute(), mean[channel]);
                [Arithmetic::mul(deviation, deviation)]
            },
        ));
        Ok(Statistics { mean, variance })
    }
}
