//! Discrete Fourier transforms.
//!
//! Each dimension is transformed in double precision, and rounded once. Several lines are transformed side by side (`lines`, `plan`), so
//! that vectors hold one number of each; a long line is a matrix of shorter ones (`long`). An even number of reals is half as many
//! complex numbers (`real`).

mod lines;
pub(super) mod long;
mod plan;
mod real;

use opsmith_runtime::layout::{contiguous_strides, wrap_dim};
use opsmith_runtime::{Dims, Error, Result, Scratch, View, ViewMut, parallel};

use self::lines::{Lines, Places};
use self::plan::{Direction, Plan};
use self::real::Halves;
use super::factor::{Field, Real};
use super::strides::expect_sizes;

/// The transform of real numbers over the given dimensions. With `onesided` the last of them has only
/// the first half (rounded down, plus one) of the frequencies; the others are their conjugates.
///
/// `normalization` divides by nothing (0), the root (1) or all (2) of the number of elements.
///
/// # Errors
/// If a dimension is out of range, or the normalisation another number.
pub fn fft_r2c<T: Field<Size: Real>>(
    self_: View<'_, T::Size>,
    dim: &[i64],
    normalization: i64,
    onesided: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let dims = distinct(dim, self_.dim())?;
    let mut sizes = Dims::from_slice(self_.sizes());
    if let (true, Some(&last)) = (onesided, dims.last()) {
        sizes[last] = half_of(sizes[last]);
    }
    expect_sizes(out.sizes(), &sizes)?;
    if dims.iter().any(|&dim| self_.sizes()[dim] == 0) {
        return Err(no_numbers());
    }
    let scale = scale_of(self_.sizes(), &dims, normalization)?;
    let Some((&last, others)) = dims.split_last() else { return out.write(self_.iter().map(T::of)) };
    let length = self_.size(last);
    let from =
        Places::of_reals(self_.as_ptr(), self_.sizes(), self_.strides(), last, length.is_multiple_of(2));
    let kind = Kind::FromReals { onesided };
    let job = Job { length, direction: Direction::Forward, kind, scale: own_scale(others, scale) };
    // SAFETY: the views vouch for their elements, of which the output's are borrowed uniquely.
    unsafe {
        job.run(&from, &Places::of_numbers(out.as_mut_ptr(), &sizes, out.strides(), last));
        along_others(out.as_mut_ptr(), &sizes, out.strides(), others, Direction::Forward, scale);
    }
    Ok(())
}

/// The inverse transform that gives real numbers, `last_dim_size` of them along the last of the given
/// dimensions, from the first half of the frequencies.
///
/// # Errors
/// If a dimension is out of range, there are too few frequencies, or the normalisation is another
/// number.
pub fn fft_c2r<T: Field<Size: Real>>(
    self_: View<'_, T>,
    dim: &[i64],
    normalization: i64,
    last_dim_size: i64,
    mut out: ViewMut<'_, T::Size>,
) -> Result<()> {
    let dims = distinct(dim, self_.dim())?;
    let last = last_to_reals(&dims, self_.sizes(), last_dim_size)?;
    let mut sizes = Dims::from_slice(self_.sizes());
    sizes[last] = last_dim_size;
    let scale = scale_of(&sizes, &dims, normalization)?;
    expect_sizes(out.sizes(), &sizes)?;
    let length = last_dim_size as usize;
    let to = Places::of_reals(out.as_mut_ptr(), &sizes, out.strides(), last, length.is_multiple_of(2));
    // Higher frequencies are not read.
    sizes[last] = half_of(last_dim_size);
    let others = &dims[..dims.len() - 1];
    let job = Job { length, direction: Direction::Inverse, kind: Kind::ToReals, scale };
    let read = |dim| Places::of_numbers(self_.as_ptr().cast_mut(), &sizes, self_.strides(), dim);
    let Some((&first, rest)) = others.split_last() else {
        // SAFETY: the views vouch for their elements, of which the output's are borrowed uniquely.
        unsafe { job.run(&read(last), &to) };
        return Ok(());
    };
    let strides = contiguous_strides(&sizes);
    let mut between = Scratch::filled(T::NONE, sizes.iter().product::<i64>() as usize);
    let data = between.as_mut_ptr();
    let complex = Job { length: sizes[first] as usize, kind: Kind::Numbers, scale: 1.0, ..job };
    // SAFETY: as above; there is room for all that is between the transforms.
    unsafe {
        complex.run(&read(first), &Places::of_numbers(data, &sizes, &strides, first));
        along_others(data, &sizes, &strides, rest, Direction::Inverse, 1.0);
        job.run(&Places::of_numbers(data, &sizes, &strides, last), &to);
    }
    Ok(())
}

/// The transform of complex numbers over the given dimensions, or its inverse.
///
/// # Errors
/// If a dimension is out of range, or the normalisation another number.
pub fn fft_c2c<T: Field<Size: Real>>(
    self_: View<'_, T>,
    dim: &[i64],
    normalization: i64,
    forward: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let dims = distinct(dim, self_.dim())?;
    let sizes = self_.sizes();
    expect_sizes(out.sizes(), sizes)?;
    let scale = scale_of(sizes, &dims, normalization)?;
    let direction = if forward { Direction::Forward } else { Direction::Inverse };
    let Some((&last, others)) = dims.split_last() else { return out.write(self_.iter()) };
    let from = Places::of_numbers(self_.as_ptr().cast_mut(), sizes, self_.strides(), last);
    let scale_of_last = own_scale(others, scale);
    let job = Job { length: self_.size(last), direction, kind: Kind::Numbers, scale: scale_of_last };
    // SAFETY: the views vouch for their elements, of which the output's are borrowed uniquely.
    unsafe {
        job.run(&from, &Places::of_numbers(out.as_mut_ptr(), sizes, out.strides(), last));
        along_others(out.as_mut_ptr(), sizes, out.strides(), others, direction, scale);
    }
    Ok(())
}

