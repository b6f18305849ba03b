//! Rows: the parts of a call's tensors that it computes one from another, apart from all other rows.
//!
//! In: a node and the layouts of its tensors. Out: the leading dimensions along which the call may run in tiles. They
//! follow from the operator's spec: an element-wise operator computes every element alone, and one whose results have
//! the rule [`ShapeRule::Reduce`] computes each element of a result from the elements that the reduced dimensions span.
//! Must not know groups.
//!
//! A kernel may take several short lines at once, as many as there are, in an order of its own: what it computes of a
//! line of fewer than [`LINE`] elements, or of one whose elements lie apart, may depend on the number of lines. Such a
//! call has no rows, so that a tile gives the bits of the whole.

use opsmith_runtime::arg::Value;
use opsmith_runtime::device::Device;
use opsmith_runtime::infer::expr::{Expr, Rules, ShapeRule};
use opsmith_runtime::layout::{Dims, Layout, broadcasts, is_contiguous, wrap_dim};

use crate::ir::{Argument, Graph, Node, NodeKind, TensorId};

/// The fewest elements of a line that is reduced in tiles.
const LINE: i64 = 64;

/// How a call divides into rows.
pub(super) struct Rows {
    /// Sizes of the leading dimensions of results, and of a reduction's input: each index of them is a row.
    pub outer: Dims,
    /// The shape of the largest tensor: the results of an element-wise call, the input of a reduction.
    pub sizes: Dims,
    /// Whether it is a reduction, whose attributes number the dimensions of its input.
    pub reduces: bool,
}

impl Rows {
    /// The rows of a node, if it may be in a group: of an element-wise call, a copy or a reduction on the host.
    pub fn of(graph: &Graph, layouts: &[Option<Layout>], node: &Node) -> Option<Rows> {
        let lists = |arg: &Argument| matches!(arg, Argument::Tensors(_) | Argument::OptionalTensors(_));
        if node.args.iter().any(lists) {
            return None;
        }
        let mut here = true;
        let mut look = |id: TensorId| here &= graph.tensor(id).device == Device::CPU;
        node.for_each_read(&mut look);
        node.for_each_write(&mut look);
        let rows = match &node.kind {
            _ if !here => None,
            NodeKind::Copy => element_wise(layouts, node),
            NodeKind::Call { op, .. } if !op.facts.deterministic => None,
            NodeKind::Call { op, .. } if op.forms.elementwise => element_wise(layouts, node),
            NodeKind::Call { op, .. } => reduction(layouts, node, op.rules?),
            _ => None,
        };
        rows.filter(|rows| !rows.sizes.contains(&0))
    }
}

fn element_wise(layouts: &[Option<Layout>], node: &Node) -> Option<Rows> {
    let sizes = &layouts[node.outs.first()?.index()].as_ref()?.sizes;
    let same = |id: &TensorId| layouts[id.index()].as_ref().is_some_and(|layout| layout.sizes == *sizes);
    let mut fits = node.outs.iter().all(same);
    for arg in &node.args {
        arg.for_each_tensor(|id| {
            fits &= layouts[id.index()].as_ref().is_some_and(|layout| broadcasts(&layout.sizes, sizes));
        });
    }
    fits.then(|| Rows { outer: sizes.clone(), sizes: sizes.clone(), reduces: false })
}

fn reduction(layouts: &[Option<Layout>], node: &Node, rules: &Rules<'_>) -> Option<Rows> {
    let (input, dims) = reduced(node, rules)?;
    let layout = layouts[input.index()].as_ref()?;
    let rank = layout.sizes.len();
    let dims: Vec<usize> = dims.iter().map(|dim| wrap_dim(*dim, rank)).collect::<Result<_, _>>().ok()?;
    let first = *dims.iter().min()?;
    let (outer, line) = layout.sizes.split_at_checked(first)?;
    let together: i64 = dims.iter().map(|dim| layout.sizes.get(*dim).copied().unwrap_or(0)).product();
    let has_rows = |id: &TensorId| {
        layouts[id.index()].as_ref().is_some_and(|layout| layout.sizes.get(..first) == Some(outer))
    };
    let fits = together >= LINE
        && is_contiguous(line, &layout.strides[first..])
        && placement(layout, outer).is_some()
        && node.outs.iter().all(has_rows);
    fits.then(|| Rows { outer: outer.into(), sizes: layout.sizes.clone(), reduces: true })
}

