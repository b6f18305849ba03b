//! Whole slices at indices along one dimension.

use opsmith_runtime::arith::Arithmetic;
use std::ops::Range;

use opsmith_runtime::axes::{Axes, Axis, Walk, axes, count, merge};
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::{numel, wrap_dim};
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::{Dims, Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::parts::Parts;
use super::{checked, line};
use crate::cpu::copy::{copy_into, copy_row, join_row, prefetch};
use crate::cpu::fill::fill_with;
use crate::cpu::strides::{expect_operand, expect_sizes};

/// Slices of `self` at the indices, along a dimension: rows `[2, 0]` of a matrix.
///
/// # Errors
/// If an index is negative or not less than the dimension's size.
pub fn index_select<T: Element>(
    self_: View<'_, T>,
    dim: i64,
    index: View<'_, i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    index_select_bits(self_.bits(), dim, index, unsafe { out.bits() })
}

#[inline(never)]
fn index_select_bits<B: Element>(
    self_: View<'_, B>,
    dim: i64,
    index: View<'_, i64>,
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    let dim = wrap_dim(dim, self_.dim())?;
    let index = checked_indices(&index, self_.sizes().get(dim).copied().unwrap_or(1), dim)?;
    if self_.dim() == 0 {
        return copy_into(&self_, &mut out);
    }
    let mut sizes: Dims = self_.sizes().into();
    sizes[dim] = index.len() as i64;
    expect_sizes(out.sizes(), &sizes)?;
    let slices = Slices::new(self_.sizes(), [self_.strides(), out.strides()], dim);
    let target = Shared(out.as_mut_ptr());
    let count = slices.count(&index);
    if slices.inner.is_empty() && slices.row.size == 1 {
        // Slices of one element: those of a stack are elements of one line.
        let ([from_step, to_step], size) = (slices.steps, self_.sizes()[dim]);
        parallel::for_each_range(count, CHUNK, |range| {
            slices.for_each_stack(&index, range, |[from, to], first, index| {
                // SAFETY: the lines lie inside the views, since the indices were checked, and each element is in one range.
                unsafe {
                    let (source, target) =
                        (self_.as_ptr().offset(from as isize), target.at(to + first * to_step));
                    line::copy_at(source, from_step, size, index, target, to_step);
                }
            });
        });
        return Ok(());
    }
    parallel::for_each_range_of(numel(out.sizes()) as usize / count.max(1), count, |range| {
        slices.for_each(&index, range, |start, next| {
            slices.prefetch(self_.as_ptr(), next);
            slices.for_each_row(start, |[from, to], [from_step, to_step], length| {
                // SAFETY: the rows lie inside the views, since the indices were checked, and each is in one range.
                unsafe {
                    let source = self_.as_ptr().offset(from as isize);
                    copy_row(source, from_step, target.at(to), to_step, length);
                }
            });
        });
    });
    Ok(())
}

/// `self` with `alpha` times a slice of `source` added at each index along a dimension.
///
/// # Errors
/// If an index is negative or not less than the dimension's size, or the shapes do not fit.
pub fn index_add<T: Element<Compute: Arithmetic>>(
    dim: i64,
    index: View<'_, i64>,
    source: View<'_, T>,
    alpha: Scalar,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let alpha = T::Compute::from_scalar(alpha);
    let add = move |old: T, new: T| {
        T::from_compute(Arithmetic::add(old.to_compute(), Arithmetic::mul(alpha, new.to_compute())))
    };
    join_slices(dim, &index, &source, out, add)
}

/// `self` with each slice of `source` in the place of the slice at its index along a dimension. Where an index repeats, the last slice stays.
///
/// # Errors
/// If an index is negative or not less than the dimension's size, or the shapes do not fit.
pub fn index_copy<T: Element>(
    dim: i64,
    index: View<'_, i64>,
    source: View<'_, T>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    join_slices(dim, &index, &source.bits(), unsafe { out.bits() }, |_, new| new)
}

/// Fewest elements of a row for which the slices of one stack are shared among threads.
pub(in crate::cpu) const SHARED: usize = 64;

/// Joins slices of `source` to those at the indices, one after the other.
fn join_slices<T: Element>(
    dim: i64,
    index: &View<'_, i64>,
    source: &View<'_, T>,
    mut out: ViewMut<'_, T>,
    join: impl Fn(T, T) -> T + Copy + Sync,
) -> Result<()> {
    let dim = wrap_dim(dim, out.dim())?;
    let size = out.sizes().get(dim).copied().unwrap_or(1);
    let index = checked_indices(index, size, dim)?;
    let sizes = check_joined(out.sizes(), dim, index.len(), source.sizes())?;
    let (from_all, to_all) = (source.as_ptr(), out.as_mut_ptr());
    if sizes.is_empty() {
        // SAFETY: the only elements of both.
        index.iter().for_each(|_| unsafe { *to_all = join(*to_all, *from_all) });
        return Ok(());
    }
    let slices = Slices::new(source.sizes(), [out.strides(), source.strides()], dim);
    let elements = sizes.iter().product::<i64>() as usize;
    let (target, source) = (Shared(to_all), Shared(from_all.cast_mut()));
    // A copy of its own, which no write can change.
    let join_slice = |own: &_, start: [i64; 2], next: Option<[i64; 2]>| {
        let own = *own;
        slices.prefetch(target.at(0), next);
        slices.for_each_row(start, |[to, from], [to_step, from_step], length| {
            // SAFETY: the rows lie inside the views, since the indices were checked, and each has one thread.
            unsafe { join_row(source.at(from), from_step, target.at(to), to_step, length, own) };
        });
    };
    let stacks = count(&slices.outer);
    let is_shared = elements > CHUNK && parallel::num_threads() > 1;
    if !is_shared || stacks == 1 && slices.row.size < SHARED as i64 {
        slices.for_each(&index, 0..slices.count(&index), |start, next| join_slice(&join, start, next));
        return Ok(());
    }
    // A slice has one thread, which joins to it in the order of the indices.
    let order = if slices.row.size < SHARED as i64 { Parts::whole(&index) } else { Parts::new(&index, size) };
    let of_part = elements / (stacks * order.count());
    parallel::for_each_range_of(of_part, stacks * order.count(), |units| {
        let mut unit = units.start;
        while unit < units.end {
            let (stack, first) = (unit / order.count(), unit % order.count());
            let parts = first..order.count().min(first + units.end - unit);
            unit += parts.len();
            let (start, numbers) = (slices.stack(stack), order.numbers(parts));
            slices.for_each_of(&index, start, numbers, |start, next| join_slice(&join, start, next));
        }
    });
    Ok(())
}

/// The sizes of the slices to add or to put, if `source` has them.
///
/// # Errors
/// If it has others.
pub(crate) fn check_joined(out: &[i64], dim: usize, count: usize, source: &[i64]) -> Result<Dims> {
    let mut sizes: Dims = out.into();
    if let Some(size) = sizes.get_mut(dim) {
        *size = count as i64;
    }
    // A scalar counts as one slice of itself, on either side.
    let fits = source == &sizes[..] || sizes.is_empty() && numel(source) as usize == count;
    if fits {
        return Ok(sizes);
    }
    Err(Error::shape(format!(
        "source has the shape {}, the slices at the indices have {}",
        ShapeText(source),
        ShapeText(&sizes)
    )))
}

/// Rows of `weight` at the indices; the result has the indices' shape and one dimension more.
///
/// # Errors
/// If an index is negative or not less than the number of rows.
pub fn embedding<T: Element>(
    weight: View<'_, T>,
    indices: View<'_, i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    embedding_bits(weight.bits(), indices, unsafe { out.bits() })
}

#[inline(never)]
fn embedding_bits<B: Element>(
    weight: View<'_, B>,
    indices: View<'_, i64>,
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    let (rows, row) = table(weight.sizes(), weight.strides())?;
    let mut sizes: Dims = indices.sizes().into();
    sizes.push(row.size);
    expect_sizes(out.sizes(), &sizes)?;
    let places = axes(indices.sizes(), [indices.strides(), out.strides()], |_| true);
    let out_step = out.strides()[indices.dim()];
    let places = merge(places);
    let count = count(&places);
    let target = Shared(out.as_mut_ptr());
    parallel::try_for_each_range_of(row.size as usize, count, |range| {
        // SAFETY: the row was checked to be one of the table's; the output row is one of `out`'s, in one range.
        let copy = |(source, to): (*const B, i64)| unsafe {
            copy_row(source, row.steps[0], target.at(to), out_step, row.size as usize);
        };
        let mut waiting = None;
        for [at, to] in Walk::starting_at(&places, range.start).take(range.len()) {
            // SAFETY: a position of the index view.
            let number = checked(unsafe { indices.at(at) }, rows.size, 0)?;
            let source = weight.as_ptr().wrapping_offset((number * rows.steps[0]) as isize);
            if row.steps[0] == 1 {
                prefetch(source, row.size as usize);
            }
            // A row is copied when the next one was asked for.
            waiting.replace((source, to)).into_iter().for_each(copy);
        }
        waiting.into_iter().for_each(copy);
        Ok(())
    })
}

/// The gradient of [`embedding`] for `weight`: each row is the sum of the gradients of its uses.
///
/// The row `padding_idx` gets none (-1: every row gets one); `scale_grad_by_freq` divides by the
/// number of uses.
///
/// # Errors
/// If an index is negative or not less than `num_weights`.
pub fn embedding_dense_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    indices: View<'_, i64>,
    num_weights: i64,
    padding_idx: i64,
    scale_grad_by_freq: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let (rows, row) = table(out.sizes(), out.strides())?;
    expect_operand("num_weights", &[rows.size], &[num_weights])?;
    let mut sizes: Dims = indices.sizes().into();
    sizes.push(row.size);
    expect_operand("grad_output", grad_output.sizes(), &sizes)?;
    fill_with(&mut out, T::default());
    let mut uses = Scratch::filled(0u32, if scale_grad_by_freq { rows.size as usize } else { 0 });
    for index in indices.iter() {
        let index = checked(index, rows.size, 0)?;
        if let Some(uses) = uses.get_mut(index as usize) {
            *uses += 1;
        }
    }
    let step = grad_output.strides()[indices.dim()];
    let places = axes(indices.sizes(), [indices.strides(), grad_output.strides()], |_| true);
    let target = out.as_mut_ptr();
    for [at, from] in Walk::new(&places) {
        // SAFETY: a position of the index view.
        let index = unsafe { indices.at(at) };
        if index == padding_idx {
            continue;
        }
        let add = |old: T, grad: T::Compute| T::from_compute(Arithmetic::add(old.to_compute(), grad));
        // SAFETY: rows of the gradient and, as the indices were checked, of the output.
        unsafe {
            let source = grad_output.as_ptr().offset(from as isize);
            let target = target.offset((index * rows.steps[0]) as isize);
            let length = row.size as usize;
            if let Some(&uses) = uses.get(index as usize) {
                let uses = T::Compute::from_scalar(Scalar::Int(i64::from(uses)));
                let mean = |old: T, grad: T| add(old, Arithmetic::div(grad.to_compute(), uses));
                join_row(source, step, target, row.steps[0], length, mean);
            } else {
                join_row(source, step, target, row.steps[0], length, |old, grad| add(old, grad.to_compute()));
            }
        }
    }
    Ok(())
}

