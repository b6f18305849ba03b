//! Calls that write their arguments: in-place forms, and operators that update statistics.
//!
//! In: a node's arguments. Out: arguments whose memory is apart from the written one, and the results of a call after which the
//! statistics are the new ones.

use opsmith_runtime::arg::Value;
use opsmith_runtime::boxed;
use opsmith_runtime::copy;
use opsmith_runtime::error::Result;
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::layout::Layout;
use opsmith_runtime::tensor::Tensor;

use super::Replay;
use super::frame::Frame;
use crate::errors::unsupported;
use crate::model::Node;
use crate::operators;
use crate::structural::{CLONE, Statistics};

/// The arguments of an in-place form, in which those between the elements of the written one are copies, as of
/// `x[:, 0] = x[:, 1]`. Those that share elements with it stay, and the operator refuses them: their results depend on an order.
pub(super) fn apart(mut args: Vec<Value>) -> Result<Vec<Value>> {
    let Some((Value::Tensor(target), others)) = args.split_first_mut() else { return Ok(args) };
    let copied = |tensor: &mut Tensor| -> Result<()> {
        let alike = tensor.dtype() == target.dtype() && tensor.layout() != target.layout();
        if tensor.overlaps(target) && alike && !meet(tensor.layout(), target.layout()) {
            *tensor = operators::call(CLONE, &[Value::Tensor(tensor.clone())])?;
        }
        Ok(())
    };
    for value in others {
        match value {
            Value::Tensor(tensor) => copied(tensor)?,
            Value::Tensors(tensors) => tensors.iter_mut().try_for_each(copied)?,
            Value::OptionalTensors(tensors) => tensors.iter_mut().flatten().try_for_each(copied)?,
            _ => {}
        }
    }
    Ok(args)
}

/// Whether two layouts over the same memory have a place in common, or might: many dimensions that interleave are not gone through.
fn meet(a: &Layout, b: &Layout) -> bool {
    /// Steps of the search; two tensors whose dimensions are nested take a few.
    const MOST: usize = 10_000;
    let mut terms: Vec<Term> = Vec::new();
    for (layout, sign) in [(a, 1), (b, -1)] {
        for (&size, &stride) in layout.sizes.iter().zip(&layout.strides) {
            if size == 0 {
                return false;
            }
            // A dimension of one place, or with one place for all indices.
            if size > 1 && stride != 0 {
                terms.push(Term { step: sign * stride, most: size - 1, rest: [0, 0] });
            }
        }
    }
    terms.sort_by_key(|term| std::cmp::Reverse(term.step.abs()));
    let mut rest = [0i64, 0];
    for term in terms.iter_mut().rev() {
        term.rest = rest;
        let reach = term.step.saturating_mul(term.most);
        rest = [rest[0].saturating_add(reach.min(0)), rest[1].saturating_add(reach.max(0))];
    }
    find(&terms, b.offset - a.offset, &mut { MOST })
}

/// A dimension of one of two layouts.
struct Term {
    /// Elements from one index to the next, negative for the second layout.
    step: i64,
    /// The last index.
    most: i64,
    /// The least and the greatest sum of the terms after it.
    rest: [i64; 2],
}

/// Whether indices of the terms have this sum, or the search ends before that is known.
fn find(terms: &[Term], sum: i64, left: &mut usize) -> bool {
    let Some((term, others)) = terms.split_first() else { return sum == 0 };
    let ends = term.rest.map(|rest| (sum as f64 - rest as f64) / term.step as f64);
    let (least, most) = (ends[0].min(ends[1]).ceil() as i64, ends[0].max(ends[1]).floor() as i64);
    for index in least.max(0)..=most.min(term.most) {
        if *left == 0 {
            return true;
        }
        *left -= 1;
        if find(others, sum - index * term.step, left) {
            return true;
        }
    }
    false
}

impl Replay<'_> {
    /// Calls an operator, with an update of the statistics among its arguments if another argument asks for it.
    pub(super) fn update(
        &self,
        statistics: Statistics,
        node: &Node,
        frame: &Frame,
    ) -> Result<Option<Vec<Value>>> {
        let Some((args, named)) = frame.arguments(node) else { return Ok(None) };
        let tensors = statistics.arguments.map(|position| match args.get(position) {
            Some(Value::Tensor(tensor)) => Some(tensor.clone()),
            _ => None,
        });
        let updates = matches!(args.get(statistics.updates), Some(Value::Bool(true)));
        let ([Some(first), Some(second)], true, true) = (tensors, updates, named.is_empty()) else {
            return self.operator(&node.target, node, frame);
        };
        if !frame.all_levels(node).is_empty() {
            return Err(unsupported("an update of statistics in `torch.vmap`"));
        }
        let (op, _) = operators::find(statistics.functional)?;
        let mut results = boxed::call_definition(op, &args[..statistics.takes.min(args.len())], &[])?;
        for (old, result) in [first, second].iter().zip(statistics.results) {
            match results.get(result) {
                Some(Value::Tensor(new)) => copy::copy(old, &new.detach())?,
                _ => return Err(unsupported(format!("`{}` without new statistics", statistics.functional))),
            }
        }
        results.truncate(1);
        Ok(Some(results))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sizes: &[i64], strides: &[i64], offset: i64) -> Layout {
        Layout { sizes: sizes.into(), strides: strides.into(), offset }
    }

    #[test]
    fn places_in_common() {
        let column = |number: i64| layout(&[4], &[6], number);
        assert!(!meet(&column(0), &column(3)) && meet(&column(2), &column(2)));
        // Even and odd columns, and columns that overlap in one.
        let half = |first: i64| layout(&[4, 3], &[6, 2], first);
        assert!(!meet(&half(0), &half(1)) && meet(&half(0), &half(2)));
        let part = |first: i64, columns: i64| layout(&[4, columns], &[6, 1], first);
        assert!(meet(&part(0, 3), &part(2, 3)) && !meet(&part(0, 3), &part(3, 3)));
        assert!(!meet(&layout(&[0], &[1], 0), &layout(&[1], &[1], 0)));
        // A transpose meets its matrix, and rows of another order do.
        assert!(meet(&layout(&[3, 3], &[3, 1], 0), &layout(&[3, 3], &[1, 3], 0)));
        assert!(meet(&layout(&[5], &[-1], 4), &layout(&[1], &[1], 0)));
    }
}
