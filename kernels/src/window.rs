//! Windows that slide over the last dimensions of a tensor: the arithmetic of pooling and convolution.
//!
//! In: sizes and the parameters of an operator. Out: output sizes, and which input elements each
//! output element sees. Up to three dimensions; fewer are filled up with ones in front.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{Dims, Error, Result};

/// Most dimensions a window can have.
pub(crate) const MOST: usize = 3;

/// Numbers of a window are smaller, so that their sums and products do not overflow.
const LIMIT: i64 = 1 << 40;

/// The size, step, border and spread of a window in each dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    /// Dimensions that were given; the others have size 1.
    pub spatial: usize,
    /// Elements.
    pub kernel: [i64; MOST],
    /// Elements from one position to the next.
    pub stride: [i64; MOST],
    /// Elements added on both sides.
    pub padding: [i64; MOST],
    /// Elements from one element of a window to the next.
    pub dilation: [i64; MOST],
}

/// Refuses windows over other numbers of dimensions than there are places for.
fn check_spatial(spatial: usize) -> Result<()> {
    if (1..=MOST).contains(&spatial) {
        return Ok(());
    }
    Err(Error::shape(format!("a window cannot slide over {} dimensions", spatial as isize))
        .with_help(format!("1 to {MOST} dimensions come after samples and channels")))
}

/// The given numbers at the end of `MOST`; one number stands for all, none for the default.
fn spread(name: &str, values: &[i64], spatial: usize, fill: i64, default: &[i64]) -> Result<[i64; MOST]> {
    let mut result = [fill; MOST];
    let values = if values.is_empty() { default } else { values };
    let target = &mut result[MOST - spatial..];
    match values {
        [one] => target.fill(*one),
        many if many.len() == spatial => target.copy_from_slice(many),
        other => {
            return Err(Error::value(format!("{name} has {} numbers instead of {spatial}", other.len())));
        }
    }
    Ok(result)
}

impl Window {
    /// A window from an operator's arguments; lists of one number stand for all dimensions, an empty
    /// stride for the window's size.
    ///
    /// # Errors
    /// If a number is out of its range or a list has the wrong length.
    pub fn new(
        spatial: usize,
        kernel: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
    ) -> Result<Window> {
        check_spatial(spatial)?;
        let window = Window {
            spatial,
            kernel: spread("the window's size", kernel, spatial, 1, &[])?,
            stride: spread("the stride", stride, spatial, 1, kernel)?,
            padding: spread("the padding", padding, spatial, 0, &[0])?,
            dilation: spread("the dilation", dilation, spatial, 1, &[1])?,
        };
        let positive = [
            ("the window's size", window.kernel),
            ("the stride", window.stride),
            ("the dilation", window.dilation),
        ];
        for (name, values) in positive {
            if values.iter().any(|&value| value <= 0) {
                return Err(Error::value(format!(
                    "{name} must be positive, got {:?}",
                    &values[MOST - spatial..]
                )));
            }
        }
        if window.padding.iter().any(|&padding| padding < 0) {
            return Err(Error::value(format!(
                "the padding must not be negative, got {:?}",
                &window.padding[MOST - spatial..]
            )));
        }
        for (name, values) in positive.into_iter().chain([("the padding", window.padding)]) {
            if values.iter().any(|&value| value >= LIMIT) {
                return Err(Error::value(format!(
                    "{name} must be below {LIMIT}, got {:?}",
                    &values[MOST - spatial..]
                )));
            }
        }
        if (0..MOST).any(|dim| window.reach(dim) >= LIMIT) {
            return Err(Error::value(format!(
                "a window of {:?} with the dilation {:?} reaches over more than {LIMIT} elements",
                &window.kernel[MOST - spatial..],
                &window.dilation[MOST - spatial..]
            )));
        }
        Ok(window)
    }

    /// Refuses a border of more than half a window, in which a window could lie alone.
    ///
    /// # Errors
    /// If the padding is more than half the window's size.
    pub fn with_modest_padding(self) -> Result<Window> {
        for dim in 0..MOST {
            if self.padding[dim] > self.reach(dim) / 2 {
                return Err(Error::value(format!(
                    "the padding {:?} is more than half of the window's size {:?}",
                    &self.padding[MOST - self.spatial..],
                    &self.kernel[MOST - self.spatial..]
                )));
            }
        }
        Ok(self)
    }

    /// Elements from a window's first to one past its last.
    fn reach(&self, dim: usize) -> i64 {
        self.dilation[dim].saturating_mul(self.kernel[dim] - 1).saturating_add(1)
    }

