//! Places of elements in sequences in order.

mod members;

use std::slice::from_raw_parts_mut;

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::layout::numel;
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::{Element, Error, Result, View, ViewMut};

pub use self::members::isin;
use super::copy::with_slice;
use super::simd::widest_over;
use super::strides::expect_sizes;

/// The place of each element of `self_` in a sequence in ascending order: before equal elements, or behind them if `right`.
/// Sequences are one vector, or one for each row of `self_`.
///
/// # Errors
/// If there is neither one sequence nor one for each row.
pub fn searchsorted<T: Element<Compute: Ordered>>(
    sorted_sequence: View<'_, T>,
    self_: View<'_, T>,
    right: bool,
    mut out: ViewMut<'_, i64>,
) -> Result<()> {
    expect_sizes(out.sizes(), self_.sizes())?;
    let (length, width) = check_sequences(sorted_sequence.sizes(), self_.sizes())?;
    let (sequences, elements) = (sorted_sequence.to_contiguous(), self_.to_contiguous());
    let sequences = Sequences {
        numbers: &sequences,
        length: length as usize,
        width,
        is_one: width >= elements.len(),
        right,
    };
    with_slice(&mut out, |out| {
        let target = Shared(out.as_mut_ptr());
        parallel::for_each_range(elements.len(), CHUNK / TOGETHER, |range| {
            // SAFETY: the output has a place for each element, and each range has one thread.
            let places = unsafe { from_raw_parts_mut(target.at(range.start as i64), range.len()) };
            widest_over::<T, _>(
                #[inline(always)]
                || sequences.search(range.start, &elements[range.clone()], places),
            );
        });
    })
}

/// Elements searched side by side: each step of a search waits for the one before.
pub(super) const TOGETHER: usize = 16;

/// Sequences in ascending order, one for all elements or one for each row of them.
struct Sequences<'a, T> {
    numbers: &'a [T],
    /// Numbers of a sequence.
    length: usize,
    /// Elements of a row.
    width: usize,
    is_one: bool,
    right: bool,
}

impl<T: Element<Compute: Ordered>> Sequences<'_, T> {
    /// Writes the places of elements, whose numbers are those from `first` on.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
    fn search(&self, first: usize, elements: &[T], places: &mut [i64]) {
        if self.length == 0 {
            places.fill(0);
            return;
        }
        for start in (0..elements.len()).step_by(TOGETHER) {
            let count = TOGETHER.min(elements.len() - start);
            let (mut values, mut sequences) = ([elements[start].to_compute(); TOGETHER], [0; TOGETHER]);
            for lane in 0..count {
                values[lane] = elements[start + lane].to_compute();
                if !self.is_one {
                    sequences[lane] = (first + start + lane) / self.width * self.length;
                }
            }
            let found = self.places(values, sequences);
            for lane in 0..count {
                places[start + lane] = found[lane] as i64;
            }
        }
    }

    /// The place of each value in the sequence that starts at a position: halves of it are left out until one number remains.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
    fn places(&self, values: [T::Compute; TOGETHER], starts: [usize; TOGETHER]) -> [usize; TOGETHER] {
        let numbers = &self.numbers[..self.numbers.len()];
        debug_assert!(starts.iter().all(|start| start + self.length <= numbers.len()));
        let mut places = starts;
        let mut left = self.length;
        while left > 1 {
            let half = left / 2;
            for lane in 0..TOGETHER {
                // SAFETY: `left` numbers from the place on are numbers of its sequence, and `half` is fewer.
                let number = unsafe { *numbers.get_unchecked(places[lane] + half) }.to_compute();
                places[lane] += if self.is_before(number, values[lane]) { half } else { 0 };
            }
            left -= half;
        }
        for lane in 0..TOGETHER {
            // SAFETY: one number from the place on is a number of its sequence.
            let number = unsafe { *numbers.get_unchecked(places[lane]) }.to_compute();
            places[lane] += usize::from(self.is_before(number, values[lane]));
            places[lane] -= starts[lane];
        }
        places
    }

    /// Whether a number lies before the place of a value. NaN does, and every number before NaN.
    #[inline(always)]
    fn is_before(&self, number: T::Compute, value: T::Compute) -> bool {
        !(number.gt(value) | (!self.right & number.equal(value)))
    }
}

