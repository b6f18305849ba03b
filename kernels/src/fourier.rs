//! The arithmetic of Fourier transforms' arguments: dimensions, sizes of transforms, divisors, shifts.
//!
//! In: sizes of a tensor, and the arguments `s`, `dim` and `norm` as users give them. Out: the arguments of the transforms
//! of `_fft_r2c`, `_fft_c2r` and `_fft_c2c`. No tensor is looked at.

use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{Dims, Error, Result};

/// The dimensions of a transform: those given, the last ones as many as there are sizes in `s`, or all.
///
/// # Errors
/// If one is out of range or given twice, or there are other numbers of sizes and of dimensions.
pub fn dims(sizes: &[i64], s: Option<&[i64]>, dim: Option<&[i64]>) -> Result<Dims> {
    let rank = sizes.len();
    let dims: Dims = match (s, dim) {
        (_, Some(dim)) => distinct(rank, dim)?,
        (Some(s), None) => {
            let first = rank
                .checked_sub(s.len())
                .ok_or_else(|| Error::value(format!("{} sizes are given for {rank} dimensions", s.len())))?;
            (first as i64..rank as i64).collect()
        }
        (None, None) => (0..rank as i64).collect(),
    };
    match s {
        Some(s) if s.len() != dims.len() => {
            Err(Error::value(format!("{} sizes are given for {} dimensions", s.len(), dims.len()))
                .with_help("give a size for each dimension of `dim`, -1 for its own"))
        }
        _ => Ok(dims),
    }
}

/// As [`dims`], at least one.
///
/// # Errors
/// As [`dims`], or if there is none.
pub fn some_dims(sizes: &[i64], s: Option<&[i64]>, dim: Option<&[i64]>) -> Result<Dims> {
    let dims = dims(sizes, s, dim)?;
    if dims.is_empty() {
        return Err(Error::value("a transform between real and complex numbers needs a dimension"));
    }
    Ok(dims)
}

fn distinct(rank: usize, dims: &[i64]) -> Result<Dims> {
    let mut found = Dims::new();
    for &dim in dims {
        let wrapped = wrapped(dim, rank)?;
        if found.contains(&wrapped) {
            return Err(Error::value(format!("dimension {dim} is given twice")));
        }
        found.push(wrapped);
    }
    Ok(found)
}

fn wrapped(dim: i64, rank: usize) -> Result<i64> {
    if rank == 0 {
        return Err(Error::index("a tensor without dimensions cannot be transformed along one"));
    }
    Ok(wrap_dim(dim, rank)? as i64)
}

/// The sizes of a transform's elements: those of `s` in place of a tensor's own.
///
/// # Errors
/// As [`dims`], or if there is a transform of no numbers.
pub fn sizes(own: &[i64], s: Option<&[i64]>, dim: Option<&[i64]>) -> Result<Dims> {
    let mut sizes = Dims::from_slice(own);
    for (at, &dim) in dims(own, s, dim)?.iter().enumerate() {
        if let Some(size) = s.map(|s| s[at]).filter(|size| *size != -1) {
            sizes[dim as usize] = size;
        }
        positive(sizes[dim as usize])?;
    }
    Ok(sizes)
}

fn positive(size: i64) -> Result<i64> {
    if size < 1 {
        return Err(Error::value(format!("there is no transform of {size} numbers"))
            .with_help("a transform needs dimensions of at least one element"));
    }
    Ok(size)
}

/// As [`sizes`], with the first half of the frequencies along the last dimension, whose result has `s`.
///
/// # Errors
/// As [`sizes`], or if there is no dimension.
pub fn half_sizes(own: &[i64], s: Option<&[i64]>, dim: Option<&[i64]>) -> Result<Dims> {
    let dims = some_dims(own, s, dim)?;
    let last = last_size(own, s, dim)?;
    let mut sizes = Dims::from_slice(own);
    for (at, &dim) in dims.iter().enumerate() {
        let given = s.map(|s| s[at]).filter(|size| *size != -1);
        let size = if at + 1 == dims.len() { last / 2 + 1 } else { given.unwrap_or(own[dim as usize]) };
        sizes[dim as usize] = positive(size)?;
    }
    Ok(sizes)
}

/// The size of the last dimension of real numbers that come from half of their frequencies.
///
/// # Errors
/// As [`half_sizes`].
pub fn last_size(own: &[i64], s: Option<&[i64]>, dim: Option<&[i64]>) -> Result<i64> {
    let dims = some_dims(own, s, dim)?;
    let given = s.and_then(|s| s.last().copied()).filter(|size| *size != -1);
    positive(match given {
        Some(size) => size,
        None => 2 * (own[dims[dims.len() - 1] as usize].min(i64::MAX / 2) - 1),
    })
}

