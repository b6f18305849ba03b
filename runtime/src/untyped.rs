//! A tensor of any dtype, as kernels of one element type see it.
//!
//! A spec's `types: {x: any}` lets `x` have another dtype than the one that chose the kernel, so the kernel has no
//! type for its elements; it sees how they are laid out, and asks for them by the dtypes that it knows.

use opsmith_core::DType;

use crate::element::Element;
use crate::op::KernelCall;
use crate::scratch::Scratch;
use crate::tensor::Tensor;
use crate::view::View;

/// Shape, layout and dtype of a tensor of any dtype.
#[derive(Clone, Copy)]
pub struct Untyped<'a> {
    sizes: &'a [i64],
    strides: &'a [i64],
    dtype: DType,
    elements: Elements<'a>,
}

/// Where the elements are, if they may be read.
#[derive(Clone, Copy)]
enum Elements<'a> {
    None,
    /// Those of a tensor that nothing writes for `'a`.
    Of(&'a Tensor),
    /// The first of a view with the same sizes and strides.
    At(*const u8),
}

// SAFETY: elements are only read, and nothing writes them for `'a`, whichever thread looks.
unsafe impl Send for Elements<'_> {}
// SAFETY: as it is `Copy`, a reference gives what it gives itself.
unsafe impl Sync for Elements<'_> {}

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

    /// Address of the first element in the memory of its device, for kernels that run there; a description of a tensor
    /// has none.
    pub fn address(&self) -> Option<*const u8> {
        match self.elements {
            Elements::None => None,
            Elements::Of(tensor) => Some(tensor.data_ptr().cast_const()),
            Elements::At(first) => Some(first),
        }
    }

    /// The elements, if they are of the type and a kernel was given them; a description of a tensor has none.
    pub fn view<T: Element>(&self) -> Option<View<'a, T>> {
        if self.dtype != T::DTYPE {
            return None;
        }
        match self.elements {
            Elements::None => None,
            // SAFETY: dtype and device were compared, and nothing writes the tensor for `'a`, as `with_elements` was
            // promised.
            Elements::Of(tensor) => tensor.is_on_host().then(|| unsafe { tensor.view_unchecked() }),
            // SAFETY: sizes, strides and address are those of one view of `T`, which lives as long.
            Elements::At(first) => Some(unsafe { View::from_raw(first.cast(), self.sizes, self.strides) }),
        }
    }

    /// A tensor whose elements may be read.
    ///
    /// # Safety
    /// Nothing writes the tensor's storage for `'a`.
    #[inline]
    pub(crate) unsafe fn with_elements(tensor: &'a Tensor) -> Untyped<'a> {
        Untyped { elements: Elements::Of(tensor), ..Untyped::from(tensor) }
    }
}

impl<'a> KernelCall<'a> {
    /// A tensor argument of any dtype.
    pub fn untyped(&self, index: usize) -> Untyped<'a> {
        self.any(self.args()[index].tensor())
    }

    /// An optional tensor argument of any dtype.
    pub fn optional_untyped(&self, index: usize) -> Option<Untyped<'a>> {
        self.args()[index].optional(|arg| self.any(arg.tensor()))
    }

    /// Each tensor of a list argument of any dtypes.
    pub fn all_untyped(&self, index: usize) -> Scratch<Untyped<'a>> {
        self.args()[index].tensors().iter().map(|tensor| self.any(tensor)).collect()
    }

    /// Each tensor of a list argument of any dtypes of which some may be absent.
    pub fn optional_all_untyped(&self, index: usize) -> Scratch<Option<Untyped<'a>>> {
        let tensors = self.args()[index].optional_tensors().iter();
        tensors.map(|tensor| tensor.as_ref().map(|tensor| self.any(tensor))).collect()
    }

    /// A tensor of any dtype. Its elements can be read unless it may be an output, too.
    #[inline]
    fn any(&self, tensor: &'a Tensor) -> Untyped<'a> {
        if self.op().forms.elementwise {
            return Untyped::from(tensor);
        }
        // SAFETY: no output overlaps an input of such an operator, and nothing writes it while the call lives, as who
        // made the call promised.
        unsafe { Untyped::with_elements(tensor) }
    }
}

impl<'a> From<&'a Tensor> for Untyped<'a> {
    #[inline]
    fn from(tensor: &'a Tensor) -> Untyped<'a> {
        Untyped {
            sizes: tensor.shape(),
            strides: tensor.strides(),
            dtype: tensor.dtype(),
            elements: Elements::None,
        }
    }
}

impl<'a, T: Element> From<View<'a, T>> for Untyped<'a> {
    #[inline]
    fn from(view: View<'a, T>) -> Untyped<'a> {
        let elements = Elements::At(view.as_ptr().cast());
        Untyped { sizes: view.sizes(), strides: view.strides(), dtype: T::DTYPE, elements }
    }
}
