//! Conversion of call results for generated functions and formulas.
//!
//! In: outputs or values. Out: single tensors, or a Rust value.

use std::borrow::Cow;

use crate::arg::Value;
use crate::error::{Error, Result};
use crate::op::Outputs;
use crate::tensor::Tensor;

/// The complex conjugate of a tensor, by the operator with that role; a real tensor is returned unchanged.
///
/// # Errors
/// Errors of the operator.
#[inline]
pub fn conjugated(
    tensor: &Tensor,
    conjugate: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Cow<'_, Tensor>> {
    if tensor.dtype().is_complex() { conjugate(tensor).map(Cow::Owned) } else { Ok(Cow::Borrowed(tensor)) }
}

/// The outputs of an operator with exactly `N` outputs.
pub fn several<const N: usize>(outs: Outputs) -> [Tensor; N] {
    let count = outs.len();
    outs.into_iter()
        .collect::<Vec<_>>()
        .try_into()
        .unwrap_or_else(|_| unreachable!("inference gave {count} outputs, the signature has {N}"))
}

/// An optional result of a composition in the form of outputs: an absent one is an empty tensor.
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
/// If the result's type differs from the signature.
pub fn host_result<T: crate::arg::FromValue>(values: Vec<Value>) -> Result<T> {
    match <[Value; 1]>::try_from(values) {
        Ok([value]) => T::from_value(value),
        Err(values) => Err(Error::argument(format!("{} results where one was expected", values.len()))),
    }
}
