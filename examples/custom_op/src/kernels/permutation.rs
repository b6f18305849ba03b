//! Permutations of dimensions.

use opsmith::runtime::layout::wrap_dim;
use opsmith::{Error, Result};

/// The permutation that undoes `perm`; negative numbers count from the end.
pub fn invert(perm: &[i64]) -> Result<Vec<i64>> {
    let mut inverse = vec![None; perm.len()];
    for (position, &dim) in perm.iter().enumerate() {
        let slot = &mut inverse[wrap_dim(dim, perm.len())?];
        if slot.replace(position as i64).is_some() {
            return Err(Error::value(format!("{perm:?} names dimension {dim} twice"))
                .with_help(format!("name each of the {} dimensions once", perm.len())));
        }
    }
    Ok(inverse.into_iter().flatten().collect())
}
