//! The generated library of a spec with every feature.
//!
//! The operators compute nothing useful: the test is that this crate compiles, so that checked specs compile. The
//! recorded text of a smaller spec's files is in `../tests/golden`.

pub mod device_kernels;
pub mod kernels;

include!(concat!(env!("OUT_DIR"), "/opsmith/lib.rs"));
