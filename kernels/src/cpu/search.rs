//! Places of elements in sequences in order.

use opsmith_runtime::arith::Ordered;
use opsmith_runtime::layout::numel;
use opsmith_runtime::{Element, Error, Result, View, ViewMut};

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
    let (sequences, length) = (sorted_sequence.to_contiguous(), length as usize);
    let is_before = |x: T::Compute, value: T::Compute| if right { !x.gt(value) } else { !x.ge(value) };
    let place = |(number, element): (usize, T)| {
        let first = number / width * length;
        let sequence = &sequences[first..first + length];
        let value = element.to_compute();
        sequence.partition_point(|x| is_before(x.to_compute(), value)) as i64
    };
    out.write(self_.iter().enumerate().map(place))
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
    use crate::cpu::testing::Array;

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
}