/// The number of frequencies of which the others of so many are conjugates.
pub(crate) fn half_of(size: i64) -> i64 {
    size / 2 + 1
}

/// The error of a dimension without elements.
#[cold]
pub(crate) fn no_numbers() -> Error {
    Error::shape("there is no transform of no numbers")
        .with_help("transform over dimensions of at least one element")
}

/// The dimension along which a transform gives real numbers.
///
/// # Errors
/// If there is none, or it has too few frequencies.
pub(crate) fn last_to_reals(dims: &[usize], sizes: &[i64], last_dim_size: i64) -> Result<usize> {
    let Some(&last) = dims.last() else {
        return Err(Error::value("a transform to real numbers needs a dimension"));
    };
    let half = half_of(last_dim_size);
    if last_dim_size < 1 || sizes[last] < half {
        return Err(Error::value(format!(
            "{last_dim_size} real numbers come from {half} frequencies, there are {}",
            sizes[last]
        )));
    }
    Ok(last)
}

/// The factor of results of a transform over dimensions of the given sizes.
///
/// # Errors
/// If the normalisation is another number.
pub(crate) fn scale_of(sizes: &[i64], dims: &[usize], normalization: i64) -> Result<f64> {
    let count = dims.iter().map(|&dim| sizes[dim]).product::<i64>() as f64;
    match normalization {
        0 => Ok(1.0),
        1 => Ok(1.0 / count.sqrt()),
        2 => Ok(1.0 / count),
        other => Err(Error::value(format!("there is no normalisation {other}"))
            .with_help("use 0 (none), 1 (the root of the number of elements) or 2 (the number)")),
    }
}

/// Dimensions counted from the first.
///
/// # Errors
/// If one is out of range or given twice.
pub(crate) fn distinct(dims: &[i64], rank: usize) -> Result<Scratch<usize>> {
    if rank == 0 && !dims.is_empty() {
        return Err(Error::shape("a tensor without dimensions cannot be transformed"));
    }
    let wrapped: Scratch<usize> = dims.iter().map(|&dim| wrap_dim(dim, rank)).collect::<Result<_>>()?;
    match (1..dims.len()).find(|&at| wrapped[..at].contains(&wrapped[at])) {
        Some(at) => Err(Error::value(format!("dimension {} is given twice", dims[at]))),
        None => Ok(wrapped),
    }
}

/// Lines that are transformed side by side.
pub(super) const TOGETHER: usize = 16;

/// Numbers that a thread transforms at least.
const NUMBERS: usize = 1 << 12;

/// Numbers of the lines of a transform.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Numbers,
    /// From reals to all frequencies or the first half of them.
    FromReals {
        onesided: bool,
    },
    /// From the first half of the frequencies to reals.
    ToReals,
}

/// A transform along one dimension.
#[derive(Clone, Copy)]
struct Job {
    /// Numbers of a line: reals, if one side is.
    length: usize,
    direction: Direction,
    kind: Kind,
    /// The factor of results.
    scale: f64,
}

impl Job {
    /// The length of the transforms of complex numbers.
    fn core(&self) -> usize {
        if self.kind != Kind::Numbers && self.length.is_multiple_of(2) {
            self.length / 2
        } else {
            self.length
        }
    }

    /// Transforms all lines.
    ///
    /// # Safety
    /// The places are valid for reads and for writes, no other thread uses the latter, and those of a line share memory with
    /// none but the same line of the other side.
    unsafe fn run<P: Real>(&self, from: &Places<P>, to: &Places<P>) {
        let (count, core) = (from.count(), self.core());
        if count == 0 || core == 0 {
            return;
        }
        if let Some(split) = long::split(core, count) {
            // SAFETY: the caller's promise.
            return unsafe { long::run(self, split, from, to) };
        }
        let plan = Plan::new(core, self.direction);
        let halves = Halves::of(self);
        let most = TOGETHER.min(count);
        let chunk = NUMBERS.div_ceil(core * most);
        parallel::for_each_range(count.div_ceil(TOGETHER), chunk, |range| {
            let mut lines = Lines::new(plan.padded(), self.length + 1);
            for first in range.map(|group| group * TOGETHER) {
                let together = TOGETHER.min(count - first);
                // SAFETY: the caller's promise; each line is one thread's.
                unsafe {
                    lines.gather(&from.group(first, together), halves.places_in);
                    halves.before(&mut lines);
                    plan.run(&mut lines);
                    halves.after(&mut lines);
                    lines.scatter(&to.group(first, together), halves.places_out, self.scale);
                }
            }
        });
    }
}

/// Transforms numbers in place along several dimensions; their results have the factor.
///
/// # Safety
/// The elements are valid for reads and writes, and no other thread uses them.
unsafe fn along_others<T: Field<Size: Real>>(
    data: *mut T,
    sizes: &[i64],
    strides: &[i64],
    dims: &[usize],
    direction: Direction,
    scale: f64,
) {
    for (at, &dim) in dims.iter().enumerate().rev() {
        let places = Places::of_numbers(data, sizes, strides, dim);
        let scale = own_scale(&dims[..at], scale);
        let job = Job { length: sizes[dim] as usize, direction, kind: Kind::Numbers, scale };
        // SAFETY: the caller's promise; the lines of a dimension share no element.
        unsafe { job.run(&places, &places) };
    }
}

/// The factor of a transform's results, which is that of the last of several: the one before no others.
fn own_scale(others: &[usize], scale: f64) -> f64 {
    if others.is_empty() { scale } else { 1.0 }
}

#[cfg(test)]
mod tests;
