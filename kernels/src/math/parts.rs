//! Complex numbers from their parts.

use num_complex::{Complex, Complex32, Complex64};

/// Types that have a real and an imaginary part.
pub trait Parts: Sized {
    /// The real part of the one and the real part of the other as the imaginary part.
    fn complex(real: Self, imag: Self) -> Self;
}

macro_rules! parts {
    ($($ty:ty),*) => {$(
        impl Parts for $ty {
            #[inline(always)]
            fn complex(real: $ty, imag: $ty) -> $ty {
                Complex::new(real.re, imag.re)
            }
        }
    )*};
}

parts!(Complex32, Complex64);

/// The number with the real part of `real` and the real part of `imag` as its imaginary part:
/// `complex(1, 2)` is 1 + 2i.
#[inline(always)]
pub fn complex<T: Parts>(real: T, imag: T) -> T {
    T::complex(real, imag)
}
