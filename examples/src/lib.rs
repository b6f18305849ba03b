//! What the examples share.

pub mod classifier;
pub mod digits;
