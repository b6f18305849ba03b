//! Shapes of joined, repeated and padded tensors, and of those that depend on elements.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::{checked_numel, wrap_dim};
use opsmith_runtime::{DType, Dims, Error, Result, Tensor, View, with_dtype};

use crate::cpu::mask::Mask;

/// The shape of tensors joined along a new dimension.
///
/// # Errors
/// If there are none, their shapes differ, or the dimension is out of range.
pub fn stack(tensors: &[Tensor], dim: i64) -> Result<Dims> {
    let Some(first) = tensors.first() else {
        return Err(Error::value("an empty list of tensors cannot be joined"));
    };
    if let Some(index) = tensors.iter().position(|tensor| tensor.shape() != first.shape()) {
        return Err(Error::shape(format!(
            "tensor {index} has the shape {}, the first {}",
            ShapeText(tensors[index].shape()),
            ShapeText(first.shape())
        ))
        .with_help("tensors that are stacked have one shape"));
    }
    let dim = wrap_dim(dim, first.dim() + 1)?;
    let mut sizes: Dims = first.shape().into();
    sizes.insert(dim, tensors.len() as i64);
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// The shape of a repeated tensor, each dimension as its repetitions and its size: `[3]` repeated
/// `[2, 4]` times is `[2, 1, 4, 3]`.
///
/// # Errors
/// If there are fewer numbers of repetitions than dimensions.
pub fn repeat_groups(sizes: &[i64], repeats: &[i64]) -> Result<Dims> {
    let new = repeats.len().checked_sub(sizes.len()).ok_or_else(|| {
        Error::value(format!("{} numbers are given for {} dimensions", repeats.len(), sizes.len()))
    })?;
    let own = (0..repeats.len()).map(|dim| if dim < new { 1 } else { sizes[dim - new] });
    Ok(repeats.iter().zip(own).flat_map(|(&times, size)| [times, size]).collect())
}

/// The dimensions of [`repeat_groups`] that hold repetitions.
///
/// # Errors
/// None; a function of a spec returns a result.
pub fn repeat_dims(repeats: &[i64]) -> Result<Dims> {
    Ok((0..repeats.len() as i64).map(|dim| 2 * dim).collect())
}

/// Each number with the opposite sign.
///
/// # Errors
/// None; a function of a spec returns a result.
pub fn negated(numbers: &[i64]) -> Result<Dims> {
    Ok(numbers.iter().map(|number| number.wrapping_neg()).collect())
}

/// The shape of a padded tensor; `pad` holds how much before and after each dimension, from the last one
/// on.
///
/// # Errors
/// If `pad` has an odd length or is longer than twice the number of dimensions, or more is cut off than
/// there is.
pub fn constant_pad_nd(self_: &Tensor, pad: &[i64]) -> Result<Dims> {
    let mut sizes: Dims = self_.shape().into();
    if !pad.len().is_multiple_of(2) || pad.len() / 2 > sizes.len() {
        return Err(Error::value(format!("{} numbers cannot pad {} dimensions", pad.len(), sizes.len()))
            .with_help("give two for each dimension, from the last one on"));
    }
    for (size, pad) in sizes.iter_mut().rev().zip(pad.chunks_exact(2)) {
        let padded = size.checked_add(pad[0]).and_then(|size| size.checked_add(pad[1]));
        *size = padded.filter(|padded| *padded >= 0).ok_or_else(|| {
            Error::shape(format!("a dimension of size {size} cannot be padded by {} and {}", pad[0], pad[1]))
        })?;
    }
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// A row of indices for each element that is not zero. They are counted before the kernel finds them: memory comes first.
///
/// # Errors
/// If the elements cannot be read.
pub fn nonzero(self_: &Tensor) -> Result<Dims> {
    Ok(Dims::from_slice(&[count_nonzero(self_)?, self_.dim() as i64]))
}

fn count_nonzero(tensor: &Tensor) -> Result<i64> {
    with_dtype!(tensor.dtype(), T => {
        tensor.with_view(|view: View<'_, T>| Mask::new(&view).total() as i64)
    })
}

/// As many elements as the mask, broadcast with the tensor, holds for.
///
/// # Errors
/// If the two do not broadcast, or the mask is not of truth values.
pub fn masked_select(self_: &Tensor, mask: &Tensor) -> Result<Dims> {
    if mask.dtype() != DType::Bool {
        return Err(Error::dtype(format!("the mask must be bool, got {}", mask.dtype())));
    }
    let both = [self_, mask].map(opsmith_runtime::infer::Operand::Tensor);
    let sizes = opsmith_runtime::infer::shape::broadcast(&both)?;
    let repeated = checked_numel(&sizes)?.checked_div(mask.numel()).unwrap_or(0);
    Ok(Dims::from_slice(&[count_nonzero(mask)? * repeated]))
}