/// The length of a sequence, and the number of elements that have one.
///
/// # Errors
/// If there is neither one sequence nor one for each row.
pub(crate) fn check_sequences(sequences: &[i64], elements: &[i64]) -> Result<(i64, usize)> {
    let Some((&length, rows)) = sequences.split_last() else {
        return Err(Error::shape("a sequence has a dimension"));
    };
    match elements.split_last() {
        _ if rows.is_empty() => Ok((length, numel(elements).max(1) as usize)),
        Some((&width, own)) if own == rows => Ok((length, width.max(1) as usize)),
        _ => Err(Error::shape("there is not a sequence for each row")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, scattered};

    #[test]
    fn places() {
        let sequence = Array::new(&[4], [1.0f32, 3.0, 3.0, 5.0]);
        let elements = Array::new(&[4], [3.0f32, 0.0, 9.0, f32::NAN]);
        let mut out = Array::zeros(&[4]);
        searchsorted(sequence.view(), elements.view(), false, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 0, 4, 4]);
        searchsorted(sequence.view(), elements.view(), true, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [3, 0, 4, 4]);
    }

    /// The places that the library's search finds, one element at a time.
    #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "every number lies before NaN")]
    fn naive(sequences: &[f32], length: usize, width: usize, elements: &[f32], right: bool) -> Vec<i64> {
        let place = |(number, &value): (usize, &f32)| {
            let start = number / width * length;
            let is_before = |&x: &f32| if right { !(x > value) } else { !(x >= value) };
            sequences[start..start + length].partition_point(is_before) as i64
        };
        elements.iter().enumerate().map(place).collect()
    }

    #[test]
    fn one_sequence_and_one_for_each_row() {
        let rounded = |count| scattered(count).map(|x| (x * 8.0).round() as f32);
        for length in [0, 1, 2, 7, 64, 100] {
            for width in [1, 15, 16, 17, 400] {
                let mut numbers: Vec<f32> = rounded(3 * length).collect();
                if length > 0 {
                    numbers.chunks_mut(length).for_each(|row| row.sort_by(f32::total_cmp));
                }
                let elements: Vec<f32> = rounded(3 * width).collect();
                let turned =
                    Array::new(&[3, width as i64], elements.iter().copied().rev()).reversed(0).reversed(1);
                for right in [false, true] {
                    let mut out = Array::zeros(&[width as i64, 3]).permuted(&[1, 0]);
                    let rows = Array::new(&[3, length as i64], numbers.iter().copied());
                    searchsorted(rows.view(), turned.view(), right, out.view_mut()).unwrap();
                    assert_eq!(out.to_vec(), naive(&numbers, length, width, &elements, right));
                    let one = Array::new(&[length as i64], numbers[..length].iter().copied());
                    searchsorted(one.view(), turned.view(), right, out.view_mut()).unwrap();
                    assert_eq!(out.to_vec(), naive(&numbers, length, 3 * width, &elements, right));
                }
            }
        }
    }

    #[test]
    fn many_elements_one_and_none() {
        let mut numbers: Vec<f32> = scattered(1000).map(|x| x as f32).collect();
        numbers.sort_by(f32::total_cmp);
        let sequence = Array::new(&[1000], numbers.iter().copied());
        let elements: Vec<f32> = scattered(20_003).map(|x| x as f32).collect();
        let mut out = Array::zeros(&[20_003]);
        let many = Array::new(&[20_003], elements.iter().copied());
        searchsorted(sequence.view(), many.view(), false, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), naive(&numbers, 1000, 20_003, &elements, false));
        let mut out = Array::zeros(&[]);
        searchsorted(sequence.view(), Array::new(&[], [9.0]).view(), false, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1000]);
        let mut out = Array::zeros(&[2, 0]);
        searchsorted(sequence.view(), Array::zeros(&[2, 0]).view(), false, out.view_mut()).unwrap();
    }
}
