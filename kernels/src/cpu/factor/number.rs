//! The numbers that matrices are factored in.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use num_complex::{Complex32, Complex64};
use opsmith_runtime::Element;

use crate::cpu::linalg::product::Multiply;

/// A real or complex number of single or double precision.
pub trait Field:
    Multiply
    + Element<Compute = Self, Real = Self::Size>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
    /// The type of its absolute value.
    type Size: Real;
    /// The number of double precision.
    type Wide: Field<Size = f64>;

    /// The number 0.
    const NONE: Self;
    /// The number 1.
    const UNIT: Self;

    /// The complex number of a real one.
    fn of(real: Self::Size) -> Self;
    /// The number in double precision.
    fn widened(self) -> Self::Wide;
    /// The nearest number to one of double precision.
    fn narrowed(wide: Self::Wide) -> Self;
    /// Distance from zero.
    fn size(self) -> Self::Size;
    /// The sum of the sizes of its parts, by which pivots are chosen.
    fn parts(self) -> Self::Size;
    /// Complex conjugate.
    fn conjugate(self) -> Self;
    /// Real part.
    fn re(self) -> Self::Size;
    /// Imaginary part.
    fn im(self) -> Self::Size;
    /// A number without its imaginary part.
    fn without_im(self) -> Self {
        Self::of(self.re())
    }
}

/// A real number.
pub trait Real: Field<Size = Self> + PartialOrd {
    /// The distance from 1 to the next number.
    const EPSILON: Self;
    /// The least positive number of full precision.
    const LEAST: Self;

    /// The square root.
    fn root(self) -> Self;
    /// The root of the sum of two squares.
    fn with(self, other: Self) -> Self;
    /// The number with another's sign.
    fn signed(self, sign: Self) -> Self;
    /// The natural logarithm.
    fn log(self) -> Self;
    /// The nearest number to one of double precision.
    fn rounded(value: f64) -> Self;
    /// The number in double precision.
    fn wide(self) -> f64;
    /// Whether it is neither infinite nor NaN.
    fn is_bounded(self) -> bool;
}

macro_rules! reals {
    ($($ty:ty),*) => {$(
        impl Field for $ty {
            type Size = $ty;
            type Wide = f64;
            const NONE: $ty = 0.0;
            const UNIT: $ty = 1.0;
            #[inline(always)]
            fn of(real: $ty) -> $ty {
                real
            }
            #[inline(always)]
            fn widened(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn narrowed(wide: f64) -> $ty {
                wide as $ty
            }
            #[inline(always)]
            fn size(self) -> $ty {
                self.abs()
            }
            #[inline(always)]
            fn parts(self) -> $ty {
                self.abs()
            }
            #[inline(always)]
            fn conjugate(self) -> $ty {
                self
            }
            #[inline(always)]
            fn re(self) -> $ty {
                self
            }
            #[inline(always)]
            fn im(self) -> $ty {
                0.0
            }
        }

        impl Real for $ty {
            const EPSILON: $ty = <$ty>::EPSILON;
            const LEAST: $ty = <$ty>::MIN_POSITIVE;
            #[inline(always)]
            fn root(self) -> $ty {
                self.sqrt()
            }
            #[inline(always)]
            fn with(self, other: $ty) -> $ty {
                self.hypot(other)
            }
            #[inline(always)]
            fn signed(self, sign: $ty) -> $ty {
                self.copysign(sign)
            }
            #[inline(always)]
            fn log(self) -> $ty {
                self.ln()
            }
            #[inline(always)]
            fn rounded(value: f64) -> $ty {
                value as $ty
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn is_bounded(self) -> bool {
                self.is_finite()
            }
        }
    )*};
}

reals!(f32, f64);

macro_rules! complex {
    ($($ty:ty as $real:ty),*) => {$(
        impl Field for $ty {
            type Size = $real;
            type Wide = Complex64;
            const NONE: $ty = <$ty>::new(0.0, 0.0);
            const UNIT: $ty = <$ty>::new(1.0, 0.0);
            #[inline(always)]
            fn of(real: $real) -> $ty {
                <$ty>::new(real, 0.0)
            }
            #[inline(always)]
            fn widened(self) -> Complex64 {
                Complex64::new(f64::from(self.re), f64::from(self.im))
            }
            #[inline(always)]
            fn narrowed(wide: Complex64) -> $ty {
                <$ty>::new(wide.re as $real, wide.im as $real)
            }
            #[inline(always)]
            fn size(self) -> $real {
                self.re.hypot(self.im)
            }
            #[inline(always)]
            fn parts(self) -> $real {
                self.re.abs() + self.im.abs()
            }
            #[inline(always)]
            fn conjugate(self) -> $ty {
                self.conj()
            }
            #[inline(always)]
            fn re(self) -> $real {
                self.re
            }
            #[inline(always)]
            fn im(self) -> $real {
                self.im
            }
        }
    )*};
}

complex!(Complex32 as f32, Complex64 as f64);
