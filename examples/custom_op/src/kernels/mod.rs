//! What `ops.yaml` names: kernels, shapes, functions of numbers. Paths there start in this module.

pub mod grid;
pub mod permutation;
pub mod shapes;
