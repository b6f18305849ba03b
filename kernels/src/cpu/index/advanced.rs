//! Several index tensors at once, one for each of some dimensions, broadcast together. A mask stands for as many as it
//! has dimensions: the places where it holds.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::axes::{Axes, Axis, Walk, axes, count, merge};
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::{Dims, Element, Error, Result, Scratch, Untyped, View, ViewMut};

use super::{line, wrapped};
use crate::cpu::copy::{copy_row, join_row, prefetch, with_slice};
use crate::cpu::strides::{broadcast_strides, expect_operand};
use crate::infer::{Indexed, Placed, check_mask, indexed, is_mask};

/// Indices that are checked before their elements are read: they stay in the first cache.
pub(in crate::cpu) const CHECKED: usize = 512;

/// The elements of `self` at the indices: `x[[0, 1], [2, 0]]` is `[x[0][2], x[1][0]]`.
///
/// A dimension without indices is kept whole. The indices' broadcast shape stands in the result where
/// the indexed dimensions were, or in front if these are not neighbours.
///
/// # Errors
/// If an index is out of range, or the index tensors do not broadcast.
pub fn index<T: Element>(
    self_: View<'_, T>,
    indices: &[Option<Untyped<'_>>],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    index_bits(self_.bits(), indices, unsafe { out.bits() })
}

#[inline(never)]
fn index_bits<B: Element>(
    self_: View<'_, B>,
    indices: &[Option<Untyped<'_>>],
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    if let ([Some(index)], [_]) = (indices, self_.sizes())
        && let Some(index) = index.view::<i64>()
        && index.sizes() == out.sizes()
    {
        return index_line(&self_, &index, out);
    }
    let places = Places::new(self_.sizes(), self_.strides(), indices)?;
    let Paths { pairs, rest, row } = places.against(out.sizes(), out.strides())?;
    let target = Shared(out.as_mut_ptr());
    let slice = count(&rest) * row.size as usize;
    parallel::for_each_range_of(slice, pairs.len(), |range| {
        for number in range {
            let (data, result) = pairs[number];
            if row.steps[0] == 1
                && let Some((next, _)) = pairs.get(number + 1)
            {
                prefetch(self_.as_ptr().wrapping_offset(*next as isize), row.size as usize);
            }
            for [from, to] in Walk::new(&rest) {
                // SAFETY: the rows are rows of the views, since the indices were checked, and each has one thread.
                unsafe {
                    copy_row(
                        self_.as_ptr().offset((data + from) as isize),
                        row.steps[0],
                        target.at(result + to),
                        row.steps[1],
                        row.size as usize,
                    );
                }
            }
        }
    });
    Ok(())
}

/// The elements of a line at indices in the shape of the output.
fn index_line<B: Element>(data: &View<'_, B>, index: &View<'_, i64>, mut out: ViewMut<'_, B>) -> Result<()> {
    let (index, size, step) = (index.to_contiguous(), data.sizes()[0], data.strides()[0]);
    let mut result = Ok(());
    with_slice(&mut out, |out| {
        let target = Shared(out.as_mut_ptr());
        result = parallel::try_for_each_range(index.len(), CHUNK, |range| {
            for first in range.clone().step_by(CHECKED) {
                let index = &index[first..range.end.min(first + CHECKED)];
                line::check_wrapped(index, size, 0)?;
                // SAFETY: the indices are in range; the output has as many elements as there are indices, and each range has
                // one thread.
                unsafe { line::copy_at(data.as_ptr(), step, size, index, target.at(first as i64), 1) };
            }
            Ok(())
        });
    })?;
    result
}

/// Puts `values`, broadcast to the shape [`index`] would give, at the indices or, with `accumulate`, adds them there. Where an index repeats without `accumulate`, the last value stays.
///
/// # Errors
/// If an index is out of range, or the index tensors or the values do not broadcast.
pub fn index_put<T: Element<Compute: Arithmetic>>(
    indices: &[Option<Untyped<'_>>],
    values: View<'_, T>,
    accumulate: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let data = (out.sizes(), out.strides());
    let paths = Paths::of_values(data, (values.sizes(), values.strides()), indices)?;
    if !accumulate {
        // SAFETY: elements are moved.
        put_bits(values.bits(), &paths, unsafe { out.bits() });
        return Ok(());
    }
    let Paths { pairs, rest, row } = &paths;
    let (source, target) = (values.as_ptr(), out.as_mut_ptr());
    let add = |old: T, new: T| T::from_compute(Arithmetic::add(old.to_compute(), new.to_compute()));
    for (data, result) in pairs {
        for [to, from] in Walk::new(rest) {
            let ([to_step, from_step], length) = (row.steps, row.size as usize);
            // SAFETY: rows of the views, since the indices were checked.
            unsafe {
                let (source, target) =
                    (source.offset((result + from) as isize), target.offset((data + to) as isize));
                join_row(source, from_step, target, to_step, length, add);
            }
        }
    }
    Ok(())
}

#[inline(never)]
fn put_bits<B: Element>(values: View<'_, B>, paths: &Paths, mut out: ViewMut<'_, B>) {
    let (source, target) = (values.as_ptr(), out.as_mut_ptr());
    for (data, result) in &paths.pairs {
        for [to, from] in Walk::new(&paths.rest) {
            let ([to_step, from_step], length) = (paths.row.steps, paths.row.size as usize);
            // SAFETY: rows of the views, since the indices were checked. Those of the output may be one element, which the
            // last value stays in.
            unsafe {
                let (source, target) =
                    (source.offset((result + from) as isize), target.offset((data + to) as isize));
                join_row(source, from_step, target, to_step, length, |_, new| new);
            }
        }
    }
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
    /// Dimensions without indices, but the last.
    rest: Axes<2>,
    /// The last of them.
    row: Axis<2>,
}

impl Paths {
    /// Those of values, given by sizes and strides, that are put into data.
    fn of_values(
        data: (&[i64], &[i64]),
        values: (&[i64], &[i64]),
        indices: &[Option<Untyped<'_>>],
    ) -> Result<Paths> {
        let places = Places::new(data.0, data.1, indices)?;
        let strides = broadcast_strides(values.0, values.1, &places.result.sizes)?;
        places.against(&places.result.sizes, &strides)
    }
}

impl<'a> Places<'a> {
    fn new(sizes: &'a [i64], strides: &'a [i64], indices: &[Option<Untyped<'_>>]) -> Result<Places<'a>> {
        let indices = indices.iter().map(|index| index.as_ref().map(Index::read).transpose());
        let indices: Scratch<Option<Index<'_>>> = indices.collect::<Result<_>>()?;
        let shapes: Scratch<Option<(usize, &[i64])>> = indices
            .iter()
            .map(|index| index.as_ref().map(|index| (index.taken(), &index.sizes[..])))
            .collect();
        let result = indexed(sizes, &shapes)?;
        let count = opsmith_runtime::layout::numel(&result.broadcast);
        let mut offsets = Scratch::filled(0, count as usize);
        let is_empty = opsmith_runtime::layout::numel(&result.sizes) == 0;
        for (index, &first) in indices.iter().zip(&result.placed.first) {
            let Some(index) = index else { continue };
            if let Some(mask) = index.mask {
                check_mask(mask, &sizes[first..])?;
            }
            // Nothing is read, so an index into a dimension without elements is none.
            if !is_empty {
                index.add_offsets(&mut offsets, &result.broadcast, first, sizes, strides)?;
            }
        }
        Ok(Places { sizes, strides, result, offsets })
    }

    /// The same places in the data and in a view of the result's shape.
    fn against(&self, sizes: &[i64], strides: &[i64]) -> Result<Paths> {
        expect_operand("an operand", sizes, &self.result.sizes)?;
        let Placed { start, kept, .. } = &self.result.placed;
        let (start, end) = (*start, *start + self.result.broadcast.len());
        let walk = axes(&self.result.broadcast, [&strides[start..end]], |_| true);
        let results = Walk::new(&walk).map(|[at]| at);
        let pairs = self.offsets.iter().copied().zip(results).collect();
        let kept_strides: Dims = kept.iter().map(|&dim| self.strides[dim]).collect();
        let kept: Dims = kept.iter().map(|&dim| self.sizes[dim]).collect();
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

/// One index: the place of each of its elements along the dimensions that it takes.
struct Index<'a> {
    /// The sizes of the lists of places.
    sizes: Dims,
    lists: Lists<'a>,
    /// The sizes of the mask that the lists were made from.
    mask: Option<&'a [i64]>,
}

enum Lists<'a> {
    /// The only list, as it was given.
    Given(View<'a, i64>),
    /// The lists of each dimension, one after the other in memory.
    Made(Scratch<i64>),
}

impl<'a> Index<'a> {
    fn read(index: &Untyped<'a>) -> Result<Index<'a>> {
        if let Some(mask) = index.view::<bool>() {
            return Ok(Index::of_mask(mask.sizes(), mask.iter()));
        }
        if let Some(mask) = index.view::<u8>() {
            return Ok(Index::of_mask(mask.sizes(), mask.iter().map(|element| element != 0)));
        }
        is_mask(index.dtype(), index.numel() == 0)?;
        let lists = match (index.view::<i64>(), index.view::<i32>()) {
            (Some(places), _) => Lists::Given(places),
            (_, Some(places)) => Lists::Made(places.iter().map(i64::from).collect()),
            // Of any other integers there are none.
            _ => Lists::Made(Scratch::new()),
        };
        Ok(Index { sizes: index.sizes().into(), lists, mask: None })
    }

    /// The places where a mask holds, in row-major order.
    fn of_mask(sizes: &'a [i64], elements: impl Iterator<Item = bool>) -> Index<'a> {
        let held = (0..).zip(elements).filter_map(|(number, held)| held.then_some(number));
        let held: Scratch<i64> = held.collect();
        let mut lists = Scratch::with_capacity(held.len() * sizes.len());
        let mut inner: i64 = opsmith_runtime::layout::numel(sizes);
        for size in sizes {
            inner /= size.max(&1);
            lists.extend(held.iter().map(|number| number / inner.max(1) % size));
        }
        Index { sizes: Dims::from_slice(&[held.len() as i64]), lists: Lists::Made(lists), mask: Some(sizes) }
    }

    /// How many dimensions it takes.
    fn taken(&self) -> usize {
        self.mask.map_or(1, <[i64]>::len)
    }

    /// Adds the contribution of its places to the positions of the broadcast indices.
    fn add_offsets(
        &self,
        offsets: &mut [i64],
        broadcast: &[i64],
        first: usize,
        sizes: &[i64],
        strides: &[i64],
    ) -> Result<()> {
        let count = opsmith_runtime::layout::numel(&self.sizes) as usize;
        let own = opsmith_runtime::layout::contiguous_strides(&self.sizes);
        for number in 0..self.taken() {
            let dim = first + number;
            let list = match &self.lists {
                Lists::Given(places) => *places,
                // SAFETY: `count` places from there on, in row-major order.
                Lists::Made(lists) => unsafe {
                    View::from_raw(lists[number * count..].as_ptr(), &self.sizes, &own)
                },
            };
            let steps = broadcast_strides(list.sizes(), list.strides(), broadcast)?;
            let walk = axes(broadcast, [&steps], |_| true);
            for (offset, [at]) in offsets.iter_mut().zip(Walk::new(&walk)) {
                // SAFETY: a position of the list's view.
                let place = wrapped(unsafe { list.at(at) }, sizes[dim], dim)?;
                *offset += place * strides[dim];
            }
        }
        Ok(())
    }
}
