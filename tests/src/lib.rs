//! What the tests of the whole share.

pub mod calls;
pub mod checks;
pub mod fuzz;
pub mod gradcheck;
pub mod parity;
pub mod samples;
pub mod special;
