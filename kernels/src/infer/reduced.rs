//! Sizes around reductions, for gradient formulas and compositions.
//!
//! Dimensions may be given as a number, a list, or either of them perhaps absent; none means all.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::layout::{joined, wrap_dim};
use opsmith_runtime::{Dims, Error, Result};

use super::indexing::broadcast_pair;

/// The dimensions of a reduction as an operator takes them.
pub trait Reduced {
    /// The dimensions; `None` for all.
    fn dims(&self) -> Option<&[i64]>;
}

impl Reduced for i64 {
    fn dims(&self) -> Option<&[i64]> {
        Some(std::slice::from_ref(self))
    }
}

impl Reduced for Option<i64> {
    fn dims(&self) -> Option<&[i64]> {
        self.as_ref().map(std::slice::from_ref)
    }
}

impl Reduced for &[i64] {
    fn dims(&self) -> Option<&[i64]> {
        Some(self)
    }
}

impl Reduced for Option<&[i64]> {
    fn dims(&self) -> Option<&[i64]> {
        *self
    }
}

/// Sizes with 1 for each reduced dimension.
///
/// Of `[2, 3]` reduced over 1 that is `[2, 1]`.
///
/// # Errors
/// If a dimension is out of range or given twice.
pub fn keep_reduced(sizes: &[i64], dims: impl Reduced) -> Result<Dims> {
    reduced(sizes, dims, true)
}

/// Sizes without the reduced dimensions, or with 1 there if `keepdim`.
///
/// # Errors
/// If a dimension is out of range or given twice.
pub fn reduced(sizes: &[i64], dims: impl Reduced, keepdim: bool) -> Result<Dims> {
    let flags = reduced_dims(sizes.len(), dims.dims())?;
    Ok(sizes
        .iter()
        .zip(flags)
        .filter_map(|(&size, reduced)| match (reduced, keepdim) {
            (true, true) => Some(1),
            (true, false) => None,
            (false, _) => Some(size),
        })
        .collect())
}

/// How many elements become one: `[2, 3]` reduced over 1 gives 3.
///
/// # Errors
/// If a dimension is out of range or given twice.
pub fn reduced_count(sizes: &[i64], dims: impl Reduced) -> Result<i64> {
    let flags = reduced_dims(sizes.len(), dims.dims())?;
    let sizes = sizes.iter().zip(flags).filter(|(_, reduced)| *reduced).map(|(size, _)| *size);
    Ok(joined(&sizes.collect::<Dims>()))
}

/// The size of one dimension in its place, 1 elsewhere: of `[2, 3, 4]` along 1, `[1, 3, 1]`.
///
/// # Errors
/// If there is no such dimension.
pub fn along(sizes: &[i64], dim: i64) -> Result<Dims> {
    let dim = wrap_dim(dim, sizes.len())?;
    let Some(&size) = sizes.get(dim) else {
        return Err(Error::index("a tensor without dimensions has no sizes"));
    };
    let mut along = Dims::from_elem(1, sizes.len());
    along[dim] = size;
    Ok(along)
}

/// The last `count` dimensions joined, and those before them: `[2, 3, 4, 5]` and 2 give `[6, 20]`.
///
/// # Errors
/// If there are not as many dimensions.
pub fn rows_of(sizes: &[i64], count: i64) -> Result<Dims> {
    let inner = usize::try_from(count).ok().filter(|inner| *inner <= sizes.len());
    let Some(inner) = inner else {
        return Err(Error::shape(format!("{} has no {count} last dimensions", ShapeText(sizes))));
    };
    let (outer, inner) = sizes.split_at(sizes.len() - inner);
    Ok(Dims::from_slice(&[joined(outer), joined(inner)]))
}

/// How many classes scores `(classes)` or `(samples, classes, places…)` have.
///
/// # Errors
/// If the scores have no dimensions.
pub fn classes_of(scores: &[i64]) -> Result<i64> {
    match scores {
        [] => Err(Error::shape("scores without dimensions have no classes")),
        [classes] | [_, classes, ..] => Ok(*classes),
    }
}

/// All dimensions but one: of three without 1, `[0, 2]`.
///
/// # Errors
/// If there is no such dimension.
pub fn other_dims(rank: i64, dim: i64) -> Result<Dims> {
    let dim = wrap_dim(dim, usize::try_from(rank).unwrap_or(0))? as i64;
    Ok((0..rank).filter(|other| *other != dim).collect())
}

/// The sizes `sizes` with `size` in the place of that of dimension `dim`.
///
/// Of `[2, 3]`, along 1 and with 5, that is `[2, 5]`.
///
/// # Errors
/// If there is no such dimension.
pub fn with_size(sizes: &[i64], dim: i64, size: i64) -> Result<Dims> {
    let mut sizes = Dims::from_slice(sizes);
    let dim = wrap_dim(dim, sizes.len())?;
    match sizes.get_mut(dim) {
        Some(place) => *place = size,
        None => return Err(Error::index("a tensor without dimensions has no sizes")),
    }
    Ok(sizes)
}

/// The shape that `first` and `second` broadcast to.
///
/// It is `[2, 3]` of `[2, 1]` and `[3]`.
///
/// # Errors
/// If they do not broadcast.
pub fn broadcast_sizes(first: &[i64], second: &[i64]) -> Result<Dims> {
    broadcast_pair(first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_in_any_form() {
        assert_eq!(keep_reduced(&[2, 3, 4], 1).unwrap()[..], [2, 1, 4]);
        assert_eq!(keep_reduced(&[2, 3], None::<i64>).unwrap()[..], [1, 1]);
        assert_eq!(reduced(&[2, 3, 4], Some(&[-1, 0][..]), false).unwrap()[..], [3]);
        assert_eq!(reduced_count(&[2, 3, 4], &[0, 2][..]).unwrap(), 8);
        assert_eq!(reduced_count(&[], None::<&[i64]>).unwrap(), 1);
        assert_eq!(along(&[2, 3, 4], -2).unwrap()[..], [1, 3, 1]);
        assert!(keep_reduced(&[2], 1).is_err());
        assert_eq!(rows_of(&[2, 3, 4, 5], 2).unwrap()[..], [6, 20]);
        assert_eq!(rows_of(&[2, 3], 0).unwrap()[..], [6, 1]);
        assert!(rows_of(&[2], 2).is_err());
        assert_eq!(other_dims(3, -2).unwrap()[..], [0, 2]);
        assert_eq!(with_size(&[2, 3], -1, 5).unwrap()[..], [2, 5]);
        assert!(with_size(&[], 0, 5).is_err());
    }
}
