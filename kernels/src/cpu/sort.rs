//! Sorting along a dimension.
//!
//! NaN counts as larger than every number. Equal elements keep their order, also backwards, so every
//! sort is stable.

pub(super) mod digits;

use opsmith_runtime::axes::Walk;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::{Dims, Element, Error, Result, Scalar, Scratch, View, ViewMut};

use self::digits::{Numbered, made, put_in_order};
use super::strides::expect_sizes;
use super::tiles::lines;

/// Element types with an order, as a number that sorts the same way.
pub trait SortKey: Element {
    /// A number that is larger for a larger element; NaN has the largest. Types of at most 32 bits
    /// give numbers of at most 32 bits.
    fn sort_key(self) -> u64;

    /// The element of a key: of the zeros, which have one, that without a sign, and of all NaN one.
    fn from_sort_key(key: u64) -> Self;
}

impl SortKey for bool {
    #[inline(always)]
    fn sort_key(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn from_sort_key(key: u64) -> bool {
        key != 0
    }
}

macro_rules! unsigned_keys {
    ($($ty:ty),*) => {$(
        impl SortKey for $ty {
            #[inline(always)]
            fn sort_key(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            fn from_sort_key(key: u64) -> $ty {
                key as $ty
            }
        }
    )*};
}

macro_rules! signed_keys {
    ($($ty:ty as $unsigned:ty),*) => {$(
        impl SortKey for $ty {
            #[inline(always)]
            fn sort_key(self) -> u64 {
                // The sign bit decides the other way round.
                u64::from(self as $unsigned ^ <$ty>::MIN as $unsigned)
            }

            #[inline(always)]
            fn from_sort_key(key: u64) -> $ty {
                key as $ty ^ <$ty>::MIN
            }
        }
    )*};
}

macro_rules! float_keys {
    ($($ty:ty, $float:ty, $bits:ty, |$x:ident| $number:expr, |$y:ident| $element:expr;)*) => {$(
        impl SortKey for $ty {
            #[inline(always)]
            fn sort_key(self) -> u64 {
                let $x = self;
                let number = $number;
                if number.is_nan() {
                    return u64::from(<$bits>::MAX);
                }
                // Adding zero makes -0 equal to 0.
                let bits = (number + 0.0).to_bits();
                let sign = 1 << (<$bits>::BITS - 1);
                u64::from(if bits & sign == 0 { bits | sign } else { !bits })
            }

            #[inline(always)]
            fn from_sort_key(key: u64) -> $ty {
                let (key, sign) = (key as $bits, 1 << (<$bits>::BITS - 1));
                let $y = <$float>::from_bits(if key & sign == 0 { !key } else { key ^ sign });
                $element
            }
        }
    )*};
}

unsigned_keys!(u8, u16, u32, u64);
signed_keys!(i8 as u8, i16 as u16, i32 as u32, i64 as u64);
float_keys! {
    f32, f32, u32, |x| x, |x| x;
    f64, f64, u64, |x| x, |x| x;
}

macro_rules! half_keys {
    ($({ $variant:ident: $($columns:tt)* })*) => {
        float_keys! { $(
            opsmith_runtime::element::named::$variant, f32, u32, |x| x.to_compute(), |x| Element::from_compute(x);
        )* }
    };
}

opsmith_core::for_each_half!(half_keys);

/// The elements along a dimension in ascending or descending order, and where they were.
///
/// # Errors
/// If there is no such dimension.
pub fn sort<T: SortKey>(
    self_: View<'_, T>,
    dim: i64,
    descending: bool,
    values: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    let length = length_along(self_.sizes(), dim)?;
    first_in_order(&self_, dim, length, descending, true, values, indices)
}

/// The `k` largest or smallest elements along a dimension, and where they were, best first if
/// `sorted`. Of equal elements the first are taken.
///
/// # Errors
/// If there are fewer than `k` elements along the dimension.
pub fn topk<T: SortKey>(
    self_: View<'_, T>,
    k: i64,
    dim: i64,
    largest: bool,
    sorted: bool,
    values: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    let k = check_choice(k, length_along(self_.sizes(), dim)?, dim)?;
    first_in_order(&self_, dim, k, largest, sorted, values, indices)
}

/// The number of elements to choose from a line, if it has as many.
///
/// # Errors
/// If it has not.
pub(crate) fn check_choice(k: i64, length: usize, dim: i64) -> Result<usize> {
    usize::try_from(k).ok().filter(|&k| k <= length).ok_or_else(|| {
        Error::value(format!("{k} elements cannot be chosen from the {length} along dimension {dim}"))
            .with_help(format!("use 0 to {length}"))
    })
}

/// The number of elements along a dimension; one of a scalar.
///
/// # Errors
/// If there is no such dimension.
pub(crate) fn length_along(sizes: &[i64], dim: i64) -> Result<usize> {
    let dim = wrap_dim(dim, sizes.len())?;
    Ok(sizes.get(dim).map_or(1, |&size| size as usize))
}

/// How much longer it takes to sort an element than to add one.
const SORTED: usize = 16;

/// Entries that are kept, at least, before the best of them are chosen.
pub(in crate::cpu) const KEPT: usize = 512;

/// Writes the first `count` elements of each line in order.
fn first_in_order<T: SortKey>(
    input: &View<'_, T>,
    dim: i64,
    count: usize,
    descending: bool,
    sorted: bool,
    mut values: ViewMut<'_, T>,
    mut indices: ViewMut<'_, i64>,
) -> Result<()> {
    let dim = wrap_dim(dim, input.dim())?;
    let mut sizes: Dims = input.sizes().into();
    if let Some(size) = sizes.get_mut(dim) {
        *size = count as i64;
    }
    expect_sizes(values.sizes(), &sizes)?;
    expect_sizes(indices.sizes(), &sizes)?;
    let strides = [input.strides(), values.strides(), indices.strides()];
    let (line, outer) = lines(input.sizes(), strides, dim);
    let small = size_of::<T>() <= 4 && line.size <= i64::from(u32::MAX);
    let starts: Scratch<[i64; 3]> = Walk::new(&outer).collect();
    let (to_values, to_indices) = (Shared(values.as_mut_ptr()), Shared(indices.as_mut_ptr()));
    parallel::for_each_range_of(SORTED * line.size as usize, starts.len(), |lines| {
        let (mut packed, mut wide) = (Scratch::new(), Scratch::new());
        for start in &starts[lines] {
            let key = |index: i64| {
                // SAFETY: a position of the input.
                let key = unsafe { input.at(start[0] + index * line.steps[0]) }.sort_key();
                if descending { !key } else { key }
            };
            let length = line.size as usize;
            let put = |place: i64, key: u64, index: i64| {
                // SAFETY: positions of the three views, and those of the results are no other thread's.
                unsafe {
                    let element = match element_of(if descending { !key } else { key }) {
                        Some(element) => element,
                        None => input.at(start[0] + index * line.steps[0]),
                    };
                    *to_values.at(start[1] + place * line.steps[1]) = element;
                    *to_indices.at(start[2] + place * line.steps[2]) = index;
                }
            };
            // Element by index: a sort that compares key and index together is stable.
            if small {
                let entry = |index: usize| key(index as i64) << 32 | index as u64;
                put_first(&mut packed, length, count, sorted, 32, entry);
                for_each_entry(&packed, |place, entry| put(place, entry >> 32, i64::from(*entry as u32)));
            } else {
                let entry = |index: usize| (key(index as i64), index as i64);
                put_first(&mut wide, length, count, sorted, 0, entry);
                for_each_entry(&wide, |place, &(key, index)| put(place, key, index));
            }
        }
    });
    Ok(())
}

/// Makes the entries of a line, and moves the `count` smallest to the front, in order if `sorted`. Bits of their numbers below `lowest`
/// are those of their place in the line.
fn put_first<N: Numbered>(
    entries: &mut Scratch<N>,
    length: usize,
    count: usize,
    sorted: bool,
    lowest: u32,
    entry: impl Fn(usize) -> N + Sync,
) {
    if count == length {
        made(entries, length, entry);
        if sorted {
            put_in_order(entries, lowest);
        }
        return;
    }
    keep_first(entries, (0..length).map(entry), length, count);
    if count > 0 && count < entries.len() {
        entries.select_nth_unstable(count - 1);
    }
    entries.truncate(count);
    if sorted {
        entries.sort_unstable();
    }
}

/// The key of NaN, if the type has one.
pub(super) fn nan_key<T: SortKey>() -> Option<u64> {
    T::DTYPE.is_float().then(|| T::from_scalar(Scalar::Float(f64::NAN)).sort_key())
}

/// The element of a key, unless others have it, too. Bits of the key beyond those of an element of 32 bits may be any.
#[inline(always)]
fn element_of<T: SortKey>(key: u64) -> Option<T> {
    let key = if size_of::<T>() <= 4 { u64::from(key as u32) } else { key };
    let is_shared = T::DTYPE.is_float() && (key == T::default().sort_key() || Some(key) == nan_key::<T>());
    (!is_shared).then(|| T::from_sort_key(key))
}

/// Calls `body` with each entry and its place, in several threads if there are many.
fn for_each_entry<N: Sync>(entries: &[N], body: impl Fn(i64, &N) + Sync) {
    parallel::for_each_range(entries.len(), CHUNK, |places| {
        for place in places {
            body(place as i64, &entries[place]);
        }
    });
}

/// Fills a list with entries, among them the `count` smallest of all: those that are larger than as many before them are passed over.
fn keep_first<K: Ord + Copy>(
    kept: &mut Scratch<K>,
    entries: impl Iterator<Item = K>,
    length: usize,
    count: usize,
) {
    kept.clear();
    let room = (count * 4).max(KEPT);
    if count == 0 || length <= room {
        return kept.extend(entries);
    }
    let mut limit = None;
    for entry in entries {
        if limit.is_some_and(|limit| entry > limit) {
            continue;
        }
        kept.push(entry);
        if kept.len() == room {
            kept.select_nth_unstable(count - 1);
            limit = Some(kept[count - 1]);
            kept.truncate(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use opsmith_runtime::f16;

    use super::*;
    use crate::cpu::testing::{Array, scattered, with_threads};

    #[test]
    fn keys_sort_like_numbers() {
        let ascending = [f64::NEG_INFINITY, -1e300, -1.0, -5e-324, 0.0, 5e-324, 1.0, f64::INFINITY, f64::NAN];
        assert!(ascending.windows(2).all(|pair| pair[0].sort_key() < pair[1].sort_key()));
        assert_eq!((-0.0f64).sort_key(), 0.0f64.sort_key());
        assert!([i8::MIN, -1, 0, 1, i8::MAX].windows(2).all(|pair| pair[0].sort_key() < pair[1].sort_key()));
        assert!(f16::NEG_ONE.sort_key() < f16::ZERO.sort_key());
        assert_eq!((-f32::NAN).sort_key(), f32::NAN.sort_key());
    }

    #[test]
    fn lines_of_any_strides() {
        let numbers: Vec<f64> = scattered(60).map(|x| (x * 3.0).round()).collect();
        for input in [
            Array::new(&[60], numbers.clone()).reversed(0),
            Array::new(&[5, 12], numbers.clone()),
            Array::new(&[12, 5], numbers.clone()).permuted(&[1, 0]),
            Array::new(&[5, 24], scattered(120)).halved(1),
        ] {
            for descending in [false, true] {
                let dim = input.sizes.len() - 1;
                let length = input.sizes[dim] as usize;
                let (mut values, mut at) = (Array::zeros(&input.sizes), Array::zeros(&input.sizes));
                sort(input.view(), -1, descending, values.view_mut(), at.view_mut()).unwrap();
                for (line, (values, at)) in input
                    .to_vec()
                    .chunks(length)
                    .zip(values.to_vec().chunks(length).zip(at.to_vec().chunks(length)))
                {
                    let mut expected: Vec<usize> = (0..length).collect();
                    expected.sort_by(|&a, &b| {
                        let order = line[a].partial_cmp(&line[b]).unwrap();
                        if descending { order.reverse() } else { order }
                    });
                    assert_eq!(at, expected.iter().map(|&i| i as i64).collect::<Vec<_>>());
                    assert_eq!(values, expected.iter().map(|&i| line[i]).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn nan_is_largest() {
        let input = Array::new(&[4], [2.0f32, f32::NAN, -1.0, f32::INFINITY]);
        let (mut values, mut at) = (Array::zeros(&[4]), Array::zeros(&[4]));
        sort(input.view(), 0, false, values.view_mut(), at.view_mut()).unwrap();
        assert_eq!(at.to_vec(), [2, 0, 3, 1]);
        sort(input.view(), 0, true, values.view_mut(), at.view_mut()).unwrap();
        assert_eq!(at.to_vec(), [1, 3, 0, 2]);
    }

    #[test]
    fn the_best_few() {
        let input = Array::new(&[3, 2], [5i64, 1, 9, 1, 7, 3]);
        let (mut values, mut at) = (Array::zeros(&[2, 2]), Array::zeros(&[2, 2]));
        topk(input.view(), 2, 0, true, true, values.view_mut(), at.view_mut()).unwrap();
        assert_eq!((values.to_vec(), at.to_vec()), (vec![9, 3, 7, 1], vec![1, 2, 2, 0]));
        topk(input.view(), 2, 0, false, true, values.view_mut(), at.view_mut()).unwrap();
        assert_eq!((values.to_vec(), at.to_vec()), (vec![5, 1, 7, 1], vec![0, 0, 2, 1]));
        assert!(topk(input.view(), 4, 0, true, true, values.view_mut(), at.view_mut()).is_err());
        // Of a long line, entries are passed over; equal ones keep their order.
        let line = Array::new(&[10 * KEPT as i64], (0..10 * KEPT as i64).map(|number| number * 7919 % 1013));
        let length = line.sizes[0];
        let sorted = |count: i64, largest: bool| {
            let (mut values, mut at) = (Array::zeros(&[count]), Array::zeros(&[count]));
            topk(line.view(), count, 0, largest, true, values.view_mut(), at.view_mut()).unwrap();
            (values.to_vec(), at.to_vec())
        };
        for largest in [false, true] {
            let (values, at) = sorted(length, largest);
            for count in [1, 100, KEPT as i64 / 4 + 1] {
                let first = |all: &[i64]| all[..count as usize].to_vec();
                assert_eq!(sorted(count, largest), (first(&values), first(&at)));
            }
        }
        let (mut value, mut at) = (Array::zeros(&[]), Array::zeros(&[]));
        sort(Array::new(&[], [3u8]).view(), 0, false, value.view_mut(), at.view_mut()).unwrap();
        assert_eq!((value.to_vec(), at.to_vec()), (vec![3], vec![0]));
    }

    #[test]
    fn long_lines_in_threads() {
        let count = 40_003;
        let numbers: Vec<i64> = scattered(2 * count).map(|x| (x * 1000.0).round() as i64).collect();
        let floats = numbers.iter().map(|x| if *x == 7 { f32::NAN } else { *x as f32 });
        let (ints, floats) = (numbers.iter().copied(), floats);
        let shape = [count as i64, 2];
        for descending in [false, true] {
            let orders = [0, 1].map(|column| {
                let mut order: Vec<i64> = (0..count as i64).collect();
                let key = |row: &i64| numbers[*row as usize * 2 + column];
                order.sort_by_key(|row| if descending { -key(row) } else { key(row) });
                order
            });
            let expected: Vec<i64> = (0..2 * count).map(|place| orders[place % 2][place / 2]).collect();
            let (of_ints, of_floats) = (Array::new(&shape, ints.clone()), Array::new(&shape, floats.clone()));
            with_threads(|| {
                let (mut values, mut at) = (Array::zeros(&shape), Array::zeros(&shape));
                sort(of_ints.view(), 0, descending, values.view_mut(), at.view_mut()).unwrap();
                assert!(at.to_vec() == expected);
                assert!(
                    values
                        .to_vec()
                        .iter()
                        .zip(&expected)
                        .enumerate()
                        .all(|(place, (value, row))| { *value == numbers[*row as usize * 2 + place % 2] })
                );
                let mut values = Array::zeros(&shape);
                sort(of_floats.view(), 0, descending, values.view_mut(), at.view_mut()).unwrap();
                let keys: Vec<u64> = values.to_vec().iter().map(|value| value.sort_key()).collect();
                assert!(keys.chunks(2).zip(keys.chunks(2).skip(1)).all(|(row, next)| {
                    (0..2).all(|column| {
                        if descending { row[column] >= next[column] } else { row[column] <= next[column] }
                    })
                }));
            });
        }
    }
}
