//! A kernel that takes every list, and lists of lists: its result depends on all of them.

use opsmith_runtime::{DType, Element, Lists, Result, Scalar, Text, View, ViewMut};

/// Lengths and sums of all lists; items of a row count as often as the row's number. `digest` in
/// `kernels.cc` computes the same.
#[allow(clippy::too_many_arguments, reason = "one for each type")]
pub fn digest<T: Element>(
    _tensor: View<'_, T>,
    words: &[Text],
    dtypes: &[DType],
    pairs: &Lists<i64>,
    weights: &Lists<f64>,
    flags: &Lists<bool>,
    names: &Lists<Text>,
    numbers: &Lists<Scalar>,
    kinds: &Lists<DType>,
    words_q: Option<&[Text]>,
    scalars_q: Option<&[Scalar]>,
    pairs_q: Option<&Lists<i64>>,
    names_q: Option<&Lists<Text>>,
    numbers_q: Option<&Lists<Scalar>>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let index = |dtype: &DType| dtype.index() as f64;
    let length = |text: &Text| text.len() as f64;
    let number = |value: &Scalar| value.to_f64();
    let values = [
        words.len() as f64,
        words.iter().map(length).sum(),
        dtypes.iter().map(index).sum(),
        pairs.len() as f64,
        weighed(pairs, |value| *value as f64),
        weighed(weights, |value| *value),
        weighed(flags, |value| f64::from(u8::from(*value))),
        weighed(names, length),
        weighed(numbers, number),
        weighed(kinds, index),
        words_q.map_or(-1.0, |words| words.len() as f64),
        scalars_q.map_or(-1.0, |list| list.iter().map(number).sum()),
        pairs_q.map_or(-1.0, |lists| weighed(lists, |value| *value as f64)),
        names_q.map_or(-1.0, |lists| weighed(lists, length)),
        numbers_q.map_or(-1.0, |lists| weighed(lists, number)),
    ];
    out.write(values.map(|value| T::from_scalar(Scalar::Float(value))))
}

fn weighed<T: Clone>(lists: &Lists<T>, value: impl Fn(&T) -> f64) -> f64 {
    let row = |(row, items): (usize, &[T])| (row + 1) as f64 * items.iter().map(&value).sum::<f64>();
    lists.iter().enumerate().map(row).sum()
}
