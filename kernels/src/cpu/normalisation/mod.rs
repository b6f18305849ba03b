//! Normalisation: elements less their mean, divided by their standard deviation, scaled and shifted.
//!
//! Means and variances are computed in the compute type (`f32` for the 16-bit floats) in two passes.
//! Inputs that are not contiguous are copied first, so ask for contiguous ones where that is cheaper.

mod batch;
mod group;
pub(super) mod layer;
mod rows;

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View};

use super::lanes::fold_lanes;
use super::simd::widest;
use crate::math::{Inexact, rsqrt};

pub(crate) use batch::{CHANNEL_FACTOR, Channels, no_running_statistics};
pub use batch::{
    native_batch_norm, native_batch_norm_backward, native_batch_norm_functional, native_batch_norm_no_stats,
};
pub(crate) use group::Groups;
pub use group::{native_group_norm, native_group_norm_backward};
pub(crate) use layer::{asked, least_eps, too_few_statistics, width};
pub use layer::{native_layer_norm, native_layer_norm_backward, rms_norm, rms_norm_backward};

/// Real floats, which normalisation computes in.
pub trait Real: Ordered + Inexact {
    /// A count as a number.
    fn from_count(count: usize) -> Self {
        Self::from_scalar(Scalar::Float(count as f64))
    }
}

impl Real for f32 {}
impl Real for f64 {}

/// The mean of a row and 1 / √(variance + eps). Compiled once for each compute type, as [`total`].
#[inline(never)]
fn statistics<C: Real>(row: &[C], eps: C) -> (C, C) {
    let count = C::from_count(row.len());
    let mean = Arithmetic::div(total(row), count);
    let squares = sum(row, |x| {
        let deviation = Arithmetic::sub(x, mean);
        Arithmetic::mul(deviation, deviation)
    });
    (mean, rsqrt(Arithmetic::add(Arithmetic::div(squares, count), eps)))
}

/// The sum of a row.
#[inline(never)]
fn total<C: Real>(row: &[C]) -> C {
    sum(row, |x| x)
}

fn sum<C: Real>(row: &[C], map: impl Fn(C) -> C) -> C {
    widest(
        #[inline(always)]
        || fold_lanes(row, C::ZERO, |sum, x| Arithmetic::add(sum, map(x)), Arithmetic::add),
    )
}

/// The gradient of a row from `dy`, that of the normalised row `x`, less its parts along the row's mean and along the row
/// itself, which have no effect.
#[inline(always)]
fn gradient_of_row<T: Element<Compute: Real>>(
    gradient: &mut [T],
    dy: &[T::Compute],
    x: &[T::Compute],
    rstd: T::Compute,
    (along_mean, along_row): (T::Compute, T::Compute),
) {
    for (gradient, (&dy, &x)) in gradient.iter_mut().zip(dy.iter().zip(x)) {
        let rest = Arithmetic::sub(dy, Arithmetic::add(along_mean, Arithmetic::mul(x, along_row)));
        *gradient = T::from_compute(Arithmetic::mul(rstd, rest));
    }
}

/// The elements of an optional factor, one for each of `count` elements or channels.
fn factors<T: Element>(
    view: Option<&View<'_, T>>,
    count: usize,
    name: &str,
) -> Result<Option<Scratch<T::Compute>>> {
    let Some(view) = view else { return Ok(None) };
    expect_count(view.numel(), count, name)?;
    Ok(Some(view.iter().map(T::to_compute).collect()))
}

/// Refuses an operand that has not one element for each of `count`.
pub(crate) fn expect_count(given: usize, count: usize, name: &str) -> Result<()> {
    if given != count {
        return Err(Error::shape(format!("{name} has {given} elements instead of {count}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
