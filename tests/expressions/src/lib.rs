//! Operators whose elements are expressions: chosen ones of `fixed.yaml`, and random ones that the build script
//! writes. Nothing here computes anything of use; their gradients, which the generator derives, are the subject.

pub mod kernels;

opsmith::include_ops!();
