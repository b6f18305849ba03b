//! The hand-written kernels of the stock operators, and the scalar functions pointwise expressions
//! are made of.
//!
//! In: typed views of inputs that the dispatcher converted, attributes, and outputs that already
//! have their final shape. Out: elements written, or an error about a value. No kernel knows the
//! dispatcher, gradients or the spec.

// Links of the generated library's documentation, where that of this crate is not beside it.
#![doc(html_root_url = "https://docs.rs/opsmith-kernels/latest")]

pub mod cpu;
pub mod cuda;
pub mod device;
pub mod einsum;
pub mod fourier;
pub mod host;
pub mod infer;
pub mod math;
pub mod views;
mod window;
