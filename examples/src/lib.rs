//! What the examples share.

pub mod digits;
