//! Element types of tensor arguments and results, as kernels see them.
//!
//! In: dtypes. Out: an enum, of which the generator's checks and the runtime's conversions go by each variant. Must not know
//! tensors.

use crate::{DType, DTypeSet};

/// The element type of an argument as kernels see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementType {
    /// Not a tensor.
    NotTensor,
    /// The dtype that selected the kernel; other dtypes are converted first.
    Dispatch,
    /// The real part's type of the dtype that selected the kernel.
    Real,
    /// The type in which a kernel of the dtype that selected it computes: `float32` for 16-bit floats, others themselves.
    Opmath,
    /// One of a set; a dtype outside it is an error. Kernels see the set's first listed member.
    Fixed {
        /// The dtype that the kernel sees.
        kernel: DType,
        /// The dtypes that a caller may pass.
        accepted: DTypeSet,
    },
    /// Whatever the caller passed.
    Any,
}
