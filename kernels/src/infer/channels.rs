//! Sizes of tensors of samples, channels and places whose channels are regrouped.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::checked_numel;
use opsmith_runtime::{Dims, Error, Result};

/// The number of places of samples and channels `(samples, channels, places…)`.
///
/// # Errors
/// If there are too many to count.
pub fn places_of(sizes: &[i64]) -> Result<i64> {
    checked_numel(sizes.get(2..).unwrap_or(&[]))
}

/// The samples and channels of a tensor, with one place each: `[2, 3, 4, 5]` as `[2, 3, 1, 1]`.
///
/// # Errors
/// If there are fewer than two dimensions.
pub fn channels(sizes: &[i64]) -> Result<Dims> {
    let [samples, channels, places @ ..] = sizes else { return Err(too_few(sizes)) };
    let mut result = Dims::from_slice(&[*samples, *channels]);
    result.extend(places.iter().map(|_| 1));
    Ok(result)
}

/// The channels of all samples as those of one: `[2, 3, 4]` as `[1, 6, 4]`.
///
/// # Errors
/// If there are fewer than two dimensions.
pub fn one_sample(sizes: &[i64]) -> Result<Dims> {
    let [samples, channels, places @ ..] = sizes else { return Err(too_few(sizes)) };
    let mut result = Dims::from_slice(&[1, checked_numel(&[*samples, *channels])?]);
    result.extend_from_slice(places);
    Ok(result)
}

/// The channels in groups, and all places as one: `[2, 6, 4, 5]` and 3 groups as `[2, 3, 2, 20]`.
///
/// # Errors
/// If the groups are not equal.
pub fn channel_groups(sizes: &[i64], groups: i64) -> Result<Dims> {
    let [samples, channels, places @ ..] = sizes else { return Err(too_few(sizes)) };
    let each = divided("channels", *channels, groups)?;
    Ok(Dims::from_slice(&[*samples, groups, each, checked_numel(places)?]))
}

/// `(…, C * r², H, W)` as `(samples, C, r, r, H, W)`.
///
/// # Errors
/// If there are fewer than three dimensions, or the channels are no multiple of r².
pub fn channels_as_pixels(sizes: &[i64], factor: i64) -> Result<Dims> {
    let [samples @ .., channels, rows, columns] = sizes else { return Err(too_few(sizes)) };
    let each = divided("channels", *channels, factor.saturating_mul(factor))?;
    Ok(Dims::from_slice(&[checked_numel(samples)?, each, factor, factor, *rows, *columns]))
}

/// `(…, C * r², H, W)` as `(…, C, H * r, W * r)`.
///
/// # Errors
/// As [`channels_as_pixels`], and if a size is too large.
pub fn pixel_shuffled(sizes: &[i64], factor: i64) -> Result<Dims> {
    let [samples @ .., channels, rows, columns] = sizes else { return Err(too_few(sizes)) };
    let mut result = Dims::from_slice(samples);
    result.push(divided("channels", *channels, factor.saturating_mul(factor))?);
    result.extend([checked_numel(&[*rows, factor])?, checked_numel(&[*columns, factor])?]);
    Ok(result)
}

/// `(…, C, H * r, W * r)` as `(samples, C, H, r, W, r)`.
///
/// # Errors
/// If there are fewer than three dimensions, or rows or columns are no multiple of r.
pub fn pixels_as_channels(sizes: &[i64], factor: i64) -> Result<Dims> {
    let [samples @ .., channels, rows, columns] = sizes else { return Err(too_few(sizes)) };
    let (rows, columns) = (divided("rows", *rows, factor)?, divided("columns", *columns, factor)?);
    Ok(Dims::from_slice(&[checked_numel(samples)?, *channels, rows, factor, columns, factor]))
}

/// `(…, C, H * r, W * r)` as `(…, C * r², H, W)`.
///
/// # Errors
/// As [`pixels_as_channels`], and if a size is too large.
pub fn pixel_unshuffled(sizes: &[i64], factor: i64) -> Result<Dims> {
    let [samples @ .., channels, rows, columns] = sizes else { return Err(too_few(sizes)) };
    let mut result = Dims::from_slice(samples);
    result.push(checked_numel(&[*channels, factor, factor])?);
    result.extend([divided("rows", *rows, factor)?, divided("columns", *columns, factor)?]);
    Ok(result)
}

fn divided(name: &str, size: i64, parts: i64) -> Result<i64> {
    if parts <= 0 || size % parts != 0 {
        return Err(Error::shape(format!("{size} {name} do not make {parts} equal parts")));
    }
    Ok(size / parts)
}

fn too_few(sizes: &[i64]) -> Error {
    Error::shape(format!("the shape {} has too few dimensions", ShapeText(sizes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_regrouped_channels() {
        assert_eq!(places_of(&[2, 3, 4, 5]).unwrap(), 20);
        assert_eq!(one_sample(&[2, 3, 4]).unwrap()[..], [1, 6, 4]);
        assert_eq!(channel_groups(&[2, 6, 4, 5], 3).unwrap()[..], [2, 3, 2, 20]);
        assert!(channel_groups(&[2, 6, 4], 4).is_err() && channel_groups(&[2, 6, 4], 0).is_err());
        assert_eq!(channels_as_pixels(&[8, 3, 5], 2).unwrap()[..], [1, 2, 2, 2, 3, 5]);
        assert_eq!(pixel_shuffled(&[7, 8, 3, 5], 2).unwrap()[..], [7, 2, 6, 10]);
        assert!(pixel_shuffled(&[8, 3, 5], i64::MAX).is_err() && pixel_shuffled(&[8, 3], 1).is_err());
        assert_eq!(pixels_as_channels(&[7, 2, 6, 10], 2).unwrap()[..], [7, 2, 3, 2, 5, 2]);
        assert_eq!(pixel_unshuffled(&[7, 2, 6, 10], 2).unwrap()[..], [7, 8, 3, 5]);
        assert!(pixel_unshuffled(&[2, 6, 9], 2).is_err());
    }
}
