//! A tensor or a number: the argument of a function with two overloads.
//!
//! In: `&x` or `0.5`, as the caller writes it. Out: the overload, and its argument. The caller's type decides, so the
//! choice is made at compile time.

use num_complex::{Complex32, Complex64};

use super::Arg;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// A tensor or a number, `impl Into<TensorOrScalar<'_>>` in signatures: `x.gt(&y)`, `x.gt(0.0)`.
///
/// ```
/// use opsmith_runtime::{Scalar, Tensor, TensorOrScalar};
///
/// let x = Tensor::of(&[1.0f32, 2.0]);
/// assert!(matches!(TensorOrScalar::from(&x), TensorOrScalar::Tensor(_)));
/// assert!(matches!(TensorOrScalar::from(3), TensorOrScalar::Scalar(Scalar::Int(3))));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum TensorOrScalar<'a> {
    /// A tensor, whose shape is broadcast with those of the other arguments.
    Tensor(&'a Tensor),
    /// A number, which influences only the category in type promotion.
    Scalar(Scalar),
}

impl TensorOrScalar<'_> {
    /// The first for a tensor, the second for a number.
    #[doc(hidden)]
    #[inline]
    pub fn choose<T>(self, tensor: T, scalar: T) -> T {
        match self {
            TensorOrScalar::Tensor(_) => tensor,
            TensorOrScalar::Scalar(_) => scalar,
        }
    }
}

impl<'a> From<TensorOrScalar<'a>> for Arg<'a> {
    #[inline]
    fn from(value: TensorOrScalar<'a>) -> Arg<'a> {
        match value {
            TensorOrScalar::Tensor(tensor) => Arg::Tensor(tensor),
            TensorOrScalar::Scalar(scalar) => Arg::Scalar(scalar),
        }
    }
}

impl<'a> From<&'a Tensor> for TensorOrScalar<'a> {
    #[inline]
    fn from(tensor: &'a Tensor) -> TensorOrScalar<'a> {
        TensorOrScalar::Tensor(tensor)
    }
}

// Rust dereferences a reference to a reference for a `&Tensor` parameter; here it needs a conversion.
impl<'a> From<&&'a Tensor> for TensorOrScalar<'a> {
    #[inline]
    fn from(tensor: &&'a Tensor) -> TensorOrScalar<'a> {
        TensorOrScalar::Tensor(tensor)
    }
}

impl<'a> From<&'a mut Tensor> for TensorOrScalar<'a> {
    #[inline]
    fn from(tensor: &'a mut Tensor) -> TensorOrScalar<'a> {
        TensorOrScalar::Tensor(tensor)
    }
}

macro_rules! from_numbers {
    ($($ty:ty),* $(,)?) => {$(
        impl From<$ty> for TensorOrScalar<'_> {
            #[inline]
            fn from(value: $ty) -> Self {
                TensorOrScalar::Scalar(value.into())
            }
        }
    )*};
}

from_numbers! { Scalar, bool, u8, u16, u32, i8, i16, i32, i64, usize, f32, f64, Complex32, Complex64 }
