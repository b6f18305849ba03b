//! Products of groups: each a part of the rows, columns or inner dimension, up to its end in a list.
//!
//! In: matrices, or stacks of one matrix a group, and the ends. Out: the products. Groups ascend and cover a part of the
//! dimension; the rest of the result is 0.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::scratch::Scratch;
use opsmith_runtime::{Error, Result, View, ViewMut};

use super::{Multiply, matrix_axes, products, sizes_differ};

/// The dimension of an operand that groups divide.
#[derive(Clone, Copy)]
enum Divided {
    /// The rows of a matrix.
    Rows,
    /// The columns of a matrix.
    Columns,
    /// None: a stack has a matrix for each group.
    Stack,
}

/// The products of groups: rows `(s, k)` in groups times matrices `(g, k, n)` give `(s, n)`, matrices `(g, m, k)` times columns
/// `(k, s)` in groups give `(m, s)`, and `(m, s)` times `(s, n)`, both in groups, give `(g, m, n)`. Without groups, those of two
/// stacks.
///
/// # Errors
/// If sizes differ, or the ends of groups descend or lie outside.
pub fn grouped_mm<T: Multiply>(
    self_: View<'_, T>,
    mat2: View<'_, T>,
    offs: Option<View<'_, i64>>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let Some(offs) = offs else { return products(&self_, &mat2, None, T::Compute::ONE, &mut out) };
    let (left, right, result) = match (self_.dim(), mat2.dim()) {
        (2, 3) => (Divided::Rows, Divided::Stack, Divided::Rows),
        (3, 2) => (Divided::Stack, Divided::Columns, Divided::Columns),
        (2, 2) => (Divided::Columns, Divided::Rows, Divided::Stack),
        _ => return Err(sizes_differ(self_.sizes(), mat2.sizes())),
    };
    let length = match left {
        Divided::Rows => self_.sizes()[0],
        Divided::Columns => self_.sizes()[1],
        Divided::Stack => mat2.sizes()[1],
    };
    let ends: Scratch<i64> = offs.iter().collect();
    let ascending = ends.windows(2).all(|pair| pair[0] <= pair[1]);
    if !ascending
        || ends.first().is_some_and(|first| *first < 0)
        || ends.last().is_some_and(|last| *last > length)
    {
        return Err(Error::value(format!(
            "the ends of groups are {:?}, and must ascend from 0 to {length}",
            &ends[..]
        ))
        .with_help("`offs` is a cumulative sum of the groups' sizes"));
    }
    let mut start = 0;
    for (group, &end) in ends.iter().enumerate() {
        multiply_group((&self_, left), (&mat2, right), (&mut out, result), group, start, end)?;
        start = end;
    }
    clear_rest(&mut out, result, start, length)
}

/// The offset of a group's part and its sizes.
fn part(
    axes: [(i64, i64); 2],
    stack: i64,
    divided: Divided,
    group: usize,
    start: i64,
    end: i64,
) -> (i64, [i64; 2]) {
    let [(rows, row), (columns, column)] = axes;
    match divided {
        Divided::Rows => (start * row, [end - start, columns]),
        Divided::Columns => (start * column, [rows, end - start]),
        Divided::Stack => (group as i64 * stack, [rows, columns]),
    }
}

fn multiply_group<T: Multiply>(
    (left, left_divided): (&View<'_, T>, Divided),
    (right, right_divided): (&View<'_, T>, Divided),
    (out, out_divided): (&mut ViewMut<'_, T>, Divided),
    group: usize,
    start: i64,
    end: i64,
) -> Result<()> {
    let of = |view: &View<'_, T>, divided: Divided| -> Result<(i64, [i64; 2], [i64; 2])> {
        let axes = matrix_axes(view)?;
        let (offset, sizes) = part(axes, view.strides()[0], divided, group, start, end);
        Ok((offset, sizes, [axes[0].1, axes[1].1]))
    };
    let (left_at, left_sizes, left_strides) = of(left, left_divided)?;
    let (right_at, right_sizes, right_strides) = of(right, right_divided)?;
    let (out_at, out_sizes, out_strides) = of(&out.as_view(), out_divided)?;
    // SAFETY: the parts lie inside the views: the ends of groups were checked, and there are as many matrices of a stack as
    // groups, by the sizes of inference.
    unsafe {
        let left = View::from_raw(left.as_ptr().offset(left_at as isize), &left_sizes, &left_strides);
        let right = View::from_raw(right.as_ptr().offset(right_at as isize), &right_sizes, &right_strides);
        let part = out.as_mut_ptr().offset(out_at as isize);
        let mut part = ViewMut::from_raw(part, &out_sizes, &out_strides);
        products(&left, &right, None, T::Compute::ONE, &mut part)
    }
}

/// Writes 0 behind the last group.
fn clear_rest<T: Multiply>(out: &mut ViewMut<'_, T>, divided: Divided, start: i64, end: i64) -> Result<()> {
    if start == end || matches!(divided, Divided::Stack) {
        return Ok(());
    }
    let axes = matrix_axes(&out.as_view())?;
    let (offset, sizes) = part(axes, 0, divided, 0, start, end);
    let strides = [axes[0].1, axes[1].1];
    // SAFETY: the part lies inside the output, and no other view of it is used.
    let mut rest = unsafe { ViewMut::from_raw(out.as_mut_ptr().offset(offset as isize), &sizes, &strides) };
    rest.write((0..sizes[0] * sizes[1]).map(|_| T::from_compute(T::Compute::ZERO)))
}
