//! A crate with tensor operators of its own, next to the stock ones of `opsmith`.
//!
//! `ops.yaml` declares them, `build.rs` generates their functions, methods, dispatch, inference and gradients, and
//! `kernels` has the hand-written kernels.

pub mod kernels;

opsmith::include_ops!();
