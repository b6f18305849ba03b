//! Whether any or all elements are not zero.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::{Element, Result, View, ViewMut};

use super::{Plain, fold::fold};
use crate::math::truth;

/// Whether any element over dimensions is not zero; false without elements.
pub fn any<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    out: ViewMut<'_, bool>,
) -> Result<()> {
    joined(&self_, dim, keepdim, out, false, |a, b| a | b)
}

/// Whether all elements over dimensions are not zero; true without elements.
pub fn all<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    out: ViewMut<'_, bool>,
) -> Result<()> {
    joined(&self_, dim, keepdim, out, true, |a, b| a & b)
}

fn joined<T: Element<Compute: Arithmetic>>(
    input: &View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    mut out: ViewMut<'_, bool>,
    start: bool,
    join: impl Fn(bool, bool) -> bool + Copy + Sync,
) -> Result<()> {
    let take = move |joined: bool, element: T| join(joined, truth(element.to_compute()));
    let reduced = reduced_dims(input.dim(), dim)?;
    fold(input, &reduced, keepdim, &mut out, &Plain { start, take, merge: join, end: |joined: bool| joined })
}
