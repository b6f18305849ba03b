//! Conversion of boxed results to Rust types.
//!
//! In: a value. Out: its content, or an error that names the actual kind.

use opsmith_core::DType;

use super::Value;
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// Rust types that a boxed result converts to.
pub trait FromValue: Sized {
    /// The value as this type.
    ///
    /// # Errors
    /// If it is of another type.
    fn from_value(value: Value) -> Result<Self>;
}

macro_rules! from_value {
    ($($ty:ty: $variant:ident, $what:literal;)*) => {$(
        impl FromValue for $ty {
            fn from_value(value: Value) -> Result<$ty> {
                match value {
                    Value::$variant(value) => Ok(value),
                    other => Err(Error::argument(format!(
                        concat!("expected ", $what, ", got {}"),
                        other.as_arg().kind()
                    ))),
                }
            }
        }
    )*};
}

from_value! {
    Tensor: Tensor, "a tensor"; Vec<Tensor>: Tensors, "a list of tensors"; bool: Bool, "a bool";
    i64: Int, "an int"; f64: Float, "a float"; Scalar: Scalar, "a number"; String: Str, "a str";
    Vec<i64>: Ints, "a list of ints"; DType: DType, "a dtype";
}
