//! Discrete Fourier transforms.
//!
//! Everything is computed in double precision and rounded once. Several lines are transformed side by side (`plan`), so that
//! vectors hold one number of each.

mod plan;

use num_complex::Complex64;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{Dims, Element, Error, Result, Scalar, Scratch, View, ViewMut};

use self::plan::{Direction, Lines, Plan};
use super::strides::expect_sizes;

/// The transform of real numbers over the given dimensions. With `onesided` the last of them has only
/// the first half (rounded down, plus one) of the frequencies; the others are their conjugates.
///
/// `normalization` divides by nothing (0), the root (1) or all (2) of the number of elements.
///
/// # Errors
/// If a dimension is out of range, or the normalisation another number.
pub fn fft_r2c<T: Element>(
    self_: View<'_, T::Real>,
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
    let mut array = Array::of(&self_);
    array.transform(&dims, Direction::Forward);
    array.scale(&dims, normalization)?;
    let cut = dims.last().copied().filter(|_| onesided);
    array.write(cut.map(|dim| (dim, sizes[dim])), &mut out)
}

/// The inverse transform that gives real numbers, `last_dim_size` of them along the last of the given
/// dimensions, from the first half of the frequencies.
///
/// # Errors
/// If a dimension is out of range, there are too few frequencies, or the normalisation is another
/// number.
pub fn fft_c2r<T: Element>(
    self_: View<'_, T>,
    dim: &[i64],
    normalization: i64,
    last_dim_size: i64,
    mut out: ViewMut<'_, T::Real>,
) -> Result<()> {
    let dims = distinct(dim, self_.dim())?;
    let last = last_to_reals(&dims, self_.sizes(), last_dim_size)?;
    let mut array = Array::of(&self_);
    array.transform(&dims[..dims.len() - 1], Direction::Inverse);
    array = array.with_conjugates(last, last_dim_size);
    array.transform(&[last], Direction::Inverse);
    array.scale(&dims, normalization)?;
    expect_sizes(out.sizes(), &array.sizes)?;
    array.write(None, &mut out)
}

