//! Borders whose elements are copies of others: mirrored, or the nearest ones.
//!
//! `padding` has two numbers a dimension, before and after, the last dimension first; negative ones cut.

use std::ops::Range;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::layout::numel;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Error, Result, Scratch, Untyped, View, ViewMut};

use super::copy::{copy_row, join_row};
use super::row_major::{advance, index_of};
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

/// The elements that the places of a dimension show: those of the border before, neighbours, those of the border behind.
struct Border {
    before: Scratch<i64>,
    inner: Range<i64>,
    behind: Scratch<i64>,
}

impl Border {
    fn new(size: i64, before: i64, after: i64, place: Place) -> Result<Border> {
        let (start, end) = (-before, size + after);
        let kept = start.max(0)..end.min(size);
        let first = kept.start.min(end);
        let last = kept.end.max(first);
        let shown = |places: Range<i64>| -> Result<Scratch<i64>> {
            places.map(|at| place(at, size, kept.clone())).collect()
        };
        Ok(Border { before: shown(start..first)?, inner: first..last, behind: shown(last..end)? })
    }

    /// The element that each place shows.
    fn all(&self) -> impl Iterator<Item = i64> {
        self.before.iter().copied().chain(self.inner.clone()).chain(self.behind.iter().copied())
    }

    /// The places of the border before or behind, as their positions in a row and those of the elements they show, at these
    /// steps.
    fn singles(&self, is_behind: bool, [step, shown_step]: [i64; 2]) -> Scratch<[i64; 2]> {
        let inner_end = self.before.len() + (self.inner.end - self.inner.start) as usize;
        let (first, shown) = if is_behind { (inner_end, &self.behind) } else { (0, &self.before) };
        let single = |(number, at): (usize, &i64)| [(first + number) as i64 * step, at * shown_step];
        shown.iter().enumerate().map(single).collect()
    }
}

/// The borders of the padded dimensions, from the first on.
fn borders(sizes: &[i64], padding: &[i64], place: Place) -> Result<Scratch<Border>> {
    let numbers = padding.chunks_exact(2).rev();
    let first = sizes.len() - padding.len() / 2;
    numbers.zip(&sizes[first..]).map(|(pair, &size)| Border::new(size, pair[0], pair[1], place)).collect()
}

/// For each place of a dimension, those places of another tensor's dimension that belong to it, in rising order.
struct Partners {
    /// None if both dimensions are the same.
    list: Option<(Scratch<usize>, Scratch<i64>)>,
}

impl Partners {
    /// For each place of an output, the element it shows.
    fn of_places(border: &Border) -> Partners {
        let shown: Scratch<i64> = border.all().collect();
        Partners { list: Some(((0..=shown.len()).collect(), shown)) }
    }

    /// For each of so many elements, the places that show it.
    fn of_elements(border: &Border, size: i64) -> Partners {
        let mut starts = Scratch::filled(0, size as usize + 1);
        border.all().for_each(|at| starts[at as usize + 1] += 1);
        for at in 0..size as usize {
            starts[at + 1] += starts[at];
        }
        let mut ends = starts.clone();
        let mut places = Scratch::filled(0, starts[size as usize]);
        for (place, at) in border.all().enumerate() {
            let end = &mut ends[at as usize];
            places[*end] = place as i64;
            *end += 1;
        }
        Partners { list: Some((starts, places)) }
    }
}

/// All dimensions but the last: a row of one tensor belongs to rows of another.
struct Rows<'a> {
    sizes: &'a [i64],
    strides: &'a [i64],
    /// Strides of the other tensor.
    others: &'a [i64],
    partners: Scratch<Partners>,
}

impl<'a> Rows<'a> {
    /// Rows of a tensor with these sizes and strides; `partners` are those of the padded dimensions but the last.
    fn new(
        sizes: &'a [i64],
        strides: &'a [i64],
        others: &'a [i64],
        partners: impl DoubleEndedIterator<Item = Partners> + ExactSizeIterator,
    ) -> Rows<'a> {
        let dims = sizes.len() - 1;
        let plain = (partners.len()..dims).map(|_| Partners { list: None });
        let partners = plain.chain(partners).collect();
        Rows { sizes: &sizes[..dims], strides: &strides[..dims], others: &others[..dims], partners }
    }

    /// Calls `body` with the position of each row of these numbers, and those of the rows that belong to it in row-major order.
    fn for_each(&self, numbers: Range<usize>, body: &mut dyn FnMut(i64, &[i64])) {
        let Some(last) = self.sizes.len().checked_sub(1) else { return body(0, &[0]) };
        let mut index = index_of(numbers.start, self.sizes);
        let (mut starts, mut others) = (Scratch::new(), Scratch::new());
        let mut number = numbers.start;
        while number < numbers.end {
            let own: i64 = std::iter::zip(&index[..last], self.strides).map(|(at, stride)| at * stride).sum();
            starts.clear();
            self.for_each_partner(&index[..last], 0, &mut |start| starts.push(start));
            let places = index[last]..self.sizes[last].min(index[last] + (numbers.end - number) as i64);
            for at in places.clone() {
                others.clear();
                for start in &starts {
                    self.for_each_of(last, at, &mut |place| others.push(start + place * self.others[last]));
                }
                body(own + at * self.strides[last], &others);
            }
            number += (places.end - places.start) as usize;
            index[last] = places.end - 1;
            advance(&mut index, self.sizes);
        }
    }

    /// Calls `body` with the positions of rows that belong to the index of the first dimensions, of which the part `left` is to
    /// be added to `position`.
    fn for_each_partner(&self, left: &[i64], position: i64, body: &mut dyn FnMut(i64)) {
        let Some((&at, rest)) = left.split_first() else { return body(position) };
        let dim = self.sizes.len() - 1 - left.len();
        self.for_each_of(dim, at, &mut |place| {
            self.for_each_partner(rest, position + place * self.others[dim], body);
        });
    }

    /// Calls `body` with the places that belong to one of a dimension.
    #[inline]
    fn for_each_of(&self, dim: usize, at: i64, body: &mut impl FnMut(i64)) {
        match &self.partners[dim].list {
            None => body(at),
            Some((starts, places)) => {
                let places = &places[starts[at as usize]..starts[at as usize + 1]];
                places.iter().for_each(|place| body(*place));
            }
        }
    }
}

