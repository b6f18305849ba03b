//! One row that is normalised, and its gradients: loops over numbers of the compute type.
//!
//! In: rows of one length. A row is centred if its mean is subtracted, as by layer normalisation; root mean square
//! normalisation does not.

use opsmith_runtime::arith::Arithmetic;

use super::Real;
use crate::cpu::lanes::sum_terms;
use crate::cpu::simd::widest;
use crate::math::rsqrt;

/// The mean of a row, 0 if it is not centred, and 1 / √(mean square of deviations + eps).
#[derive(Clone, Copy)]
pub(super) struct Statistics<C> {
    pub mean: C,
    pub rstd: C,
}

impl<C: Real> Statistics<C> {
    /// The element as a multiple of the row's deviation.
    #[inline(always)]
    fn normal(self, x: C) -> C {
        Arithmetic::mul(Arithmetic::sub(x, self.mean), self.rstd)
    }
}

#[inline(always)]
fn statistics<const CENTRED: bool, C: Real>(row: &[C], eps: C) -> Statistics<C> {
    let count = C::from_count(row.len());
    let mut mean = C::ZERO;
    if CENTRED {
        let [sum] = sum_terms([row], |[x]| [x]);
        mean = Arithmetic::div(sum, count);
    }
    let [squares] = sum_terms([row], move |[x]| {
        let deviation = Arithmetic::sub(x, mean);
        [Arithmetic::mul(deviation, deviation)]
    });
    Statistics { mean, rstd: rsqrt(Arithmetic::add(Arithmetic::div(squares, count), eps)) }
}

/// As [`statistics`], for a row alone.
#[inline(never)]
pub(super) fn statistics_of<const CENTRED: bool, C: Real>(row: &[C], eps: C) -> Statistics<C> {
    widest(
        #[inline(always)]
        move || statistics::<CENTRED, C>(row, eps),
    )
}

/// Writes `(x - mean) * rstd * weight + bias`.
#[inline(never)]
pub(super) fn normalise<const CENTRED: bool, C: Real>(
    row: &[C],
    weight: &[C],
    bias: &[C],
    eps: C,
    out: &mut [C],
) -> Statistics<C> {
    widest(
        #[inline(always)]
        move || {
            let statistics = statistics::<CENTRED, C>(row, eps);
            let (weight, bias, out) = (&weight[..row.len()], &bias[..row.len()], &mut out[..row.len()]);
            for index in 0..row.len() {
                let scaled = Arithmetic::mul(statistics.normal(row[index]), weight[index]);
                out[index] = Arithmetic::add(scaled, bias[index]);
            }
            statistics
        },
    )
}

/// Adds a row's part of the gradients of weight and bias: `dy * normal` and `dy`.
#[inline(never)]
pub(super) fn add_to_factors<C: Real>(
    dy: &[C],
    row: &[C],
    statistics: Statistics<C>,
    [weight, bias]: [&mut [C]; 2],
) {
    widest(
        #[inline(always)]
        move || {
            let length = row.len();
            let (dy, weight, bias) = (&dy[..length], &mut weight[..length], &mut bias[..length]);
            for index in 0..length {
                let normal = statistics.normal(row[index]);
                weight[index] = Arithmetic::add(weight[index], Arithmetic::mul(dy[index], normal));
                bias[index] = Arithmetic::add(bias[index], dy[index]);
            }
        },
    );
}

/// Writes the gradient of a row: `dy * weight` less its parts along the row's mean and along the row itself, which
/// have no effect, times `rstd`. With `FACTORS`, adds as [`add_to_factors`] does; without, `sums` are empty.
#[inline(never)]
pub(super) fn gradient<const CENTRED: bool, const FACTORS: bool, C: Real>(
    dy: &[C],
    row: &[C],
    weight: &[C],
    statistics: Statistics<C>,
    out: &mut [C],
    [of_weight, of_bias]: [&mut [C]; 2],
) {
    widest(
        #[inline(always)]
        move || {
            let (length, count) = (row.len(), C::from_count(row.len()));
            let [of_mean, of_row] = sum_terms([dy, row, weight], move |[dy, x, w]| {
                let scaled = Arithmetic::mul(dy, w);
                let along_mean = if CENTRED { scaled } else { C::ZERO };
                [along_mean, Arithmetic::mul(scaled, statistics.normal(x))]
            });
            let (of_mean, of_row) = (Arithmetic::div(of_mean, count), Arithmetic::div(of_row, count));
            let (dy, weight, out) = (&dy[..length], &weight[..length], &mut out[..length]);
            let summed = if FACTORS { length } else { 0 };
            let (of_weight, of_bias) = (&mut of_weight[..summed], &mut of_bias[..summed]);
            for index in 0..length {
                let normal = statistics.normal(row[index]);
                let scaled = Arithmetic::mul(dy[index], weight[index]);
                let rest = Arithmetic::sub(scaled, Arithmetic::add(of_mean, Arithmetic::mul(normal, of_row)));
                out[index] = Arithmetic::mul(statistics.rstd, rest);
                if FACTORS {
                    of_weight[index] = Arithmetic::add(of_weight[index], Arithmetic::mul(dy[index], normal));
                    of_bias[index] = Arithmetic::add(of_bias[index], dy[index]);
                }
            }
        },
    );
}
