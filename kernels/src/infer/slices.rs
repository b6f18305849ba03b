//! Shapes of operators on slices, sequences and counts.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::infer::InferContext;
use opsmith_runtime::infer::symbolic::Size;
use opsmith_runtime::layout::checked_numel;
use opsmith_runtime::{DType, Dims, Element, Error, Result, Tensor, View, with_dtype};

use super::indexing::broadcast_pair;
use crate::cpu::order::extremes;

/// The shape that all tensors broadcast to.
///
/// # Errors
/// If they do not broadcast.
pub fn common_sizes(tensors: &[Tensor]) -> Result<Dims> {
    tensors.iter().try_fold(Dims::new(), |sizes, tensor| broadcast_pair(&sizes, tensor.shape()))
}

/// The number of elements of each vector; 1 of a tensor without dimensions.
///
/// # Errors
/// If one has several dimensions.
pub fn lengths(tensors: &[Tensor]) -> Result<Dims> {
    let length = |tensor: &Tensor| match tensor.dim() {
        0 | 1 => Ok(tensor.numel()),
        _ => Err(Error::shape(format!("a grid needs vectors, got the shape {}", ShapeText(tensor.shape())))),
    };
    tensors.iter().map(length).collect()
}

/// The shape of `self`, whose elements have places in sequences.
///
/// # Errors
/// If there is neither one sequence nor one for each row.
pub fn searchsorted(sorted_sequence: &Tensor, self_: &Tensor) -> Result<Dims> {
    let rows = |tensor: &Tensor| tensor.shape().split_last().map(|(_, rows)| Dims::from_slice(rows));
    match (rows(sorted_sequence), rows(self_)) {
        (Some(rows), _) if rows.is_empty() => Ok(self_.shape().into()),
        (Some(rows), Some(own)) if rows == own => Ok(self_.shape().into()),
        _ => Err(Error::shape(format!(
            "elements of the shape {} have no places in sequences of the shape {}",
            ShapeText(self_.shape()),
            ShapeText(sorted_sequence.shape())
        ))
        .with_help("give one sequence, or one for each row: all dimensions but the last are equal")),
    }
}

/// As many numbers from 0 on as the largest element of `self` needs, or `minlength`; of the dtype of `weights` if that is
/// `float32`, else `float64`, of `int64` without.
///
/// # Errors
/// If an element is negative, or the elements are not known.
pub fn bincount(context: &mut InferContext<'_>) -> Result<()> {
    let dtype = context.dtype("self")?;
    let most = match dtype {
        DType::I64 => context.with_value("self", |view: View<'_, i64>| {
            largest(extremes(&view.to_contiguous()).into_iter().flatten())
        })?,
        dtype => with_dtype!(dtype, T => context.with_value("self", |view: View<'_, T>| {
            largest(view.iter().map(|element| element.to_scalar().to_i64()))
        }))?,
    };
    let Some(most) = most.transpose()? else {
        return Err(Error::value("the elements of `self` are not known before the run"));
    };
    let count = most.map_or(0, |most| most.saturating_add(1));
    let count = count.max(context.attribute::<i64>("minlength")?);
    checked_numel(&[count])?;
    let dtype = match context.optional_input("weights")? {
        Some(weights) if most.is_some() => match weights.dtype {
            DType::F32 => DType::F32,
            _ => DType::F64,
        },
        _ => DType::I64,
    };
    context.set_shape(0, [Size::Const(count)])?;
    context.set_dtype(0, dtype)
}

/// The number of classes: as given, or one more than the largest number if -1.
///
/// # Errors
/// If the number follows from the elements and there is none, or it is negative, or not known.
pub fn classes(self_: &Tensor, num_classes: i64) -> Result<i64> {
    if num_classes != -1 {
        return Ok(num_classes);
    }
    let elements = with_dtype!(self_.dtype(), T => self_.with_view(|view: View<'_, T>| {
        largest(view.iter().map(|element| element.to_scalar().to_i64()))
    }))?;
    match elements? {
        Some(largest) => Ok(largest.saturating_add(1)),
        None => Err(Error::value("no class is given, so that their number does not follow")
            .with_help("give `num_classes`")),
    }
}

/// The largest number of several that are not negative, if there is one.
fn largest(mut numbers: impl Iterator<Item = i64>) -> Result<Option<i64>> {
    numbers.try_fold(None, |largest, number| match number {
        0.. => Ok(largest.max(Some(number))),
        _ => Err(Error::value(format!("{number} is negative, and cannot be counted"))),
    })
}

/// Two rows, of as many elements as the lower triangle of a matrix has.
///
/// # Errors
/// If they do not fit in memory.
pub fn tril_indices(row: i64, col: i64, offset: i64) -> Result<Dims> {
    pairs(lower(row, col, offset.into()))
}

/// Two rows, of as many elements as the upper triangle of a matrix has.
///
/// # Errors
/// If they do not fit in memory.
pub fn triu_indices(row: i64, col: i64, offset: i64) -> Result<Dims> {
    pairs(i128::from(row) * i128::from(col) - lower(row, col, i128::from(offset) - 1))
}

fn pairs(count: i128) -> Result<Dims> {
    let sizes = i64::try_from(count).map(|count| Dims::from_slice(&[2, count]));
    let sizes = sizes.map_err(|_| Error::shape("the indices of a triangle do not fit in memory"))?;
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// The number of elements of a lower triangle.
fn lower(rows: i64, columns: i64, offset: i128) -> i128 {
    let (rows, columns) = (i128::from(rows.max(0)), i128::from(columns.max(0)));
    // Rows before `first` have no element, those from `full` on all of them.
    let first = (-offset).clamp(0, rows);
    let full = (columns - offset - 1).clamp(first, rows);
    let (shortest, longest) = (first + offset + 1, full + offset);
    let rising = (full - first) * (shortest + longest) / 2;
    if columns == 0 { 0 } else { rising + (rows - full) * columns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(elements: &[i64], shape: &[i64]) -> Tensor {
        Tensor::from_slice(elements, shape).unwrap()
    }

    #[test]
    fn triangles() {
        for (rows, columns, offset) in
            [(3, 3, 0), (4, 2, 1), (2, 4, -1), (3, 3, 9), (3, 3, -9), (0, 3, 0), (3, 0, 0)]
        {
            let brute: i64 = (0..rows).map(|row: i64| (row + offset + 1).clamp(0, columns)).sum();
            assert_eq!(tril_indices(rows, columns, offset).unwrap()[..], [2, brute]);
            let brute: i64 = (0..rows).map(|row: i64| columns - (row + offset).clamp(0, columns)).sum();
            assert_eq!(triu_indices(rows, columns, offset).unwrap()[..], [2, brute]);
        }
        assert!(tril_indices(i64::MAX, i64::MAX, i64::MAX).is_err());
        assert_eq!(triu_indices(i64::MAX, i64::MAX, i64::MAX).unwrap()[..], [2, 0]);
    }

    #[test]
    fn counts() {
        assert!(classes(&tensor(&[-1, 2], &[2]), -1).is_err());
        assert_eq!(classes(&tensor(&[2, 0], &[2]), -1).unwrap(), 3);
        assert!(classes(&tensor(&[], &[0]), -1).is_err());
    }
}
