//! Places of elements in sequences in order, and rows that differ.

use opsmith_runtime::arith::Ordered;
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::sort::SortKey;
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
    let Some((&length, rows)) = sorted_sequence.sizes().split_last() else {
        return Err(Error::shape("a sequence has a dimension"));
    };
    let width = match self_.sizes().split_last() {
        _ if rows.is_empty() => self_.numel().max(1),
        Some((&width, own)) if own == rows => width.max(1) as usize,
        _ => return Err(Error::shape("there is not a sequence for each row")),
    };
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

/// The rows of a matrix that differ from all others, in ascending order, if `sorted`, else from the one before; the number of
/// each row among them, and how many are equal to each. NaN differs from itself.
///
/// # Errors
/// If an output has another size than the number of rows found.
pub fn unique_rows<T: SortKey>(
    self_: View<'_, T>,
    sorted: bool,
    mut values: ViewMut<'_, T>,
    mut inverse: ViewMut<'_, i64>,
    mut counts: ViewMut<'_, i64>,
) -> Result<()> {
    let &[count, width] = self_.sizes() else {
        return Err(Error::shape("rows are those of a matrix"));
    };
    let (count, width) = (count as usize, width as usize);
    let elements = self_.to_contiguous();
    let keys: Scratch<u64> = elements.iter().map(|element| element.sort_key()).collect();
    let row = |number: usize| &keys[number * width..(number + 1) * width];
    let mut order: Scratch<usize> = (0..count).collect();
    if sorted {
        order.sort_unstable_by(|&a, &b| row(a).cmp(row(b)).then(a.cmp(&b)));
    }
    let nan = |element: &T| matches!(element.to_scalar(), Scalar::Float(value) if value.is_nan());
    let has_nan = |number: usize| elements[number * width..(number + 1) * width].iter().any(nan);
    let (mut first, mut often, mut numbers) = (Scratch::new(), Scratch::new(), Scratch::filled(0i64, count));
    for (place, &number) in order.iter().enumerate() {
        if place == 0 || row(order[place - 1]) != row(number) || has_nan(number) {
            first.push(number);
            often.push(0i64);
        }
        if let Some(often) = often.last_mut() {
            *often += 1;
        }
        numbers[number] = first.len() as i64 - 1;
    }
    expect_sizes(values.sizes(), &[first.len() as i64, width as i64])?;
    expect_sizes(counts.sizes(), &[often.len() as i64])?;
    expect_sizes(inverse.sizes(), &[count as i64])?;
    counts.write(often)?;
    inverse.write(numbers)?;
    values.write(
        first.iter().flat_map(|&number| elements[number * width..(number + 1) * width].iter().copied()),
    )
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

    #[test]
    fn rows() {
        let input = Array::new(&[3, 2], [2i64, 5, 1, 2, 2, 5]);
        let (mut values, mut inverse, mut counts) =
            (Array::zeros(&[2, 2]), Array::zeros(&[3]), Array::zeros(&[2]));
        unique_rows(input.view(), true, values.view_mut(), inverse.view_mut(), counts.view_mut()).unwrap();
        assert_eq!(values.to_vec(), [1, 2, 2, 5]);
        assert_eq!((inverse.to_vec(), counts.to_vec()), (vec![1, 0, 1], vec![1, 2]));
    }
}
