//! A tensor of any dtype, for kernels with one element type.
//!
//! In: an argument declared `types: {x: any}` in a spec, whose dtype may differ from the one that selected the kernel.
//! Out: its layout and dtype, and typed views for the dtypes that the kernel handles.

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

/// The elements, if they may be read.
#[derive(Clone, Copy)]
enum Elements<'a> {
    None,
    /// Those of a tensor that no code writes for `'a`.
    Of(&'a Tensor),
    /// The first of a view with the same sizes and strides.
    At(*const u8),
}

// SAFETY: elements are only read, by any thread, and no code writes them for `'a`.
unsafe impl Send for Elements<'_> {}
// SAFETY: the type is `Copy`, so a reference gives the same access as a value.
unsafe impl Sync for Elements<'_> {}

impl<'a> Untyped<'a> {
    /// Number of elements along each dimension.
    #[inline]
    pub fn sizes(&self) -> &'a [i64] {
        self.sizes
    }

    /// Stride in elements along each dimension.
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

    /// Address of the first element in the memory of its device, for kernels that run there; `None` for a description
    /// without elements.
    pub fn address(&self) -> Option<*const u8> {
        match self.elements {
            Elements::None => None,
            Elements::Of(tensor) => Some(tensor.data_ptr().cast_const()),
            Elements::At(first) => Some(first),
        }
    }

    /// The elements, if they have type `T` and a kernel may read them; `None` for a description without elements.
    pub fn view<T: Element>(&self) -> Option<View<'a, T>> {
        if self.dtype != T::DTYPE {
            return None;
        }
        match self.elements {
            Elements::None => None,
            // SAFETY: dtype and device were compared, and no code writes the tensor for `'a`, as `with_elements` was
            // promised.
            Elements::Of(tensor) => tensor.is_on_host().then(|| unsafe { tensor.view_unchecked() }),
            // SAFETY: sizes, strides and address are those of one view of `T`, which lives as long.
            Elements::At(first) => Some(unsafe { View::from_raw(first.cast(), self.sizes, self.strides) }),
        }
    }

    /// A tensor whose elements may be read.
    ///
    /// # Safety
    /// No code writes the tensor's storage for `'a`.
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

    /// A tensor of any dtype. Its elements can be read unless it may also be an output.
    #[inline]
    fn any(&self, tensor: &'a Tensor) -> Untyped<'a> {
        if self.op().forms.elementwise {
            return Untyped::from(tensor);
        }
        // SAFETY: no output overlaps an input of such an operator, and no code writes it while the call lives, as the
        // call's constructor was promised.
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
