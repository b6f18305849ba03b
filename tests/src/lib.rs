//! What the tests of the whole share.

pub mod gradcheck;
pub mod parity;