    /// How many positions a window has.
    ///
    /// `ceil` also counts a last position that reaches beyond the border, if it starts inside.
    ///
    /// # Errors
    /// If a window does not fit into the input with its border.
    pub fn output_sizes(&self, input: [i64; MOST], ceil: bool) -> Result<[i64; MOST]> {
        let mut output = [1; MOST];
        for dim in 0..MOST {
            let (size, stride, padding) = (input[dim], self.stride[dim], self.padding[dim]);
            let room = padding.saturating_mul(2).saturating_add(size).saturating_sub(self.reach(dim));
            let rounded = if ceil { room.saturating_add(stride - 1) } else { room };
            let mut count = rounded.div_euclid(stride).saturating_add(1);
            if ceil && (count - 1).saturating_mul(stride) >= size.saturating_add(padding) {
                count -= 1;
            }
            if count <= 0 {
                return Err(Error::shape(format!(
                    "a window of {:?} does not fit into {} with a border of {:?}",
                    &self.kernel[MOST - self.spatial..],
                    ShapeText(&input[MOST - self.spatial..]),
                    &self.padding[MOST - self.spatial..]
                )));
            }
            output[dim] = count;
        }
        Ok(output)
    }

    /// The first element of the window at a position, which may lie before the input.
    pub fn start(&self, dim: usize, position: i64) -> i64 {
        position * self.stride[dim] - self.padding[dim]
    }
}

/// The last `spatial` of some sizes, filled up in front.
///
/// # Errors
/// If there are too few, or too many before them.
pub(crate) fn spatial_sizes(sizes: &[i64], spatial: usize) -> Result<[i64; MOST]> {
    check_spatial(spatial)?;
    let outer = sizes.len().wrapping_sub(spatial);
    if !(1..=2).contains(&outer) {
        return Err(Error::shape(format!(
            "expected {} or {} dimensions (channels in front, and samples before them), got the shape {}",
            spatial + 1,
            spatial + 2,
            ShapeText(sizes)
        )));
    }
    let mut result = [1; MOST];
    result[MOST - spatial..].copy_from_slice(&sizes[outer..]);
    Ok(result)
}

/// Sizes with the last `spatial` ones replaced.
pub(crate) fn with_spatial(sizes: &[i64], spatial: usize, new: [i64; MOST]) -> Dims {
    let mut sizes = Dims::from_slice(sizes);
    let outer = sizes.len() - spatial;
    sizes[outer..].copy_from_slice(&new[MOST - spatial..]);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_windows() {
        let window = Window::new(1, &[3], &[2], &[1], &[]).unwrap();
        assert_eq!(window.output_sizes([1, 1, 5], false).unwrap(), [1, 1, 3]);
        assert_eq!(window.output_sizes([1, 1, 6], false).unwrap(), [1, 1, 3]);
        assert_eq!(window.output_sizes([1, 1, 6], true).unwrap(), [1, 1, 4]);
        assert_eq!(window.start(2, 0), -1);
        // A last window that would lie in the border alone does not count.
        let window = Window::new(1, &[2], &[2], &[1], &[]).unwrap();
        assert_eq!(window.output_sizes([1, 1, 3], true).unwrap(), [1, 1, 2]);
        let spread = Window::new(2, &[3], &[], &[0], &[2]).unwrap();
        assert_eq!((spread.kernel, spread.stride, spread.dilation), ([1, 3, 3], [1, 3, 3], [1, 2, 2]));
        assert_eq!(spread.output_sizes([1, 5, 8], false).unwrap(), [1, 1, 2]);
        assert!(spread.output_sizes([1, 4, 8], false).is_err());
    }

    #[test]
    fn parameters_out_of_range_are_errors() {
        assert!(Window::new(2, &[3, 3, 3], &[], &[], &[]).is_err());
        for spatial in [0, 4, usize::MAX] {
            assert!(Window::new(spatial, &[1], &[1], &[0], &[1]).is_err());
            assert!(spatial_sizes(&[1; 6], spatial).is_err());
        }
        assert!(Window::new(2, &[0], &[], &[], &[]).is_err());
        assert!(Window::new(2, &[2], &[0], &[], &[]).is_err());
        assert!(Window::new(2, &[2], &[1], &[-1], &[]).is_err());
        assert!(Window::new(2, &[2], &[1], &[2], &[]).unwrap().with_modest_padding().is_err());
        for (kernel, stride, padding, dilation) in [
            (i64::MAX, 1, 0, 1),
            (1, i64::MAX, 0, 1),
            (1, 1, i64::MAX, 1),
            (1, 1, 0, i64::MAX),
            (1 << 30, 1, 0, 1 << 30),
        ] {
            assert!(Window::new(1, &[kernel], &[stride], &[padding], &[dilation]).is_err());
        }
        let large = Window::new(1, &[1 << 39], &[1], &[], &[1]).unwrap();
        assert!(large.output_sizes([1, 1, 5], true).is_err());
    }
}
