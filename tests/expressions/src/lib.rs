//! Pointwise operators: those of `fixed.yaml`, and random ones from the build script. They compute nothing useful; the
//! subject of the tests is their gradients, which the generator derives.

pub mod kernels;

opsmith::include_ops!();
