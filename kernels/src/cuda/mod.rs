//! Kernels for CUDA devices, one file for each family, as in [`cpu`](crate::cpu).
//!
//! In: operands in device memory, and attributes. Out: work in the stream of the calling thread, or an error about a value.
//! The text of kernels is in `kernels/cuda`, compiled when one is first launched. Must not know the dispatcher, gradients, the
//! spec or the driver.

pub mod attention;
pub mod backward;
pub mod by_value;
pub mod convolution;
pub mod ctc;
pub mod detection;
pub mod distance;
pub mod factor;
pub mod fft;
pub mod fill;
pub mod grid;
pub mod index;
pub mod join;
pub mod linalg;
pub mod loss;
pub mod normalisation;
pub mod order;
pub mod padding;
pub mod pick;
pub mod pooling;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod resize;
pub mod scan;
pub mod search;
pub mod softmax;
pub mod sort;

mod compact;
mod convolution_library;
mod entries;
mod fft_library;
mod fold;
mod launch;
mod lists;
mod moves;
mod product;
mod radix;
mod scratch;
mod sequence;
mod window;
