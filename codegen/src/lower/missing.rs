//! Undeclared gradients.
//!
//! In: operators with their written and derived formulas. Out: a formula that is an error for each tensor that may have
//! a gradient and gets none from a formula, composition or view: a missing gradient is reported instead of ignored.
//! `lint` warns of them when the spec is read.

use opsmith_core::DTypeSet;

use super::derived::{derived, refused};
use crate::model::{Element, Op};

/// Adds such formulas where a gradient is missing.
pub(super) fn refuse(ops: &mut [Op]) {
    for op in ops.iter_mut().filter(|op| !op.is_supplied() && op.alias_of.is_none()) {
        for index in undifferentiated(op) {
            let (name, argument) = (&op.name, &op.args[index].name);
            let (formula, text) = refused(&format!("`{name}` declares no gradient of `{argument}`"));
            op.derivatives.push(derived(index, formula, text));
        }
    }
}

/// Tensors with a path to a differentiable result, but without a declared derivative.
fn undifferentiated(op: &Op) -> Vec<usize> {
    let says_nothing = op.derivatives.is_empty() && op.non_differentiable.is_empty();
    let says_itself = op.body.composite.is_some() || op.body.view.is_some();
    let computes = op.body.pointwise.is_some() || !op.body.kernels.is_empty() || says_itself;
    let flows = op.outputs.iter().any(|output| {
        output.differentiable && output.ty.holds_tensors() && can_be_inexact(op, output.element)
    });
    if !computes || !flows || says_nothing && says_itself {
        return Vec::new();
    }
    let missing = |index: &usize| {
        op.args[*index].ty.holds_tensors()
            && can_be_inexact(op, op.args[*index].element)
            && !op.non_differentiable.contains(index)
            && !op.derivatives.iter().any(|derivative| derivative.arguments.contains(index))
    };
    (0..op.args.len()).filter(missing).collect()
}

fn can_be_inexact(op: &Op, element: Element) -> bool {
    let inexact = DTypeSet::INEXACT;
    let overlaps = |set: DTypeSet| set.intersection(inexact) != DTypeSet::EMPTY;
    match element {
        Element::NotTensor => false,
        Element::Fixed { accepted, .. } => overlaps(accepted),
        Element::Any => true,
        // A composition or view accepts the dtypes of its operators.
        Element::Dispatch | Element::Real | Element::Opmath => {
            let computes = op.body.pointwise.is_some() || !op.body.kernels.is_empty();
            !computes || op.body.dtypes.iter().copied().any(overlaps)
        }
    }
}
