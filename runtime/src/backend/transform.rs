//! Fourier transforms for libraries of a device's vendor.
//!
//! In: nothing. Out: the description of transforms, which a backend gives to a library. Must not know libraries.

use opsmith_core::DType;

/// Fourier transforms over one to three dimensions, all of one shape and one after the other in memory, in row-major order and
/// without a factor. Of real numbers, and to real numbers by an inverse, the last dimension has the first half of the frequencies,
/// rounded down, plus one.
#[derive(Clone, Copy, Debug)]
pub struct LibraryTransform<'a> {
    /// The first number that is read. Complex numbers that become real ones are overwritten.
    pub from: *mut u8,
    /// The first number of the result.
    pub to: *mut u8,
    /// The types of both.
    pub dtypes: [DType; 2],
    /// Numbers along each dimension; where one side is real, of the real ones.
    pub sizes: &'a [i64],
    /// Number of transforms.
    pub count: i64,
    /// Whether it is the inverse, whose angles are positive.
    pub is_inverse: bool,
}
