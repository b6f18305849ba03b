//! Elements that differ from each other: their number, they themselves in order, and where and how often each is.
//!
//! In: elements of a dtype with an order. Out: results for their keys in order. Each NaN differs from every element; the zeros are one
//! element, the first of them.

use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::{Element, Result, Scratch, View, ViewMut};

use crate::cpu::copy::with_slice;
use crate::cpu::sort::digits::{made, put_in_order};
use crate::cpu::sort::{SortKey, nan_key};
use crate::cpu::strides::expect_sizes;

/// The number of elements that differ.
pub(crate) fn count_different<T: SortKey>(self_: &View<'_, T>) -> usize {
    let elements = self_.to_contiguous();
    if size_of::<T>() <= 4 {
        let mut keys = Scratch::new();
        made(&mut keys, elements.len(), |place| elements[place].sort_key() as u32);
        put_in_order(&mut keys, 0);
        Runs::new::<T>(&keys, |key| u64::from(*key)).total()
    } else {
        let mut keys = Scratch::new();
        made(&mut keys, elements.len(), |place| elements[place].sort_key());
        put_in_order(&mut keys, 0);
        Runs::new::<T>(&keys, |key| *key).total()
    }
}

/// The elements that differ in ascending order, where each element is among them, and how often each is
/// there. NaN differs from itself.
///
/// # Errors
/// If an output has another size than the number of elements found.
pub fn unique<T: SortKey>(
    self_: View<'_, T>,
    return_inverse: bool,
    return_counts: bool,
    values: ViewMut<'_, T>,
    mut inverse: ViewMut<'_, i64>,
    counts: ViewMut<'_, i64>,
) -> Result<()> {
    let elements = self_.to_contiguous();
    let counts = return_counts.then_some(counts);
    if !return_inverse {
        return unique_alone(&elements, values, counts);
    }
    expect_sizes(inverse.sizes(), self_.sizes())?;
    let mut result = Ok(());
    with_slice(&mut inverse, |inverse| {
        let inverse = Shared(inverse.as_mut_ptr());
        // SAFETY: each entry has the place of another element, and one thread.
        let put = |place: usize, number: usize| unsafe { *inverse.at(place as i64) = number as i64 };
        result = if size_of::<T>() <= 4 && u32::try_from(elements.len()).is_ok() {
            let mut entries = Scratch::new();
            made(&mut entries, elements.len(), |place| elements[place].sort_key() << 32 | place as u64);
            put_in_order(&mut entries, 32);
            let place_of = |entry: usize| entries[entry] as u32 as usize;
            let runs = Runs::new::<T>(&entries, |entry| entry >> 32);
            let (element, found) =
                (|entry| elements[place_of(entry)], |entry, run| put(place_of(entry), run));
            runs.write(element, found, values, counts)
        } else {
            let mut entries = Scratch::new();
            made(&mut entries, elements.len(), |place| (elements[place].sort_key(), place as i64));
            put_in_order(&mut entries, 0);
            let place_of = |entry: usize| entries[entry].1 as usize;
            let runs = Runs::new::<T>(&entries, |entry| entry.0);
            let (element, found) =
                (|entry| elements[place_of(entry)], |entry, run| put(place_of(entry), run));
            runs.write(element, found, values, counts)
        };
    })?;
    result
}

/// As [`unique`], without the places, so that the keys are sorted alone.
fn unique_alone<T: SortKey>(
    elements: &[T],
    values: ViewMut<'_, T>,
    counts: Option<ViewMut<'_, i64>>,
) -> Result<()> {
    let zero = T::default();
    let first_zero = elements.iter().copied().find(|element| *element == zero).unwrap_or(zero);
    if size_of::<T>() <= 4 {
        let mut keys = Scratch::new();
        made(&mut keys, elements.len(), |place| elements[place].sort_key() as u32);
        put_in_order(&mut keys, 0);
        let element = Elements::new(elements, first_zero, keys.last().map(|key| u64::from(*key)));
        let runs = Runs::new::<T>(&keys, |key| u64::from(*key));
        runs.write(|entry| element.at(entry, u64::from(keys[entry])), |_, _| {}, values, counts)
    } else {
        let mut keys = Scratch::new();
        made(&mut keys, elements.len(), |place| elements[place].sort_key());
        put_in_order(&mut keys, 0);
        let element = Elements::new(elements, first_zero, keys.last().copied());
        let runs = Runs::new::<T>(&keys, |key| *key);
        runs.write(|entry| element.at(entry, keys[entry]), |_, _| {}, values, counts)
    }
}

