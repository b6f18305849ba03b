//! Calls of every operator with arguments that nobody means: odd dtypes, layouts, sizes, numbers.
//!
//! In: a seed. Out: one call ([`Case`]) and how it ended ([`Case::run`]). The operators are those of a library's
//! definitions, so that a new one is covered at once. A [`Plan`] runs many, with a bound of memory and time for each. It
//! knows no operator by name but those that make views.

mod case;
mod random;
mod run;
mod tensors;
mod values;
pub mod watch;

pub use case::{Case, Outcome};
pub use random::Random;
pub use run::{Bounded, Findings, MOST_SECONDS, Plan, on_a_small_stack};
