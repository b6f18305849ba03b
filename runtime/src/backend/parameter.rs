//! Parameters of kernels, as launches pass them.
//!
//! In: a value. Out: its address and size, which a backend compares with those of the kernel. Must know no kernel.

use std::ffi::c_void;
use std::marker::PhantomData;

/// A parameter of a kernel: the address of its value, and the value's size.
#[derive(Clone, Copy, Debug)]
pub struct KernelParameter<'a> {
    start: *const c_void,
    bytes: usize,
    is_whole: bool,
    lives: PhantomData<&'a ()>,
}

impl<'a> KernelParameter<'a> {
    /// A value of the parameter's type.
    #[inline]
    pub fn of<T: ?Sized>(value: &'a T) -> KernelParameter<'a> {
        let (start, bytes) = (std::ptr::from_ref(value).cast(), size_of_val(value));
        KernelParameter { start, bytes, is_whole: true, lives: PhantomData }
    }

    /// A value of the parameter's type, by its address and size.
    ///
    /// # Safety
    /// So many bytes are valid for reads as long as the parameter is used.
    #[inline]
    pub unsafe fn from_raw(start: *const c_void, bytes: usize) -> KernelParameter<'a> {
        KernelParameter { start, bytes, is_whole: true, lives: PhantomData }
    }

    /// Memory that begins with a value of the parameter's type.
    #[inline]
    pub fn within<T: ?Sized>(value: &'a T) -> KernelParameter<'a> {
        KernelParameter { is_whole: false, ..KernelParameter::of(value) }
    }

    /// Address of the value.
    #[inline]
    pub fn start(self) -> *const c_void {
        self.start
    }

    /// Size of the value in bytes, or of the memory that begins with it.
    #[inline]
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// Whether a kernel's parameter of so many bytes can be this one.
    #[inline]
    pub fn fits(self, bytes: usize) -> bool {
        if self.is_whole { self.bytes == bytes } else { self.bytes >= bytes }
    }
}
