//! Calls of every operator with odd arguments: dtypes, layouts, sizes, numbers.
//!
//! In: a seed. Out: one call ([`Case`]) and its outcome ([`Case::run`]). The operators are those of a library's
//! definitions, so that a new one is covered at once. A [`Plan`] runs many calls, with limits of memory and time for
//! each. Must not know operators by name, except those that make views.

mod case;
mod random;
mod run;
mod tensors;
mod values;
pub mod watch;

pub use case::{Case, Outcome};
pub use random::Random;
pub use run::{Bounded, Findings, MOST_SECONDS, Plan, on_a_small_stack};
pub use values::long_texts;
