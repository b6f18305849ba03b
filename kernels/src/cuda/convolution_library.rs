//! Convolutions by a library of the device's vendor.
//!
//! In: operands of any strides, and the parameters of a convolution. Out: work in the stream of the calling thread, or none if no
//! library computes it. Must not know libraries.

use std::ffi::c_void;

use opsmith_runtime::backend::{ConvolutionPart, Elements, LibraryConvolution, Work};
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Dims, Result};

use crate::cpu::convolution::Plan;
use crate::window::MOST;

/// An operand of a convolution.
pub(super) struct Operand<'a> {
    pub start: *mut c_void,
    pub sizes: &'a [i64],
    pub strides: &'a [i64],
}

impl<'a> Operand<'a> {
    pub fn of(view: &DeviceView<'a>) -> Operand<'a> {
        Operand { start: view.address().cast_mut(), sizes: view.sizes(), strides: view.strides() }
    }

    pub fn of_mut(view: &'a DeviceViewMut<'_>) -> Operand<'a> {
        Operand { start: view.address(), sizes: view.sizes(), strides: view.strides() }
    }

    fn elements(&self, dtype: DType) -> Elements<'_> {
        Elements { start: self.start.cast(), dtype, sizes: self.sizes, strides: self.strides }
    }
}

/// Computes one of large side, weight and small side from the others, if a library does; a bias is added for each channel of the
/// result.
///
/// # Errors
/// Errors of the device and the library.
///
/// # Safety
/// Operands have the sizes of the plan and lie inside their memory on the device, and none overlaps the result.
pub(super) unsafe fn by_library(
    dtype: DType,
    device: Device,
    plan: &Plan,
    part: ConvolutionPart,
    [large, small, weight]: &[Operand<'_>; 3],
    bias: Option<(*const c_void, i64)>,
) -> Result<bool> {
    let window = &plan.sliding.window;
    let first = MOST - window.spatial;
    let result = match part {
        ConvolutionPart::Image => large,
        ConvolutionPart::Output => small,
        ConvolutionPart::Weight => weight,
    };
    let mut strides = Dims::from_elem(0, result.sizes.len());
    let added = bias.map(|(start, stride)| {
        strides[1] = stride;
        Elements { start: start.cast_mut().cast(), dtype, sizes: result.sizes, strides: &strides }
    });
    let convolution = LibraryConvolution {
        image: large.elements(dtype),
        weight: weight.elements(dtype),
        output: small.elements(dtype),
        part,
        added,
        padding: &window.padding[first..],
        stride: &window.stride[first..],
        dilation: &window.dilation[first..],
        groups: plan.groups as i64,
    };
    let work = Work::on(device)?;
    // SAFETY: the caller's promise.
    unsafe { work.runtime().convolution(work.queue(), &convolution) }
}
