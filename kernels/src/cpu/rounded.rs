//! Real floats that round to their element type after every operation.
//!
//! Most kernels of half-precision elements compute in single precision and round once, at the end. For a few
//! operators PyTorch computes in the element type itself, and places between pixels or long sums then differ by
//! more than the last bit; those kernels use this type. For `f32` and `f64` it adds nothing.

use std::cmp::Ordering;
use std::iter::Sum;
use std::ops::{Add, Div, Mul, Neg, Sub};

use opsmith_runtime::Element;

use super::float::Float;
use crate::math::{abs, floor, floor_div, fmod, is_finite, maximum, minimum, round};

/// A number of the element type `T`, held in the type that computes.
pub struct Rounded<T: Element>(T::Compute);

impl<T: Element> Clone for Rounded<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Element> Copy for Rounded<T> {}

impl<T: Element<Compute: Float>> Rounded<T> {
    fn nearest(value: T::Compute) -> Self {
        Rounded(T::from_compute(value).to_compute())
    }

    /// An element.
    pub fn from_element(element: T) -> Self {
        Rounded(element.to_compute())
    }

    /// The number as an element.
    pub fn to_element(self) -> T {
        T::from_compute(self.0)
    }

    /// The nearest number of the element type.
    pub fn of(value: f64) -> Self {
        Self::nearest(Float::of(value))
    }

    /// The number in double precision.
    pub fn double(self) -> f64 {
        self.0.double()
    }

    /// Rounded toward minus infinity.
    pub fn floor(self) -> Self {
        Self::nearest(floor(self.0))
    }

    /// Rounded to the nearest integer, halves to the even one.
    pub fn round(self) -> Self {
        Self::nearest(round(self.0))
    }

    /// Distance from zero.
    pub fn abs(self) -> Self {
        Rounded(abs(self.0))
    }

    /// Remainder of a division rounded toward zero.
    pub fn fmod(self, divisor: Self) -> Self {
        Self::nearest(fmod(self.0, divisor.0))
    }

    /// The quotient rounded toward minus infinity.
    pub fn floor_div(self, divisor: Self) -> Self {
        Self::nearest(floor_div(self.0, divisor.0))
    }

    /// The smaller of two numbers.
    pub fn min(self, other: Self) -> Self {
        Rounded(minimum(self.0, other.0))
    }

    /// The larger of two numbers.
    pub fn max(self, other: Self) -> Self {
        Rounded(maximum(self.0, other.0))
    }

    /// Whether the number is neither infinite nor NaN.
    pub fn is_finite(self) -> bool {
        is_finite(self.0)
    }
}

impl<T: Element<Compute: Float>> PartialEq for Rounded<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Element<Compute: Float>> PartialOrd for Rounded<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.0.partial_cmp(&other.0)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $symbol:tt),*) => {$(
        impl<T: Element<Compute: Float>> $trait for Rounded<T> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self::nearest(self.0 $symbol other.0)
            }
        }
    )*};
}

operators!(Add add +, Sub sub -, Mul mul *, Div div /);

impl<T: Element<Compute: Float>> Neg for Rounded<T> {
    type Output = Self;
    fn neg(self) -> Self {
        Rounded(-self.0)
    }
}

impl<T: Element<Compute: Float>> Sum for Rounded<T> {
    fn sum<I: Iterator<Item = Self>>(numbers: I) -> Self {
        numbers.fold(Self::of(0.0), |sum, number| sum + number)
    }
}

/// A sum as an element holds it, for kernels that PyTorch lets add up in memory; for wide types itself.
#[inline(always)]
pub fn held<T: Element>(sum: T::Compute) -> T::Compute {
    T::from_compute(sum).to_compute()
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn every_operation_rounds() {
        let (big, small) = (Rounded::<f16>::of(2048.0), Rounded::<f16>::of(1.0));
        assert_eq!((big + small).double(), 2048.0);
        assert_eq!((big + small + small).double(), 2048.0);
        assert_eq!([big, small, small].into_iter().sum::<Rounded<f16>>().to_element(), f16::from_f32(2048.0));
        assert_eq!((Rounded::<f32>::of(2048.0) + Rounded::of(1.0)).double(), 2049.0);
    }
}
