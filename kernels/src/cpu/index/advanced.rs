//! Several index tensors at once, one for each of some dimensions, broadcast together.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Dims, Element, Error, Result, Scratch, View, ViewMut};

use super::wrapped;
use crate::cpu::axes::{Axes, Axis, Walk, axes, merge};
use crate::cpu::copy::{copy_into, copy_row};
use crate::cpu::strides::{broadcast_strides, expect_sizes};
use crate::infer::{Indexed, indexed};

/// The elements of `self` at the indices: `x[[0, 1], [2, 0]]` is `[x[0][2], x[1][0]]`.
///
/// A dimension without indices is kept whole. The indices' broadcast shape stands in the result where
/// the indexed dimensions were, or in front if these are not neighbours.
///
/// # Errors
/// If an index is out of range, or the index tensors do not broadcast.
pub fn index<T: Element>(
    self_: View<'_, T>,
    indices: &[Option<View<'_, i64>>],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let places = Places::new(self_.sizes(), self_.strides(), indices)?;
    let Paths { pairs, rest, row } = places.against(out.sizes(), out.strides())?;
    let target = out.as_mut_ptr();
    for (data, result) in pairs {
        for [from, to] in Walk::new(&rest) {
            // SAFETY: the rows are rows of the views, since the indices were checked.
            unsafe {
                copy_row(
                    self_.as_ptr().offset((data + from) as isize),
                    row.steps[0],
                    target.offset((result + to) as isize),
                    row.steps[1],
                    row.size as usize,
                );
            }
        }
    }
    Ok(())
}

/// `self` with `values`, broadcast to the shape [`index`] would give, put at the indices or, with
/// `accumulate`, added there. Where an index repeats without `accumulate`, the last value stays.
///
/// # Errors
/// If an index is out of range, or the index tensors or the values do not broadcast.
pub fn index_put<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    indices: &[Option<View<'_, i64>>],
    values: View<'_, T>,
    accumulate: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_sizes(out.sizes(), self_.sizes())?;
    let places = Places::new(out.sizes(), out.strides(), indices)?;
    let strides = broadcast_strides(values.sizes(), values.strides(), &places.result.sizes)?;
    let Paths { pairs, rest, row } = places.against(&places.result.sizes, &strides)?;
    copy_into(&self_, &mut out)?;
    for (data, result) in pairs {
        for [to, from] in Walk::new(&rest) {
            for element in 0..row.size {
                let to = data + to + element * row.steps[0];
                // SAFETY: positions of the views, since the indices were checked.
                unsafe {
                    let value = values.at(result + from + element * row.steps[1]);
                    let value = if accumulate {
                        T::from_compute(Arithmetic::add(out.at(to).to_compute(), value.to_compute()))
                    } else {
                        value
                    };
                    out.set(to, value);
                }
            }
        }
    }
    Ok(())
}

/// Where index tensors lead in a data tensor.
struct Places<'a> {
    sizes: &'a [i64],
    strides: &'a [i64],
    result: Indexed,
    /// The position in the data of each element of the broadcast indices, in row-major order.
    offsets: Scratch<i64>,
}

/// Positions in the data and in a result.
struct Paths {
    /// Those of each index element.
    pairs: Scratch<(i64, i64)>,
    /// What the dimensions without indices add…
    rest: Axes<2>,
    /// …the last of them apart.
    row: Axis<2>,
}

impl<'a> Places<'a> {
    fn new(sizes: &'a [i64], strides: &'a [i64], indices: &[Option<View<'_, i64>>]) -> Result<Places<'a>> {
        let shapes: Scratch<Option<&[i64]>> =
            indices.iter().map(|index| index.as_ref().map(View::sizes)).collect();
        let result = indexed(sizes, &shapes)?;
        let count = opsmith_runtime::layout::numel(&result.broadcast);
        let mut offsets = Scratch::filled(0, count as usize);
        if opsmith_runtime::layout::numel(&result.sizes) == 0 {
            // Nothing is read, so an index into a dimension without elements is none.
            return Ok(Places { sizes, strides, result, offsets });
        }
        for (dim, index) in indices.iter().enumerate() {
            let Some(index) = index else { continue };
            let steps = broadcast_strides(index.sizes(), index.strides(), &result.broadcast)?;
            let walk = axes(&result.broadcast, [&steps], |_| true);
            for (offset, [at]) in offsets.iter_mut().zip(Walk::new(&walk)) {
                // SAFETY: a position of the index view.
                let index = wrapped(unsafe { index.at(at) }, sizes[dim], dim)?;
                *offset += index * strides[dim];
            }
        }
        Ok(Places { sizes, strides, result, offsets })
    }

    /// The same places in the data and in a view of the result's shape.
    fn against(&self, sizes: &[i64], strides: &[i64]) -> Result<Paths> {
        expect_sizes(sizes, &self.result.sizes)?;
        let (start, end) = (self.result.start, self.result.start + self.result.broadcast.len());
        let walk = axes(&self.result.broadcast, [&strides[start..end]], |_| true);
        let results = Walk::new(&walk).map(|[at]| at);
        let pairs = self.offsets.iter().copied().zip(results).collect();
        let kept: Dims = self.result.kept.iter().map(|&dim| self.sizes[dim]).collect();
        let kept_strides: Dims = self.result.kept.iter().map(|&dim| self.strides[dim]).collect();
        let outside: Dims =
            (0..sizes.len()).filter(|dim| !(start..end).contains(dim)).map(|dim| strides[dim]).collect();
        if kept.len() != outside.len() {
            return Err(Error::shape("the indices and the result have different numbers of dimensions"));
        }
        let mut rest = merge(axes(&kept, [&kept_strides, &outside], |_| true));
        let row = rest.pop().unwrap_or(Axis { size: 1, steps: [1, 1] });
        Ok(Paths { pairs, rest, row })
    }
}
