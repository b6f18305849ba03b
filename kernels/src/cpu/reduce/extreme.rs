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
pub fn amax<T>(self_: View<'_, T>, dim: &[i64], keepdim: bool, mut out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Ordered>,
{
    let reduced = reduced_dims(self_.dim(), Some(dim))?;
    refuse_empty(self_.sizes(), &reduced)?;
    let largest = Plain {
        start: T::Compute::LOWEST,
        take: |largest: T::Compute, element: T| maximum(largest, element.to_compute()),
        merge: |a: T::Compute, b: T::Compute| maximum(a, b),
        end: T::from_compute,
    };
    fold(&self_, &reduced, keepdim, &mut out, &largest)
}

/// The smallest elements over dimensions; NaN if there is one.
///
/// # Errors
/// If there are outputs but no elements to choose from.
pub fn amin<T>(self_: View<'_, T>, dim: &[i64], keepdim: bool, mut out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Ordered>,
{
    let reduced = reduced_dims(self_.dim(), Some(dim))?;
    refuse_empty(self_.sizes(), &reduced)?;
    let smallest = Plain {
        start: T::Compute::HIGHEST,
        take: |smallest: T::Compute, element: T| minimum(smallest, element.to_compute()),
        merge: |a: T::Compute, b: T::Compute| minimum(a, b),
        end: T::from_compute,
    };
    fold(&self_, &reduced, keepdim, &mut out, &smallest)
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
