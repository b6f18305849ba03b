//! Calls of every operator with arguments that nobody means: odd dtypes, layouts, sizes, numbers.
//!
//! In: a seed. Out: one call ([`Case`]) and how it ended ([`Case::run`]). The operators are those of the library's
//! definitions, so that a new one is covered at once. The program `fuzz-calls` runs many, with a bound of memory and
//! time for each. It knows no operator by name but those that make views.

mod case;
mod random;
mod tensors;
mod values;

pub use case::{Case, Outcome};
pub use random::Random;
