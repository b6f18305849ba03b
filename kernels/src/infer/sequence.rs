//! Shapes of sequences, and of results with elements in another order.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::layout::{checked_numel, wrap_dim};
use opsmith_runtime::{DType, Dims, Error, Result, Scalar, Tensor};

/// How many numbers `arange(start, end, step)` gives: the distance divided by the step, rounded up.
///
/// Integers are counted exactly; if one of the three is a float, the count is that of floats, whatever dtype
/// is asked for: `arange(0, 5.5, 1)` has 6 numbers in every dtype.
///
/// # Errors
/// If the step is 0 or leads away from `end`, or an end is not finite.
pub fn arange(start: Scalar, end: Scalar, step: Scalar, _dtype: Option<DType>) -> Result<Dims> {
    let is_float = |scalar: Scalar| matches!(scalar, Scalar::Float(_) | Scalar::Complex(_));
    let any_float = is_float(start) || is_float(end) || is_float(step);
    let (from, to, by) = (start.to_f64(), end.to_f64(), step.to_f64());
    if by == 0.0 || by.is_nan() {
        return Err(Error::value(format!("the step is {step}, but must not be 0")));
    }
    if !from.is_finite() || !to.is_finite() {
        return Err(Error::value(format!("a sequence from {start} to {end} has no end")));
    }
    if (to - from) * by.signum() < 0.0 {
        return Err(Error::value(format!("steps of {step} lead from {start} away from {end}"))
            .with_help("change the sign of the step"));
    }
    let count = if any_float {
        ((to - from) / by).ceil() as i128
    } else {
        let (from, to, by) = (start.to_i64() as i128, end.to_i64() as i128, step.to_i64() as i128);
        (to - from + by - by.signum()) / by
    };
    match i64::try_from(count.max(0)) {
        Ok(count) => {
            checked_numel(&[count, 16])?;
            Ok(Dims::from_slice(&[count]))
        }
        Err(_) => Err(Error::shape(format!("a sequence of {count} numbers does not fit in memory"))),
    }
}

/// As many numbers as steps.
///
/// # Errors
/// If `steps` is negative.
pub fn linspace(steps: i64) -> Result<Dims> {
    if steps < 0 {
        return Err(Error::value(format!("a sequence cannot have {steps} numbers")));
    }
    Ok(Dims::from_slice(&[steps]))
}

