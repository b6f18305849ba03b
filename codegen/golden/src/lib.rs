//! What the generator writes for a spec with every feature, compiled.
//!
//! Nothing here computes anything of use: that this crate compiles is the test that what passes the
//! checks compiles. The recorded text of a smaller spec's files is in `../tests/golden`.

pub mod device_kernels;
pub mod kernels;

include!(concat!(env!("OUT_DIR"), "/opsmith/lib.rs"));