/// The only tensor that a node takes, and the dimensions that all its results reduce.
fn reduced(node: &Node, rules: &Rules<'_>) -> Option<(TensorId, Vec<i64>)> {
    if rules.shapes.len() != node.outs.len() || rules.length.is_some() || !rules.present.is_empty() {
        return None;
    }
    let mut found: Option<(u8, u8)> = None;
    for shape in rules.shapes {
        let Expr::ShapeRule(ShapeRule::Reduce, [Expr::Arg(input), dims, _]) = shape else { return None };
        let (Expr::Arg(dims) | Expr::Convert(_, Expr::Arg(dims))) = dims else { return None };
        if *found.get_or_insert((*input, *dims)) != (*input, *dims) {
            return None;
        }
    }
    let (input, dims) = found?;
    let mut tensors = 0;
    node.args.iter().for_each(|arg| arg.for_each_tensor(|_| tensors += 1));
    let Argument::Tensor(input) = node.args.get(usize::from(input))? else { return None };
    let dims = match node.args.get(usize::from(dims))? {
        Argument::Value(Value::Int(dim)) => vec![*dim],
        Argument::Value(Value::Ints(dims)) => dims.clone(),
        _ => return None,
    };
    (tensors == 1).then_some((*input, dims))
}

/// The place of rows in a buffer: the first element of the first row's part of it, and the strides from row to row. A
/// row's part begins at a multiple of the distance between rows, and is so long. `None` if the tensor does not have the
/// rows, or if their parts would overlap.
pub(super) fn placement(layout: &Layout, outer: &[i64]) -> Option<(i64, Dims)> {
    if layout.sizes.get(..outer.len()) != Some(outer) {
        return None;
    }
    let (mut reach, mut strides, mut distance) = (1i64, Dims::new(), None);
    for (dim, (&size, &stride)) in layout.sizes.iter().zip(&layout.strides).enumerate().rev() {
        if size == 1 {
            continue;
        }
        if size == 0 || stride < 0 {
            return None;
        }
        if dim < outer.len() {
            let whole = *distance.get_or_insert(stride);
            let covered = if strides.is_empty() { reach + layout.offset.checked_rem(whole)? } else { reach };
            if stride < covered {
                return None;
            }
            strides.push(stride);
            reach = size.checked_mul(stride)?;
        } else {
            reach = reach.checked_add((size - 1).checked_mul(stride)?)?;
        }
    }
    let distance = distance?;
    Some((layout.offset - layout.offset % distance, strides))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sizes: &[i64], strides: &[i64], offset: i64) -> Layout {
        Layout { sizes: sizes.into(), strides: strides.into(), offset }
    }

    #[test]
    fn tensors_over_one_buffer_have_the_same_rows() {
        let whole = placement(&layout(&[3, 4, 8], &[32, 8, 1], 0), &[3, 4]).unwrap();
        // A mean of each row, one with a dimension more, a part of each row, one that is broadcast.
        for other in [
            layout(&[3, 4, 4], &[32, 8, 1], 4),
            layout(&[3, 4, 2, 4], &[32, 8, 4, 1], 0),
            layout(&[3, 4, 5], &[32, 8, 0], 7),
        ] {
            assert_eq!(placement(&other, &[3, 4]).unwrap(), whole, "{other:?}");
        }
        // Parts that reach into the next row, rows in another order, other rows, rows that are one.
        for other in [
            layout(&[3, 4, 4], &[32, 8, 1], 5),
            layout(&[3, 4, 8], &[8, 24, 1], 0),
            layout(&[3, 4, 8], &[0, 8, 1], 0),
            layout(&[4, 3, 8], &[24, 8, 1], 0),
            layout(&[3], &[1], 0),
        ] {
            assert_eq!(placement(&other, &[3, 4]), None, "{other:?}");
        }
        assert_eq!(placement(&layout(&[3, 4, 8], &[32, 8, 1], 96), &[3, 4]).unwrap().0, 96);
        // A dimension of one row has any stride.
        let (first, strides) = placement(&layout(&[1, 4, 8], &[7, 8, 1], 0), &[1, 4]).unwrap();
        assert_eq!((first, strides.as_slice()), (0, &[8i64][..]));
    }
}
