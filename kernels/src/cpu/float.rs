//! Real floats with operators, for kernels whose formulas are long.

use std::ops::{Add, Div, Mul, Neg, Sub};

use opsmith_runtime::Scalar;
use opsmith_runtime::arith::Ordered;

use crate::math::{Division, Inexact, Number, Power};

/// `f32` and `f64`, the compute types of floats.
pub trait Float:
    Ordered
    + Inexact
    + Number<Real = Self>
    + Division
    + Power
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + std::iter::Sum
{
    /// The nearest number of this type.
    #[inline(always)]
    fn of(value: f64) -> Self {
        Self::from_scalar(Scalar::Float(value))
    }

    /// The number in double precision.
    #[inline(always)]
    fn double(self) -> f64 {
        self.to_scalar().to_f64()
    }
}

impl Float for f32 {}
impl Float for f64 {}
