//! Elementary functions as straight-line code that compilers vectorise.
//!
//! The C library's functions cost one call an element, ten times the arithmetic in vector registers. These have no
//! branches, tables or calls: range reduction, a polynomial, and selections for special values. A product
//! and a sum are fused where the code says so, on every processor, so all give the same bits; those without such an
//! instruction, which have no AVX2 either, call a function for it.
//!
//! [`single`] stays in `f32` where that is accurate to two units in the last place; differences that cancel go
//! through [`double`], which is accurate to one, and are rounded once; so do powers, and angles ([`angles`]).

pub(super) mod angles;
pub(super) mod double;
pub(super) mod gamma;
pub(super) mod single;

/// The value of a polynomial; coefficients from the highest power down.
macro_rules! polynomial {
    ($x:expr; $first:expr $(, $next:expr)*) => {{
        let x = $x;
        let value = $first;
        $(let value = x.mul_add(value, $next);)*
        value
    }};
}
use polynomial;

/// `a` if the condition holds, else `b`; both are computed.
#[inline(always)]
fn select<T>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}

#[cfg(test)]
mod tests;
