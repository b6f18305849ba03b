//! Operands in device memory, for kernels in Rust: typed, with address, sizes and strides.
//!
//! In: a call with operands on a device. Out: descriptions of them, whose addresses are valid only on the device. The
//! call holds the borrows while the work is submitted; the dispatcher records the uses of the memory.

use std::marker::PhantomData;

use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use crate::op::KernelCall;
use crate::scratch::Scratch;
use crate::tensor::Tensor;

/// Elements of type `T` in the memory of a device, for reading.
#[derive(Debug)]
pub struct DeviceView<'a, T>(Described<'a>, PhantomData<&'a T>);

/// Elements of type `T` in the memory of a device, for writing. In an element-wise call it may also be an input.
#[derive(Debug)]
pub struct DeviceViewMut<'a, T>(Described<'a>, PhantomData<&'a T>);

#[derive(Clone, Copy, Debug)]
struct Described<'a> {
    address: *mut u8,
    sizes: &'a [i64],
    strides: &'a [i64],
    device: Device,
}

impl<'a> Described<'a> {
    fn of(tensor: &'a Tensor) -> Described<'a> {
        Described {
            address: tensor.data_ptr(),
            sizes: tensor.shape(),
            strides: tensor.strides(),
            device: tensor.device(),
        }
    }
}

macro_rules! description {
    ($view:ident, $pointer:ty, $cast:ident) => {
        impl<'a, T> $view<'a, T> {
            /// Address of the first element, in the device's memory.
            pub fn address(&self) -> $pointer {
                self.0.address.$cast()
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

description!(DeviceView, *const T, cast);
description!(DeviceViewMut, *mut T, cast);

impl<T> Clone for DeviceView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceView<'_, T> {}

impl<'a> KernelCall<'a> {
    /// A tensor argument's elements on the call's device.
    ///
    /// # Panics
    /// If the argument is not a tensor of `T` on a device: a mistake of generated code or the dispatcher.
    pub fn device_view<T: Element>(&self, index: usize) -> DeviceView<'a, T> {
        described(self.args()[index].tensor())
    }

    /// An optional tensor argument's elements.
    ///
    /// # Panics
    /// As [`KernelCall::device_view`].
    pub fn optional_device_view<T: Element>(&self, index: usize) -> Option<DeviceView<'a, T>> {
        self.args()[index].optional(|arg| described(arg.tensor()))
    }

    /// The elements of each tensor of a list argument.
    ///
    /// # Panics
    /// As [`KernelCall::device_view`].
    pub fn device_views<T: Element>(&self, index: usize) -> Scratch<DeviceView<'a, T>> {
        self.args()[index].tensors().iter().map(described).collect()
    }

    /// The elements of each tensor of a list argument of which some may be absent.
    ///
    /// # Panics
    /// As [`KernelCall::device_view`].
    pub fn optional_device_views<T: Element>(&self, index: usize) -> Scratch<Option<DeviceView<'a, T>>> {
        let tensors = self.args()[index].optional_tensors().iter();
        tensors.map(|tensor| tensor.as_ref().map(described)).collect()
    }

    /// An output's elements, for writing.
    ///
    /// # Panics
    /// If the output's dtype is not `T`'s, or it is in host memory.
    pub fn device_view_mut<T: Element>(&self, index: usize) -> DeviceViewMut<'a, T> {
        described_mut(&self.device_results()[index])
    }

    /// The elements of an output that may be absent, for writing.
    ///
    /// # Errors
    /// Errors of the condition.
    ///
    /// # Panics
    /// As [`KernelCall::device_view_mut`].
    pub fn optional_device_view_mut<T: Element>(&self, index: usize) -> Result<Option<DeviceViewMut<'a, T>>> {
        let present = self.op().present_results(self.args())? & 1 << index != 0;
        Ok(present.then(|| self.device_view_mut(index)))
    }

    /// Every output's elements, for writing, of an operator that returns a list.
    ///
    /// # Panics
    /// As [`KernelCall::device_view_mut`].
    pub fn device_views_mut<T: Element>(&self) -> Scratch<DeviceViewMut<'a, T>> {
        self.device_results().iter().map(described_mut).collect()
    }

    fn device_results(&self) -> &'a [Tensor] {
        self.device_outputs().expect("a kernel of a device computes with its memory")
    }
}

fn described<'a, T: Element>(tensor: &'a Tensor) -> DeviceView<'a, T> {
    check::<T>(tensor);
    DeviceView(Described::of(tensor), PhantomData)
}

fn described_mut<'a, T: Element>(tensor: &'a Tensor) -> DeviceViewMut<'a, T> {
    check::<T>(tensor);
    DeviceViewMut(Described::of(tensor), PhantomData)
}

fn check<T: Element>(tensor: &Tensor) {
    assert_eq!(tensor.dtype(), T::DTYPE, "the kernel's type differs from the declared one");
    assert!(!tensor.is_on_host(), "a kernel of a device was given memory of the host");
}
