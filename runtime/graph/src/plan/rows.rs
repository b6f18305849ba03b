//! Rows: the parts of a call's tensors that it computes one from another, apart from all other rows.
//!
//! In: a node and the layouts of its tensors. Out: the leading dimensions along which the call may run in tiles. They
//! follow from the operator's spec: an element-wise operator computes every element alone, and one with the key `lines`
//! every line. Must not know groups.
//!
//! A kernel may take several short lines at once, as many as there are, in an order of its own: its result for a
//! line of fewer than [`LINE`] elements, or of one whose elements lie apart, may depend on the number of lines. Such a
//! call has no rows, so that a tile gives the bits of the whole.

use opsmith_runtime::arg::Value;
use opsmith_runtime::device::Device;
use opsmith_runtime::facts::Lines;
use opsmith_runtime::layout::{Dims, Layout, broadcasts, is_contiguous, wrap_dim};

use crate::ir::{Argument, Graph, Node, NodeKind, TensorId};

/// The fewest elements of a line that is computed in tiles.
const LINE: i64 = 64;

/// How a call divides into rows.
pub(super) struct Rows {
    /// Sizes of the leading dimensions of the results, and of tensors whose rows it takes: each index of them is a row.
    pub outer: Dims,
    /// The shape of the largest tensor: the results of an element-wise call, the first operand of one by lines.
    pub sizes: Dims,
    /// Whether it computes lines: its attributes may number dimensions, and operands are not broadcast.
    pub by_lines: bool,
}

impl Rows {
    /// The rows of a node, if it may be in a group: of an element-wise call, a copy or a call by lines on the host.
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
            NodeKind::Call { op, .. } => by_lines(layouts, node, op.facts.lines?),
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
    fits.then(|| Rows { outer: sizes.clone(), sizes: sizes.clone(), by_lines: false })
}

fn by_lines(layouts: &[Option<Layout>], node: &Node, lines: Lines) -> Option<Rows> {
    let mut operands = Vec::new();
    node.args.iter().for_each(|arg| arg.for_each_tensor(|id| operands.push(layouts[id.index()].as_ref())));
    let operands: Vec<&Layout> = operands.into_iter().collect::<Option<_>>()?;
    let sizes = &operands.first()?.sizes;
    let rank = sizes.len();
    let (Lines::Along(argument) | Lines::Last(argument)) = lines;
    let given = match node.args.get(usize::from(argument))? {
        Argument::Value(Value::Int(number)) => std::slice::from_ref(number),
        Argument::Value(Value::Ints(numbers)) => numbers,
        _ => return None,
    };
    let dims: Vec<usize> = match lines {
        Lines::Along(_) => given.iter().map(|dim| wrap_dim(*dim, rank)).collect::<Result<_, _>>().ok()?,
        Lines::Last(_) => (rank.checked_sub(given.len())?..rank).collect(),
    };
    let first = *dims.iter().min()?;
    let (outer, _) = sizes.split_at_checked(first)?;
    let line: i64 = dims.iter().map(|dim| sizes.get(*dim).copied().unwrap_or(0)).product();
    let has_rows = |layout: &Layout| {
        layout.sizes.get(..first) == Some(outer)
            && is_contiguous(&layout.sizes[first..], &layout.strides[first..])
            && placement(layout, outer).is_some()
    };
    // Operands of fewer dimensions are the same for all lines.
    let fits = line >= LINE
        && operands.iter().all(|operand| operand.sizes.len() < rank || has_rows(operand))
        && node.outs.iter().all(|out| layouts[out.index()].as_ref().is_some_and(has_rows));
    fits.then(|| Rows { outer: outer.into(), sizes: sizes.clone(), by_lines: true })
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
