//! Where the elements of an index tensor lead in a data tensor of as many dimensions.
//!
//! In: the sizes and strides of both. Out: stretches of the index with their positions in the data and in a third tensor, in several
//! threads if they take long. Must not know the elements.

use std::slice::from_raw_parts;

use opsmith_runtime::axes::{Axes, Axis, Walk, axes, count, merge};
use opsmith_runtime::parallel::{self, CHUNK};
use opsmith_runtime::{Dims, Result, View};

use super::advanced::CHECKED;
use super::scatter::check_index;
use super::{checked, line};
use crate::cpu::lanes::LANES;

/// Fewest equal indices one after the other whose elements are moved as a row.
pub(in crate::cpu) const RUN: usize = 16;

/// Where the elements of an index tensor, of which there is at least one, lead in a data tensor of as many dimensions.
pub(super) struct Places {
    pub dim: usize,
    /// Size of the indexed dimension.
    pub size: i64,
    /// Strides of the data.
    pub strides: Dims,
}

/// A stretch of the index: its positions in the index, in the data (at index 0 of the indexed
/// dimension) and in a third view of the index's shape.
pub(super) struct Row {
    pub index: i64,
    pub data: i64,
    pub other: i64,
    pub axis: Axis<3>,
}

impl Places {
    /// The places of an index; `None` for one without elements, which may have any number of dimensions.
    pub fn new(sizes: &[i64], strides: &[i64], dim: i64, index: &View<'_, i64>) -> Result<Option<Places>> {
        let dim = check_index(sizes, dim, index.sizes())?;
        if index.numel() == 0 {
            return Ok(None);
        }
        // A scalar counts as one element of one dimension.
        let (sizes, strides) = if sizes.is_empty() { (&[1][..], &[1][..]) } else { (sizes, strides) };
        Ok(Some(Places { dim, size: sizes[dim], strides: strides.into() }))
    }

    /// Refuses indices out of range, before any is followed.
    pub fn check(&self, index: &View<'_, i64>) -> Result<()> {
        let strides = Dims::from_elem(0, index.dim());
        self.share_rows(index, &strides, &|row| {
            let (step, length) = (row.axis.steps[0], row.axis.size);
            // SAFETY: the row is one of the view.
            let first = unsafe { index.as_ptr().offset(row.index as isize) };
            if step == 1 {
                // SAFETY: the row has so many indices.
                return line::check(unsafe { from_raw_parts(first, length as usize) }, self.size, self.dim);
            }
            let length = if step == 0 { length.min(1) } else { length };
            for element in 0..length {
                // SAFETY: the row has so many indices.
                checked(unsafe { *first.offset((element * step) as isize) }, self.size, self.dim)?;
            }
            Ok(())
        })
    }

    /// Calls `body` with blocks of a row of indices that are in range, and the number of the first of each.
    #[inline(always)]
    pub fn for_each_checked(&self, indices: &[i64], mut body: impl FnMut(i64, &[i64])) -> Result<()> {
        for (number, indices) in (0..).zip(indices.chunks(CHECKED)) {
            line::check(indices, self.size, self.dim)?;
            body(number * CHECKED as i64, indices);
        }
        Ok(())
    }

    /// How far an index leads along the indexed dimension.
    #[inline(always)]
    fn offset(&self, index: i64) -> Result<isize> {
        Ok((checked(index, self.size, self.dim)? * self.strides[self.dim]) as isize)
    }

    /// Calls `body` for stretches of one index in a row of them, in order: how far it leads along the indexed dimension, the
    /// stretch's first element, and its length. Elements of other stretches than those of [`RUN`] are single.
    ///
    /// # Safety
    /// `length` indices are valid for reads, `step` apart.
    #[inline(always)]
    pub unsafe fn for_each_run(
        &self,
        indices: *const i64,
        step: i64,
        length: i64,
        mut body: impl FnMut(isize, i64, i64),
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        let at = |element: i64| unsafe { *indices.offset((element * step) as isize) };
        if step == 0 && length > 0 {
            body(self.offset(at(0))?, 0, length);
            return Ok(());
        }
        // Whether so many indices are the one. Bits are gathered, since a comparison of each takes longer.
        let is_run = |first: i64, index: i64| {
            (first..first + RUN as i64).fold(0, |other, element| other | (at(element) ^ index)) == 0
        };
        let mut first = 0;
        while first < length {
            let mut end = (first + RUN as i64).min(length);
            if step == 1 && end - first == RUN as i64 && is_run(first, at(first)) {
                while end + RUN as i64 <= length && is_run(end, at(first)) {
                    end += RUN as i64;
                }
                body(self.offset(at(first))?, first, end - first);
            } else {
                let misses = |element: i64| at(element) as u64 >= self.size as u64;
                // All at once, since a branch for each takes longer.
                if (first..end).fold(false, |any, element| any | misses(element)) {
                    (first..end).try_for_each(|element| self.offset(at(element)).map(drop))?;
                }
                for element in first..end {
                    body((at(element) * self.strides[self.dim]) as isize, element, 1);
                }
            }
            first = end;
        }
        Ok(())
    }

