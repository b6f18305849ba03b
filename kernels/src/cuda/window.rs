//! Parameters for windows over images, field by field as in `window.cuh`.

use std::ffi::c_void;

use opsmith_runtime::{DeviceView, DeviceViewMut, Dims, Result};

use super::launch::strided;
use crate::device::strided::Strided;
use crate::window::{MOST, Window};

/// A window, the places of the side that it slides over, and its positions.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Sliding {
    pub input: [u64; MOST],
    pub output: [u64; MOST],
    pub kernel: [u64; MOST],
    pub stride: [i64; MOST],
    pub padding: [i64; MOST],
    pub dilation: [i64; MOST],
}

impl Sliding {
    pub fn new(window: &Window, input: [i64; MOST], output: [i64; MOST]) -> Sliding {
        let unsigned = |sizes: [i64; MOST]| sizes.map(|size| size as u64);
        Sliding {
            input: unsigned(input),
            output: unsigned(output),
            kernel: unsigned(window.kernel),
            stride: window.stride,
            padding: window.padding,
            dilation: window.dilation,
        }
    }

    /// Elements of the window.
    pub fn elements(&self) -> u64 {
        self.kernel.iter().product()
    }

    /// Whether numbers of 32 bits have room for places, those of the border too.
    pub fn is_small(&self) -> bool {
        let reach = |dim: usize| {
            let window = self.dilation[dim] * (self.kernel[dim] as i64 - 1);
            [self.input[dim] as i64, 2 * self.padding[dim], window, self.stride[dim]].iter().sum::<i64>()
        };
        (0..MOST).all(|dim| reach(dim) < 1 << 30)
    }
}

/// Samples, channels and three dimensions of places.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Images {
    pub start: *const c_void,
    pub strides: [i64; 5],
}

impl Images {
    /// The images of a view whose last `spatial` dimensions are places; samples may be absent.
    pub fn of(view: &DeviceView<'_>, spatial: usize) -> Images {
        Images { start: view.address().cast(), strides: filled(view.strides(), spatial, 0) }
    }

    /// Images of these strides.
    pub fn at(start: *const c_void, strides: &[i64], spatial: usize) -> Images {
        Images { start, strides: filled(strides, spatial, 0) }
    }

    /// As [`Images::of`].
    pub fn of_mut(view: &DeviceViewMut<'_>, spatial: usize) -> Images {
        Images { start: view.address().cast_const().cast(), strides: filled(view.strides(), spatial, 0) }
    }
}

/// Numbers of samples, channels and three dimensions from those of a view; absent ones are `fill`.
fn filled(numbers: &[i64], spatial: usize, fill: i64) -> [i64; 5] {
    let mut result = [fill; 5];
    let outer = numbers.len().saturating_sub(spatial).min(2);
    let (front, places) = numbers.split_at(outer);
    result[2 - front.len()..2].copy_from_slice(front);
    let places = &places[..places.len().min(MOST)];
    result[5 - places.len()..].copy_from_slice(places);
    result
}

/// An index for each element of images.
///
/// # Errors
/// None for images of at most five dimensions.
pub(super) fn each_place(out: &DeviceViewMut<'_>, spatial: usize) -> Result<Strided<1>> {
    each_place_with(out.sizes(), spatial, [Images::of_mut(out, spatial)])
}

/// An index for each element of images of one shape.
///
/// # Errors
/// As [`each_place`].
pub(super) fn each_place_with<const N: usize>(
    sizes: &[i64],
    spatial: usize,
    operands: [Images; N],
) -> Result<Strided<N>> {
    let mut strides = [[0; 5]; N];
    for (strides, operand) in strides.iter_mut().zip(&operands) {
        *strides = operand.strides;
    }
    let operands = std::array::from_fn(|number| (operands[number].start, &strides[number][..]));
    strided(&filled(sizes, spatial, 1), operands)
}

/// Whether elements of these dimensions lie one after the other.
pub(super) fn are_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let row_major: Dims = opsmith_runtime::layout::contiguous_strides(sizes);
    sizes
        .iter()
        .zip(strides)
        .zip(&row_major)
        .all(|((&size, stride), expected)| size == 1 || stride == expected)
}