/// All dimensions but the last of a list.
///
/// # Errors
/// None; a function of a spec returns a result.
pub fn but_last(dims: &[i64]) -> Result<Dims> {
    Ok(dims.split_last().map(|(_, others)| others).unwrap_or_default().into())
}

/// The last of a list of dimensions, as a list.
///
/// # Errors
/// None; a function of a spec returns a result.
pub fn last(dims: &[i64]) -> Result<Dims> {
    Ok(dims.last().copied().into_iter().collect())
}

/// The argument of `constant_pad_nd` that changes sizes at the end of dimensions.
///
/// # Errors
/// If the numbers of sizes differ.
pub fn padding(own: &[i64], sizes: &[i64]) -> Result<Dims> {
    if own.len() != sizes.len() {
        return Err(Error::shape(format!("{} sizes are given for {} dimensions", sizes.len(), own.len())));
    }
    Ok(own.iter().zip(sizes).rev().flat_map(|(own, size)| [0, size.saturating_sub(*own)]).collect())
}

/// The divisor of a transform for its kernel: nothing (0), the root (1) or all (2) of the number of elements.
///
/// # Errors
/// If `norm` has another name.
pub fn normalization(norm: Option<&str>, forward: bool) -> Result<i64> {
    match (norm.unwrap_or("backward"), forward) {
        ("ortho", _) => Ok(1),
        ("backward", true) | ("forward", false) => Ok(0),
        ("backward", false) | ("forward", true) => Ok(2),
        (other, _) => Err(Error::value(format!("there is no normalisation `{other}`"))
            .with_help("use `backward`, `forward` or `ortho`")),
    }
}

/// The distances that move the frequency 0 to the middle of dimensions, or back.
///
/// # Errors
/// If a dimension is out of range.
pub fn shifts(sizes: &[i64], dim: Option<&[i64]>, back: bool) -> Result<Dims> {
    let dims = shifted_dims(sizes.len() as i64, dim)?;
    Ok(dims
        .iter()
        .map(|dim| sizes[*dim as usize])
        .map(|size| if back { size - size / 2 } else { size / 2 })
        .collect())
}

/// The dimensions of a shift: those given, or all.
///
/// # Errors
/// If one is out of range.
pub fn shifted_dims(rank: i64, dim: Option<&[i64]>) -> Result<Dims> {
    match dim {
        Some(dim) => dim.iter().map(|dim| wrapped(*dim, rank as usize)).collect(),
        None => Ok((0..rank).collect()),
    }
}

/// The distance of the frequencies of `n` elements at distances `d`.
///
/// # Errors
/// None; a function of a spec returns a result.
pub fn spacing(n: i64, d: f64) -> Result<f64> {
    Ok(1.0 / (n as f64 * d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_given_or_the_last_or_all() {
        assert_eq!(dims(&[2, 3, 4], None, Some(&[-1, 0])).unwrap()[..], [2, 0]);
        assert_eq!(dims(&[2, 3, 4], Some(&[5, 6]), None).unwrap()[..], [1, 2]);
        assert_eq!(dims(&[2, 3, 4], None, None).unwrap()[..], [0, 1, 2]);
        assert!(dims(&[2, 3], Some(&[1, 2, 3]), None).is_err());
        assert!(dims(&[2, 3], Some(&[1]), Some(&[0, 1])).is_err());
        assert!(dims(&[2, 3], None, Some(&[1, -1])).is_err());
        assert!(dims(&[], None, Some(&[0])).is_err());
        assert!(some_dims(&[], None, None).is_err());
    }

    #[test]
    fn sizes_are_those_of_the_result() {
        assert_eq!(sizes(&[2, 3], Some(&[-1, 5]), None).unwrap()[..], [2, 5]);
        assert!(sizes(&[2, 0], None, None).is_err());
        assert_eq!(half_sizes(&[2, 3], None, None).unwrap()[..], [2, 3]);
        assert_eq!(half_sizes(&[2, 3], Some(&[4, 5]), None).unwrap()[..], [4, 3]);
        assert_eq!(last_size(&[2, 3], None, Some(&[0])).unwrap(), 2);
        assert!(last_size(&[1], None, None).is_err());
        assert_eq!(padding(&[2, 5], &[4, 3]).unwrap()[..], [0, -2, 0, 2]);
        assert_eq!(shifts(&[3, 4], None, true).unwrap()[..], [2, 2]);
    }
}
