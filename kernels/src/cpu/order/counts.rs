//! Histograms: how many elements lie in each part of a range, or are each number.
//!
//! In: a tensor, whose elements several threads count, each in tables of its own. Out: the sums of the tables, which as integers
//! are the same in any order. Weights are summed in one thread, in the order of elements.

use std::slice::from_raw_parts_mut;

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

use crate::cpu::lanes::fold_lanes;
use crate::cpu::simd::{widest, widest_over};
use crate::cpu::strides::expect_operand;
use crate::math::{maximum, minimum};

/// The number of elements in each of equal parts of a range, as many as the output has elements; of all elements if both
/// ends are equal.
///
/// # Errors
/// If the range is not finite, or ends before it starts.
pub fn histc<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    min: Scalar,
    max: Scalar,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let bins = out.numel();
    let elements = self_.to_contiguous();
    let (mut low, mut high) = (min.to_f64(), max.to_f64());
    if low == high && !elements.is_empty() {
        // NaN stays, and is refused below.
        [low, high] = range_of(&elements).map(|end| end.to_scalar().to_f64());
    }
    let (low, high) = divisible(low, high)?;
    let number = |x: f64| T::from_scalar(Scalar::Float(x)).to_compute();
    let ends = [number(low), number(high)];
    // Elements outside of the range have a place of their own, behind the others.
    let counts = counted(&elements, bins + 1, |elements, places| {
        widest_over::<T, _>(
            #[inline(always)]
            || places_of(elements, ends, number(bins as f64), bins, places),
        );
        Some(places)
    });
    out.write(counts.into_iter().map(|count| T::from_scalar(Scalar::Int(count))))
}

/// The smallest and the largest of some elements; NaN if one is.
fn range_of<T: Element<Compute: Ordered>>(elements: &[T]) -> [T::Compute; 2] {
    let nothing = [T::Compute::HIGHEST, T::Compute::LOWEST];
    let of_pieces = of_pieces(elements, nothing, |piece| {
        widest_over::<T, _>(
            #[inline(always)]
            || [fold(piece, nothing[0], minimum), fold(piece, nothing[1], maximum)],
        )
    });
    let join = |[least, most]: [T::Compute; 2], [low, high]: [T::Compute; 2]| {
        [minimum(least, low), maximum(most, high)]
    };
    of_pieces.into_iter().fold(nothing, join)
}

#[inline(always)]
fn fold<T: Element>(
    elements: &[T],
    start: T::Compute,
    join: impl Fn(T::Compute, T::Compute) -> T::Compute,
) -> T::Compute {
    fold_lanes(
        elements,
        start,
        #[inline(always)]
        |best, element: T| join(best, element.to_compute()),
        &join,
    )
}

/// Elements of a piece that has a result of its own, whichever thread takes it.
pub(in crate::cpu) const PIECE: usize = 1 << 14;

/// A result of each piece of some elements.
fn of_pieces<T: Sync, R: Copy + Send + Sync>(
    elements: &[T],
    nothing: R,
    result: impl Fn(&[T]) -> R + Sync,
) -> Scratch<R> {
    let mut results = Scratch::filled(nothing, elements.len().div_ceil(PIECE));
    let target = Shared(results.as_mut_ptr());
    parallel::for_each_range_of(PIECE.min(elements.len()), results.len(), |range| {
        for number in range {
            let piece = &elements[number * PIECE..elements.len().min((number + 1) * PIECE)];
            // SAFETY: each piece has a result, and one thread.
            unsafe { *target.at(number as i64) = result(piece) };
        }
    });
    results
}

/// Writes the number of the part of a range that each element lies in, or the number of parts if it lies in none.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
fn places_of<T: Element<Compute: Ordered>>(
    elements: &[T],
    [first, last]: [T::Compute; 2],
    parts: T::Compute,
    bins: usize,
    places: &mut [i64],
) {
    let width = Arithmetic::sub(last, first);
    let (end, places) = (bins as f64 - 1.0, &mut places[..elements.len()]);
    for number in 0..elements.len() {
        let x = elements[number].to_compute();
        let place = Arithmetic::div(Arithmetic::mul(Arithmetic::sub(x, first), parts), width);
        let place = T::from_compute(place).to_scalar().to_f64();
        // NaN, of a range that is too wide, is below all places.
        let place = if place > 0.0 { place } else { 0.0 };
        // SAFETY: the number is from 0 to that of a part, and no NaN.
        let place = unsafe { (if place < end { place } else { end }).to_int_unchecked::<i64>() };
        places[number] = if x.ge(first) & x.le(last) { place } else { bins as i64 };
    }
}

/// The range that is divided into parts: one around the number if both ends are equal.
///
/// # Errors
/// As [`histc`].
pub(crate) fn divisible(low: f64, high: f64) -> Result<(f64, f64)> {
    let (low, high) = if low == high { (low - 1.0, high + 1.0) } else { (low, high) };
    if !low.is_finite() || !high.is_finite() || low > high {
        return Err(Error::value(format!("the range from {low} to {high} cannot be divided"))
            .with_help("give finite numbers, `max` above `min`"));
    }
    Ok((low, high))
}

