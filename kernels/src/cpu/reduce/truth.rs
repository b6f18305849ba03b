//! Whether any or all elements are not zero.
//!
//! Answers are `bool`. PyTorch answers in `uint8` for `uint8`; the functions ending in `_u8` do.

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
    any_as(self_, dim, keepdim, |any| any, out)
}

/// [`any`] over one dimension.
pub fn any_dim<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    dim: i64,
    keepdim: bool,
    out: ViewMut<'_, bool>,
) -> Result<()> {
    any(self_, Some(&[dim]), keepdim, out)
}

/// Whether any element is not zero; false without elements.
pub fn any_full<T: Element<Compute: Arithmetic>>(self_: View<'_, T>, out: ViewMut<'_, bool>) -> Result<()> {
    any(self_, None, false, out)
}

/// [`any`] with the answer 1 or 0.
pub fn any_u8<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    out: ViewMut<'_, u8>,
) -> Result<()> {
    any_as(self_, dim, keepdim, u8::from, out)
}

fn any_as<T: Element<Compute: Arithmetic>, R: Element>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    answer: fn(bool) -> R,
    mut out: ViewMut<'_, R>,
) -> Result<()> {
    let reduced = reduced_dims(self_.dim(), dim)?;
    let any = Plain {
        start: false,
        take: |any: bool, element: T| any | truth(element.to_compute()),
        merge: |a: bool, b: bool| a | b,
        end: answer,
    };
    fold(&self_, &reduced, keepdim, &mut out, &any)
}

/// Whether all elements over dimensions are not zero; true without elements.
pub fn all<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    out: ViewMut<'_, bool>,
) -> Result<()> {
    all_as(self_, dim, keepdim, |all| all, out)
}

/// [`all`] over one dimension.
pub fn all_dim<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    dim: i64,
    keepdim: bool,
    out: ViewMut<'_, bool>,
) -> Result<()> {
    all(self_, Some(&[dim]), keepdim, out)
}

/// Whether all elements are not zero; true without elements.
pub fn all_full<T: Element<Compute: Arithmetic>>(self_: View<'_, T>, out: ViewMut<'_, bool>) -> Result<()> {
    all(self_, None, false, out)
}

/// [`all`] with the answer 1 or 0.
pub fn all_u8<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    out: ViewMut<'_, u8>,
) -> Result<()> {
    all_as(self_, dim, keepdim, u8::from, out)
}

fn all_as<T: Element<Compute: Arithmetic>, R: Element>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    answer: fn(bool) -> R,
    mut out: ViewMut<'_, R>,
) -> Result<()> {
    let reduced = reduced_dims(self_.dim(), dim)?;
    let all = Plain {
        start: true,
        take: |all: bool, element: T| all & truth(element.to_compute()),
        merge: |a: bool, b: bool| a & b,
        end: answer,
    };
    fold(&self_, &reduced, keepdim, &mut out, &all)
}
