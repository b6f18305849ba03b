//! Elements by their numbers in row-major order: the axes to walk over, stretches of neighbours, indices.

use std::array;
use std::ops::Range;

use opsmith_runtime::Dims;
use opsmith_runtime::axes::{Axes, Axis, Walk, axes, merge};

/// Steps in row-major order, the last stretch apart.
pub(super) fn rows<const N: usize>(sizes: &[i64], strides: [&[i64]; N]) -> (Axes<N>, Axis<N>) {
    let mut outer = merge(axes(sizes, strides, |_| true));
    let row = outer.pop().unwrap_or(Axis { size: 1, steps: [1; N] });
    (outer, row)
}

/// Calls `body` with stretches that cover the elements of these numbers, counted in row-major order: the positions of the
/// first element of each, and its length. `row` is the innermost axis, `outer` has the others.
pub(super) fn for_each_stretch<const N: usize>(
    outer: &Axes<N>,
    row: Axis<N>,
    numbers: Range<usize>,
    body: &mut dyn FnMut([i64; N], usize),
) {
    if numbers.is_empty() {
        return;
    }
    let length = row.size as usize;
    let (mut skipped, mut left) = (numbers.start % length, numbers.len());
    for start in Walk::starting_at(outer, numbers.start / length) {
        let taken = left.min(length - skipped);
        body(array::from_fn(|operand| start[operand] + skipped as i64 * row.steps[operand]), taken);
        (skipped, left) = (0, left - taken);
        if left == 0 {
            return;
        }
    }
}

/// The index of the element of this number, in row-major order; of a shape without elements, the first one's would be.
pub(super) fn index_of(number: usize, sizes: &[i64]) -> Dims {
    let mut index = Dims::from_elem(0, sizes.len());
    let mut rest = number as i64;
    for (index, size) in index.iter_mut().zip(sizes).rev() {
        *index = rest % (*size).max(1);
        rest /= (*size).max(1);
    }
    index
}

/// The next index in row-major order.
#[inline]
pub(super) fn advance(index: &mut [i64], sizes: &[i64]) {
    for (index, size) in index.iter_mut().zip(sizes).rev() {
        *index += 1;
        if *index < *size {
            break;
        }
        *index = 0;
    }
}
