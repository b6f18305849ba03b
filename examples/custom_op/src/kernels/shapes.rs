//! Shapes that no rule of the spec language gives.

use opsmith::runtime::{Dims, dispatch};
use opsmith::{Result, Tensor};

/// The sizes of `x` in the order `perm`.
pub fn permuted(x: &Tensor, perm: &[i64]) -> Result<Dims> {
    perm.iter().map(|&dim| dispatch::size(x.shape(), dim)).collect()
}
