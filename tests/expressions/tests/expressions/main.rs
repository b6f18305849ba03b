//! Pointwise operators: those of `fixed.yaml`, and random ones from the build script. They compute nothing useful; the
//! subject of the tests is their gradients, which the generator derives. A program of tests, so that no other build compiles them.

mod gradients;
pub mod kernels;
mod missing;
mod ties;

opsmith::include_ops!();
