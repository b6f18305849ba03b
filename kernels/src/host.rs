//! Results that are not tensors.

use opsmith_runtime::{Complex64, DType, Element, Result, Scalar, Tensor, View, with_dtype};

use crate::cpu::broadcast_strides;
use crate::infer;

/// The only element, as a number.
///
/// # Errors
/// If there is not exactly one.
pub fn item(self_: &Tensor) -> Result<Scalar> {
    self_.item()
}

/// Whether the only element is not zero.
///
/// # Errors
/// If there is not exactly one.
pub fn is_nonzero(self_: &Tensor) -> Result<bool> {
    Ok(self_.item()?.to_complex() != Complex64::new(0.0, 0.0))
}

/// Whether all elements differ by at most `atol + rtol * |other|`, with broadcasting, in the arithmetic of their dtype,
/// that of `f32` for integers. Infinities are close to themselves alone, NaN to NaN only if `equal_nan`.
///
/// # Errors
/// If the shapes do not broadcast, the dtypes differ or the elements cannot be read.
pub fn allclose(self_: &Tensor, other: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Result<bool> {
    let sizes = infer::broadcast_sizes(self_.shape(), other.shape())?;
    let is_single = !matches!(self_.dtype(), DType::F64 | DType::C128);
    with_dtype!(self_.dtype(), T => self_.with_view(|first: View<'_, T>| {
        other.with_view(|second: View<'_, T>| {
            let strides = [
                broadcast_strides(first.sizes(), first.strides(), &sizes)?,
                broadcast_strides(second.sizes(), second.strides(), &sizes)?,
            ];
            // SAFETY: strides of 0 repeat elements of the views.
            let (first, second) = unsafe {
                (
                    View::<T>::from_raw(first.as_ptr(), &sizes, &strides[0]),
                    View::<T>::from_raw(second.as_ptr(), &sizes, &strides[1]),
                )
            };
            let number = |element: T| element.to_scalar().to_complex();
            let mut pairs = first.iter().map(number).zip(second.iter().map(number));
            let rounded = |x: f64| {
                let rounded = if is_single { f64::from(x as f32) } else { x };
                match T::DTYPE.is_float() {
                    true => T::from_scalar(Scalar::Float(rounded)).to_scalar().to_f64(),
                    false => rounded,
                }
            };
            Ok(pairs.all(|(a, b)| is_close(a, b, rtol, atol, equal_nan, &rounded)))
        })
    })?)?
}

fn is_close(
    a: Complex64,
    b: Complex64,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
    rounded: &impl Fn(f64) -> f64,
) -> bool {
    let size = |x: Complex64| if x.im == 0.0 { x.re.abs() } else { rounded(x.re.hypot(x.im)) };
    let parts = |x: Complex64| Complex64::new(rounded(x.re), rounded(x.im));
    if a == b || (equal_nan && a.is_nan() && b.is_nan()) {
        return true;
    }
    if rtol == 0.0 && atol == 0.0 {
        return false;
    }
    let allowed = rounded(size(parts(b * rtol)) + rounded(atol));
    let actual = size(parts(a - b));
    actual.is_finite() && actual <= allowed
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
