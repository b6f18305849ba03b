//! Arithmetic for every compute type.
//!
//! In: two numbers of one compute type ([`Element::Compute`]). Out: their sum, product, order. Expressions of a spec
//! are defined by these functions: `a + b` becomes `Arithmetic::add(a, b)`. No function panics: integers wrap, and an
//! integer division by zero gives zero and sets a flag of the thread, as IEEE 754 does for floats; an expression over
//! integers is evaluated between [`clear_zero_division`] and [`check_zero_division`].

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use num_complex::{Complex, Complex32, Complex64};

use crate::element::Element;
use crate::error::{Error, Result};

thread_local! {
    /// Whether an integer was divided by zero.
    static DIVIDED_BY_ZERO: Cell<bool> = const { Cell::new(false) };
}

/// Sets the flag of an integer division by zero.
#[cold]
#[inline(never)]
fn raise_zero_division() {
    DIVIDED_BY_ZERO.set(true);
}

/// Clears this thread's flag of integer divisions by zero.
#[inline]
pub fn clear_zero_division() {
    DIVIDED_BY_ZERO.set(false);
}

/// Checks that no integer was divided by zero in this thread since [`clear_zero_division`].
///
/// # Errors
/// If one was.
#[inline]
pub fn check_zero_division() -> Result<()> {
    if DIVIDED_BY_ZERO.get() { Err(zero_division()) } else { Ok(()) }
}

/// Integer divisions by zero in the parts of a loop, in whichever threads they are.
#[derive(Default)]
pub(crate) struct ZeroDivisions(AtomicBool);

impl ZeroDivisions {
    /// Calls a function, and notes whether it divided by zero; the thread's flag is as before.
    pub fn watch(&self, part: impl FnOnce()) {
        let before = DIVIDED_BY_ZERO.replace(false);
        part();
        if DIVIDED_BY_ZERO.replace(before) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Sets this thread's flag if a part divided by zero.
    pub fn raise(self) {
        if self.0.into_inner() {
            raise_zero_division();
        }
    }
}

/// The error of an integer division by zero.
#[cold]
pub fn zero_division() -> Error {
    Error::value("integer division by zero").with_help(
        "replace the zeros among the divisors, or convert to a floating-point dtype, where they give inf or nan",
    )
}

/// Sums, products and quotients of one type.
pub trait Arithmetic: Element {
    /// The neutral element of addition.
    const ZERO: Self;
    /// The neutral element of multiplication.
    const ONE: Self;

    /// The sum; integers wrap, `bool` is "or".
    fn add(self, other: Self) -> Self;
    /// The difference; integers wrap, `bool` is "exclusive or".
    fn sub(self, other: Self) -> Self;
    /// The product; integers wrap, `bool` is "and".
    fn mul(self, other: Self) -> Self;
    /// The quotient. Integers truncate toward zero; a divisor of 0 gives 0, which [`check_zero_division`] reports.
    fn div(self, other: Self) -> Self;
    /// The remainder of [`Arithmetic::div`] rounded toward zero, with the sign of `self`. Integers give 0 if the
    /// divisor is 0.
    fn rem(self, other: Self) -> Self;
    /// The number with the opposite sign; integers wrap, `bool` is unchanged.
    fn neg(self) -> Self;
    /// Whether both numbers are the same; NaN differs from everything, 0.0 equals -0.0.
    fn equal(self, other: Self) -> bool;
}

/// The order of real numbers. Every comparison with NaN is false; `false` comes before `true`.
pub trait Ordered: Arithmetic {
    /// The minimum of the type: minus infinity for floats.
    const LOWEST: Self;
    /// The maximum of the type: infinity for floats.
    const HIGHEST: Self;

    /// `self < other`.
    fn lt(self, other: Self) -> bool;
    /// `self <= other`.
    fn le(self, other: Self) -> bool;
    /// `self > other`.
    fn gt(self, other: Self) -> bool;
    /// `self >= other`.
    fn ge(self, other: Self) -> bool;
}

impl Arithmetic for bool {
    const ZERO: bool = false;
    const ONE: bool = true;

