//! The largest and the smallest element.

use opsmith_runtime::arith::Ordered;
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::{Element, Error, Result, View, ViewMut};

use super::{Plain, fold::fold, reduced_count};
use crate::math::{maximum, minimum};

/// The largest elements over dimensions; NaN if there is one.
///
/// # Errors
/// If there are outputs but no elements to choose from.
pub fn amax<T>(self_: View<'_, T>, dim: &[i64], keepdim: bool, out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Ordered>,
{
    extreme(&self_, dim, keepdim, out, T::Compute::LOWEST, maximum::<T::Compute>)
}

/// The smallest elements over dimensions; NaN if there is one.
///
/// # Errors
/// If there are outputs but no elements to choose from.
pub fn amin<T>(self_: View<'_, T>, dim: &[i64], keepdim: bool, out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Ordered>,
{
    extreme(&self_, dim, keepdim, out, T::Compute::HIGHEST, minimum::<T::Compute>)
}

fn extreme<T: Element<Compute: Ordered>>(
    input: &View<'_, T>,
    dim: &[i64],
    keepdim: bool,
    mut out: ViewMut<'_, T>,
    start: T::Compute,
    choose: impl Fn(T::Compute, T::Compute) -> T::Compute + Copy + Sync,
) -> Result<()> {
    let reduced = reduced_dims(input.dim(), Some(dim))?;
    refuse_empty(input.sizes(), &reduced)?;
    let take = move |chosen: T::Compute, element: T| choose(chosen, element.to_compute());
    fold(input, &reduced, keepdim, &mut out, &Plain { start, take, merge: choose, end: T::from_compute })
}

/// The largest element; NaN if there is one.
///
/// # Errors
/// If there is no element.
pub fn max_full<T: Element<Compute: Ordered>>(self_: View<'_, T>, out: ViewMut<'_, T>) -> Result<()> {
    amax(self_, &[], false, out)
}

/// The smallest element; NaN if there is one.
///
/// # Errors
/// If there is no element.
pub fn min_full<T: Element<Compute: Ordered>>(self_: View<'_, T>, out: ViewMut<'_, T>) -> Result<()> {
    amin(self_, &[], false, out)
}

/// The outputs exist (the dispatcher skips kernels without output elements), so the elements must.
pub(super) fn refuse_empty(sizes: &[i64], reduced: &[bool]) -> Result<()> {
    if reduced_count(sizes, reduced) > 0 {
        return Ok(());
    }
    Err(Error::shape(format!(
        "no element to choose from: a reduced dimension of the shape {} has size 0",
        ShapeText(sizes)
    ))
    .with_help("reduce dimensions that have elements, or check numel() first"))
}
