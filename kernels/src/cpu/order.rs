//! Order statistics along a dimension, and histograms.
//!
//! NaN counts as larger than every number; medians with one are NaN, unless they pass over them. Of equal elements, the
//! first is chosen, by [`mode`] the last.

pub(super) mod counts;

use opsmith_runtime::axes::Walk;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

pub use self::counts::{bincount, histc};
pub(crate) use self::counts::{divisible, extremes};
use super::sort::SortKey;
use super::strides::reduced_strides;
use super::tiles::lines;

/// An element of a line as a number in order, and its place.
type Entry = (u64, i64);

/// The lower median along a dimension and its place; the first NaN if there is one.
///
/// # Errors
/// If there is no such dimension, or no element along it.
pub fn median<T: SortKey>(
    self_: View<'_, T>,
    dim: i64,
    keepdim: bool,
    values: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    choose(&self_, dim, keepdim, values, indices, median_of)
}

/// The lower median along a dimension of the elements that are not NaN, and its place.
///
/// # Errors
/// As [`median`].
pub fn nanmedian<T: SortKey>(
    self_: View<'_, T>,
    dim: i64,
    keepdim: bool,
    values: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    choose(&self_, dim, keepdim, values, indices, nanmedian_of)
}

/// The lower median of all elements.
///
/// # Errors
/// If there is no element, and no NaN to say so.
pub fn median_full<T: SortKey>(self_: View<'_, T>, out: ViewMut<'_, T>) -> Result<()> {
    choose_of_all(&self_, out, median_of)
}

/// The lower median of all elements that are not NaN.
///
/// # Errors
/// As [`median_full`].
pub fn nanmedian_full<T: SortKey>(self_: View<'_, T>, out: ViewMut<'_, T>) -> Result<()> {
    choose_of_all(&self_, out, nanmedian_of)
}

/// The `k`-th smallest element along a dimension, from 1 on, and its place.
///
/// # Errors
/// If there is no such dimension, or fewer than `k` elements along it.
pub fn kthvalue<T: SortKey>(
    self_: View<'_, T>,
    k: i64,
    dim: i64,
    keepdim: bool,
    values: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    let place = place_of(k, dim, self_.sizes())?;
    choose(&self_, dim, keepdim, values, indices, |entries, _| nth(entries, place))
}

/// The place in order, from 0 on, of the `k`-th element along a dimension.
///
/// # Errors
/// As [`kthvalue`].
pub(crate) fn place_of(k: i64, dim: i64, sizes: &[i64]) -> Result<usize> {
    let length = sizes.get(wrap_dim(dim, sizes.len())?).copied().unwrap_or(1);
    if k < 1 || k > length {
        return Err(Error::value(format!(
            "there is no element number {k} of {length} along dimension {dim}"
        ))
        .with_help(format!("use 1 to {length}")));
    }
    Ok((k - 1) as usize)
}

/// The element that occurs most often along a dimension, the smallest of several, and the place of its last occurrence.
///
/// # Errors
/// As [`median`].
pub fn mode<T: SortKey>(
    self_: View<'_, T>,
    dim: i64,
    keepdim: bool,
    values: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    choose(&self_, dim, keepdim, values, indices, |entries, numbers| {
        entries.sort_unstable();
        let (mut best, mut most, mut start) = (0, 0, 0);
        for place in 0..entries.len() {
            // NaN, behind all numbers, differs from itself.
            let ends =
                place + 1 >= numbers || entries.get(place + 1).is_none_or(|next| next.0 != entries[place].0);
            if ends {
                if place + 1 - start > most {
                    (best, most) = (entries[place].1, place + 1 - start);
                }
                start = place + 1;
            }
        }
        best
    })
}

/// The place of the lower median of entries, of which so many are numbers.
fn median_of(entries: &mut [Entry], numbers: usize) -> i64 {
    if numbers < entries.len() {
        // The first NaN.
        return nth(entries, numbers);
    }
    nth(entries, (numbers - 1) / 2)
}

/// The place of the lower median of the entries that are numbers; of the first NaN if there is none.
fn nanmedian_of(entries: &mut [Entry], numbers: usize) -> i64 {
    nth(entries, numbers.saturating_sub(1) / 2)
}

fn nth(entries: &mut [Entry], place: usize) -> i64 {
    entries.select_nth_unstable(place).1.1
}