/// The rows and columns of a matrix.
///
/// # Errors
/// If it is none.
pub(crate) fn table(sizes: &[i64], strides: &[i64]) -> Result<(Axis<1>, Axis<1>)> {
    match (sizes, strides) {
        (&[rows, columns], &[row_step, column_step]) => {
            Ok((Axis { size: rows, steps: [row_step] }, Axis { size: columns, steps: [column_step] }))
        }
        _ => Err(Error::shape(format!("the weight must be a matrix, got the shape {}", ShapeText(sizes)))),
    }
}

/// The indices in a list, each checked.
fn checked_indices(index: &View<'_, i64>, size: i64, dim: usize) -> Result<Scratch<i64>> {
    check_list(index.sizes())?;
    let indices: Scratch<i64> = index.iter().collect();
    line::check(&indices, size, dim)?;
    Ok(indices)
}

/// Refuses indices of several dimensions.
///
/// # Errors
/// As it says.
pub(crate) fn check_list(index: &[i64]) -> Result<()> {
    match index.len() {
        0 | 1 => Ok(()),
        _ => Err(Error::shape(format!(
            "the index must have one dimension, got the shape {}",
            ShapeText(index)
        ))),
    }
}

/// Two views as stacks of slices along one dimension: the first is indexed, the second walked.
struct Slices {
    outer: Axes<2>,
    inner: Axes<2>,
    row: Axis<2>,
    steps: [i64; 2],
}

