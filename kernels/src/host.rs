//! Results that are not tensors.

use opsmith_runtime::{Result, Scalar, Tensor, with_dtype};

/// The only element, as a number.
///
/// # Errors
/// If there is not exactly one.
pub fn item(self_: &Tensor) -> Result<Scalar> {
    self_.item()
}

/// Whether two tensors have one shape, one dtype and the same elements; NaN differs from itself.
///
/// # Errors
/// If the elements cannot be read.
pub fn equal(self_: &Tensor, other: &Tensor) -> Result<bool> {
    if self_.shape() != other.shape() || self_.dtype() != other.dtype() {
        return Ok(false);
    }
    with_dtype!(self_.dtype(), T => Ok(self_.to_vec::<T>()? == other.to_vec::<T>()?))
}
