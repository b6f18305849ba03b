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

#[cfg(test)]
mod tests {
    use super::*;

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
        for factors in [&[1.0][..], &[-1.0, 1.0], &[f64::NAN, 1.0], &[1e300, 1.0]] {
            assert!(upsampled_sizes(&[1, 2, 5, 7], factors).is_err());
        }
    }
}