impl Slices {
    fn new(sizes: &[i64], strides: [&[i64]; 2], dim: usize) -> Slices {
        let mut inner = merge(axes(sizes, strides, |other| other > dim));
        Slices {
            outer: merge(axes(sizes, strides, |other| other < dim)),
            row: inner.pop().unwrap_or(Axis { size: 1, steps: [1, 1] }),
            inner,
            steps: strides.map(|strides| strides[dim]),
        }
    }

    /// Number of slices at the indices.
    fn count(&self, index: &[i64]) -> usize {
        count(&self.outer) * index.len()
    }

    /// Calls `body` with the first positions in both views of each of some slices, and of the next one.
    fn for_each(
        &self,
        index: &[i64],
        slices: Range<usize>,
        mut body: impl FnMut([i64; 2], Option<[i64; 2]>),
    ) {
        self.for_each_stack(index, slices, |start, first, indices| {
            let last = first as usize + indices.len();
            for number in first as usize..last {
                let next = (number + 1 < last).then(|| self.at(start, index, number + 1));
                body(self.at(start, index, number), next);
            }
        });
    }

    /// Calls `body` with the first positions of each stack that has some of these slices, the number of its first such slice, and
    /// the indices of all such slices.
    fn for_each_stack(
        &self,
        index: &[i64],
        slices: Range<usize>,
        mut body: impl FnMut([i64; 2], i64, &[i64]),
    ) {
        if slices.is_empty() {
            return;
        }
        let stacks = slices.start / index.len()..slices.end.div_ceil(index.len());
        for (stack, start) in stacks.clone().zip(Walk::starting_at(&self.outer, stacks.start)) {
            let before = stack * index.len();
            let first = slices.start.max(before) - before;
            body(start, first as i64, &index[first..slices.end.min(before + index.len()) - before]);
        }
    }