/// Fills `entries` with a line; returns how many of them are numbers.
fn read<T: SortKey>(entries: &mut Scratch<Entry>, elements: impl Iterator<Item = T>) -> usize {
    entries.clear();
    let mut numbers = 0;
    entries.extend((0..).zip(elements).map(|(place, element)| {
        let is_nan = is_nan(element);
        numbers += usize::from(!is_nan);
        (if is_nan { u64::MAX } else { element.sort_key() }, place)
    }));
    numbers
}

fn is_nan<T: Element>(element: T) -> bool {
    matches!(element.to_scalar(), Scalar::Float(value) if value.is_nan())
}

/// Refuses lines without elements along a dimension.
pub(crate) fn refuse_empty_lines(sizes: &[i64], dim: usize) -> Result<()> {
    if sizes.get(dim) == Some(&0) {
        return Err(Error::shape(format!("there is no element along dimension {dim}")));
    }
    Ok(())
}

/// Writes, for each line, the element at the place that `pick` gives for the line's entries and the number of those that
/// are not NaN.
fn choose<T: SortKey>(
    input: &View<'_, T>,
    dim: i64,
    keepdim: bool,
    mut values: ViewMut<'_, T>,
    mut indices: ViewMut<'_, i64>,
    pick: impl Fn(&mut [Entry], usize) -> i64,
) -> Result<()> {
    let dim = wrap_dim(dim, input.dim())?;
    refuse_empty_lines(input.sizes(), dim)?;
    let reduced: Scratch<bool> = (0..input.dim()).map(|other| other == dim).collect();
    let value_strides = reduced_strides(input.sizes(), &reduced, keepdim, values.sizes(), values.strides())?;
    let index_strides =
        reduced_strides(input.sizes(), &reduced, keepdim, indices.sizes(), indices.strides())?;
    let (line, outer) = lines(input.sizes(), [input.strides(), &value_strides, &index_strides], dim);
    let mut entries = Scratch::new();
    for start in Walk::new(&outer) {
        // SAFETY: positions of the input.
        let at = |place: i64| unsafe { input.at(start[0] + place * line.steps[0]) };
        let numbers = read(&mut entries, (0..line.size).map(at));
        let place = pick(&mut entries, numbers);
        // SAFETY: the walk's positions are positions of the outputs.
        unsafe {
            values.set(start[1], at(place));
            indices.set(start[2], place);
        }
    }
    Ok(())
}

/// The median of no elements: NaN.
///
/// # Errors
/// If the type has none.
pub(crate) fn median_of_nothing<T: Element>() -> Result<T> {
    let nan = T::from_scalar(Scalar::Float(f64::NAN));
    if !is_nan(nan) {
        return Err(Error::shape("no integer is the median of no elements"));
    }
    Ok(nan)
}

fn choose_of_all<T: SortKey>(
    input: &View<'_, T>,
    mut out: ViewMut<'_, T>,
    pick: impl Fn(&mut [Entry], usize) -> i64,
) -> Result<()> {
    let elements = input.to_contiguous();
    if elements.is_empty() {
        return out.write([median_of_nothing()?]);
    }
    let mut entries = Scratch::new();
    let numbers = read(&mut entries, elements.iter().copied());
    let place = pick(&mut entries, numbers);
    out.write([elements[place as usize]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::Array;

    type Kernel = fn(View<'_, f32>, i64, bool, ViewMut<'_, f32>, ViewMut<'_, i64>) -> Result<()>;

    fn along(kernel: Kernel, input: &[f32]) -> (f32, i64) {
        let input = Array::new(&[input.len() as i64], input.iter().copied());
        let (mut value, mut place) = (Array::zeros(&[]), Array::zeros(&[]));
        kernel(input.view(), 0, false, value.view_mut(), place.view_mut()).unwrap();
        (value.to_vec()[0], place.to_vec()[0])
    }

    #[test]
    fn medians_and_modes() {
        let nan = f32::NAN;
        assert_eq!(along(median, &[3.0, 1.0, 2.0, 4.0]), (2.0, 2));
        let (value, place) = along(median, &[3.0, nan, nan, 1.0]);
        assert!(value.is_nan() && place == 1);
        assert_eq!(along(nanmedian, &[3.0, nan, nan, 1.0]), (1.0, 3));
        assert!(along(nanmedian, &[nan, nan]).0.is_nan());
        assert_eq!(along(mode, &[3.0, 1.0, 3.0, 1.0, 2.0]), (1.0, 3));
        assert_eq!(along(mode, &[nan, nan, 2.0]), (2.0, 2));
        assert_eq!(along(mode, &[nan, 2.0, nan, 2.0]), (2.0, 3));
    }
}
