//! Convolutions in the terms of cuDNN.
//!
//! In: a convolution. Out: its problem, or none if the library does not compute it. Must not know functions of the library.

use std::ffi::c_int;

use opsmith_core::DType;
use opsmith_runtime::backend::{ConvolutionPart, Elements, LibraryConvolution};

use super::api;

/// Most dimensions: samples, channels and three more.
pub const MOST: usize = 5;

/// The layout of an operand, as the library takes it; numbers beyond the dimensions are 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    pub sizes: [c_int; MOST],
    pub strides: [c_int; MOST],
}

/// The facts of a problem that its plan depends on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    pub part: ConvolutionPart,
    /// The types of elements and of sums.
    pub element: c_int,
    pub compute: c_int,
    /// The arithmetic that may be used.
    pub math: c_int,
    /// Dimensions, at least 4.
    pub dims: usize,
    pub image: Layout,
    pub weight: Layout,
    pub output: Layout,
    /// Of each dimension that the window slides over.
    pub padding: [c_int; 3],
    pub stride: [c_int; 3],
    pub dilation: [c_int; 3],
    pub groups: c_int,
}

impl Layout {
    /// A line of places is a plane of one row.
    fn of(elements: &Elements<'_>) -> Option<Layout> {
        let mut layout = Layout { sizes: [0; MOST], strides: [0; MOST] };
        let dims = elements.sizes.len();
        if !(3..=MOST).contains(&dims) || elements.strides.len() != dims {
            return None;
        }
        let gap = usize::from(dims == 3);
        for dim in 0..dims {
            let place = if dim < 2 { dim } else { dim + gap };
            // A stride of one element has no meaning, and that of a repeated one no description.
            let (size, stride) = (elements.sizes[dim], elements.strides[dim]);
            if size < 1 || (size > 1 && stride < 1) {
                return None;
            }
            layout.sizes[place] = c_int::try_from(size).ok()?;
            layout.strides[place] = c_int::try_from(stride.max(1)).ok()?;
        }
        if gap == 1 {
            layout.sizes[2] = 1;
            layout.strides[2] = layout.sizes[3].checked_mul(layout.strides[3])?;
        }
        // The numbers of the farthest element, too.
        let last =
            (0..MOST).map(|dim| i64::from(layout.sizes[dim].max(1) - 1) * i64::from(layout.strides[dim]));
        (last.sum::<i64>() < i64::from(c_int::MAX)).then_some(layout)
    }

    /// Whether elements are in row-major order without gaps.
    fn is_row_major(&self, dims: usize) -> bool {
        let mut step = 1i64;
        (0..dims).rev().all(|dim| {
            let fits = self.sizes[dim] == 1 || i64::from(self.strides[dim]) == step;
            step *= i64::from(self.sizes[dim]);
            fits
        })
    }
}

/// The numbers of each dimension that the window slides over; a line's are those of the second.
fn along(numbers: &[i64], one: c_int) -> Option<[c_int; 3]> {
    let mut all = [one; 3];
    let gap = usize::from(numbers.len() == 1);
    for (place, &number) in all.get_mut(gap..)?.iter_mut().zip(numbers) {
        *place = c_int::try_from(number).ok()?;
    }
    Some(all)
}

impl Key {
    /// The key of a convolution; `None` if the library does not compute it.
    pub fn of(convolution: &LibraryConvolution<'_>, allows_tf32: bool) -> Option<Key> {
        let LibraryConvolution { image, weight, output, .. } = convolution;
        let [element, compute, math] = match image.dtype {
            DType::F32 if allows_tf32 => [api::REAL_32, api::REAL_32, api::ANY_MATH],
            DType::F32 => [api::REAL_32, api::REAL_32, api::PLAIN_MATH],
            DType::F64 => [api::REAL_64, api::REAL_64, api::ANY_MATH],
            DType::F16 => [api::REAL_16, api::REAL_32, api::MATRIX_MATH],
            DType::BF16 => [api::BRAIN_16, api::REAL_32, api::MATRIX_MATH],
            _ => return None,
        };
        let spatial = image.sizes.len().checked_sub(2)?;
        let lists = [convolution.padding, convolution.stride, convolution.dilation];
        if lists.iter().any(|list| list.len() != spatial) {
            return None;
        }
        let dims = (2 + spatial).max(4);
        let weight = Layout::of(weight).filter(|weight| weight.is_row_major(dims))?;
        let key = Key {
            part: convolution.part,
            element,
            compute,
            math,
            dims,
            image: Layout::of(image)?,
            weight,
            output: Layout::of(output)?,
            padding: along(convolution.padding, 0)?,
            stride: along(convolution.stride, 1)?,
            dilation: along(convolution.dilation, 1)?,
            groups: c_int::try_from(convolution.groups).ok()?,
        };
        key.has_all_positions().then_some(key)
    }

    /// Whether the output has as many positions as windows fit into the padded image. A transposed convolution may leave more places
    /// behind its last window than a step has, which the library refuses as a wrong parameter.
    fn has_all_positions(&self) -> bool {
        (0..self.dims - 2).all(|dim| {
            // A line's numbers are those of the second dimension, as its places are.
            let place = |layout: &Layout| i64::from(layout.sizes[dim + 2]);
            let number = |list: &[c_int; 3]| i64::from(list[dim]);
            let window = (place(&self.weight) - 1) * number(&self.dilation) + 1;
            let room = place(&self.image) + 2 * number(&self.padding) - window;
            room >= 0 && room / number(&self.stride) + 1 == place(&self.output)
        })
    }
}
