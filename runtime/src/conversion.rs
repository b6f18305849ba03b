//! Conversions between tensors and vectors of the standard library, or arrays of `ndarray` by a feature.
//!
//! In: elements. Out: tensors of the host in row-major order, and the reverse. Elements are copied: a tensor's memory
//! comes from the tensors' allocator.

#[cfg(feature = "ndarray")]
mod arrays;

use crate::element::Element;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// A tensor of one dimension. As for [`Tensor::of`], that there is no memory is a panic; [`Tensor::from_slice`] returns an
/// error.
///
/// ```
/// use opsmith_runtime::{DType, Tensor};
///
/// let tensor = Tensor::from(vec![1.5f32, 2.0]);
/// assert_eq!((tensor.dtype(), tensor.shape()), (DType::F32, &[2][..]));
/// ```
impl<T: Element> From<Vec<T>> for Tensor {
    fn from(elements: Vec<T>) -> Tensor {
        Tensor::of(&elements)
    }
}

/// As from a vector.
impl<T: Element> From<&[T]> for Tensor {
    fn from(elements: &[T]) -> Tensor {
        Tensor::of(elements)
    }
}

/// As from a vector.
impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    fn from(elements: [T; N]) -> Tensor {
        Tensor::of(&elements)
    }
}

/// The elements in row-major order, as [`Tensor::to_vec`] gives them.
///
/// ```
/// use opsmith_runtime::Tensor;
///
/// # fn main() -> opsmith_runtime::Result<()> {
/// let elements: Vec<i64> = Tensor::of(&[3i64, 4]).try_into()?;
/// assert_eq!(elements, [3, 4]);
/// assert!(Vec::<f32>::try_from(&Tensor::of(&[3i64])).is_err());
/// # Ok(())
/// # }
/// ```
impl<T: Element> TryFrom<&Tensor> for Vec<T> {
    type Error = Error;

    fn try_from(tensor: &Tensor) -> Result<Vec<T>> {
        tensor.to_vec()
    }
}

/// As from a reference.
impl<T: Element> TryFrom<Tensor> for Vec<T> {
    type Error = Error;

    fn try_from(tensor: Tensor) -> Result<Vec<T>> {
        tensor.to_vec()
    }
}
