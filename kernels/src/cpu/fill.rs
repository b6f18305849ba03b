//! Tensors of values that follow from their positions alone.

use std::ops::{Add, Div, Mul, Range, Sub};

use num_complex::Complex64;
use opsmith_runtime::axes::{Axis, Walk, axes, merge};
use opsmith_runtime::layout::numel;
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::simd::widest_over;
use opsmith_runtime::{Element, Error, Result, Scalar, ViewMut};

use super::copy::with_slice;
use super::strides::expect_sizes;

/// Writes one value to every element.
pub(super) fn fill_with<T: Element>(out: &mut ViewMut<'_, T>, value: T) {
    if let Some(elements) = out.as_mut_slice() {
        let target = Shared(elements.as_mut_ptr());
        return parallel::for_each_range(elements.len(), CHUNK, |range| {
            // SAFETY: a range of the slice, which one thread has.
            unsafe { std::slice::from_raw_parts_mut(target.at(range.start as i64), range.len()) }.fill(value);
        });
    }
    let mut outer = merge(axes(out.sizes(), [out.strides()], |_| true));
    let row = outer.pop().unwrap_or(Axis { size: 1, steps: [1] });
    for [start] in Walk::new(&outer) {
        for element in 0..row.size {
            // SAFETY: the walk's positions are positions of the output.
            unsafe { out.set(start + element * row.steps[0], value) }
        }
    }
}

/// Numbers from `start` in steps of `step`: `arange(1, 2, 0.25)` is `[1, 1.25, 1.5, 1.75]`.
///
/// How many there are is inference's to say ([`crate::infer::arange`]).
///
/// # Errors
/// If the output has not one dimension.
pub fn arange<T: Element>(start: Scalar, step: Scalar, mut out: ViewMut<'_, T>) -> Result<()> {
    expect_sizes(out.sizes(), &[out.numel() as i64])?;
    if T::DTYPE.is_float() || T::DTYPE.is_complex() {
        let (start, step) = (start.to_f64(), step.to_f64());
        write_by_number(&mut out, move |i| T::from_scalar(Scalar::Float(start + i * step)));
    } else {
        let (start, step) = (start.to_i64(), step.to_i64());
        let value = move |i: i64| start.wrapping_add(i.wrapping_mul(step));
        write_by_number(&mut out, move |i| T::from_scalar(Scalar::Int(value(i as i64))));
    }
    Ok(())
}

/// Writes to each element of one dimension what follows from its number, which is one of those that `f64` has.
fn write_by_number<T: Element>(out: &mut ViewMut<'_, T>, value: impl Fn(f64) -> T + Copy + Sync) {
    let (count, step) = (out.numel(), out.strides().first().copied().unwrap_or(1));
    let target = Shared(out.as_mut_ptr());
    parallel::for_each_range(count, CHUNK, |range| {
        // Numbers of 32 bits, which vectors convert.
        for start in range.clone().step_by(CHUNK) {
            let (first, length) = (start as f64, CHUNK.min(range.end - start));
            let target = target.at(start as i64 * step);
            widest_over::<T, _>(
                #[inline(always)]
                move || {
                    for i in 0..length as i32 {
                        // SAFETY: a position of the output, which one thread has.
                        unsafe {
                            target.offset(i as isize * step as isize).write(value(first + f64::from(i)))
                        };
                    }
                },
            );
        }
    });
}

/// Evenly spaced numbers, both ends included: `linspace(0, 1, 3)` is `[0, 0.5, 1]`; one is `start`.
///
/// Source: PyTorch counts the second half from `end`, so that both ends are exact.
pub fn linspace<T: Element>(start: Scalar, end: Scalar, steps: i64, mut out: ViewMut<'_, T>) -> Result<()> {
    expect_sizes(out.sizes(), &[steps])?;
    if T::DTYPE.is_complex() {
        let between = Between::new(start.to_complex(), end.to_complex(), steps);
        write_by_number(&mut out, move |i| T::from_scalar(Scalar::Complex(between.number(i))));
    } else {
        let between = Between::new(start.to_complex().re, end.to_complex().re, steps);
        write_by_number(&mut out, move |i| T::from_scalar(Scalar::Float(between.number(i))));
    }
    Ok(())
}