#[inline(never)]
fn pad<B: Element>(
    input: &View<'_, B>,
    padding: &[i64],
    place: Place,
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    expect_operand("an operand", out.sizes(), &padded_sizes(input.sizes(), padding)?)?;
    let borders = borders(input.sizes(), padding, place)?;
    let Some((border, others)) = borders.split_last() else { return Ok(()) };
    let (sizes, strides, target) = (out.sizes(), out.strides(), Shared(out.as_mut_ptr()));
    let rows = Rows::new(sizes, strides, input.strides(), others.iter().map(Partners::of_places));
    let last = sizes.len() - 1;
    let (step, from_step) = (strides[last], input.strides()[last]);
    let mut singles = border.singles(false, [step, from_step]);
    singles.extend_from_slice(&border.singles(true, [step, from_step]));
    let inner = [border.before.len() as i64 * step, border.inner.start * from_step];
    let length = (border.inner.end - border.inner.start) as usize;
    parallel::for_each_range_of(sizes[last] as usize, numel(rows.sizes) as usize, |numbers| {
        rows.for_each(numbers, &mut |to, others| {
            // SAFETY: the positions are those of a row of the output, which one thread has, and of a row of the input, which
            // places have one of; the border's elements lie in them.
            unsafe {
                let (from, to) = (input.as_ptr().offset(others[0] as isize), target.at(to));
                let neighbours = from.wrapping_offset(inner[1] as isize);
                copy_row(neighbours, from_step, to.wrapping_offset(inner[0] as isize), step, length);
                for [place, at] in &singles {
                    *to.offset(*place as isize) = *from.offset(*at as isize);
                }
            }
        });
    });
    Ok(())
}

/// Each element of the input has one thread, which adds to it in the row-major order of the output.
fn pad_backward<T: Element<Compute: Arithmetic>>(
    grad: &View<'_, T>,
    sizes: &[i64],
    padding: &[i64],
    place: Place,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_sizes(out.sizes(), sizes)?;
    expect_operand("an operand", grad.sizes(), &padded_sizes(sizes, padding)?)?;
    let borders = borders(sizes, padding, place)?;
    let Some((border, others)) = borders.split_last() else { return Ok(()) };
    let (strides, target, last) = (out.strides(), Shared(out.as_mut_ptr()), sizes.len() - 1);
    let padded = &sizes[last - others.len()..last];
    let partners = others.iter().zip(padded).map(|(border, &size)| Partners::of_elements(border, size));
    let rows = Rows::new(sizes, strides, grad.strides(), partners);
    let (step, from_step) = (strides[last], grad.strides()[last]);
    let singles = [false, true].map(|is_behind| border.singles(is_behind, [from_step, step]));
    let inner = [border.before.len() as i64 * from_step, border.inner.start * step];
    let length = (border.inner.end - border.inner.start) as usize;
    // As memory holds the sum after each addition.
    let add = |sum: T, grad: T| T::from_compute(Arithmetic::add(sum.to_compute(), grad.to_compute()));
    parallel::for_each_range_of(grad.sizes()[last] as usize, numel(rows.sizes) as usize, |numbers| {
        rows.for_each(numbers, &mut |to, others| {
            // SAFETY: the positions are those of a row of the output, which one thread has, and of rows of the gradient; the
            // border's elements lie in them.
            unsafe {
                let to = target.at(to);
                fill_row(to, step, sizes[last] as usize, T::from_compute(T::Compute::ZERO));
                for other in others {
                    let from = grad.as_ptr().offset(*other as isize);
                    let single = |[place, at]: &[i64; 2]| {
                        let sum = to.offset(*at as isize);
                        *sum = add(*sum, *from.offset(*place as isize));
                    };
                    singles[0].iter().for_each(single);
                    let neighbours = from.wrapping_offset(inner[0] as isize);
                    join_row(neighbours, from_step, to.wrapping_offset(inner[1] as isize), step, length, add);
                    singles[1].iter().for_each(single);
                }
            }
        });
    });
    Ok(())
}

/// Writes one element to all of a row.
///
/// # Safety
/// `length` elements, `step` apart, are valid for writes.
unsafe fn fill_row<T: Copy>(to: *mut T, step: i64, length: usize, element: T) {
    // SAFETY: the caller's promise.
    unsafe {
        if step == 1 {
            return std::slice::from_raw_parts_mut(to, length).fill(element);
        }
        (0..length as isize).for_each(|at| *to.offset(at * step as isize) = element);
    }
}

#[cfg(test)]
mod tests;
