//! Parameters of kernels with a thread for each index.
//!
//! In: sizes, and strides and addresses of operands. Out: the struct `Strided<N, u64>` of `loop.cuh`, and the blocks of its
//! launch. Must not know the kernel.

use std::ffi::c_void;

use super::lines::{MOST_DIMS, THREADS};

/// Elements of a thread before the grid's stride, and the maximal number of blocks.
const ELEMENTS: u64 = 4;
const MOST_BLOCKS: u64 = 1 << 20;

/// Operands of any strides, the output first, field by field as in `loop.cuh`.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct Strided<const N: usize> {
    /// The number of indices.
    pub count: u64,
    /// The number of dimensions.
    pub dims: u32,
    /// Zero.
    pub padding: u32,
    /// Sizes of the dimensions, the innermost last.
    pub sizes: [u64; MOST_DIMS],
    /// Strides of each operand in elements.
    pub strides: [[i64; MOST_DIMS]; N],
    /// Addresses of the operands' first elements.
    pub pointers: [*const c_void; N],
}

impl<const N: usize> Strided<N> {
    /// All indices of a shape; each operand has an address and a stride for each dimension. `None` if there are more than
    /// eight dimensions.
    pub fn new(sizes: &[i64], operands: [(*const c_void, &[i64]); N]) -> Option<Strided<N>> {
        let mut all = [1; MOST_DIMS];
        let mut strides = [[0; MOST_DIMS]; N];
        for (dim, &size) in sizes.iter().enumerate() {
            *all.get_mut(dim)? = size as u64;
            for (strides, (_, given)) in strides.iter_mut().zip(operands) {
                strides[dim] = given.get(dim).copied().unwrap_or(0);
            }
        }
        Some(Strided {
            count: sizes.iter().map(|&size| size as u64).product(),
            dims: sizes.len() as u32,
            padding: 0,
            sizes: all,
            strides,
            pointers: operands.map(|(pointer, _)| pointer),
        })
    }

    /// The number of blocks, of 256 threads.
    pub fn blocks(&self) -> u32 {
        self.count.div_ceil(THREADS * ELEMENTS).clamp(1, MOST_BLOCKS) as u32
    }
}