/// Evenly spaced numbers, real or complex.
#[derive(Clone, Copy)]
struct Between<C> {
    start: C,
    end: C,
    step: C,
    /// The numbers of the last one, and of the first one that is counted from it.
    last: f64,
    middle: f64,
}

impl<C> Between<C>
where
    C: Copy + Add<Output = C> + Sub<Output = C> + Mul<f64, Output = C> + Div<f64, Output = C>,
{
    fn new(start: C, end: C, steps: i64) -> Between<C> {
        let (last, middle) = ((steps - 1) as f64, (steps / 2) as f64);
        Between { start, end, step: (end - start) / last.max(1.0), last, middle }
    }

    /// One of them, from whichever end is nearer.
    #[inline(always)]
    fn number(&self, i: f64) -> C {
        let (low, high) = (self.start + self.step * i, self.end - self.step * (self.last - i));
        if i == 0.0 {
            self.start
        } else if i < self.middle {
            low
        } else {
            high
        }
    }
}

impl Between<Complex64> {
    /// The power of a base to one of them.
    #[inline(never)]
    fn power(&self, base: f64, i: f64) -> Complex64 {
        let exponent = if i == 0.0 { self.start + self.step * 0.0 } else { self.number(i) };
        if exponent.im == 0.0 {
            Complex64::new(base.powf(exponent.re), 0.0)
        } else {
            Complex64::new(base, 0.0).powc(exponent)
        }
    }
}

/// The powers of `base` to evenly spaced numbers, both ends included: `logspace(0, 2, 3, 10)` is `[1, 10, 100]`.
pub fn logspace<T: Element>(
    start: Scalar,
    end: Scalar,
    steps: i64,
    base: f64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_sizes(out.sizes(), &[steps])?;
    let between = Between::new(start.to_complex(), end.to_complex(), steps);
    write_by_number(&mut out, move |i| T::from_scalar(Scalar::Complex(between.power(base, i))));
    Ok(())
}

/// Row and column of each element of a lower triangle, as two rows; `offset` moves the boundary to the right.
///
/// # Errors
/// If the output has another size.
pub fn tril_indices<T: Element>(row: i64, col: i64, offset: i64, out: ViewMut<'_, T>) -> Result<()> {
    let columns = move |at: i64| 0..at.saturating_add(offset).saturating_add(1).clamp(0, col);
    // Rows before have no element, and may be many.
    let first = if col <= 0 { row } else { 0i64.saturating_sub(offset).max(0) };
    write_indices((first..row).map(|at| (at, columns(at))), out)
}

/// Row and column of each element of an upper triangle, as two rows; `offset` moves the boundary to the right.
///
/// # Errors
/// If the output has another size.
pub fn triu_indices<T: Element>(row: i64, col: i64, offset: i64, out: ViewMut<'_, T>) -> Result<()> {
    let columns = move |at: i64| at.saturating_add(offset).clamp(0, col)..col;
    // Rows behind have no element, and may be many.
    let last = if col <= 0 { 0 } else { col.saturating_sub(offset).min(row) };
    write_indices((0..last).map(|at| (at, columns(at))), out)
}

/// Writes the numbers of the rows of places, then those of their columns.
fn write_indices<T: Element>(
    rows: impl Iterator<Item = (i64, Range<i64>)>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let number = |index: i64| T::from_scalar(Scalar::Int(index));
    let (half, mut done) = (out.numel() / 2, 0);
    with_slice(&mut out, |elements| {
        let (of_rows, of_columns) = elements.split_at_mut(half);
        for (row, columns) in rows {
            let places = done..done + (columns.end - columns.start).max(0) as usize;
            done = places.end;
            let (Some(rows), Some(numbers)) = (of_rows.get_mut(places.clone()), of_columns.get_mut(places))
            else {
                return;
            };
            rows.fill(number(row));
            std::iter::zip(numbers, columns).for_each(|(element, column)| *element = number(column));
        }
    })?;
    expect_sizes(out.sizes(), &[2, done as i64])
}

