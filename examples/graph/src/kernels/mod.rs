//! The Rust functions that `ops.yaml` names: kernels and shapes. Paths there start in this module.

pub mod cells;
pub mod shapes;
