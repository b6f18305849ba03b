//! What generated expressions and functions call besides operators: small steps that can fail.

use std::borrow::Cow;

use crate::arg::Value;
use crate::error::{Error, Result};
use crate::lists::Lists;
use crate::op::Outputs;
use crate::tensor::Tensor;

/// An optional value that a spec's expression takes for granted.
///
/// # Errors
/// If it is absent.
pub fn present<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::argument("an optional argument is absent that this call needs"))
}

/// The complex conjugate of a tensor, by the operator for it; a real tensor is its own.
///
/// # Errors
/// Whatever the operator reports.
#[inline]
pub fn conjugated(
    tensor: &Tensor,
    conjugate: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Cow<'_, Tensor>> {
    if tensor.dtype().is_complex() { conjugate(tensor).map(Cow::Owned) } else { Ok(Cow::Borrowed(tensor)) }
}

/// An element of a list that a spec's expression names.
///
/// # Errors
/// If the list is shorter.
pub fn item<T>(list: &[T], position: i64) -> Result<&T> {
    usize::try_from(position)
        .ok()
        .and_then(|position| list.get(position))
        .ok_or_else(|| Error::index(format!("position {position} is outside a list of {}", list.len())))
}

/// A row of a list of lists, where a spec's expression takes one.
///
/// # Errors
/// If there is no such row.
pub fn row<T: Clone>(lists: &Lists<T>, position: i64) -> Result<&[T]> {
    usize::try_from(position)
        .ok()
        .and_then(|position| lists.get(position))
        .ok_or_else(|| Error::index(format!("position {position} is outside a list of {}", lists.len())))
}

/// A size that a spec's expression names; negative dimensions count from the end.
///
/// # Errors
/// If there is no such dimension.
#[inline]
pub fn size(sizes: &[i64], dim: i64) -> Result<i64> {
    let wrapped = crate::layout::wrap_dim(dim, sizes.len())?;
    sizes.get(wrapped).copied().ok_or_else(|| Error::index("a tensor without dimensions has no sizes"))
}

/// The integer quotient in a spec's expression, rounded toward zero.
///
/// # Errors
/// If the divisor is zero.
pub fn int_div(a: i64, b: i64) -> Result<i64> {
    if b == 0 {
        return Err(Error::value(format!("{a} cannot be divided by zero")));
    }
    Ok(a.wrapping_div(b))
}

/// The remainder in a spec's expression, with the sign of the dividend.
///
/// # Errors
/// If the divisor is zero.
pub fn int_rem(a: i64, b: i64) -> Result<i64> {
    if b == 0 {
        return Err(Error::value(format!("{a} cannot be divided by zero")));
    }
    Ok(a.wrapping_rem(b))
}

/// The outputs of an operator that always has `N` of them.
pub fn several<const N: usize>(outs: Outputs) -> [Tensor; N] {
    let count = outs.len();
    outs.into_iter()
        .collect::<Vec<_>>()
        .try_into()
        .unwrap_or_else(|_| unreachable!("inference gave {count} outputs, the signature has {N}"))
}

/// A result of a composition that may be absent, as outputs hold it: what is absent is empty.
///
/// # Errors
/// If there is no memory.
pub fn or_empty(result: Option<Tensor>) -> Result<Tensor> {
    match result {
        Some(tensor) => Ok(tensor),
        None => Tensor::uninitialized(&[0], crate::infer::DEFAULT_FLOAT, crate::Device::CPU),
    }
}

/// The one result of an operator that returns no tensor.
///
/// # Errors
/// If it returned something else than its signature says.
pub fn host_result<T: crate::arg::FromValue>(values: Vec<Value>) -> Result<T> {
    match <[Value; 1]>::try_from(values) {
        Ok([value]) => T::from_value(value),
        Err(values) => Err(Error::argument(format!("{} results where one was expected", values.len()))),
    }
}
