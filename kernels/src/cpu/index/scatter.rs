//! Single elements at indices along one dimension.
//!
//! The index tensor has as many dimensions as the data. The element of the index at `(i, j, k)` names
//! the place along `dim`; the other coordinates are its own.

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::axes::{Axes, Axis, Walk, axes, count, merge};
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::{contiguous_strides, numel, wrap_dim};
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::{Dims, Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::checked;
use crate::cpu::copy::{copy_row, join_row};
use crate::cpu::lanes::LANES;
use crate::cpu::strides::expect_sizes;
use crate::math::{maximum, minimum};

/// Elements of `self` at the indices: `out[i][j] = self[index[i][j]][j]` for dimension 0.
///
/// # Errors
/// If an index is negative or not less than the dimension's size, or the index is larger than `self`
/// in another dimension.
pub fn gather<T: Element>(
    self_: View<'_, T>,
    dim: i64,
    index: View<'_, i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    gather_bits(self_.bits(), dim, index, unsafe { out.bits() })
}

#[inline(never)]
fn gather_bits<B: Element>(
    self_: View<'_, B>,
    dim: i64,
    index: View<'_, i64>,
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    expect_sizes(out.sizes(), index.sizes())?;
    let Some(places) = Places::new(self_.sizes(), self_.strides(), dim, &index)? else { return Ok(()) };
    let target = Shared(out.as_mut_ptr());
    let out_strides: Dims = out.strides().into();
    places.share_rows(&index, &out_strides, &|row| {
        // SAFETY: the rows are rows of the views, and each has one thread; each index is checked before it is followed.
        unsafe {
            let indices = index.as_ptr().offset(row.index as isize);
            let source = self_.as_ptr().offset(row.data as isize);
            let target = target.at(row.other);
            let [index_step, data_step, out_step] = row.axis.steps;
            places.for_each_run(indices, index_step, row.axis.size, |from, first, length| {
                let source = source.offset(from + (first * data_step) as isize);
                let target = target.offset((first * out_step) as isize);
                if length == 1 {
                    *target = *source;
                } else {
                    copy_row(source, data_step, target, out_step, length as usize);
                }
            })
        }
    })
}

/// Puts elements of `src` at the indices: `out[index[i][j]][j] = src[i][j]` for dimension 0. Where an index repeats, the last element in row-major order stays.
///
/// # Errors
/// If an index is negative or not less than the dimension's size, or the shapes do not fit.
pub fn scatter<T: Element>(
    dim: i64,
    index: View<'_, i64>,
    src: View<'_, T>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    put(dim, &index, &src.bits(), unsafe { out.bits() })
}

/// Puts one value at the indices.
///
/// # Errors
/// If an index is negative or not less than the dimension's size, or the shapes do not fit.
pub fn scatter_value<T: Element>(
    dim: i64,
    index: View<'_, i64>,
    value: Scalar,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let value = T::from_scalar(value);
    let strides = Dims::from_elem(0, index.dim());
    // SAFETY: every position is that of the one value.
    let src = unsafe { View::from_raw(&raw const value, index.sizes(), &strides) };
    // SAFETY: elements are moved.
    put(dim, &index, &src.bits(), unsafe { out.bits() })
}

#[inline(never)]
fn put<B: Element>(dim: i64, index: &View<'_, i64>, src: &View<'_, B>, out: ViewMut<'_, B>) -> Result<()> {
    scatter_with(dim, index, src, out, |_, new| new)
}

/// Adds elements of `src` at the indices.
///
/// # Errors
/// If an index is negative or not less than the dimension's size, or the shapes do not fit.
pub fn scatter_add<T: Element<Compute: Arithmetic>>(
    dim: i64,
    index: View<'_, i64>,
    src: View<'_, T>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    scatter_with(dim, &index, &src, out, |old, new| {
        T::from_compute(Arithmetic::add(old.to_compute(), new.to_compute()))
    })
}

