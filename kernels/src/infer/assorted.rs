//! Shapes of operators that are alone in their kind: distances, Fourier transforms, grids, bags.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::{checked_numel, wrap_dim};
use opsmith_runtime::{Dims, Error, Result, Tensor};

use super::indexing::broadcast_pair;

/// The rows of `x1` by the rows of `x2`, dimensions before broadcast.
///
/// # Errors
/// If an operand is not made of matrices, or their columns differ.
pub fn cdist(x1: &Tensor, x2: &Tensor) -> Result<Dims> {
    let refuse = || {
        Error::shape(format!(
            "the rows of {} and {} have no distances",
            ShapeText(x1.shape()),
            ShapeText(x2.shape())
        ))
        .with_help("both need at least two dimensions, and the same number of columns")
    };
    let ([first @ .., rows1, width1], [second @ .., rows2, width2]) = (x1.shape(), x2.shape()) else {
        return Err(refuse());
    };
    if width1 != width2 {
        return Err(refuse());
    }
    let mut sizes = broadcast_pair(first, second)?;
    sizes.extend([*rows1, *rows2]);
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// A row for each of `x1`'s, in the stack that both broadcast to; `x1`'s where
/// there are no distances.
///
/// # Errors
/// As [`cdist`].
pub fn cdist_backward(x1: &Tensor, x2: &Tensor) -> Result<Dims> {
    let mut sizes = cdist(x1, x2)?;
    if sizes.contains(&0) || x1.numel() == 0 {
        return Ok(x1.shape().into());
    }
    sizes.pop();
    sizes.extend(x1.shape().last().copied());
    Ok(sizes)
}

/// A number for each pair of rows.
///
/// # Errors
/// If `self` is not a matrix.
pub fn pdist(self_: &Tensor) -> Result<Dims> {
    match self_.shape() {
        &[rows, _] => {
            let pairs = Dims::from_slice(&[rows.saturating_mul((rows - 1).max(0)) / 2]);
            checked_numel(&pairs)?;
            Ok(pairs)
        }
        other => Err(Error::shape(format!("expected a matrix, got the shape {}", ShapeText(other)))),
    }
}

/// The shape of `self`, with the first half of the frequencies along the last of the dimensions `dim` if `onesided`.
///
/// # Errors
/// If a dimension is out of range.
pub fn fft_r2c(self_: &Tensor, dim: &[i64], onesided: bool) -> Result<Dims> {
    let mut sizes: Dims = self_.shape().into();
    let mut last = None;
    for &dim in dim {
        last = Some(wrap_dim(dim, self_.dim())?);
    }
    if let (true, Some(size)) = (onesided, last.and_then(|dim| sizes.get_mut(dim))) {
        *size = *size / 2 + 1;
    }
    Ok(sizes)
}

/// The shape of `self`, with `last_dim_size` along the last of the dimensions `dim`.
///
/// # Errors
/// If a dimension is out of range, there is none, or the size is not positive.
pub fn fft_c2r(self_: &Tensor, dim: &[i64], last_dim_size: i64) -> Result<Dims> {
    let mut sizes: Dims = self_.shape().into();
    let mut last = None;
    for &dim in dim {
        last = Some(wrap_dim(dim, self_.dim())?);
    }
    match last.and_then(|dim| sizes.get_mut(dim)) {
        Some(size) if last_dim_size > 0 => *size = last_dim_size,
        _ => {
            return Err(Error::value(format!(
                "{last_dim_size} real numbers along the last of {dim:?} are not a result"
            )));
        }
    }
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// The samples and channels of `input`, the rows and columns of `grid`.
///
/// # Errors
/// If the input is not made of images or the grid not of pairs, or their samples differ.
pub fn grid_sampler_2d(input: &Tensor, grid: &Tensor) -> Result<Dims> {
    match (input.shape(), grid.shape()) {
        (&[samples, channels, _, _], &[grids, rows, columns, 2]) if samples == grids => {
            Ok(Dims::from_slice(&[samples, channels, rows, columns]))
        }
        (input, grid) => Err(Error::shape(format!(
            "images {} cannot be read at a grid {}",
            ShapeText(input),
            ShapeText(grid)
        ))
        .with_help("images are (samples, channels, height, width), grids (samples, rows, columns, 2)")),
    }
}

/// A row for each bag, as wide as those of `weight`.
///
/// # Errors
/// If `weight` is not a matrix or the others are not lists.
pub fn embedding_bag(
    weight: &Tensor,
    indices: &Tensor,
    offsets: &Tensor,
    include_last_offset: bool,
) -> Result<Dims> {
    let (&[_, width], 1, &[offsets]) = (weight.shape(), indices.dim(), offsets.shape()) else {
        return Err(Error::shape(format!(
            "a weight of shape {}, indices {} and offsets {} make no bags",
            ShapeText(weight.shape()),
            ShapeText(indices.shape()),
            ShapeText(offsets.shape())
        ))
        .with_help("the weight is a matrix, indices and offsets are lists"));
    };
    let bags = (offsets - i64::from(include_last_offset)).max(0);
    Ok(Dims::from_slice(&[bags, width]))
}

/// An index for each element of the rows of the bags for maxima (`mode` 2), else one for each bag.
///
/// # Errors
/// As [`embedding_bag`].
pub fn embedding_bag_maxima(
    weight: &Tensor,
    indices: &Tensor,
    offsets: &Tensor,
    include_last_offset: bool,
    mode: i64,
) -> Result<Dims> {
    let mut sizes = embedding_bag(weight, indices, offsets, include_last_offset)?;
    if mode != 2 {
        sizes.truncate(1);
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[i64]) -> Tensor {
        Tensor::from_slice(&vec![0f32; shape.iter().product::<i64>() as usize], shape).unwrap()
    }

    #[test]
    fn shapes() {
        assert_eq!(cdist(&tensor(&[2, 1, 3, 5]), &tensor(&[4, 6, 5])).unwrap()[..], [2, 4, 3, 6]);
        assert!(cdist(&tensor(&[3, 5]), &tensor(&[6, 4])).is_err());
        assert_eq!(pdist(&tensor(&[4, 2])).unwrap()[..], [6]);
        assert_eq!(pdist(&tensor(&[0, 2])).unwrap()[..], [0]);
        assert_eq!(fft_r2c(&tensor(&[4, 7]), &[0, -1], true).unwrap()[..], [4, 4]);
        assert_eq!(fft_r2c(&tensor(&[4, 7]), &[0, -1], false).unwrap()[..], [4, 7]);
        assert_eq!(fft_c2r(&tensor(&[4, 4]), &[1], 7).unwrap()[..], [4, 7]);
        assert!(fft_c2r(&tensor(&[4, 4]), &[1], 0).is_err() && fft_c2r(&tensor(&[4]), &[], 1).is_err());
        let (image, grid) = (tensor(&[2, 3, 5, 5]), tensor(&[2, 4, 6, 2]));
        assert_eq!(grid_sampler_2d(&image, &grid).unwrap()[..], [2, 3, 4, 6]);
        assert!(grid_sampler_2d(&image, &image).is_err());
        let (weight, indices, offsets) = (tensor(&[9, 5]), tensor(&[7]), tensor(&[3]));
        assert_eq!(embedding_bag(&weight, &indices, &offsets, true).unwrap()[..], [2, 5]);
        assert_eq!(embedding_bag_maxima(&weight, &indices, &offsets, false, 2).unwrap()[..], [3, 5]);
        assert_eq!(embedding_bag_maxima(&weight, &indices, &offsets, false, 0).unwrap()[..], [3]);
        assert!(embedding_bag(&weight, &weight, &offsets, false).is_err());
    }
}