/// How often each number from 0 on occurs, or the sum of the weights at its places.
///
/// # Errors
/// If a number has no place in the output, or there is not a weight for each.
pub fn bincount<T: Element<Compute: Arithmetic>>(
    self_: View<'_, i64>,
    weights: Option<View<'_, T>>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    if let Some(weights) = &weights {
        expect_operand("weights", weights.sizes(), self_.sizes())?;
    }
    let numbers = self_.to_contiguous();
    let bins = out.numel();
    let are_bins = |numbers: &[i64]| {
        let is_bin = |number: &i64| (0..bins as i64).contains(number);
        extremes_of(numbers).is_none_or(|extremes| extremes.iter().all(is_bin))
    };
    let refuse = || match numbers.iter().find(|number| !(0..bins as i64).contains(number)) {
        Some(number) => Err(Error::value(format!("the number {number} is not one of {bins} from 0 on"))),
        None => Ok(()),
    };
    let Some(weights) = weights else {
        let counts = counted(&numbers, bins, |numbers, _| are_bins(numbers).then_some(numbers));
        // Every number was counted, unless one is no bin.
        if counts.iter().sum::<i64>() != numbers.len() as i64 {
            refuse()?;
        }
        return out.write(counts.into_iter().map(|count| T::from_scalar(Scalar::Int(count))));
    };
    // The first that is none is looked for if there is one: a loop that may end early has no vectors.
    if !are_bins(&numbers) {
        refuse()?;
    }
    let mut sums = Scratch::filled(T::default().to_compute(), bins);
    for (number, weight) in numbers.iter().zip(weights.to_contiguous().iter()) {
        let sum = &mut sums[*number as usize];
        *sum = Arithmetic::add(*sum, weight.to_compute());
    }
    out.write(sums.into_iter().map(T::from_compute))
}

/// The smallest and the largest of some numbers.
pub(crate) fn extremes(numbers: &[i64]) -> Option<[i64; 2]> {
    let of_pieces = of_pieces(numbers, None, extremes_of);
    let join = |[least, most]: [i64; 2], [low, high]: [i64; 2]| [least.min(low), most.max(high)];
    of_pieces.into_iter().flatten().reduce(join)
}

/// As [`extremes`], in this thread.
fn extremes_of(numbers: &[i64]) -> Option<[i64; 2]> {
    let first = *numbers.first()?;
    let extremes = widest(
        #[inline(always)]
        move || {
            numbers.iter().fold([first; 2], |[least, most], &number| [least.min(number), most.max(number)])
        },
    );
    Some(extremes)
}

/// Tables that neighbours are counted in, in turn: a count that follows one of the same number would wait for it.
pub(in crate::cpu) const TABLES: usize = 4;
/// Elements whose places are found before they are counted: both stay in the first cache.
pub(in crate::cpu) const BLOCK: usize = 1024;

/// How many elements have each of so many places, which `find` has or writes for a block of them. Blocks for which it has none are
/// not counted.
///
/// Each thread counts some parts of the elements, each in tables of its own, unless these would have more places than the part has
/// elements.
fn counted<T: Sync>(
    elements: &[T],
    bins: usize,
    find: impl for<'a> Fn(&'a [T], &'a mut [i64]) -> Option<&'a [i64]> + Sync,
) -> Scratch<i64> {
    let most = elements.len() / (TABLES * bins).max(PIECE);
    let parts = most.min(4 * parallel::num_threads()).max(1);
    let tables = if bins <= elements.len() / TABLES { TABLES } else { 1 };
    let of_part = elements.len().div_ceil(parts);
    let mut counts = Scratch::filled(0i64, parts * tables * bins);
    let target = Shared(counts.as_mut_ptr());
    parallel::for_each_range_of(of_part, parts, |range| {
        let mut places = [0; BLOCK];
        for part in range {
            let start = part * tables * bins;
            // SAFETY: each part has tables in `counts`, and one thread.
            let counts = unsafe { from_raw_parts_mut(target.at(start as i64), tables * bins) };
            let elements = &elements[elements.len().min(part * of_part)..];
            for block in elements[..of_part.min(elements.len())].chunks(BLOCK) {
                if let Some(places) = find(block, &mut places[..block.len()]) {
                    count(places, bins, tables, counts);
                }
            }
        }
    });
    let (first, others) = counts.split_at_mut(bins);
    for other in others.chunks_exact(bins.max(1)) {
        first.iter_mut().zip(other).for_each(|(sum, count)| *sum += count);
    }
    counts.truncate(bins);
    counts
}

