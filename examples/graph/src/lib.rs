//! Operators for graphs: with optional inputs, lists of inputs, and results that follow each other.
//!
//! `ops.yaml` declares them, `kernels` computes and infers; `main.rs` builds a network of them.

pub mod kernels;

opsmith::include_ops!();
