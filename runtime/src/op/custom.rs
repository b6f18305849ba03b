//! The inference of operators that were declared at run time, by a trait.
//!
//! In: arguments of a call. Out: shapes and dtypes of its results. A definition has no other knowledge of how such an
//! operator was declared.

use std::any::Any;

use opsmith_core::DType;

use super::{Inferred, OpDef};
use crate::arg::Arg;
use crate::error::Result;
use crate::layout::Dims;

/// A size that is not known yet, in inference before anything runs.
pub(crate) const UNKNOWN_DIM: i64 = -1;
/// The only size of a tensor whose number of dimensions is not known yet.
pub(crate) const UNKNOWN_RANK: i64 = -2;

/// An operator that was declared at run time.
pub trait CustomOp: Any + Send + Sync {
    /// Infers a call's outputs.
    ///
    /// # Errors
    /// If the operator is gone, or inference fails.
    fn infer(&self, op: &OpDef, args: &[Arg<'_>]) -> Result<Inferred>;

    /// Sizes and dtype of each output before all sizes are known: an unknown one is −1, and the sizes of an unknown
    /// rank are [−2]. `sizes` are those of the tensors in `args` that are there, in order.
    ///
    /// # Errors
    /// If the operator is gone, no combination of dtypes fits, or nothing says how many outputs there are.
    fn infer_open(&self, op: &OpDef, args: &[Arg<'_>], sizes: Vec<Dims>) -> Result<Vec<(Dims, DType)>>;
}