/// `self`'s shape, each size times a number; new dimensions come first.
///
/// # Errors
/// If there are fewer numbers than dimensions, or a number is negative.
pub fn repeat(self_: &Tensor, repeats: &[i64]) -> Result<Dims> {
    let Some(new) = repeats.len().checked_sub(self_.dim()) else {
        return Err(Error::value(format!(
            "{} numbers of repetitions are given for the {} dimensions of the shape {}",
            repeats.len(),
            self_.dim(),
            ShapeText(self_.shape())
        ))
        .with_help("give one for each dimension; 1 keeps it"));
    };
    let mut sizes: Dims = repeats.into();
    if let Some(negative) = repeats.iter().find(|&&times| times < 0) {
        return Err(Error::value(format!("a dimension cannot be repeated {negative} times")));
    }
    for (size, &own) in sizes[new..].iter_mut().zip(self_.shape()) {
        *size = size.checked_mul(own).ok_or_else(|| Error::shape("the result does not fit in memory"))?;
    }
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// `self`'s shape.
///
/// # Errors
/// If a dimension is out of range or given twice.
pub fn flip(self_: &Tensor, dims: &[i64]) -> Result<Dims> {
    if !dims.is_empty() {
        reduced_dims(self_.dim(), Some(dims))?;
    }
    Ok(self_.shape().into())
}

/// `self`'s shape.
///
/// # Errors
/// If there are not as many shifts as dimensions (one shift without dimensions moves the elements in
/// row-major order), or a dimension is out of range.
pub fn roll(self_: &Tensor, shifts: &[i64], dims: &[i64]) -> Result<Dims> {
    if shifts.is_empty() {
        return Err(Error::value("there is no shift").with_help("give one for each dimension"));
    }
    let flat = dims.is_empty() && shifts.len() == 1;
    if shifts.len() != dims.len() && !flat {
        return Err(Error::value(format!("{} shifts are given for {} dimensions", shifts.len(), dims.len())));
    }
    for &dim in dims {
        wrap_dim(dim, self_.dim())?;
    }
    Ok(self_.shape().into())
}

/// `self`'s shape.
///
/// # Errors
/// If there is no such dimension.
pub fn sort(self_: &Tensor, dim: i64) -> Result<Dims> {
    wrap_dim(dim, self_.dim())?;
    Ok(self_.shape().into())
}

/// `input`'s shape, for root mean square normalisation.
///
/// # Errors
/// As [`layer_norm_statistics`].
pub fn rms_norm(input: &Tensor, normalized_shape: &[i64]) -> Result<Dims> {
    layer_norm_statistics(input, normalized_shape)?;
    Ok(input.shape().into())
}

/// The shape of layer normalisation's mean and reciprocal deviation: `input`'s, with the normalised
/// dimensions of size 1.
///
/// # Errors
/// If `normalized_shape` is empty or not the end of the input's shape.
pub fn layer_norm_statistics(input: &Tensor, normalized_shape: &[i64]) -> Result<Dims> {
    let outer = input.dim().checked_sub(normalized_shape.len());
    match outer {
        Some(outer) if !normalized_shape.is_empty() && input.shape()[outer..] == *normalized_shape => {
            let mut sizes: Dims = input.shape().into();
            sizes[outer..].fill(1);
            Ok(sizes)
        }
        _ => Err(Error::shape(format!(
            "the normalised shape {} is not the end of the input's shape {}",
            ShapeText(normalized_shape),
            ShapeText(input.shape())
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[i64]) -> Tensor {
        Tensor::from_slice(&vec![0f32; shape.iter().product::<i64>() as usize], shape).unwrap()
    }

    #[test]
    fn lengths_of_sequences() {
        let length = |start: Scalar, end: Scalar, step: Scalar, dtype| {
            arange(start, end, step, dtype).map(|sizes| sizes[0])
        };
        let int = Scalar::Int;
        assert_eq!(length(int(0), int(5), int(2), None).unwrap(), 3);
        assert_eq!(length(int(5), int(0), int(-5), None).unwrap(), 1);
        assert_eq!(length(int(3), int(3), int(1), None).unwrap(), 0);
        assert_eq!(length(int(0), Scalar::Float(5.5), int(1), None).unwrap(), 6);
        assert_eq!(length(int(0), Scalar::Float(5.5), int(1), Some(DType::I64)).unwrap(), 6);
        assert_eq!(length(Scalar::Float(0.5), Scalar::Float(5.5), int(1), Some(DType::I64)).unwrap(), 5);
        assert_eq!(length(int(0), Scalar::Float(5.5), int(1), Some(DType::I32)).unwrap(), 6);
        assert_eq!(length(int(i64::MIN), int(i64::MIN + 2), int(1), None).unwrap(), 2);
        assert!(length(int(0), int(5), int(0), None).is_err());
        assert_eq!(length(int(0), int(5), Scalar::Float(0.5), Some(DType::I64)).unwrap(), 10);
        assert_eq!(
            length(int(0), int(5), int(-1), None).unwrap_err().help(),
            Some("change the sign of the step")
        );
        assert!(length(int(0), Scalar::Float(f64::INFINITY), int(1), None).is_err());
        assert!(length(int(0), Scalar::Float(1e300), int(1), None).is_err());
        assert!(length(int(i64::MIN), int(i64::MAX), int(1), None).is_err());
    }

    #[test]
    fn repetitions_and_orders() {
        assert_eq!(repeat(&tensor(&[2, 3]), &[4, 1, 2]).unwrap()[..], [4, 2, 6]);
        assert!(repeat(&tensor(&[2, 3]), &[4]).is_err());
        assert!(repeat(&tensor(&[2]), &[-1]).is_err());
        assert!(repeat(&tensor(&[2]), &[i64::MAX]).is_err());
        assert!(flip(&tensor(&[2, 3]), &[0, -2]).is_err());
        assert_eq!(flip(&tensor(&[2, 3]), &[]).unwrap()[..], [2, 3]);
        assert!(roll(&tensor(&[2]), &[1, 2], &[0]).is_err());
        assert_eq!(roll(&tensor(&[2]), &[1], &[]).unwrap()[..], [2]);
        assert_eq!(layer_norm_statistics(&tensor(&[2, 3]), &[3]).unwrap()[..], [2, 1]);
        assert!(layer_norm_statistics(&tensor(&[2, 3]), &[2]).is_err());
        assert_eq!(rms_norm(&tensor(&[2, 3]), &[3]).unwrap()[..], [2, 3]);
        assert!(rms_norm(&tensor(&[2, 3]), &[]).is_err());
    }
}