/// The identity matrix with `n` rows and columns.
pub fn eye<T: Element>(n: i64, out: ViewMut<'_, T>) -> Result<()> {
    eye_m(n, n, out)
}

/// Ones on the diagonal of a matrix with `n` rows and `m` columns.
pub fn eye_m<T: Element>(n: i64, m: i64, mut out: ViewMut<'_, T>) -> Result<()> {
    let one = T::from_scalar(Scalar::Int(1));
    // SAFETY: the values are a one and zeros, and a type's bits have its size.
    unsafe { eye_bits(n, m, std::mem::transmute_copy::<T, T::Bits>(&one), out.bits()) }
}

#[inline(never)]
fn eye_bits<B: Element>(n: i64, m: i64, one: B, mut out: ViewMut<'_, B>) -> Result<()> {
    expect_sizes(out.sizes(), &[n, m])?;
    fill_with(&mut out, B::default());
    let step = out.strides()[0] + out.strides()[1];
    for i in 0..n.min(m) {
        // SAFETY: the diagonal's positions are positions of the output.
        unsafe { out.set(i * step, one) }
    }
    Ok(())
}

/// Writes zeros above the lower triangle of matrices; `diagonal` moves the boundary to the right.
///
/// # Errors
/// If there are less than two dimensions.
pub fn tril<T: Element>(diagonal: i64, mut out: ViewMut<'_, T>) -> Result<()> {
    // SAFETY: elements are zero.
    triangle(unsafe { out.bits() }, diagonal, |end, columns| (0, end.saturating_add(1).clamp(0, columns)))
}

/// Writes zeros below the upper triangle of matrices; `diagonal` moves the boundary to the right.
///
/// # Errors
/// If there are less than two dimensions.
pub fn triu<T: Element>(diagonal: i64, mut out: ViewMut<'_, T>) -> Result<()> {
    // SAFETY: elements are zero.
    triangle(unsafe { out.bits() }, diagonal, |start, columns| (start.clamp(0, columns), columns))
}

