//! Requests of the interface of devices to libraries of the vendor.
//!
//! In: products, transforms, convolutions. Out: work of a stream, and whether a library computes it. Must not know operators.

mod convolution;
mod product;
mod transform;
mod workspace;

pub use convolution::convolution;
pub use product::product;
pub use transform::{is_used, transform};
