//! The inference of operators declared at run time, as a trait.
//!
//! In: arguments of a call. Out: shapes and dtypes of its results. A definition knows nothing else of such an
//! operator's declaration.

use std::any::Any;

use opsmith_core::DType;

use super::{Inferred, OpDef};
use crate::arg::Arg;
use crate::error::Result;
use crate::layout::Dims;

/// An unknown size in inference before a run.
pub(crate) const UNKNOWN_DIM: i64 = -1;
/// The only size of a tensor of unknown rank.
pub(crate) const UNKNOWN_RANK: i64 = -2;

/// An operator that was declared at run time.
pub trait CustomOp: Any + Send + Sync {
    /// Infers a call's outputs.
    ///
    /// # Errors
    /// If the operator was unloaded, or inference fails.
    fn infer(&self, op: &OpDef, args: &[Arg<'_>]) -> Result<Inferred>;

    /// Sizes and dtype of each output before all sizes are known: an unknown one is −1, and the sizes of an unknown
    /// rank are [−2]. `sizes` are those of the present tensors in `args`, in order.
    ///
    /// # Errors
    /// If the operator was unloaded, no combination of dtypes fits, or the number of outputs is undetermined.
    fn infer_open(&self, op: &OpDef, args: &[Arg<'_>], sizes: Vec<Dims>) -> Result<Vec<(Dims, DType)>>;
}
