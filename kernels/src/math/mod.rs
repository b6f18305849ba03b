//! Functions of numbers: the meaning of the names in a pointwise expression.
//!
//! In: compute types (`bool`, integers, `f32`, `f64`, complex). Out: a number. `exp(x)` in a spec is
//! [`exp`] here, generic over the types it makes sense for; the 16-bit floats compute in `f32`.
//! Results follow PyTorch: NaN, infinities, signs of zero and branch cuts included. Nothing panics.

mod bessel;
mod bits;
mod complex;
mod division;
mod inexact;
mod number;
mod order;
mod parts;
mod polygamma;
mod power;
mod sign_bit;
mod special;
mod vectorised;

pub use bessel::{Bessel, i0, i0e, i1, i1e};
pub use bits::{Bits, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_left, shift_right};
pub use division::{Division, floor_div, fmod, remainder, trunc_div};
pub use inexact::*;
pub use number::{
    Number, abs, ceil, conj, floor, frac, imag, is_finite, is_inf, is_nan, real, round, sgn, sign, trunc,
};
pub use order::{
    clamp, clamp_max, clamp_min, fmax, fmin, logical_and, logical_not, logical_or, logical_xor, maximum,
    minimum, select, truth,
};
pub use parts::{Parts, complex};
pub use polygamma::polygamma;
pub use power::{Power, pow};
pub use sign_bit::{SignBit, Signed, copysign, next_after, sign_bit};
pub use special::{Special, atan2, digamma, erf, erfc, erfinv, hypot, lgamma};
