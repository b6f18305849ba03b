//! Shapes of tensors whose last dimensions get more or fewer places.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::checked_numel;
use opsmith_runtime::{Dims, Error, Result, Tensor};

use crate::window::MOST;

/// The shape of `self`, with the sizes `output_size` in the places of the last dimensions.
///
/// # Errors
/// If the numbers of dimensions do not agree, or a dimension but that of the samples has no elements.
pub fn upsample(self_: &Tensor, output_size: &[i64], scales: &[f64]) -> Result<Dims> {
    resized(self_.shape(), output_size, scales)
}

/// The shape of the input.
///
/// # Errors
/// As [`upsample`], and if the gradient has another shape than the result of `_upsample`.
pub fn upsample_backward(
    grad_output: &Tensor,
    output_size: &[i64],
    input_size: &[i64],
    scales: &[f64],
) -> Result<Dims> {
    let sizes = resized(input_size, output_size, scales)?;
    if grad_output.shape() != &sizes[..] {
        return Err(Error::shape(format!(
            "the gradient has the shape {}, the result {}",
            ShapeText(grad_output.shape()),
            ShapeText(&sizes)
        )));
    }
    checked_numel(input_size)?;
    Ok(Dims::from_slice(input_size))
}

pub(crate) fn resized(sizes: &[i64], output_size: &[i64], scales: &[f64]) -> Result<Dims> {
    let spatial = output_size.len();
    if !(1..=MOST).contains(&spatial) || sizes.len() != spatial + 2 {
        return Err(Error::shape(format!(
            "{spatial} sizes do not replace those of a tensor of shape {}",
            ShapeText(sizes)
        ))
        .with_help("give one for each dimension but the samples and the channels, 1 to 3"));
    }
    if !scales.is_empty() && scales.len() != spatial {
        return Err(Error::value(format!("{} scales are given for {spatial} dimensions", scales.len())));
    }
    if output_size.iter().chain(&sizes[1..]).any(|&size| size <= 0) || sizes[0] < 0 {
        return Err(Error::shape(format!(
            "a tensor of shape {} cannot get the sizes {output_size:?}: only samples may be none",
            ShapeText(sizes)
        )));
    }
    let mut result = Dims::from_slice(&sizes[..2]);
    result.extend(output_size.iter().copied());
    checked_numel(&result)?;
    Ok(result)
}

/// The sizes after the first two, each times its factor, rounded down.
///
/// # Errors
/// If there is another number of factors, or a product is no size.
pub fn upsampled_sizes(sizes: &[i64], factors: &[f64]) -> Result<Dims> {
    let sizes = sizes.get(2..).unwrap_or(&[]);
    if sizes.len() != factors.len() {
        return Err(Error::value(format!(
            "{} scale factors are given for {} dimensions after samples and channels",
            factors.len(),
            sizes.len()
        )));
    }
    let scaled = |(&size, &factor): (&i64, &f64)| {
        let product = size as f64 * factor;
        // Larger products have no `i64`.
        if !(0.0..9.0e18).contains(&product) {
            return Err(Error::value(format!("a dimension of size {size} cannot be scaled by {factor}")));
        }
        Ok(product as i64)
    };
    sizes.iter().zip(factors).map(scaled).collect()
}

/// As [`upsampled_sizes`]; one factor may stand for all dimensions.
///
/// # Errors
/// As there.
pub fn interpolated_sizes(sizes: &[i64], factors: &[f64]) -> Result<Dims> {
    match factors {
        [one] => upsampled_sizes(sizes, &vec![*one; sizes.len().saturating_sub(2)]),
        factors => upsampled_sizes(sizes, factors),
    }
}

/// The distance of places in elements, of a dimension of `size` elements that gets `output_size` places: the inverse of a
/// positive `scale`, else the quotient of the sizes; with `align_corners` that of the distances between corners.
///
/// # Errors
/// If there are no elements or no places.
pub fn resize_ratio(size: i64, output_size: i64, align_corners: bool, scale: f64) -> Result<f64> {
    if size <= 0 || output_size <= 0 {
        return Err(Error::shape(format!("{size} elements cannot be resized to {output_size}"))
            .with_help("give positive sizes"));
    }
    Ok(match (align_corners, scale > 0.0) {
        (true, _) if output_size > 1 => (size - 1) as f64 / (output_size - 1) as f64,
        (true, _) => 0.0,
        (false, true) => 1.0 / scale,
        (false, false) => size as f64 / output_size as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_places() {
        assert_eq!(resize_ratio(6, 3, false, 0.0).unwrap(), 2.0);
        assert_eq!(resize_ratio(6, 3, false, 0.25).unwrap(), 4.0);
        assert_eq!(resize_ratio(7, 3, true, 0.25).unwrap(), 3.0);
        assert_eq!(resize_ratio(7, 1, true, 0.0).unwrap(), 0.0);
        assert!(resize_ratio(0, 1, true, 0.0).is_err());
    }

    #[test]
    fn sizes_that_are_refused() {
        let x = Tensor::from_slice(&[0f32; 12], &[1, 2, 6]).unwrap();
        assert_eq!(upsample(&x, &[9], &[]).unwrap()[..], [1, 2, 9]);
        for (sizes, scales) in
            [(&[9, 9][..], &[][..]), (&[0], &[]), (&[9], &[1.0, 1.0]), (&[i64::MAX], &[]), (&[], &[])]
        {
            assert!(upsample(&x, sizes, scales).is_err());
        }
        assert_eq!(upsample_backward(&x, &[6], &[1, 2, 4], &[]).unwrap()[..], [1, 2, 4]);
        assert!(upsample_backward(&x, &[5], &[1, 2, 4], &[]).is_err());
        assert_eq!(upsampled_sizes(&[1, 2, 5, 7], &[1.5, 0.5]).unwrap()[..], [7, 3]);
        assert_eq!(interpolated_sizes(&[1, 2, 5, 7], &[1.5]).unwrap()[..], [7, 10]);
        assert_eq!(interpolated_sizes(&[1, 2, 5, 7], &[1.5, 0.5]).unwrap()[..], [7, 3]);
        assert!(interpolated_sizes(&[1, 2, 5, 7], &[]).is_err());
        for factors in [&[1.0][..], &[-1.0, 1.0], &[f64::NAN, 1.0], &[1e300, 1.0]] {
            assert!(upsampled_sizes(&[1, 2, 5, 7], factors).is_err());
        }
    }
}
