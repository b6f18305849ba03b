//! Borders whose elements are copies of others: mirrored, or the nearest ones.
//!
//! `padding` has two numbers a dimension, before and after, the last dimension first; negative ones cut.

use std::ops::Range;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Error, Result, Scratch, Untyped, View, ViewMut};

use super::rounded::held;
use super::strides::{expect_operand, expect_sizes};
use crate::infer::padded_sizes;

/// `self` with a border that mirrors it without repeating the edge: `[1, 2, 3]` with 2 on both sides
/// is `[3, 2, 1, 2, 3, 2, 1]`.
///
/// # Errors
/// If a border is as large as its dimension or the numbers do not fit the shape.
pub fn reflection_pad<T: Element>(
    self_: View<'_, T>,
    padding: &[i64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    pad(&self_.bits(), padding, mirror, unsafe { out.bits() })
}

/// The gradient of [`reflection_pad`].
///
/// # Errors
/// As [`reflection_pad`].
pub fn reflection_pad_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    padding: &[i64],
    out: ViewMut<'_, T>,
) -> Result<()> {
    pad_backward(&grad_output, self_.sizes(), padding, mirror, out)
}

/// `self` with a border that repeats its edge: `[1, 2, 3]` with 2 on both sides is
/// `[1, 1, 1, 2, 3, 3, 3]`.
///
/// # Errors
/// If the numbers do not fit the shape.
pub fn replication_pad<T: Element>(
    self_: View<'_, T>,
    padding: &[i64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    pad(&self_.bits(), padding, nearest, unsafe { out.bits() })
}

/// The gradient of [`replication_pad`].
///
/// # Errors
/// As [`replication_pad`].
pub fn replication_pad_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    padding: &[i64],
    out: ViewMut<'_, T>,
) -> Result<()> {
    pad_backward(&grad_output, self_.sizes(), padding, nearest, out)
}

/// `self` with a border that goes on at the other side: `[1, 2, 3]` with 2 on both sides is
/// `[2, 3, 1, 2, 3, 1, 2]`.
///
/// # Errors
/// If a border is larger than its dimension or the numbers do not fit the shape.
pub fn circular_pad<T: Element>(self_: View<'_, T>, pad: &[i64], mut out: ViewMut<'_, T>) -> Result<()> {
    // SAFETY: elements are moved.
    self::pad(&self_.bits(), pad, around, unsafe { out.bits() })
}

/// The gradient of [`circular_pad`].
///
/// # Errors
/// As [`circular_pad`].
pub fn circular_pad_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    pad: &[i64],
    out: ViewMut<'_, T>,
) -> Result<()> {
    pad_backward(&grad_output, self_.sizes(), pad, around, out)
}

/// The element that a place outside a dimension shows, of which a range is not cut off.
pub(crate) type Place = fn(place: i64, size: i64, kept: Range<i64>) -> Result<i64>;

pub(crate) fn around(place: i64, _size: i64, kept: Range<i64>) -> Result<i64> {
    let count = kept.end - kept.start;
    let inside = match place {
        before if before < kept.start => before + count,
        after if after >= kept.end => after - count,
        inside => inside,
    };
    if !kept.contains(&inside) {
        return Err(Error::value(format!(
            "a border that goes on at the other side must not be larger than its dimension of size {count}"
        )));
    }
    Ok(inside)
}

pub(crate) fn mirror(place: i64, size: i64, _kept: Range<i64>) -> Result<i64> {
    let inside = match place {
        before if before < 0 => -before,
        after if after >= size => 2 * (size - 1) - after,
        inside => inside,
    };
    if !(0..size).contains(&inside) {
        return Err(Error::value(format!(
            "a mirrored border must be smaller than its dimension of size {size}"
        )));
    }
    Ok(inside)
}

pub(crate) fn nearest(place: i64, size: i64, _kept: Range<i64>) -> Result<i64> {
    if size == 0 {
        return Err(Error::shape("a dimension without elements has no edge to repeat"));
    }
    Ok(place.clamp(0, size - 1))
}

/// Refuses an output of another shape than the padded one, and borders that show elements which are not there: a border's
/// outermost place is the first to.
///
/// # Errors
/// If the numbers do not fit the shape, or those of [`Place`].
pub(crate) fn check_border(sizes: &[i64], padding: &[i64], out_sizes: &[i64], place: Place) -> Result<()> {
    expect_operand("an operand", out_sizes, &padded_sizes(sizes, padding)?)?;
    for (number, numbers) in padding.chunks_exact(2).enumerate() {
        let (before, after) = (numbers[0], numbers[1]);
        let size = sizes[sizes.len() - 1 - number];
        let kept = (-before).max(0)..size + after.min(0);
        place(-before, size, kept.clone())?;
        place(size + after - 1, size, kept)?;
    }
    Ok(())
}

