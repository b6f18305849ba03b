//! Shapes of convolutions, poolings, borders and other windows that slide over a tensor.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::checked_numel;
use opsmith_runtime::{Dims, Error, Result, Tensor};

use crate::window::{MOST, Window, spatial_sizes, with_spatial};

/// Samples, the output channels of `weight`, and positions of the window along each dimension behind.
///
/// A transposed convolution has the shape whose convolution gives `input`'s, and `output_padding` more.
///
/// # Errors
/// If the shapes do not go together or a parameter is out of its range.
#[allow(clippy::too_many_arguments, reason = "the arguments are the operator's")]
pub fn convolution(
    input: &Tensor,
    weight: &Tensor,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    transposed: bool,
    output_padding: &[i64],
    groups: i64,
) -> Result<Dims> {
    let (input, weight) = (input.shape(), weight.shape());
    let shapes = || format!("an input of shape {} and a weight of {}", ShapeText(input), ShapeText(weight));
    let spatial = weight.len().wrapping_sub(2);
    if !(1..=MOST).contains(&spatial) || input.len() != weight.len() {
        return Err(Error::shape(format!("{} cannot be convolved", shapes())).with_help(
            "both need the same number of dimensions, 3 to 5: samples or channels, channels, places",
        ));
    }
    let (in_channels, out_channels) = if transposed {
        (weight[0], weight[1].checked_mul(groups))
    } else {
        (weight[1].saturating_mul(groups), Some(weight[0]))
    };
    let divides = groups > 0 && weight[0] % groups == 0;
    let (Some(out_channels), true) = (out_channels, divides && in_channels == input[1]) else {
        return Err(Error::shape(format!("{} do not go together with {groups} groups", shapes())).with_help(
            if transposed {
                "the input's channels are the weight's first size, a multiple of the groups"
            } else {
                "the input's channels are the weight's second size times the groups, which divide the first"
            },
        ));
    };
    let window = Window::new(spatial, &weight[2..], stride, padding, dilation)?;
    let places = spatial_sizes(input, spatial)?;
    let positions = if transposed {
        transposed_sizes(&window, places, output_padding)?
    } else {
        window.output_sizes(places, false)?
    };
    let mut sizes = with_spatial(input, spatial, positions);
    sizes[1] = out_channels;
    checked_numel(&sizes)?;
    Ok(sizes)
}

fn transposed_sizes(window: &Window, input: [i64; MOST], output_padding: &[i64]) -> Result<[i64; MOST]> {
    let spatial = window.spatial;
    let extra = |dim: usize| match output_padding {
        [] => 0,
        [one] => *one,
        many => many.get((dim + spatial).wrapping_sub(MOST)).copied().unwrap_or(0),
    };
    let mut sizes = [1; MOST];
    for dim in MOST - spatial..MOST {
        let extra = extra(dim);
        if extra < 0 || extra >= window.stride[dim].max(window.dilation[dim]) {
            return Err(Error::value(format!(
                "the output padding {output_padding:?} must be smaller than the stride or the dilation"
            )));
        }
        let size = (|| {
            let steps = (input[dim] - 1).checked_mul(window.stride[dim])?;
            let reach = window.dilation[dim].checked_mul(window.kernel[dim] - 1)?;
            steps.checked_add(reach)?.checked_add(extra + 1)?.checked_sub(window.padding[dim].checked_mul(2)?)
        })();
        match size {
            Some(size) if size > 0 => sizes[dim] = size,
            _ => {
                return Err(Error::shape(format!(
                    "the output would have no places: its border of {:?} is larger than it is",
                    &window.padding[MOST - spatial..]
                )));
            }
        }
    }
    Ok(sizes)
}

fn pool(sizes: &[i64], window: Window, ceil: bool) -> Result<Dims> {
    let window = window.with_modest_padding()?;
    let output = window.output_sizes(pooled_sizes(sizes, window.spatial)?, ceil)?;
    Ok(with_spatial(sizes, window.spatial, output))
}

