//! Symbolic inference through opaque functions: compiled code that runs on numbers only.
//!
//! In: an operator whose rules call such functions, and arguments with symbols. Out: formulas of its results, found by
//! running it at chosen points (`search`) and fitting formulas (`samples`) of several families (`fit`, `piecewise`);
//! guards confirm them once sizes are known (`sample`). Must not know graphs; graph mode fits formulas to its traces
//! with the same `samples`.

pub(super) mod fit;
mod piecewise;
mod sample;
mod samples;
mod search;

pub use sample::infer;
pub use samples::Samples;

/// The divisors tried in quotients and fractions.
const DIVISORS: [i64; 37] = [
    2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
    30, 31, 32, 48, 64, 96, 100, 128, 256,
];
