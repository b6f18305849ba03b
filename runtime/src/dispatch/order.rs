//! The order of a new result's elements in memory: that of the operands of an element-wise operator, if all have the same one,
//! else row-major.
//!
//! In: operands and the result's sizes. Out: the layout of an operand, or nothing. So a chain of element-wise operators over a
//! transposed tensor, or over images with channels last, reads and writes each memory from its beginning to its end.

use opsmith_core::DType;

use super::observer;
use crate::arg::Arg;
use crate::error::Result;
use crate::layout::{Layout, same_sizes};
use crate::op::OpDef;
use crate::tensor::Tensor;

/// A new result of operands of one shape, the first of which does not lie as a new tensor does.
///
/// # Errors
/// If there is no memory.
#[cold]
#[inline(never)]
pub(super) fn uninitialized_like(op: &OpDef, operands: &[&Tensor], dtype: DType) -> Result<Tensor> {
    let (first, device) = (operands[0].layout(), operands[0].device());
    match of_layouts(op, operands.iter().map(|tensor| tensor.layout()), &first.sizes) {
        Some(layout) => Tensor::uninitialized_in_order(layout, dtype, device),
        None => Tensor::uninitialized(&first.sizes, dtype, device),
    }
}

/// The layout of which a new result of these sizes has sizes and strides; `None` of a row-major one.
#[inline]
pub(super) fn of_result<'a>(op: &OpDef, args: &[Arg<'a>], sizes: &[i64]) -> Option<&'a Layout> {
    let layout = |arg: &Arg<'a>| match *arg {
        Arg::Tensor(tensor) => Some(tensor.layout()),
        _ => None,
    };
    of_layouts(op, args.iter().filter_map(layout), sizes)
}

/// The order of all operands that are not repeated for a result of these sizes, if it is another than row-major.
fn of_layouts<'a>(
    op: &OpDef,
    layouts: impl Iterator<Item = &'a Layout>,
    sizes: &[i64],
) -> Option<&'a Layout> {
    if !op.forms.elementwise || observer::observer().is_some() {
        return None;
    }
    let mut whole = layouts.filter(|layout| same_sizes(&layout.sizes, sizes));
    let first = whole.next()?;
    (!first.is_contiguous() && first.is_dense() && whole.all(|layout| layout.has_order_of(first)))
        .then_some(first)
}
