//! Numbers of operations of kernels that grow with the logarithm of a size, for profilers.

use opsmith_runtime::Result;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::layout::wrap_dim;

/// How often the elements along a dimension are halved until one is left, rounded up: the comparisons for each element of a
/// sort by merging, or of a search by bisection. Of a size of 8 it is 3, of 9 it is 4, of 1 and less 0.
///
/// # Errors
/// If there is no such dimension.
pub fn halvings(sizes: &[i64], dim: i64) -> Result<i64> {
    let dim = wrap_dim(dim, sizes.len())?;
    let size = sizes.get(dim).copied().unwrap_or(1).max(1);
    Ok(i64::from(64 - (size - 1).leading_zeros()))
}

/// The arithmetic operations of a Fourier transform over dimensions of real numbers with these sizes: 2.5 n log₂ n of each
/// transform of n numbers, as the field counts them, whichever algorithm computes it; of complex numbers twice as many.
///
/// Of `[4, 8]` over the last dimension: four transforms of 60 operations, 240.
///
/// # Errors
/// If there is no such dimension.
pub fn transform_operations(sizes: &[i64], dims: &[i64]) -> Result<i64> {
    let flags = reduced_dims(sizes.len(), Some(dims))?;
    let count: f64 = sizes.iter().map(|size| *size as f64).product();
    let along = sizes.iter().zip(flags).filter(|(_, transformed)| *transformed);
    let levels: f64 = along.map(|(size, _)| (*size.max(&1) as f64).log2()).sum();
    Ok((2.5 * count * levels).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_halved_to_one() {
        let of = |size| halvings(&[3, size], -1).unwrap();
        assert_eq!([0, 1, 2, 3, 8, 9, 1 << 40].map(of), [0, 0, 1, 2, 3, 4, 40]);
        assert_eq!(halvings(&[], 0).unwrap(), 0);
        assert!(halvings(&[3], 1).is_err());
    }

    #[test]
    fn transforms_of_several_dimensions_are_those_of_their_product() {
        assert_eq!(transform_operations(&[4, 8], &[1]).unwrap(), 240);
        assert_eq!(transform_operations(&[4, 8], &[0, -1]).unwrap(), 400);
        assert_eq!(transform_operations(&[5, 1], &[1]).unwrap(), 0);
        assert!(transform_operations(&[5], &[2]).is_err());
    }
}
