//! Conversion of call results for generated functions and formulas.
//!
//! In: outputs or values. Out: single tensors, or a Rust value.

use std::borrow::Cow;

use crate::arg::{FromValue, Value};
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
pub(super) fn only<T: FromValue>(values: Vec<Value>) -> Result<T> {
    match <[Value; 1]>::try_from(values) {
        Ok([value]) => T::from_value(value),
        Err(values) => Err(Error::argument(format!("{} results where one was expected", values.len()))),
    }
}

/// Several outputs as Rust values.
pub trait Results {
    /// The first outputs of an operator that has as many or more.
    fn first_of(outs: Outputs) -> Self;
}

macro_rules! results {
    ($ty:ident for $name:ident) => {
        $ty
    };
    ($($name:ident)*) => {
        impl Results for ($(results!(Tensor for $name),)*) {
            fn first_of(outs: Outputs) -> Self {
                let count = outs.len();
                let mut outs = outs.into_iter();
                $(let Some($name) = outs.next() else {
                    unreachable!("inference gave {count} outputs, the signature has more")
                };)*
                ($($name,)*)
            }
        }
    };
}

results!(a b);
results!(a b c);
results!(a b c d);
results!(a b c d e);
results!(a b c d e f);
results!(a b c d e f g);
results!(a b c d e f g h);