/// For each place, the reduction of the elements of `src` that the indices send there, and of
/// `self`'s own element if `include_self`. `reduce` is `sum`, `prod`, `mean`, `amax` or `amin`.
///
/// A mean of integers is rounded toward minus infinity.
///
/// # Errors
/// As [`scatter`], and if `reduce` is another word.
pub fn scatter_reduce_two<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    dim: i64,
    index: View<'_, i64>,
    src: View<'_, T>,
    reduce: &str,
    include_self: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    type Join<C> = fn(C, C) -> C;
    let (start, join): (T::Compute, Join<T::Compute>) = match reduce {
        "sum" | "mean" => (T::Compute::ZERO, Arithmetic::add),
        "prod" => (T::Compute::ONE, Arithmetic::mul),
        "amax" => (T::Compute::LOWEST, maximum),
        "amin" => (T::Compute::HIGHEST, minimum),
        other => return Err(unknown_reduction(other)),
    };
    expect_sizes(out.sizes(), self_.sizes())?;
    let dense = contiguous_strides(self_.sizes());
    let places = Places::new(self_.sizes(), &dense, dim, &index)?;
    check_source(index.sizes(), src.sizes())?;
    // Reduce in the compute type over a row-major copy, then round once.
    let mut values: Scratch<T::Compute> = self_.iter().map(T::to_compute).collect();
    let mut counts = Scratch::filled(0i64, values.len());
    if let Some(places) = places {
        places.for_each(&index, src.strides(), |to, from| {
            let (value, count) = (&mut values[to as usize], &mut counts[to as usize]);
            if *count == 0 && !include_self {
                *value = start;
            }
            *count += 1;
            // SAFETY: a position of the source.
            *value = join(*value, unsafe { src.at(from) }.to_compute());
        })?;
    }
    if reduce == "mean" {
        for (value, &count) in values.iter_mut().zip(&counts) {
            let count = if count == 0 { 1 } else { count + i64::from(include_self) };
            *value = divide_down(*value, count);
        }
    }
    out.write(values.into_iter().map(T::from_compute))
}

/// The quotient; of integers, rounded toward minus infinity.
fn divide_down<C: Ordered>(value: C, count: i64) -> C {
    let count = C::from_scalar(Scalar::Int(count));
    let quotient = Arithmetic::div(value, count);
    let rest = Arithmetic::rem(value, count);
    let rounded_up = C::DTYPE.is_int() && rest.lt(C::ZERO);
    if rounded_up { Arithmetic::sub(quotient, C::ONE) } else { quotient }
}

/// The error of a word that names no reduction.
#[cold]
pub(crate) fn unknown_reduction(got: &str) -> Error {
    Error::value(format!("there is no reduction `{got}`")).with_help("use one of sum, prod, mean, amax, amin")
}

fn scatter_with<T: Element>(
    dim: i64,
    index: &View<'_, i64>,
    src: &View<'_, T>,
    mut out: ViewMut<'_, T>,
    join: impl Fn(T, T) -> T + Sync,
) -> Result<()> {
    let Some(places) = Places::new(out.sizes(), out.strides(), dim, index)? else { return Ok(()) };
    check_source(index.sizes(), src.sizes())?;
    places.check(index)?;
    let (source, target) = (Shared(src.as_ptr().cast_mut()), Shared(out.as_mut_ptr()));
    places.share_lines(index, src.strides(), &|row| {
        let [index_step, data_step, source_step] = row.axis.steps;
        // SAFETY: the rows are rows of the views, and each line along the dimension has one thread; each index is checked before
        // it is followed.
        unsafe {
            let indices = index.as_ptr().offset(row.index as isize);
            let (source, target) = (source.at(row.other).cast_const(), target.at(row.data));
            places.for_each_run(indices, index_step, row.axis.size, |to, first, length| {
                let source = source.offset((first * source_step) as isize);
                let target = target.offset(to + (first * data_step) as isize);
                if length == 1 {
                    *target = join(*target, *source);
                } else {
                    join_row(source, source_step, target, data_step, length as usize, &join);
                }
            })
        }
    })
}