    /// The first positions of a stack.
    fn stack(&self, number: usize) -> [i64; 2] {
        Walk::starting_at(&self.outer, number).next().unwrap_or([0; 2])
    }

    /// As [`for_each`](Self::for_each), of the slices of these numbers in the stack that starts there.
    fn for_each_of(
        &self,
        index: &[i64],
        start: [i64; 2],
        numbers: &[i64],
        mut body: impl FnMut([i64; 2], Option<[i64; 2]>),
    ) {
        let mut next = numbers.iter().skip(1).map(|&number| self.at(start, index, number as usize));
        for &number in numbers {
            body(self.at(start, index, number as usize), next.next());
        }
    }

    /// The first positions of a slice of the stack that starts there.
    #[inline]
    fn at(&self, start: [i64; 2], index: &[i64], number: usize) -> [i64; 2] {
        [start[0] + index[number] * self.steps[0], start[1] + number as i64 * self.steps[1]]
    }

    /// Asks for the first row of a slice of the indexed tensor: rows at indices follow no order that a processor could know.
    #[inline(always)]
    fn prefetch<T>(&self, data: *const T, slice: Option<[i64; 2]>) {
        if let Some([indexed, _]) = slice
            && self.row.steps[0] == 1
        {
            prefetch(data.wrapping_offset(indexed as isize), self.row.size as usize);
        }
    }

    /// Calls `body` with the positions of each row of a slice, the steps of its elements and its length.
    #[inline]
    fn for_each_row(&self, start: [i64; 2], mut body: impl FnMut([i64; 2], [i64; 2], usize)) {
        let (steps, length) = (self.row.steps, self.row.size as usize);
        if self.inner.is_empty() {
            return body(start, steps, length);
        }
        for [first, second] in Walk::new(&self.inner) {
            body([start[0] + first, start[1] + second], steps, length);
        }
    }
}
