//! A tensor of any dtype, as kernels of one element type see it.
//!
//! A spec's `types: {x: any}` lets `x` have another dtype than the one that chose the kernel, so the kernel has no
//! type for its elements; it sees how they are laid out.

use opsmith_core::DType;

use crate::element::Element;
use crate::tensor::Tensor;
use crate::view::View;

/// Shape, layout and dtype of a tensor of any dtype, without its elements.
#[derive(Clone, Copy)]
pub struct Untyped<'a> {
    sizes: &'a [i64],
    strides: &'a [i64],
    dtype: DType,
}

impl<'a> Untyped<'a> {
    /// Number of elements along each dimension.
    #[inline]
    pub fn sizes(&self) -> &'a [i64] {
        self.sizes
    }

    /// Elements to step in memory for one step along each dimension.
    #[inline]
    pub fn strides(&self) -> &'a [i64] {
        self.strides
    }

    /// Number of dimensions.
    #[inline]
    pub fn dim(&self) -> usize {
        self.sizes.len()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        crate::layout::numel(self.sizes) as usize
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }
}

impl<'a> From<&'a Tensor> for Untyped<'a> {
    #[inline]
    fn from(tensor: &'a Tensor) -> Untyped<'a> {
        Untyped { sizes: tensor.shape(), strides: tensor.strides(), dtype: tensor.dtype() }
    }
}

impl<'a, T: Element> From<View<'a, T>> for Untyped<'a> {
    #[inline]
    fn from(view: View<'a, T>) -> Untyped<'a> {
        Untyped { sizes: view.sizes(), strides: view.strides(), dtype: T::DTYPE }
    }
}