/// Counts places, which are below `bins`, in one or all of [`TABLES`].
fn count(places: &[i64], bins: usize, tables: usize, counts: &mut [i64]) {
    if tables == 1 {
        places.iter().for_each(|place| counts[*place as usize] += 1);
        return;
    }
    let (blocks, rest) = places.as_chunks::<TABLES>();
    for block in blocks {
        for (table, place) in block.iter().enumerate() {
            counts[table * bins + *place as usize] += 1;
        }
    }
    rest.iter().for_each(|place| counts[*place as usize] += 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, scattered};

    #[test]
    fn histograms() {
        let mut out = Array::zeros(&[2]);
        let input = Array::new(&[4], [0.0f64, 1.0, 2.0, f64::INFINITY]);
        histc(input.view(), Scalar::Int(0), Scalar::Int(2), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1.0, 2.0]);
        assert!(histc(input.view(), Scalar::Int(0), Scalar::Int(0), out.view_mut()).is_err());
        let mut out = Array::zeros(&[3]);
        let numbers = Array::new(&[3], [2i64, 0, 2]);
        bincount::<i64>(numbers.view(), None, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 0, 2]);
    }

    #[test]
    fn many_elements() {
        for count in [0, 1, 5, 1023, 1025, 20_001, 200_003] {
            let elements: Vec<f32> = scattered(count).map(|x| x as f32).collect();
            // Every second element, backwards.
            let twice = elements.iter().rev().flat_map(|&x| [x, f32::NAN]);
            let input = Array::new(&[2 * count as i64], twice).halved(0).reversed(0);
            for bins in [1, 7, 100, 4000] {
                for (low, high) in [(-1.5f32, 1.0f32), (0.0, 0.0)] {
                    let mut out = Array::<f32>::zeros(&[bins]);
                    histc(
                        input.view(),
                        Scalar::Float(low.into()),
                        Scalar::Float(high.into()),
                        out.view_mut(),
                    )
                    .unwrap();
                    assert_eq!(out.to_vec(), naive(&elements, low, high, bins as usize));
                }
            }
            let numbers: Vec<i64> = elements.iter().map(|x| ((x + 2.0) * 100.0) as i64).collect();
            for bins in [400, 30_000] {
                let mut expected = vec![0; bins];
                numbers.iter().for_each(|&number| expected[number as usize] += 1);
                let input = Array::new(&[count as i64], numbers.iter().copied());
                let mut out = Array::<i64>::zeros(&[bins as i64]);
                bincount::<i64>(input.view(), None, out.view_mut()).unwrap();
                assert_eq!(out.to_vec(), expected);
            }
            let ends = numbers.iter().min().zip(numbers.iter().max());
            assert_eq!(extremes(&numbers), ends.map(|(&least, &most)| [least, most]));
        }
    }

    /// A histogram by the formula, one element at a time.
    fn naive(elements: &[f32], low: f32, high: f32, bins: usize) -> Vec<f32> {
        let ends = || elements.iter().copied();
        let (low, high) = match low == high && !elements.is_empty() {
            true => (ends().fold(f32::INFINITY, f32::min), ends().fold(f32::NEG_INFINITY, f32::max)),
            false => (low, high),
        };
        let (low, high) = if low == high { (low - 1.0, high + 1.0) } else { (low, high) };
        let mut counts = vec![0.0; bins];
        for x in elements.iter().filter(|&&x| x >= low && x <= high) {
            counts[(((x - low) * bins as f32 / (high - low)) as usize).min(bins - 1)] += 1.0;
        }
        counts
    }

    #[test]
    fn numbers_that_are_none_and_ranges_that_end_nowhere() {
        let mut out = Array::<i64>::zeros(&[10]);
        let mut numbers = vec![3; 50_000];
        (numbers[30_000], numbers[40_000]) = (-7, 10);
        let refused =
            bincount::<i64>(Array::new(&[50_000], numbers).view(), None, out.view_mut()).unwrap_err();
        assert!(refused.to_string().contains("the number -7 is not one of 10 from 0 on"), "{refused}");
        let mut out = Array::<i64>::zeros(&[0]);
        bincount::<i64>(Array::zeros(&[0]).view(), None, out.view_mut()).unwrap();
        assert!(bincount::<i64>(Array::zeros(&[1]).view(), None, out.view_mut()).is_err());
        let mut out = Array::<f32>::zeros(&[3]);
        let mut elements = vec![1.0; 50_000];
        elements[20_000] = f32::NAN;
        let input = Array::new(&[50_000], elements);
        assert!(histc(input.view(), Scalar::Int(0), Scalar::Int(0), out.view_mut()).is_err());
        histc(input.view(), Scalar::Int(0), Scalar::Int(2), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0.0, 49_999.0, 0.0]);
        // The width of the range is infinite, and every place NaN or 0.
        let wide = Array::new(&[2], [f32::MIN, f32::MAX]);
        histc(wide.view(), Scalar::Int(0), Scalar::Int(0), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [2.0, 0.0, 0.0]);
        let scalar = Array::new(&[], [1.0f32]);
        histc(scalar.view(), Scalar::Int(0), Scalar::Int(0), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0.0, 1.0, 0.0]);
    }
}
