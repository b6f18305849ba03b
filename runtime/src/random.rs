//! Random numbers: the counter-based Philox 4x32-10 generator.

/// A random generator; clones share their state.
#[derive(Clone, Debug)]
pub struct Generator;
