//! Elements that are among others.
//!
//! In: elements, and a set of others of the same dtype. Out: whether each is in the set. The keys of the set are sorted once and
//! searched for each element, some elements in step. NaN is in no set.

use std::slice::from_raw_parts_mut;

use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::simd::widest;
use opsmith_runtime::{Result, Scratch, View, ViewMut};

use super::TOGETHER;
use crate::cpu::copy::with_slice;
use crate::cpu::sort::digits::{Numbered, put_in_order};
use crate::cpu::sort::{SortKey, nan_key};
use crate::cpu::strides::expect_sizes;

/// Whether each of `elements` is among `test_elements`, or is not if `invert`.
///
/// # Errors
/// If the output has another shape than `elements`.
pub fn isin<T: SortKey>(
    elements: View<'_, T>,
    test_elements: View<'_, T>,
    invert: bool,
    mut out: ViewMut<'_, bool>,
) -> Result<()> {
    expect_sizes(out.sizes(), elements.sizes())?;
    let nan = nan_key::<T>();
    let elements = elements.to_contiguous();
    let keys = test_elements.iter().map(T::sort_key).filter(|key| Some(*key) != nan);
    with_slice(&mut out, |out| {
        if size_of::<T>() <= 4 {
            let set = keys.map(|key| key as u32).collect();
            find(set, &elements, |element| element.sort_key() as u32, invert, out);
        } else {
            find(keys.collect(), &elements, T::sort_key, invert, out);
        }
    })
}

/// Writes whether the key of each element is in the set, or is not if `invert`.
fn find<T: Sync + Copy, K: Numbered>(
    mut set: Scratch<K>,
    elements: &[T],
    key: impl Fn(T) -> K + Copy + Sync,
    invert: bool,
    out: &mut [bool],
) {
    put_in_order(&mut set, 0);
    set.dedup();
    if set.is_empty() {
        return out.fill(invert);
    }
    let (set, target) = (&set[..], Shared(out.as_mut_ptr()));
    parallel::for_each_range(elements.len(), CHUNK / TOGETHER, |range| {
        // SAFETY: the output has a place for each element, and each range has one thread.
        let found = unsafe { from_raw_parts_mut(target.at(range.start as i64), range.len()) };
        let elements = &elements[range];
        widest(
            #[inline(always)]
            move || {
                for (elements, found) in elements.chunks(TOGETHER).zip(found.chunks_mut(TOGETHER)) {
                    let mut keys = [set[0]; TOGETHER];
                    keys.iter_mut().zip(elements).for_each(|(to, element)| *to = key(*element));
                    let are_members = members(set, keys);
                    found.iter_mut().zip(are_members).for_each(|(to, is_member)| *to = is_member ^ invert);
                }
            },
        );
    });
}

/// Whether each key is in the set, which has one and is in order: halves of it are left out until one remains.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
fn members<K: Numbered>(set: &[K], keys: [K; TOGETHER]) -> [bool; TOGETHER] {
    let (mut places, mut left) = ([0usize; TOGETHER], set.len());
    while left > 1 {
        let half = left / 2;
        for lane in 0..TOGETHER {
            // SAFETY: `left` keys from the place on are keys of the set, and `half` is fewer.
            let other = unsafe { *set.get_unchecked(places[lane] + half) };
            places[lane] += if other <= keys[lane] { half } else { 0 };
        }
        left -= half;
    }
    // SAFETY: one key from the place on is a key of the set.
    std::array::from_fn(|lane| unsafe { *set.get_unchecked(places[lane]) } == keys[lane])
}

#[cfg(test)]
mod tests {
    use opsmith_runtime::f16;

    use super::*;
    use crate::cpu::testing::{Array, scattered, with_threads};

    fn found<T: SortKey>(elements: &[T], set: &[T], invert: bool) -> Vec<bool> {
        // Every second element, backwards.
        let twice = elements.iter().rev().flat_map(|&element| [element, T::default()]);
        let elements = Array::new(&[2 * elements.len() as i64], twice).halved(0).reversed(0);
        let set = Array::new(&[set.len() as i64], set.iter().copied());
        let mut out = Array::zeros(&elements.sizes);
        isin(elements.view(), set.view(), invert, out.view_mut()).unwrap();
        out.to_vec()
    }

    #[test]
    fn members_of_sets() {
        let nan = f32::NAN;
        let elements = [1.0, nan, -0.0, 3.0, f32::INFINITY];
        assert_eq!(
            found(&elements, &[nan, 0.0, f32::INFINITY, 3.0, 3.0], false),
            [false, false, true, true, true]
        );
        assert_eq!(found(&elements, &[nan], true), [true; 5]);
        assert_eq!(found(&elements, &[], false), [false; 5]);
        assert_eq!(found(&[], &elements, false), [false; 0]);
        assert_eq!(found(&[true, false], &[true], false), [true, false]);
        assert_eq!(found(&[i64::MIN, -1, i64::MAX], &[i64::MAX, i64::MIN], false), [true, false, true]);
        assert_eq!(found(&[u64::MAX, 0], &[u64::MAX], false), [true, false]);
        assert_eq!(found(&[f16::NEG_ZERO, f16::NAN], &[f16::NAN, f16::ZERO], false), [true, false]);
    }

    #[test]
    fn many_elements_in_threads() {
        let numbers = |count, scale: f64| scattered(count).map(move |x| (x * scale).round() as i64);
        for (count, others) in [(1, 1), (17, 3), (40_003, 2), (40_003, 1000), (3000, 20_011)] {
            let (elements, set): (Vec<i64>, Vec<i64>) =
                (numbers(count, 4000.0).collect(), numbers(others, 5000.0).collect());
            let seen: std::collections::HashSet<i64> = set.iter().copied().collect();
            let expected: Vec<bool> = elements.iter().map(|element| seen.contains(element)).collect();
            let floats = |numbers: &[i64]| numbers.iter().map(|x| *x as f32).collect::<Vec<f32>>();
            with_threads(|| {
                assert_eq!(found(&elements, &set, false), expected);
                let inverted: Vec<bool> = found(&floats(&elements), &floats(&set), true);
                assert!(inverted.iter().zip(&expected).all(|(a, b)| a != b));
            });
        }
    }
}