    #[inline(always)]
    fn add(self, other: bool) -> bool {
        self | other
    }
    #[inline(always)]
    fn sub(self, other: bool) -> bool {
        self ^ other
    }
    #[inline(always)]
    fn mul(self, other: bool) -> bool {
        self & other
    }
    #[inline(always)]
    fn div(self, other: bool) -> bool {
        self & other
    }
    #[inline(always)]
    fn rem(self, _other: bool) -> bool {
        false
    }
    #[inline(always)]
    fn neg(self) -> bool {
        self
    }
    #[inline(always)]
    fn equal(self, other: bool) -> bool {
        self == other
    }
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Arithmetic for $ty {
            const ZERO: $ty = 0;
            const ONE: $ty = 1;

            #[inline(always)]
            fn add(self, other: $ty) -> $ty {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: $ty) -> $ty {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: $ty) -> $ty {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn div(self, other: $ty) -> $ty {
                if other == 0 {
                    raise_zero_division();
                    return 0;
                }
                self.wrapping_div(other)
            }
            #[inline(always)]
            fn rem(self, other: $ty) -> $ty {
                if other == 0 {
                    raise_zero_division();
                    return 0;
                }
                self.wrapping_rem(other)
            }
            #[inline(always)]
            fn neg(self) -> $ty {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn equal(self, other: $ty) -> bool {
                self == other
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! floats {
    ($($ty:ty),*) => {$(
        impl Arithmetic for $ty {
            const ZERO: $ty = 0.0;
            const ONE: $ty = 1.0;

            #[inline(always)]
            fn add(self, other: $ty) -> $ty {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: $ty) -> $ty {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: $ty) -> $ty {
                self * other
            }
            #[inline(always)]
            fn div(self, other: $ty) -> $ty {
                self / other
            }
            #[inline(always)]
            fn rem(self, other: $ty) -> $ty {
                self % other
            }
            #[inline(always)]
            fn neg(self) -> $ty {
                -self
            }
            #[inline(always)]
            fn equal(self, other: $ty) -> bool {
                self == other
            }
        }
    )*};
}

floats!(f32, f64);

macro_rules! complexes {
    ($($ty:ty, $real:ty;)*) => {$(
        impl Arithmetic for $ty {
            const ZERO: $ty = Complex::new(0.0, 0.0);
            const ONE: $ty = Complex::new(1.0, 0.0);

            #[inline(always)]
            fn add(self, other: $ty) -> $ty {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: $ty) -> $ty {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: $ty) -> $ty {
                self * other
            }
            /// Smith's division, which neither overflows nor underflows where the quotient does not.
            ///
            /// Source: R. L. Smith, Algorithm 116, CACM 5 (1962); the order of operations is NumPy's.
            #[inline(always)]
            fn div(self, other: $ty) -> $ty {
                if other.re.abs() >= other.im.abs() {
                    if other.re == 0.0 && other.im == 0.0 {
                        return Complex::new(self.re / other.re.abs(), self.im / other.im.abs());
                    }
                    let ratio = other.im / other.re;
                    let scale = 1.0 / (other.re + other.im * ratio);
                    Complex::new((self.re + self.im * ratio) * scale, (self.im - self.re * ratio) * scale)
                } else {
                    let ratio = other.re / other.im;
                    let scale = 1.0 / (other.im + other.re * ratio);
                    Complex::new((self.re * ratio + self.im) * scale, (self.im * ratio - self.re) * scale)
                }
            }
            #[inline(always)]
            fn rem(self, other: $ty) -> $ty {
                let quotient: $ty = Arithmetic::div(self, other);
                self - other * Complex::new(quotient.re.trunc(), quotient.im.trunc())
            }
            #[inline(always)]
            fn neg(self) -> $ty {
                -self
            }
            #[inline(always)]
            fn equal(self, other: $ty) -> bool {
                self == other
            }
        }
    )*};
}

complexes! { Complex32, f32; Complex64, f64; }

macro_rules! ordered {
    ($($ty:ty: $lowest:expr, $highest:expr;)*) => {$(
        impl Ordered for $ty {
            const LOWEST: $ty = $lowest;
            const HIGHEST: $ty = $highest;

            #[inline(always)]
            fn lt(self, other: $ty) -> bool {
                self < other
            }
            #[inline(always)]
            fn le(self, other: $ty) -> bool {
                self <= other
            }
            #[inline(always)]
            fn gt(self, other: $ty) -> bool {
                self > other
            }
            #[inline(always)]
            fn ge(self, other: $ty) -> bool {
                self >= other
            }
        }
    )*};
}

// Clippy rejects `<` between bools; here `bool` is one of many types.
#[allow(clippy::bool_comparison)]
mod ordered_bool {
    use super::Ordered;
    ordered! { bool: false, true; }
}
ordered! {
    u8: u8::MIN, u8::MAX;
    u16: u16::MIN, u16::MAX;
    u32: u32::MIN, u32::MAX;
    u64: u64::MIN, u64::MAX;
    i8: i8::MIN, i8::MAX;
    i16: i16::MIN, i16::MAX;
    i32: i32::MIN, i32::MAX;
    i64: i64::MIN, i64::MAX;
    f32: f32::NEG_INFINITY, f32::INFINITY;
    f64: f64::NEG_INFINITY, f64::INFINITY;
}

#[cfg(test)]
mod tests {
    use opsmith_core::{DType, ELEMENT_TRAITS};

    use super::*;

    #[test]
    fn integers_wrap_and_never_panic() {
        assert_eq!(Arithmetic::add(250u8, 10), 4);
        assert_eq!(Arithmetic::neg(i8::MIN), i8::MIN);
        assert_eq!(Arithmetic::neg(1u8), 255);
        clear_zero_division();
        assert_eq!(Arithmetic::div(7i32, 0), 0);
        assert!(check_zero_division().is_err());
        clear_zero_division();
        assert_eq!(Arithmetic::rem(7i32, 0), 0);
        assert!(check_zero_division().is_err());
        clear_zero_division();
        assert_eq!(Arithmetic::div(i64::MIN, -1), i64::MIN);
        assert_eq!(Arithmetic::rem(i64::MIN, -1), 0);
        assert_eq!(Arithmetic::div(-7i32, 2), -3);
        assert_eq!(Arithmetic::rem(-7i32, 2), -1);
        assert!(check_zero_division().is_ok());
    }

    macro_rules! implements {
        ($T:ty: $($bound:tt)*) => {{
            struct Probe<T>(std::marker::PhantomData<T>);
            #[allow(dead_code, reason = "the method of the struct stands before it where the bound holds")]
            trait Otherwise {
                fn implements(&self) -> bool {
                    false
                }
            }
            impl<T> Otherwise for Probe<T> {}
            #[allow(dead_code, reason = "the bound may not hold")]
            impl<T: $($bound)*> Probe<T> {
                fn implements(&self) -> bool {
                    true
                }
            }
            Probe::<$T>(std::marker::PhantomData).implements()
        }};
    }

    /// The generator checks trait bounds of kernels against `ELEMENT_TRAITS`.
    #[test]
    fn traits_of_elements_are_those_of_the_table() {
        for dtype in DType::ALL {
            let compute = crate::with_dtype!(dtype, T => <T as Element>::Compute::DTYPE);
            assert_eq!(compute, dtype.to_compute(), "{dtype}");
            for known in ELEMENT_TRAITS {
                let found = crate::with_dtype!(dtype, T => match known.name {
                    "Arithmetic" => implements!(T: Arithmetic),
                    "Ordered" => implements!(T: Ordered),
                    "PartialOrd" => implements!(T: PartialOrd),
                    "Ord" => implements!(T: Ord),
                    "Eq" => implements!(T: Eq),
                    other => panic!("the trait {other} is not compared"),
                });
                assert_eq!(found, known.dtypes.contains(dtype), "{} for {dtype}", known.name);
            }
        }
    }

    #[test]
    fn bool_is_logic() {
        assert!(Arithmetic::add(true, true) && Arithmetic::mul(true, true));
        assert!(!Arithmetic::sub(true, true));
        assert!(Ordered::lt(false, true) && Ordered::ge(true, true));
    }

    #[test]
    fn nothing_compares_with_nan() {
        for other in [f64::NAN, 0.0, f64::INFINITY] {
            assert!(!Ordered::lt(f64::NAN, other) && !Ordered::le(f64::NAN, other));
            assert!(!Ordered::gt(f64::NAN, other) && !Ordered::ge(f64::NAN, other));
            assert!(!Arithmetic::equal(f64::NAN, other));
        }
        assert!(Arithmetic::equal(0.0, -0.0));
    }

    #[test]
    fn complex_division_survives_extremes() {
        let big = Complex64::new(1e300, 1e300);
        assert_eq!(Arithmetic::div(big, big), Complex64::ONE);
        let small = Complex32::new(1e-30, -1e-30);
        assert!((Arithmetic::div(small, small) - Complex32::ONE).norm() < 1e-6);
        let by_zero = Arithmetic::div(Complex64::new(1.0, -2.0), Complex64::ZERO);
        assert_eq!((by_zero.re, by_zero.im), (f64::INFINITY, f64::NEG_INFINITY));
    }
}
