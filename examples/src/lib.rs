//! Shared code of the examples.

// Makes the devices of CUDA known to programs.
use opsmith_cuda as _;

pub mod classifier;
pub mod digits;
