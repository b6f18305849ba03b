//! Shapes that no rule of the spec language expresses.

use opsmith::runtime::{Dims, checked};
use opsmith::{Result, Tensor};

/// The sizes of `x` in the order `perm`.
pub fn permuted(x: &Tensor, perm: &[i64]) -> Result<Dims> {
    perm.iter().map(|&dim| checked::size(x.shape(), dim)).collect()
}
