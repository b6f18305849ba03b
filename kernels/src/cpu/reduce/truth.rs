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
    mut out: ViewMut<'_, bool>,
) -> Result<()> {
    let reduced = reduced_dims(self_.dim(), dim)?;
    let any = Plain {
        start: false,
        take: |any: bool, element: T| any | truth(element.to_compute()),
        merge: |a: bool, b: bool| a | b,
        end: |any: bool| any,
    };
    fold(&self_, &reduced, keepdim, &mut out, &any)
}

/// Whether all elements over dimensions are not zero; true without elements.
pub fn all<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    mut out: ViewMut<'_, bool>,
) -> Result<()> {
    let reduced = reduced_dims(self_.dim(), dim)?;
    let all = Plain {
        start: true,
        take: |all: bool, element: T| all & truth(element.to_compute()),
        merge: |a: bool, b: bool| a & b,
        end: |all: bool| all,
    };
    fold(&self_, &reduced, keepdim, &mut out, &all)
}
