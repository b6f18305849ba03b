//! Whether any or all elements are not zero.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::{DType, Element, Result, View, ViewMut};

use super::fold::{Fold, fold};
use crate::math::truth;

/// Whether any element over dimensions is not zero; false without elements.
pub fn any<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    mut out: ViewMut<'_, bool>,
) -> Result<()> {
    let reduced = reduced_dims(self_.dim(), dim)?;
    fold(&self_, &reduced, keepdim, &mut out, &Found { zero: false })
}

/// Whether all elements over dimensions are not zero; true without elements.
pub fn all<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    keepdim: bool,
    mut out: ViewMut<'_, bool>,
) -> Result<()> {
    let reduced = reduced_dims(self_.dim(), dim)?;
    fold(&self_, &reduced, keepdim, &mut out, &Found { zero: true })
}

/// Whether an element is zero, the opposite of `all`, or not zero: one fold for both.
struct Found {
    zero: bool,
}

impl<T: Element<Compute: Arithmetic>> Fold<T> for Found {
    type Context = ();
    type Partial = bool;
    type Out = bool;
    const WIDE: bool = matches!(T::DTYPE, DType::Bool);

    #[inline(always)]
    fn context(&self, _number: usize) {}
    #[inline(always)]
    fn start(&self) -> bool {
        false
    }
    #[inline(always)]
    fn take(&self, _context: (), found: bool, element: T) -> bool {
        found | (truth(element.to_compute()) != self.zero)
    }
    #[inline(always)]
    fn merge(&self, first: bool, second: bool) -> bool {
        first | second
    }
    #[inline(always)]
    fn finish(&self, found: bool) -> bool {
        found != self.zero
    }
}