/// The transform of complex numbers over the given dimensions, or its inverse.
///
/// # Errors
/// If a dimension is out of range, or the normalisation another number.
pub fn fft_c2c<T: Element>(
    self_: View<'_, T>,
    dim: &[i64],
    normalization: i64,
    forward: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let dims = distinct(dim, self_.dim())?;
    expect_sizes(out.sizes(), self_.sizes())?;
    let mut array = Array::of(&self_);
    array.transform(&dims, if forward { Direction::Forward } else { Direction::Inverse });
    array.scale(&dims, normalization)?;
    array.write(None, &mut out)
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

/// Complex numbers in row-major order.
struct Array {
    elements: Scratch<Complex64>,
    sizes: Dims,
}

impl Array {
    fn of<T: Element>(view: &View<'_, T>) -> Array {
        let elements = view.iter().map(|element| element.to_scalar().to_complex()).collect();
        Array { elements, sizes: view.sizes().into() }
    }

    fn transform(&mut self, dims: &[usize], direction: Direction) {
        for &dim in dims {
            let length = self.sizes[dim] as usize;
            // Neighbours along a line are so far apart, and so many lines lie side by side.
            let step = self.sizes[dim + 1..].iter().product::<i64>() as usize;
            if self.elements.is_empty() {
                return;
            }
            let plan = Plan::new(length, direction);
            let beside = if step == 1 { self.elements.len() / length } else { step };
            let mut lines = Lines::new(&plan, TOGETHER.min(beside));
            // Of the last dimension, lines follow each other.
            let (across, along) = if step == 1 { (length, 1) } else { (1, step) };
            let block = if step == 1 { length * TOGETHER } else { length * step };
            for block in self.elements.chunks_mut(block) {
                let all = block.len() / length;
                for first in (0..all).step_by(TOGETHER) {
                    let count = TOGETHER.min(all - first);
                    lines.gather(&block[first * across..], count, across, along);
                    plan.run(&mut lines);
                    lines.scatter(&mut block[first * across..], across, along);
                }
            }
        }
    }

    fn scale(&mut self, dims: &[usize], normalization: i64) -> Result<()> {
        if normalization == 0 {
            return Ok(());
        }
        let scale = scale_of(&self.sizes, dims, normalization)?;
        self.elements.iter_mut().for_each(|element| *element *= scale);
        Ok(())
    }

    /// The first half of a dimension's frequencies, and the others as their conjugates.
    fn with_conjugates(&self, dim: usize, length: i64) -> Array {
        let mut sizes = self.sizes.clone();
        sizes[dim] = length;
        let inner = self.sizes[dim + 1..].iter().product::<i64>() as usize;
        let (own, length) = (self.sizes[dim] as usize, length as usize);
        let mut elements = Scratch::with_capacity(sizes.iter().product::<i64>() as usize);
        for block in self.elements.chunks_exact((own * inner).max(1)) {
            for frequency in 0..length {
                let mirrored = frequency > length / 2;
                let from = if mirrored { length - frequency } else { frequency };
                let row = &block[from * inner..(from + 1) * inner];
                elements.extend(row.iter().map(|value| if mirrored { value.conj() } else { *value }));
            }
        }
        Array { elements, sizes }
    }

    /// Writes the elements; with a dimension and a size, the first ones along it.
    fn write<T: Element>(&self, cut: Option<(usize, i64)>, out: &mut ViewMut<'_, T>) -> Result<()> {
        let number = |value: &Complex64| T::from_scalar(Scalar::Complex(*value));
        let Some((dim, size)) = cut else { return out.write(self.elements.iter().map(number)) };
        let inner = self.sizes[dim + 1..].iter().product::<i64>() as usize;
        let (whole, kept) = (self.sizes[dim] as usize * inner, size as usize * inner);
        let blocks = self.elements.chunks_exact(whole.max(1)).flat_map(|block| &block[..kept]);
        out.write(blocks.map(number))
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::cpu::testing::{Array as Strided, scattered};

    fn naive(values: &[Complex64], sign: f64) -> Vec<Complex64> {
        let length = values.len();
        (0..length)
            .map(|k| {
                (0..length)
                    .map(|j| {
                        let angle = sign * 2.0 * PI * ((j * k) % length) as f64 / length as f64;
                        values[j] * Complex64::from_polar(1.0, angle)
                    })
                    .sum()
            })
            .collect()
    }

    fn complex(count: usize) -> Vec<Complex64> {
        scattered(2 * count)
            .collect::<Vec<_>>()
            .chunks(2)
            .map(|pair| Complex64::new(pair[0], pair[1]))
            .collect()
    }

    #[track_caller]
    fn assert_close(got: &[Complex64], expected: &[Complex64]) {
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).norm() < 1e-11, "{got} instead of {expected}");
        }
    }

    #[test]
    fn every_length() {
        for length in [1, 2, 3, 4, 5, 7, 8, 12, 17, 64, 100] {
            let values = complex(length as usize);
            let input = Strided::new(&[length], values.iter().rev().copied()).reversed(0);
            let mut out = Strided::zeros(&[length]);
            fft_c2c(input.view(), &[0], 0, true, out.view_mut()).unwrap();
            assert_close(&out.to_vec(), &naive(&values, -1.0));
            let mut back = Strided::zeros(&[length]);
            fft_c2c(out.view(), &[-1], 2, false, back.view_mut()).unwrap();
            assert_close(&back.to_vec(), &values);
        }
    }

    #[test]
    fn real_numbers_there_and_back() {
        for sizes in [[3, 4, 6], [2, 5, 7]] {
            let count = sizes.iter().product::<i64>() as usize;
            let input = Strided::new(&sizes, scattered(count));
            let mut whole = Strided::<Complex64>::zeros(&sizes);
            fft_r2c(input.view(), &[2, 1], 0, false, whole.view_mut()).unwrap();
            let half_sizes = [sizes[0], sizes[1] / 2 + 1, sizes[2]];
            let mut half = Strided::<Complex64>::zeros(&half_sizes);
            fft_r2c(input.view(), &[2, 1], 0, true, half.view_mut()).unwrap();
            for at in crate::cpu::testing::indices(&half_sizes) {
                assert!((half.at(&at) - whole.at(&at)).norm() < 1e-12);
            }
            let mut back = Strided::<f64>::zeros(&sizes);
            fft_c2r(half.view(), &[2, 1], 2, sizes[1], back.view_mut()).unwrap();
            crate::cpu::testing::assert_close(&back.to_vec(), &input.to_vec(), 1e-12);
        }
    }

    #[test]
    fn parameters_out_of_range_are_errors() {
        let input = Strided::new(&[2], complex(2));
        let mut out = Strided::<Complex64>::zeros(&[2]);
        assert!(fft_c2c(input.view(), &[1], 0, true, out.view_mut()).is_err());
        assert!(fft_c2c(input.view(), &[0, -1], 0, true, out.view_mut()).is_err());
        assert!(fft_c2c(input.view(), &[0], 3, true, out.view_mut()).is_err());
        let mut real = Strided::<f64>::zeros(&[4]);
        assert!(fft_c2r(input.view(), &[0], 0, 4, real.view_mut()).is_err());
    }
}
