//! Kernels for the host processor, one file a family.
//!
//! A kernel is generic over the element type `T` it is dispatched on; 16-bit floats compute in
//! `f32`. Its inputs may have any strides unless its documentation says that it wants them
//! contiguous; its outputs have their final shape. Dimensions, indices and other values that come
//! from a user are checked and lead to errors, never to panics.

pub mod attention;
pub mod backward;
pub mod blocks;
pub mod by_value;
mod converted;
pub mod convolution;
mod copy;
pub mod ctc;
pub mod detection;
pub mod distance;
pub mod factor;
pub mod fft;
pub mod fill;
pub mod float;
pub mod grid;
pub mod index;
pub mod join;
mod lanes;
pub mod linalg;
pub mod loss;
pub(crate) mod mask;
pub mod normalisation;
pub mod order;
pub mod padding;
pub mod pick;
pub mod pooling;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod resize;
mod rounded;
mod row_major;
pub mod search;
pub mod softmax;
pub mod sort;
mod strides;
#[cfg(test)]
mod testing;
mod tiles;

pub use opsmith_runtime::simd;
pub(crate) use strides::{broadcast_strides, expect_operand, expect_sizes, reduced_strides};
