//! The Rust functions that `ops.yaml` names: kernels, shapes, scalar functions. Paths there start in this module.

pub mod grid;
pub mod permutation;
pub mod shapes;