/// Writes zeros, in each row of each matrix, outside the range of columns that `kept` gives for the diagonal's column and
/// the number of columns.
fn triangle<B: Element>(
    mut out: ViewMut<'_, B>,
    diagonal: i64,
    kept: fn(i64, i64) -> (i64, i64),
) -> Result<()> {
    let &[.., rows, columns] = out.sizes() else {
        return Err(Error::shape("a triangle needs at least two dimensions"));
    };
    let rank = out.dim();
    let (row_step, step) = (out.strides()[rank - 2], out.strides()[rank - 1]);
    let matrices = axes(out.sizes(), [out.strides()], |dim| dim < rank - 2);
    let target = Shared(out.as_mut_ptr());
    parallel::for_each_range_of(
        columns as usize,
        numel(out.sizes()) as usize / (columns as usize).max(1),
        |lines| {
            for line in lines {
                let (matrix, row) = (line / rows as usize, (line % rows as usize) as i64);
                let Some([start]) = Walk::starting_at(&matrices, matrix).next() else { return };
                let (first, last) = kept(row.saturating_add(diagonal), columns);
                for columns in [0..first, last..columns] {
                    let place = target.at(start + row * row_step + columns.start * step);
                    let length = columns.count();
                    // SAFETY: the walk's positions are positions of the output, and a row has one thread.
                    unsafe {
                        if step == 1 {
                            std::slice::from_raw_parts_mut(place, length).fill(B::default());
                        } else {
                            (0..length as i64)
                                .for_each(|at| place.offset((at * step) as isize).write(B::default()));
                        }
                    }
                }
            }
        },
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::Array;

    #[test]
    fn sequences() {
        let mut out = Array::zeros(&[4]);
        arange::<f32>(Scalar::Int(1), Scalar::Float(0.25), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1.0, 1.25, 1.5, 1.75]);
        let mut out = Array::zeros(&[3]);
        arange::<i64>(Scalar::Int(5), Scalar::Int(-2), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [5, 3, 1]);
        linspace::<i64>(Scalar::Int(0), Scalar::Int(5), 3, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0, 2, 5]);
        let mut out = Array::zeros(&[1]);
        linspace::<f64>(Scalar::Int(7), Scalar::Int(9), 1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [7.0]);
    }

    /// Of several chunks, in threads and at other steps, with numbers around both ends and the middle.
    #[test]
    fn long_sequences() {
        let steps = 3 * CHUNK as i64 + 5;
        let middle = steps / 2;
        for threads in [1, 2, 5] {
            parallel::set_num_threads(threads).unwrap();
            for mut out in [Array::<f32>::zeros(&[steps]), Array::zeros(&[2 * steps]).halved(0)] {
                linspace(Scalar::Float(-1.0), Scalar::Float(0.7), steps, out.view_mut()).unwrap();
                let (step, all) = (1.7 / (steps - 1) as f64, out.to_vec());
                for i in [0, 1, middle - 1, middle, CHUNK as i64, steps - 2, steps - 1] {
                    let expected =
                        if i < middle { -1.0 + step * i as f64 } else { 0.7 - step * (steps - 1 - i) as f64 };
                    assert_eq!(all[i as usize], expected as f32, "{i}");
                }
                arange(Scalar::Float(0.5), Scalar::Int(-2), out.view_mut()).unwrap();
                assert!(out.to_vec().into_iter().eq((0..steps).map(|i| (0.5 - 2.0 * i as f64) as f32)));
            }
            let mut out = Array::<i64>::zeros(&[steps]);
            arange(Scalar::Int(7), Scalar::Int(3), out.view_mut()).unwrap();
            assert!(out.to_vec().into_iter().eq((0..steps).map(|i| 7 + 3 * i)));
        }
    }

    /// Rows without elements are not walked through.
    #[test]
    fn triangles_of_far_rows() {
        let (most, mut out) = (i64::MAX, Array::<i64>::zeros(&[2, 1]));
        tril_indices(most, 1, 1 - most, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [most - 1, 0]);
        triu_indices(most, most, most - 1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0, most - 1]);
        let mut none = Array::<i64>::zeros(&[2, 0]);
        tril_indices(most, 0, 0, none.view_mut()).unwrap();
        triu_indices(most, 0, 0, none.view_mut()).unwrap();
    }

    #[test]
    fn matrices() {
        let mut out = Array::zeros(&[3, 2]).permuted(&[1, 0]);
        eye_m::<u8>(2, 3, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 0, 0, 0, 1, 0]);
        let ones = Array::new(&[1, 3, 2], [1u8; 6]).permuted(&[0, 2, 1]);
        let mut out = ones.clone();
        tril(i64::MAX, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1; 6]);
        tril(0, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 0, 0, 1, 1, 0]);
        let mut out = ones.clone();
        triu(i64::MIN, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1; 6]);
        triu(1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0, 1, 1, 0, 0, 1]);
        let mut out = Array::<i32>::zeros(&[2, 3]);
        tril_indices(2, 2, 0, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0, 1, 1, 0, 0, 1]);
        triu_indices(2, 2, 0, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0, 0, 1, 0, 1, 1]);
        assert!(tril_indices(2, 3, 2, out.view_mut()).is_err());
        assert!(tril_indices(1, 2, 0, out.view_mut()).is_err());
    }

    #[test]
    fn triangles_of_many_rows_in_threads() {
        for threads in [1, 2, 5] {
            parallel::set_num_threads(threads).unwrap();
            let mut out = Array::new(&[3, 90, 100], (0..27_000).map(|_| 1i32));
            tril(5, out.view_mut()).unwrap();
            let expected = (0..27_000).map(|at| i32::from(at % 100 <= at / 100 % 90 + 5));
            assert!(out.to_vec().into_iter().eq(expected));
        }
    }
}
