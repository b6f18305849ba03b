//! Shared code of the workspace's tests, beside the checks of operators in `opsmith-testing`.

// Makes the devices of CUDA known to programs.
use opsmith_cuda as _;

pub mod gradcheck;
pub mod parity;