/// Elements of keys in order.
struct Elements<T> {
    first_zero: T,
    /// The elements that are NaN, as their keys do not say.
    nans: Scratch<T>,
    /// The entries before those.
    numbers: usize,
}

impl<T: SortKey> Elements<T> {
    fn new(elements: &[T], first_zero: T, last_key: Option<u64>) -> Elements<T> {
        let mut nans = Scratch::new();
        if last_key.is_some() && last_key == nan_key::<T>() {
            nans.extend(elements.iter().copied().filter(|element| Some(element.sort_key()) == last_key));
        }
        let numbers = elements.len() - nans.len();
        Elements { first_zero, nans, numbers }
    }

    #[inline(always)]
    fn at(&self, entry: usize, key: u64) -> T {
        if entry >= self.numbers {
            self.nans[entry - self.numbers]
        } else if key == T::default().sort_key() {
            self.first_zero
        } else {
            T::from_sort_key(key)
        }
    }
}

/// Entries in order, in runs of equal ones; of NaN, each is a run.
struct Runs<'a, N, K> {
    entries: &'a [N],
    key: K,
    nan: Option<u64>,
    /// The number of runs that begin before each chunk of entries, and in all.
    starts: Scratch<usize>,
}

impl<'a, N: Sync, K: Fn(&N) -> u64 + Sync> Runs<'a, N, K> {
    fn new<T: SortKey>(entries: &'a [N], key: K) -> Runs<'a, N, K> {
        let chunks = entries.len().div_ceil(CHUNK);
        let mut runs = Runs { entries, key, nan: nan_key::<T>(), starts: Scratch::new() };
        let mut starts = Scratch::filled(0usize, chunks + 1);
        let counts = Shared(starts[1..].as_mut_ptr());
        parallel::for_each_range_of(CHUNK, chunks, |range| {
            for chunk in range {
                let begun = runs.chunk(chunk).filter(|entry| runs.begins(*entry)).count();
                // SAFETY: there is a count for each chunk, which one thread has.
                unsafe { *counts.at(chunk as i64) = begun };
            }
        });
        for chunk in 0..chunks {
            starts[chunk + 1] += starts[chunk];
        }
        runs.starts = starts;
        runs
    }

    fn total(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    fn chunk(&self, chunk: usize) -> std::ops::Range<usize> {
        chunk * CHUNK..self.entries.len().min((chunk + 1) * CHUNK)
    }

    /// Whether a run begins with an entry.
    #[inline(always)]
    fn begins(&self, entry: usize) -> bool {
        let key = (self.key)(&self.entries[entry]);
        entry == 0 || key != (self.key)(&self.entries[entry - 1]) || Some(key) == self.nan
    }

    /// Writes the element and the length of each run, and calls `found` with each entry and the number of its run.
    fn write<T: Element>(
        &self,
        element: impl Fn(usize) -> T + Sync,
        found: impl Fn(usize, usize) + Sync,
        mut values: ViewMut<'_, T>,
        counts: Option<ViewMut<'_, i64>>,
    ) -> Result<()> {
        let total = self.total();
        expect_sizes(values.sizes(), &[total as i64])?;
        let mut firsts =
            Scratch::filled(self.entries.len() as i64, if counts.is_some() { total + 1 } else { 0 });
        let are_counted = counts.is_some();
        let to_firsts = Shared(firsts.as_mut_ptr());
        with_slice(&mut values, |values| {
            let values = Shared(values.as_mut_ptr());
            parallel::for_each_range_of(CHUNK, self.starts.len() - 1, |chunks| {
                for chunk in chunks {
                    let mut next = self.starts[chunk];
                    for entry in self.chunk(chunk) {
                        if self.begins(entry) {
                            // SAFETY: each run has a place in both, and begins in one chunk, which one thread has.
                            unsafe {
                                values.at(next as i64).write(element(entry));
                                if are_counted {
                                    *to_firsts.at(next as i64) = entry as i64;
                                }
                            }
                            next += 1;
                        }
                        found(entry, next - 1);
                    }
                }
            });
        })?;
        let Some(mut counts) = counts else { return Ok(()) };
        expect_sizes(counts.sizes(), &[total as i64])?;
        counts.write(firsts.windows(2).map(|pair| pair[1] - pair[0]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use opsmith_runtime::bf16;

    use super::*;
    use crate::cpu::testing::{Array, scattered, with_threads};

    /// The elements, the places and the numbers of a call; the elements and numbers must not depend on whether places are wanted.
    fn all<T: SortKey>(elements: &[T]) -> (Vec<T>, Vec<i64>, Vec<i64>) {
        // Every second element, backwards.
        let twice = elements.iter().rev().flat_map(|&element| [element, T::default()]);
        let input = Array::new(&[2 * elements.len() as i64], twice).halved(0).reversed(0);
        let total = count_different(&input.view()) as i64;
        let call = |inverse: bool| {
            let (mut values, mut counts) = (Array::zeros(&[total]), Array::zeros(&[total]));
            let mut places = Array::zeros(&[if inverse { elements.len() as i64 } else { 0 }]);
            unique(input.view(), inverse, true, values.view_mut(), places.view_mut(), counts.view_mut())
                .unwrap();
            (values.to_vec(), places.to_vec(), counts.to_vec())
        };
        let (with, without) = (call(true), call(false));
        // NaN differs from itself.
        assert_eq!(format!("{:?}", (&with.0, &with.2)), format!("{:?}", (&without.0, &without.2)));
        with
    }

    #[test]
    fn few_elements() {
        assert_eq!(all(&[2i64, 1, 2, 5, i64::MIN, 1]).0, [i64::MIN, 1, 2, 5]);
        assert_eq!(all(&[2i64, 1, 2, 5, 2, 1]), (vec![1, 2, 5], vec![1, 0, 1, 2, 1, 0], vec![2, 3, 1]));
        assert_eq!(all::<i64>(&[]), (vec![], vec![], vec![]));
        assert_eq!(all(&[true, true, false]), (vec![false, true], vec![1, 1, 0], vec![1, 2]));
        assert_eq!(all(&[u64::MAX, 3]), (vec![3, u64::MAX], vec![1, 0], vec![1, 1]));
        let (values, places, counts) = all(&[f32::NAN, -0.0, 1.0, 0.0, -f32::NAN, -1.0]);
        assert_eq!((places, counts), (vec![3, 1, 2, 1, 4, 0], vec![1, 2, 1, 1, 1]));
        assert_eq!(values[..3], [-1.0, 0.0, 1.0]);
        assert!(values[1].is_sign_negative() && values[3].is_sign_positive() && values[4].is_sign_negative());
        assert!(values[3..].iter().all(|value| value.is_nan()));
        let halves = [1.5f32, -2.0, 1.5].map(bf16::from_f32);
        assert_eq!(all(&halves), ([-2.0f32, 1.5].map(bf16::from_f32).to_vec(), vec![1, 0, 1], vec![1, 2]));
    }

    #[test]
    fn many_elements_in_threads() {
        for (count, scale) in [(5, 10.0), (9000, 100.0), (70_003, 1.0), (70_003, 1e6)] {
            let numbers: Vec<i64> = scattered(count).map(|x| (x * scale).round() as i64).collect();
            let mut seen = BTreeMap::new();
            numbers.iter().for_each(|number| *seen.entry(*number).or_insert(0i64) += 1);
            let place: BTreeMap<i64, i64> = seen.keys().copied().zip(0..).collect();
            let places: Vec<i64> = numbers.iter().map(|number| place[number]).collect();
            let floats: Vec<f32> = numbers.iter().map(|number| *number as f32).collect();
            let counts: Vec<i64> = seen.values().copied().collect();
            with_threads(|| {
                assert_eq!(all(&numbers), (seen.keys().copied().collect(), places.clone(), counts.clone()));
                let values: Vec<f32> = seen.keys().map(|number| *number as f32).collect();
                assert_eq!(all(&floats), (values, places.clone(), counts.clone()));
            });
        }
    }
}
