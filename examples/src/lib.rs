//! Shared code of the examples.

pub mod classifier;
pub mod digits;
