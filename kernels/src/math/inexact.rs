//! Elementary functions of floats and complex numbers.

use num_complex::{Complex, Complex32, Complex64};
use opsmith_runtime::arith::Arithmetic;

use super::{complex, vectorised};

/// Declares the trait and, for each method, the free function expressions call.
macro_rules! elementary {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        /// Types with elementary functions: `f32`, `f64` and complex numbers.
        pub trait Inexact: Arithmetic {
            $($(#[doc = $doc])* fn $name(self) -> Self;)*
        }

        $(
            $(#[doc = $doc])*
            #[inline(always)]
            pub fn $name<T: Inexact>(x: T) -> T {
                Inexact::$name(x)
            }
        )*

        /// Single-precision complex functions round the double-precision ones, so neither
        /// cancellation nor intermediate overflow shows.
        impl Inexact for Complex32 {$(
            #[inline]
            fn $name(self) -> Complex32 {
                let wide = Complex64::new(f64::from(self.re), f64::from(self.im));
                let result = Inexact::$name(wide);
                Complex::new(result.re as f32, result.im as f32)
            }
        )*}
    };
}

elementary! {
    /// eˣ: `exp(1.0)` is 2.718.
    exp;
    /// 2ˣ: `exp2(3.0)` is 8.
    exp2;
    /// eˣ - 1, accurate near 0: `expm1(1e-10)` is 1e-10.
    expm1;
    /// The natural logarithm: `log(2.718)` is about 1. -∞ at 0; NaN for negative reals.
    log;
    /// ln(1 + x), accurate near 0: `log1p(1e-10)` is 1e-10.
    log1p;
    /// The logarithm to base 2: `log2(8.0)` is 3.
    log2;
    /// The logarithm to base 10: `log10(1000.0)` is 3.
    log10;
    /// The square root: `sqrt(9.0)` is 3. NaN for negative reals.
    sqrt;
    /// 1 / √x: `rsqrt(4.0)` is 0.5.
    rsqrt;
    /// 1 / x: `reciprocal(4.0)` is 0.25.
    reciprocal;
    /// The sine of an angle in radians.
    sin;
    /// The cosine of an angle in radians.
    cos;
    /// The tangent of an angle in radians.
    tan;
    /// The angle in radians whose sine is `x`. NaN for reals beyond ±1.
    asin;
    /// The angle in radians whose cosine is `x`. NaN for reals beyond ±1.
    acos;
    /// The angle in radians whose tangent is `x`.
    atan;
    /// The hyperbolic sine, (eˣ - e⁻ˣ) / 2.
    sinh;
    /// The hyperbolic cosine, (eˣ + e⁻ˣ) / 2.
    cosh;
    /// The hyperbolic tangent: `tanh(1.0)` is 0.7616.
    tanh;
    /// The inverse of [`sinh`].
    asinh;
    /// The inverse of [`cosh`]. NaN for reals below 1.
    acosh;
    /// The inverse of [`tanh`]. NaN for reals beyond ±1.
    atanh;
    /// 1 / (1 + e⁻ˣ): `sigmoid(0.0)` is 0.5.
    sigmoid;
}

macro_rules! floats {
    ($($ty:ty, $module:ident, $functions:ident, $angles:ident;)*) => {$(
        impl Inexact for $ty {
            #[inline(always)]
            fn exp(self) -> $ty {
                vectorised::$module::exp(self)
            }
            #[inline(always)]
            fn exp2(self) -> $ty {
                $functions::exp2(self)
            }
            #[inline(always)]
            fn expm1(self) -> $ty {
                $functions::expm1(self)
            }
            #[inline(always)]
            fn log(self) -> $ty {
                vectorised::$module::log(self)
            }
            #[inline(always)]
            fn log1p(self) -> $ty {
                $functions::log1p(self)
            }
            #[inline(always)]
            fn log2(self) -> $ty {
                $functions::log2(self)
            }
            #[inline(always)]
            fn log10(self) -> $ty {
                $functions::log10(self)
            }
            #[inline(always)]
            fn sqrt(self) -> $ty {
                <$ty>::sqrt(self)
            }
            #[inline(always)]
            fn rsqrt(self) -> $ty {
                1.0 / <$ty>::sqrt(self)
            }
            #[inline(always)]
            fn reciprocal(self) -> $ty {
                1.0 / self
            }
            #[inline(always)]
            fn sin(self) -> $ty {
                $angles::sin(self)
            }
            #[inline(always)]
            fn cos(self) -> $ty {
                $angles::cos(self)
            }
            #[inline(always)]
            fn tan(self) -> $ty {
                $angles::tan(self)
            }
            #[inline(always)]
            fn asin(self) -> $ty {
                $angles::asin(self)
            }
            #[inline(always)]
            fn acos(self) -> $ty {
                $angles::acos(self)
            }
            #[inline(always)]
            fn atan(self) -> $ty {
                $angles::atan(self)
            }
            #[inline(always)]
            fn sinh(self) -> $ty {
                $functions::sinh(self)
            }
            #[inline(always)]
            fn cosh(self) -> $ty {
                $functions::cosh(self)
            }
            #[inline(always)]
            fn tanh(self) -> $ty {
                vectorised::$module::tanh(self)
            }
            #[inline(always)]
            fn asinh(self) -> $ty {
                $functions::asinh(self)
            }
            #[inline(always)]
            fn acosh(self) -> $ty {
                $functions::acosh(self)
            }
            #[inline(always)]
            fn atanh(self) -> $ty {
                $functions::atanh(self)
            }
            #[inline(always)]
            fn sigmoid(self) -> $ty {
                // exp of a negative number only, so that nothing overflows.
                let small = Inexact::exp(-self.abs());
                (if self < 0.0 { small } else { 1.0 }) / (1.0 + small)
            }
        }
    )*};
}

use vectorised::{angles, single};

/// Functions of double precision that are not worth vector code of their own.
mod platform {
    pub fn exp2(x: f64) -> f64 {
        f64::powf(2.0, x)
    }
    pub fn sin(x: f64) -> f64 {
        x.sin()
    }
    pub fn cos(x: f64) -> f64 {
        x.cos()
    }
    pub fn tan(x: f64) -> f64 {
        x.tan()
    }
    pub fn asin(x: f64) -> f64 {
        x.asin()
    }
    pub fn acos(x: f64) -> f64 {
        x.acos()
    }
    pub fn atan(x: f64) -> f64 {
        x.atan()
    }
    pub fn expm1(x: f64) -> f64 {
        x.exp_m1()
    }
    pub fn log1p(x: f64) -> f64 {
        x.ln_1p()
    }
    pub fn log2(x: f64) -> f64 {
        x.log2()
    }
    pub fn log10(x: f64) -> f64 {
        x.log10()
    }
    pub fn sinh(x: f64) -> f64 {
        x.sinh()
    }
    pub fn cosh(x: f64) -> f64 {
        x.cosh()
    }
    pub fn acosh(x: f64) -> f64 {
        // musl does not look at the sign of large numbers.
        if x < 1.0 { f64::NAN } else { libm::acosh(x) }
    }
    // std's versions of these lose digits near 1 and overflow near the largest number.
    pub use libm::{asinh, atanh};
}

floats! {
    f32, single, single, angles;
    f64, double, platform, platform;
}

impl Inexact for Complex64 {
    #[inline]
    fn exp(self) -> Complex64 {
        complex::exp(self)
    }
    #[inline]
    fn exp2(self) -> Complex64 {
        // Each part by itself: a product of complex numbers makes NaN of infinities.
        complex::exp(self * std::f64::consts::LN_2)
    }
    #[inline]
    fn expm1(self) -> Complex64 {
        complex::expm1(self)
    }
    #[inline]
    fn log(self) -> Complex64 {
        complex::log(self)
    }
    #[inline]
    fn log1p(self) -> Complex64 {
        complex::log1p(self)
    }
    #[inline]
    fn log2(self) -> Complex64 {
        complex::log(self) * std::f64::consts::LOG2_E
    }
    #[inline]
    fn log10(self) -> Complex64 {
        complex::log(self) * std::f64::consts::LOG10_E
    }
    #[inline]
    fn sqrt(self) -> Complex64 {
        complex::sqrt(self)
    }
    #[inline]
    fn rsqrt(self) -> Complex64 {
        Inexact::reciprocal(complex::sqrt(self))
    }
    #[inline]
    fn reciprocal(self) -> Complex64 {
        Arithmetic::div(Complex64::ONE, self)
    }
    #[inline]
    fn sin(self) -> Complex64 {
        complex::sin(self)
    }
    #[inline]
    fn cos(self) -> Complex64 {
        complex::cos(self)
    }
    #[inline]
    fn tan(self) -> Complex64 {
        complex::tan(self)
    }
    #[inline]
    fn asin(self) -> Complex64 {
        complex::asin(self)
    }
    #[inline]
    fn acos(self) -> Complex64 {
        complex::acos(self)
    }
    #[inline]
    fn atan(self) -> Complex64 {
        complex::atan(self)
    }
    #[inline]
    fn sinh(self) -> Complex64 {
        complex::sinh(self)
    }
    #[inline]
    fn cosh(self) -> Complex64 {
        complex::cosh(self)
    }
    #[inline]
    fn tanh(self) -> Complex64 {
        complex::tanh(self)
    }
    #[inline]
    fn asinh(self) -> Complex64 {
        complex::asinh(self)
    }
    #[inline]
    fn acosh(self) -> Complex64 {
        complex::acosh(self)
    }
    #[inline]
    fn atanh(self) -> Complex64 {
        complex::atanh(self)
    }
    #[inline]
    fn sigmoid(self) -> Complex64 {
        Inexact::reciprocal(Complex64::ONE + complex::exp(-self))
    }
}
