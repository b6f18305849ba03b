//! What the tests of the whole share, beside the checks of operators in `opsmith-testing`.

pub mod gradcheck;
pub mod parity;
