//! Single elements at indices along one dimension.
//!
//! The index tensor has as many dimensions as the data. The element of the index at `(i, j, k)` names
//! the place along `dim`; the other coordinates are its own.

use std::slice::from_raw_parts;

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::{contiguous_strides, numel, wrap_dim};
use opsmith_runtime::parallel::Shared;
use opsmith_runtime::{Dims, Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::line;
use super::places::Places;
use crate::cpu::copy::{copy_row, join_row};
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
            if index_step == 1 && data_step == 0 {
                let indices = from_raw_parts(indices, row.axis.size as usize);
                return places.for_each_checked(indices, |first, indices| {
                    let target = target.offset((first * out_step) as isize);
                    line::copy_at(source, places.strides[places.dim], places.size, indices, target, out_step);
                });
            }
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
        // SAFETY: the rows are rows of the views, and each line along the dimension has one thread; the indices were checked.
        unsafe {
            let indices = index.as_ptr().offset(row.index as isize);
            let (source, target) = (source.at(row.other).cast_const(), target.at(row.data));
            if index_step == 1 && data_step == 0 {
                let indices = from_raw_parts(indices, row.axis.size as usize);
                line::join(source, source_step, indices, target, places.strides[places.dim], &join);
                return Ok(());
            }
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
