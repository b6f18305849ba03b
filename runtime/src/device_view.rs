//! Operands in device memory, for kernels in Rust: address, sizes, strides and dtype.
//!
//! In: a call with operands on a device. Out: descriptions of them, whose addresses are valid only on the device. The
//! call holds the borrows while the work is submitted; the dispatcher records the uses of the memory.

use std::ffi::c_void;

use opsmith_core::DType;

use crate::device::Device;
use crate::error::Result;
use crate::op::KernelCall;
use crate::scratch::Scratch;
use crate::tensor::Tensor;

/// Elements in the memory of a device, for reading. A kernel is one function for all dtypes: the text that the device runs
/// is made for the dtype.
#[derive(Clone, Copy, Debug)]
pub struct DeviceView<'a>(Described<'a>);

/// Elements in the memory of a device, for writing. In an element-wise call it may also be an input.
#[derive(Debug)]
pub struct DeviceViewMut<'a>(Described<'a>);

#[derive(Clone, Copy, Debug)]
struct Described<'a> {
    dtype: DType,
    address: *mut c_void,
    sizes: &'a [i64],
    strides: &'a [i64],
    device: Device,
}

impl<'a> Described<'a> {
    fn of(tensor: &'a Tensor) -> Described<'a> {
        assert!(!tensor.is_on_host(), "a kernel of a device was given memory of the host");
        Described {
            dtype: tensor.dtype(),
            address: tensor.data_ptr().cast(),
            sizes: tensor.shape(),
            strides: tensor.strides(),
            device: tensor.device(),
        }
    }
}

macro_rules! description {
    ($view:ident, $pointer:ty) => {
        impl<'a> $view<'a> {
            /// Address of the first element, in the device's memory.
            pub fn address(&self) -> $pointer {
                self.0.address
            }

            /// The dtype of the elements.
            pub fn dtype(&self) -> DType {
                self.0.dtype
            }

            /// Number of elements along each dimension.
            pub fn sizes(&self) -> &'a [i64] {
                self.0.sizes
            }

            /// Stride in elements along each dimension.
            pub fn strides(&self) -> &'a [i64] {
                self.0.strides
            }

            /// Number of elements.
            pub fn numel(&self) -> usize {
                crate::layout::numel(self.0.sizes) as usize
            }

            /// The device of the elements.
            pub fn device(&self) -> Device {
                self.0.device
            }
        }
    };
}

description!(DeviceView, *const c_void);
description!(DeviceViewMut, *mut c_void);

impl<'a> KernelCall<'a> {
    /// A tensor argument's elements on the call's device.
    ///
    /// # Panics
    /// If the argument is not a tensor on a device: a mistake of generated code or the dispatcher.
    pub fn device_view(&self, index: usize) -> DeviceView<'a> {
        DeviceView(Described::of(self.args()[index].tensor()))
    }

    /// An optional tensor argument's elements.
    ///
    /// # Panics
    /// As [`KernelCall::device_view`].
    pub fn optional_device_view(&self, index: usize) -> Option<DeviceView<'a>> {
        self.args()[index].optional(|arg| DeviceView(Described::of(arg.tensor())))
    }

    /// The elements of each tensor of a list argument.
    ///
    /// # Panics
    /// As [`KernelCall::device_view`].
    pub fn device_views(&self, index: usize) -> Scratch<DeviceView<'a>> {
        self.args()[index].tensors().iter().map(|tensor| DeviceView(Described::of(tensor))).collect()
    }

    /// The elements of each tensor of a list argument of which some may be absent.
    ///
    /// # Panics
    /// As [`KernelCall::device_view`].
    pub fn optional_device_views(&self, index: usize) -> Scratch<Option<DeviceView<'a>>> {
        let view = |tensor| DeviceView(Described::of(tensor));
        self.args()[index].optional_tensors().iter().map(|tensor| tensor.as_ref().map(view)).collect()
    }

    /// An output's elements, for writing.
    ///
    /// # Panics
    /// If it is in host memory.
    pub fn device_view_mut(&self, index: usize) -> DeviceViewMut<'a> {
        DeviceViewMut(Described::of(&self.device_results()[index]))
    }

    /// The elements of an output that may be absent, for writing.
    ///
    /// # Errors
    /// Errors of the condition.
    ///
    /// # Panics
    /// As [`KernelCall::device_view_mut`].
    pub fn optional_device_view_mut(&self, index: usize) -> Result<Option<DeviceViewMut<'a>>> {
        let present = self.op().present_results(self.args())? & 1 << index != 0;
        Ok(present.then(|| self.device_view_mut(index)))
    }

    /// Every output's elements, for writing, of an operator that returns a list.
    ///
    /// # Panics
    /// As [`KernelCall::device_view_mut`].
    pub fn device_views_mut(&self) -> Scratch<DeviceViewMut<'a>> {
        self.device_results().iter().map(|tensor| DeviceViewMut(Described::of(tensor))).collect()
    }

    fn device_results(&self) -> &'a [Tensor] {
        self.device_outputs().expect("a kernel of a device computes with its memory")
    }
}
