//! Calls at special points and sizes, derived from the samples of the spec, against another library's results.
//!
//! In: operators with samples, the constants of their expressions, the sizes at which kernels change their path. Out:
//! recorded calls ([`Line`]), and differences from the recorded results. Lines contain the calls themselves, so that a
//! record outlives a change of a sample; `tests/data/special/record.py` adds the results.

mod derive;
mod digest;
mod given;
mod layouts;
mod line;

pub use derive::{Constants, derive, sizes_around};
pub use digest::{Digest, weight};
pub use given::{Given, GivenTensor, Values};
pub use layouts::{layouts, scattered};
pub use line::{Grow, Line, read};