    /// Calls `body` for stretches that cover the index, in row-major order.
    fn for_each_row(
        &self,
        index: &View<'_, i64>,
        other: &[i64],
        body: &mut dyn FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        let (outer, axis) = self.rows(index, index.sizes(), other);
        for [index, data, other] in Walk::new(&outer) {
            body(Row { index, data, other, axis })?;
        }
        Ok(())
    }

    /// As [`Places::for_each_row`], in several threads if it takes long, each stretch in one.
    pub fn share_rows(
        &self,
        index: &View<'_, i64>,
        other: &[i64],
        body: &(dyn Fn(Row) -> Result<()> + Sync),
    ) -> Result<()> {
        let (outer, axis) = self.rows(index, index.sizes(), other);
        parallel::try_for_each_range_of(axis.size as usize, count(&outer), |range| {
            for [index, data, other] in Walk::starting_at(&outer, range.start).take(range.len()) {
                body(Row { index, data, other, axis })?;
            }
            Ok(())
        })
    }

    /// As [`Places::for_each_row`], in several threads if it takes long, all elements of a line along the dimension in one and in
    /// their order.
    pub fn share_lines(
        &self,
        index: &View<'_, i64>,
        other: &[i64],
        body: &(dyn Fn(Row) -> Result<()> + Sync),
    ) -> Result<()> {
        let (elements, threads) = (index.numel(), parallel::num_threads());
        // The other dimension whose parts are enough for the threads, and far apart.
        let key = |&dim: &usize| (index.size(dim).min(threads), self.strides[dim].abs());
        let split = (0..index.dim()).filter(|&dim| dim != self.dim).max_by_key(key);
        let Some(split) = split.filter(|_| elements > CHUNK && threads > 1) else {
            return self.for_each_row(index, other, &mut |row| body(row));
        };
        let size = index.size(split);
        let width = size.div_ceil(threads).next_multiple_of(if self.strides[split] == 1 { LANES } else { 1 });
        parallel::try_for_each_range_of(elements / size * width.min(size), size.div_ceil(width), |parts| {
            for first in parts.map(|part| part * width) {
                let mut sizes: Dims = index.sizes().into();
                sizes[split] = width.min(size - first) as i64;
                let (outer, axis) = self.rows(index, &sizes, other);
                let [of_index, of_data, of_other] =
                    [index.strides(), &self.strides[..], other].map(|strides| first as i64 * strides[split]);
                for [index, data, other] in Walk::new(&outer) {
                    let (index, data, other) = (of_index + index, of_data + data, of_other + other);
                    body(Row { index, data, other, axis })?;
                }
            }
            Ok(())
        })
    }

    /// The first positions of stretches of so many elements of the index in each dimension, and the positions of one.
    fn rows(&self, index: &View<'_, i64>, sizes: &[i64], other: &[i64]) -> (Axes<3>, Axis<3>) {
        let mut fixed = self.strides.clone();
        fixed[self.dim] = 0;
        let strides = [index.strides(), &fixed[..], other];
        let mut outer = merge(axes(sizes, strides, |_| true));
        let axis = outer.pop().unwrap_or(Axis { size: 1, steps: [1; 3] });
        (outer, axis)
    }

    /// Calls `body` with the position in the data and in the third view of each element of the index.
    pub fn for_each(
        &self,
        index: &View<'_, i64>,
        other: &[i64],
        mut body: impl FnMut(i64, i64),
    ) -> Result<()> {
        self.for_each_row(index, other, &mut |row| {
            let [index_step, data_step, other_step] = row.axis.steps;
            for element in 0..row.axis.size {
                // SAFETY: a position of the index.
                let place = unsafe { index.at(row.index + element * index_step) };
                let along = self.offset(place)? as i64;
                body(row.data + element * data_step + along, row.other + element * other_step);
            }
            Ok(())
        })
    }
}