/// Refuses an index that names elements outside `src`.
///
/// # Errors
/// As it says.
pub(crate) fn check_source(index: &[i64], src: &[i64]) -> Result<()> {
    let covers = src.len() == index.len() && index.iter().zip(src).all(|(i, s)| i <= s);
    if covers || numel(index) == 0 {
        return Ok(());
    }
    Err(Error::shape(format!(
        "the index of shape {} reaches outside src of shape {}",
        ShapeText(index),
        ShapeText(src)
    )))
}

/// The indexed dimension, if an index of the given sizes fits the data's.
///
/// # Errors
/// If it does not.
pub(crate) fn check_index(data: &[i64], dim: i64, index: &[i64]) -> Result<usize> {
    let dim = wrap_dim(dim, data.len())?;
    // A scalar counts as one element of one dimension, on either side.
    let sizes = if data.is_empty() { &[1][..] } else { data };
    let index_sizes = if index.is_empty() { &[1][..] } else { index };
    let fits = index_sizes.len() == sizes.len()
        && (0..sizes.len()).all(|other| other == dim || index_sizes[other] <= sizes[other]);
    if !fits && numel(index) > 0 {
        return Err(Error::shape(format!(
            "an index of the shape {} does not fit data of the shape {}",
            ShapeText(index),
            ShapeText(sizes)
        ))
        .with_help(format!("it needs as many dimensions, none larger except dimension {dim}")));
    }
    Ok(dim)
}

/// Fewest equal indices one after the other whose elements are moved as a row.
pub(in crate::cpu) const RUN: usize = 16;

/// Where the elements of an index tensor, of which there is at least one, lead in a data tensor of as many dimensions.
struct Places {
    dim: usize,
    /// Size of the indexed dimension.
    size: i64,
    /// Strides of the data.
    strides: Dims,
}

/// A stretch of the index: its positions in the index, in the data (at index 0 of the indexed
/// dimension) and in a third view of the index's shape.
struct Row {
    index: i64,
    data: i64,
    other: i64,
    axis: Axis<3>,
}

impl Places {
    /// The places of an index; `None` for one without elements, which may have any number of dimensions.
    fn new(sizes: &[i64], strides: &[i64], dim: i64, index: &View<'_, i64>) -> Result<Option<Places>> {
        let dim = check_index(sizes, dim, index.sizes())?;
        if index.numel() == 0 {
            return Ok(None);
        }
        // A scalar counts as one element of one dimension.
        let (sizes, strides) = if sizes.is_empty() { (&[1][..], &[1][..]) } else { (sizes, strides) };
        Ok(Some(Places { dim, size: sizes[dim], strides: strides.into() }))
    }

    /// Refuses indices out of range, before any is followed.
    fn check(&self, index: &View<'_, i64>) -> Result<()> {
        let strides = Dims::from_elem(0, index.dim());
        self.share_rows(index, &strides, &|row| {
            let (step, length) = (row.axis.steps[0], row.axis.size);
            // SAFETY: the row is one of the view.
            let at = |element: i64| unsafe { *index.as_ptr().offset((row.index + element * step) as isize) };
            let length = if step == 0 { length.min(1) } else { length };
            let misses = |element: i64| at(element) as u64 >= self.size as u64;
            // All at once, since a branch for each takes longer.
            if (0..length).fold(false, |any, element| any | misses(element)) {
                (0..length).try_for_each(|element| checked(at(element), self.size, self.dim).map(drop))?;
            }
            Ok(())
        })
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
    unsafe fn for_each_run(
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
    fn share_rows(
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
    fn share_lines(
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
    fn for_each(&self, index: &View<'_, i64>, other: &[i64], mut body: impl FnMut(i64, i64)) -> Result<()> {
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