/// The sizes that are pooled: of nothing there is neither a mean nor a largest element.
fn pooled_sizes(sizes: &[i64], spatial: usize) -> Result<[i64; MOST]> {
    let pooled = spatial_sizes(sizes, spatial)?;
    // Samples may be none, channels may not.
    if pooled.contains(&0) || sizes.len().checked_sub(spatial + 1).is_some_and(|dim| sizes[dim] == 0) {
        return Err(Error::shape(format!("there are no elements to pool in the shape {}", ShapeText(sizes))));
    }
    Ok(pooled)
}

/// The shape of `self`, with the positions of the window in the places of the last two sizes.
///
/// # Errors
/// If the input's rank does not fit, or a parameter is out of its range.
pub fn max_pool2d(
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<Dims> {
    pool(self_.shape(), Window::new(2, kernel_size, stride, padding, dilation)?, ceil_mode)
}

/// The shape of `self`, with the positions of the window in the places of the last three sizes.
///
/// # Errors
/// As [`max_pool2d`].
pub fn max_pool3d(
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<Dims> {
    pool(self_.shape(), Window::new(3, kernel_size, stride, padding, dilation)?, ceil_mode)
}

/// The shape of `self`, with the positions of the window in the places of the last two sizes.
///
/// # Errors
/// As [`max_pool2d`].
pub fn avg_pool2d(
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
) -> Result<Dims> {
    pool(self_.shape(), Window::new(2, kernel_size, stride, padding, &[1])?, ceil_mode)
}

/// The shape of `self`, with the positions of the window in the places of the last three sizes.
///
/// # Errors
/// As [`max_pool2d`].
pub fn avg_pool3d(
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
) -> Result<Dims> {
    pool(self_.shape(), Window::new(3, kernel_size, stride, padding, &[1])?, ceil_mode)
}

/// The shape of `self`, with the sizes `output_size` in the places of the last dimensions.
///
/// # Errors
/// If the input's rank does not fit, it has no elements to pool, or a size is negative.
pub fn adaptive_avg_pool(self_: &Tensor, output_size: &[i64]) -> Result<Dims> {
    let spatial = output_size.len();
    if !(1..=MOST).contains(&spatial) || output_size.iter().any(|&size| size < 0) {
        return Err(Error::value(format!("{output_size:?} is not the size of an output")));
    }
    pooled_sizes(self_.shape(), spatial)?;
    let mut sizes: Dims = self_.shape().into();
    let outer = sizes.len() - spatial;
    sizes[outer..].copy_from_slice(output_size);
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// `self`'s shape with a border: two numbers a dimension, the last dimension first.
///
/// # Errors
/// If the numbers do not fit the shape, or nothing would be left.
pub fn pad(self_: &Tensor, padding: &[i64]) -> Result<Dims> {
    padded_sizes(self_.shape(), padding)
}

pub(crate) fn padded_sizes(sizes: &[i64], padding: &[i64]) -> Result<Dims> {
    check_padding(sizes, padding)?;
    let mut result = Dims::from_slice(sizes);
    for (pair, numbers) in padding.chunks_exact(2).enumerate() {
        let dim = sizes.len() - 1 - pair;
        let size = sizes[dim].checked_add(numbers[0]).and_then(|size| size.checked_add(numbers[1]));
        match size {
            Some(size) if size > 0 => result[dim] = size,
            _ => {
                return Err(Error::shape(format!(
                    "dimension {dim} of size {} has no elements left with a border of {numbers:?}",
                    sizes[dim]
                )));
            }
        }
    }
    checked_numel(&result)?;
    Ok(result)
}

/// Refuses a border list that does not fit a shape.
fn check_padding(sizes: &[i64], padding: &[i64]) -> Result<()> {
    let pairs = padding.len() / 2;
    if padding.len().is_multiple_of(2) && pairs > 0 && (pairs..=pairs + 2).contains(&sizes.len()) {
        return Ok(());
    }
    Err(Error::shape(format!("{} border sizes do not fit the shape {}", padding.len(), ShapeText(sizes)))
        .with_help("give two a dimension, the last dimension first; channels and samples have no border"))
}

/// For each sample, a row for each channel and element of a window, a column for each of its positions.
///
/// # Errors
/// If the input's rank does not fit or a parameter is out of its range.
pub fn im2col(
    self_: &Tensor,
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
) -> Result<Dims> {
    let window = Window::new(2, kernel_size, stride, padding, dilation)?;
    let places = spatial_sizes(self_.shape(), 2)?;
    let positions = checked_numel(&window.output_sizes(places, false)?)?;
    let mut sizes = Dims::from_slice(&self_.shape()[..self_.dim() - 2]);
    if let Some(channels) = sizes.last_mut() {
        *channels = channels.saturating_mul(checked_numel(&window.kernel)?);
    }
    sizes.push(positions);
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// Samples, channels and the sizes `output_size`.
///
/// # Errors
/// If the input's shape does not fit or a parameter is out of its range.
pub fn col2im(
    self_: &Tensor,
    output_size: &[i64],
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
) -> Result<Dims> {
    let window = Window::new(2, kernel_size, stride, padding, dilation)?;
    let (&[height, width], [outer @ .., rows, columns]) = (output_size, self_.shape()) else {
        return Err(Error::shape(format!(
            "columns of the shape {} do not make planes of {output_size:?}",
            ShapeText(self_.shape())
        )));
    };
    let elements = checked_numel(&window.kernel)?;
    let positions = checked_numel(&window.output_sizes([1, height, width], false)?)?;
    if outer.len() > 1 || rows % elements != 0 || *columns != positions {
        return Err(Error::shape(format!(
            "columns of the shape {} do not make planes of {output_size:?}: a window of {elements} elements has {positions} positions there",
            ShapeText(self_.shape())
        )));
    }
    let mut sizes = Dims::from_slice(outer);
    sizes.extend([rows / elements, height, width]);
    checked_numel(&sizes)?;
    Ok(sizes)
}

/// The sizes of a tensor with those of the last dimensions, as many as there are in `output_size`, replaced by the product of
/// these: `[2, 3, 4, 5]` and `[8, 9]` give `[2, 3, 72]`.
///
/// # Errors
/// If there are not as many dimensions, or the product is too large.
pub fn unpooled(sizes: &[i64], output_size: &[i64]) -> Result<Dims> {
    let outer = sizes.len().checked_sub(output_size.len()).ok_or_else(|| {
        Error::shape(format!("{} sizes are given for {} dimensions", output_size.len(), sizes.len()))
    })?;
    let mut result = Dims::from_slice(&sizes[..outer]);
    result.push(checked_numel(output_size)?);
    Ok(result)
}

/// The border before each dimension of places with which a convolution of stride 1 keeps their sizes: half of the window's
/// reach, rounded down. The sizes are those of the weight.
///
/// # Errors
/// As [`same_border`].
pub fn same_padding(dilation: &[i64], sizes: &[i64]) -> Result<Dims> {
    Ok(reaches(dilation, sizes)?.iter().map(|reach| reach / 2).collect())
}

/// The places by which the border of [`same_padding`] is larger behind than in front, as a list of borders from the last
/// dimension on: `[0, 1, 0, 0]` if a window along the last one has an odd reach.
///
/// # Errors
/// If a stride is not 1, or there are other numbers of dilations than of dimensions.
pub fn same_border(stride: &[i64], dilation: &[i64], sizes: &[i64]) -> Result<Dims> {
    if let Some(step) = stride.iter().find(|step| **step != 1) {
        return Err(Error::value(format!("a stride of {step} gives no result of the input's size"))
            .with_help("use the padding `valid`, or a stride of 1"));
    }
    Ok(reaches(dilation, sizes)?.iter().rev().flat_map(|reach| [0, reach % 2]).collect())
}

/// The distance of a window's first and last elements along each dimension of a weight but the first two.
fn reaches(dilation: &[i64], sizes: &[i64]) -> Result<Dims> {
    let windows = sizes.get(2..).unwrap_or(&[]);
    let of = |at: usize| if let [one] = dilation { Some(one) } else { dilation.get(at) };
    let reach = |(at, size): (usize, &i64)| {
        let reach = of(at).filter(|step| **step > 0).and_then(|step| step.checked_mul((size - 1).max(0)));
        reach.ok_or_else(|| {
            Error::value(format!("the dilations {dilation:?} of a window of sizes {windows:?}"))
                .with_help("give a positive dilation for each dimension of places")
        })
    };
    windows.iter().enumerate().map(reach).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[i64]) -> Tensor {
        Tensor::from_slice(&vec![0f32; shape.iter().product::<i64>() as usize], shape).unwrap()
    }

    #[test]
    fn convolutions() {
        let (x, w) = (tensor(&[2, 4, 7, 8]), tensor(&[6, 2, 3, 3]));
        assert_eq!(convolution(&x, &w, &[2], &[1], &[1], false, &[0], 2).unwrap()[..], [2, 6, 4, 4]);
        assert!(convolution(&x, &w, &[2], &[1], &[1], false, &[0], 1).is_err());
        assert!(convolution(&x, &w, &[2], &[1], &[1], false, &[0], 0).is_err());
        assert!(convolution(&x, &tensor(&[6, 4, 3]), &[1], &[0], &[1], false, &[0], 1).is_err());
        let (x, w) = (tensor(&[1, 3, 4]), tensor(&[3, 3, 3]));
        assert_eq!(convolution(&x, &w, &[2], &[2], &[1], true, &[1], 1).unwrap()[..], [1, 3, 6]);
        assert!(convolution(&x, &w, &[2], &[2], &[1], true, &[2], 1).is_err());
        assert!(convolution(&x, &w, &[1], &[9], &[1], true, &[0], 1).is_err());
    }

    #[test]
    fn borders_that_keep_sizes() {
        assert_eq!(same_padding(&[1, 2], &[6, 2, 3, 4]).unwrap()[..], [1, 3]);
        assert_eq!(same_padding(&[1], &[6, 2, 4, 4]).unwrap()[..], [1, 1]);
        assert_eq!(same_border(&[1], &[1, 1], &[6, 2, 3, 4]).unwrap()[..], [0, 1, 0, 0]);
        assert!(same_border(&[2, 1], &[1, 1], &[6, 2, 3, 4]).is_err());
        assert!(same_padding(&[0, 1], &[6, 2, 3, 4]).is_err());
        assert_eq!(unpooled(&[2, 3, 4, 5], &[8, 9]).unwrap()[..], [2, 3, 72]);
        assert!(unpooled(&[4], &[8, 9]).is_err());
    }

    #[test]
    fn poolings() {
        let x = tensor(&[2, 3, 7, 8]);
        assert_eq!(max_pool2d(&x, &[3, 3], &[2, 2], &[1], &[1], false).unwrap()[..], [2, 3, 4, 4]);
        assert_eq!(avg_pool2d(&x, &[2], &[], &[0], true).unwrap()[..], [2, 3, 4, 4]);
        assert_eq!(avg_pool3d(&x, &[2], &[], &[0], false).unwrap()[..], [2, 1, 3, 4]);
        assert_eq!(adaptive_avg_pool(&x, &[5, 1]).unwrap()[..], [2, 3, 5, 1]);
        assert!(adaptive_avg_pool(&tensor(&[2, 3]), &[5, 1]).is_err());
        assert_eq!(pad(&x, &[1, 2, -1, 0]).unwrap()[..], [2, 3, 6, 11]);
        assert!(pad(&x, &[1]).is_err() && pad(&x, &[-4, -4]).is_err());
        let columns = im2col(&x, &[2, 3], &[1], &[0], &[1]).unwrap();
        assert_eq!(columns[..], [2, 18, 36]);
        let back = col2im(&tensor(&columns), &[7, 8], &[2, 3], &[1], &[0], &[1]);
        assert_eq!(back.unwrap()[..], [2, 3, 7, 8]);
        assert!(col2im(&tensor(&columns), &[7, 9], &[2, 3], &[1], &[0], &[1]).is_err());
        assert!(max_pool2d(&x, &[3, 3], &[2, 2], &[2], &[1], false).is_err());
    }
}
