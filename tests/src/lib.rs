//! Shared code of the workspace's tests, beside the checks of operators in `opsmith-testing`.

pub mod gradcheck;
pub mod parity;