/// For each padded dimension from the first on, the element that each place of the output shows.
fn sources(sizes: &[i64], padding: &[i64], place: Place) -> Result<Scratch<Scratch<i64>>> {
    let padded = padding.len() / 2;
    let first = sizes.len() - padded;
    (first..sizes.len())
        .map(|dim| {
            let numbers = 2 * (sizes.len() - 1 - dim);
            let (before, after) = (padding[numbers], padding[numbers + 1]);
            let size = sizes[dim];
            let kept = (-before).max(0)..size + after.min(0);
            (-before..size + after).map(|at| place(at, size, kept.clone())).collect()
        })
        .collect()
}

/// Calls `body` with the number of each element of the output and of the element it shows, both
/// counted in row-major order.
fn for_each_pair(
    sizes: &[i64],
    padding: &[i64],
    out_sizes: &[i64],
    place: Place,
    mut body: impl FnMut(usize, usize),
) -> Result<()> {
    expect_operand("an operand", out_sizes, &padded_sizes(sizes, padding)?)?;
    let sources = sources(sizes, padding, place)?;
    let padded = sources.len();
    let (outer, plane) = sizes.split_at(sizes.len() - padded);
    let plane_size = plane.iter().product::<i64>();
    let mut number = 0;
    for outer in 0..outer.iter().product::<i64>() {
        // Rows of the output plane: every combination of places but the last dimension's.
        let (last, others) =
            sources.split_last().map_or((&[][..], &[][..]), |(last, rest)| (&last[..], rest));
        let rows: usize = others.iter().map(|list| list.len()).product();
        for row in 0..rows {
            let mut rest = row;
            let mut start = 0;
            let mut step = plane[padded - 1];
            for dim in (0..others.len()).rev() {
                start += others[dim][rest % others[dim].len()] * step;
                rest /= others[dim].len();
                step *= plane[dim];
            }
            for &at in last {
                body(number, (outer * plane_size + start + at) as usize);
                number += 1;
            }
        }
    }
    Ok(())
}

fn pad<B: Element>(
    input: &View<'_, B>,
    padding: &[i64],
    place: Place,
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    let elements = input.to_contiguous();
    let mut result = Scratch::with_capacity(out.numel());
    for_each_pair(input.sizes(), padding, out.sizes(), place, |_, from| result.push(elements[from]))?;
    out.write(result)
}

fn pad_backward<T: Element<Compute: Arithmetic>>(
    grad: &View<'_, T>,
    sizes: &[i64],
    padding: &[i64],
    place: Place,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_sizes(out.sizes(), sizes)?;
    let grad_elements = grad.to_contiguous();
    let mut sums = Scratch::filled(T::Compute::ZERO, out.numel());
    for_each_pair(sizes, padding, grad.sizes(), place, |number, from| {
        sums[from] = held::<T>(Arithmetic::add(sums[from], grad_elements[number].to_compute()));
    })?;
    out.write(sums.into_iter().map(T::from_compute))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, assert_close, scattered};

    #[test]
    fn borders() {
        let x = Array::new(&[1, 3], [1, 2, 3]).reversed(1).reversed(1);
        let mut out = Array::zeros(&[1, 7]);
        reflection_pad(x.view(), &[2, 2], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [3, 2, 1, 2, 3, 2, 1]);
        replication_pad(x.view(), &[2, 2], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 1, 1, 2, 3, 3, 3]);
        circular_pad(x.view(), &[2, 2], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [2, 3, 1, 2, 3, 1, 2]);
        let mut out = Array::zeros(&[1, 8]);
        assert!(reflection_pad(x.view(), &[3, 2], out.view_mut()).is_err());
        let mut out = Array::zeros(&[1, 9]);
        assert!(circular_pad(x.view(), &[4, 2], out.view_mut()).is_err());
        assert!(reflection_pad(x.view(), &[3, 3], out.view_mut()).is_err());
        let x = Array::new(&[1, 2, 3], [1, 2, 3, 4, 5, 6]);
        let mut out = Array::zeros(&[1, 3, 3]);
        replication_pad(x.view(), &[-1, 1, 1, 0], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [2, 3, 3, 2, 3, 3, 5, 6, 6]);
        assert!(replication_pad(x.view(), &[1], out.view_mut()).is_err());
    }

    #[test]
    fn gradients_are_transposes() {
        let dense = |sizes: &[i64]| Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize));
        let (x, dy) = (dense(&[2, 3, 4, 3]), dense(&[2, 5, 3, 6]).reversed(3));
        let (mut y, mut dx) = (Array::zeros(&[2, 5, 3, 6]), Array::zeros(&[2, 3, 4, 3]));
        let padding = [1, 2, -1, 0, 2, 0];
        let product = |a: &Array<f64>, b: &Array<f64>| -> f64 {
            a.to_vec().iter().zip(b.to_vec()).map(|(a, b)| a * b).sum()
        };
        reflection_pad(x.view(), &padding, y.view_mut()).unwrap();
        reflection_pad_backward(dy.view(), x.view().into(), &padding, dx.view_mut()).unwrap();
        assert_close(&[product(&y, &dy)], &[product(&x, &dx)], 1e-12);
        replication_pad(x.view(), &padding, y.view_mut()).unwrap();
        replication_pad_backward(dy.view(), x.view().into(), &padding, dx.view_mut()).unwrap();
        assert_close(&[product(&y, &dy)], &[product(&x, &dx)], 1e-12);
    }
}
