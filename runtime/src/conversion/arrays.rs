//! Arrays of `ndarray`.

use ndarray::{ArrayBase, ArrayD, ArrayViewD, Data, Dimension, IxDyn, ShapeBuilder as _};

use crate::element::Element;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::view::View;

/// A row-major tensor with the elements of an array of any order, copied. As for [`Tensor::of`], that there is no memory is
/// a panic.
///
/// ```
/// use ndarray::arr2;
/// use opsmith_runtime::Tensor;
///
/// let tensor = Tensor::from(&arr2(&[[1.0f32, 2.0], [3.0, 4.0]]).t());
/// assert_eq!(tensor.shape(), [2, 2]);
/// assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0, 3.0, 2.0, 4.0]);
/// ```
impl<T: Element, S: Data<Elem = T>, D: Dimension> From<&ArrayBase<S, D>> for Tensor {
    fn from(array: &ArrayBase<S, D>) -> Tensor {
        let sizes: Vec<i64> = array.shape().iter().map(|size| *size as i64).collect();
        let elements = array.as_standard_layout();
        let elements = elements.as_slice().expect("an array in standard layout is a slice");
        Tensor::from_slice(elements, &sizes).expect("the shape is the array's, and there is memory")
    }
}

/// As from a reference.
impl<T: Element, S: Data<Elem = T>, D: Dimension> From<ArrayBase<S, D>> for Tensor {
    fn from(array: ArrayBase<S, D>) -> Tensor {
        Tensor::from(&array)
    }
}

/// The elements, copied, in row-major order.
impl<T: Element> TryFrom<&Tensor> for ArrayD<T> {
    type Error = Error;

    fn try_from(tensor: &Tensor) -> Result<ArrayD<T>> {
        let sizes: Vec<usize> = tensor.shape().iter().map(|size| *size as usize).collect();
        let unfit =
            |error: ndarray::ShapeError| Error::shape(format!("no array has the tensor's shape: {error}"));
        ArrayD::from_shape_vec(IxDyn(&sizes), tensor.to_vec()?).map_err(unfit)
    }
}

impl Tensor {
    /// The result of a function of the tensor as an array of `ndarray`, with its strides: elements are not copied if the
    /// host has them. Meanwhile no operator can write them.
    ///
    /// ```
    /// use opsmith_runtime::Tensor;
    ///
    /// # fn main() -> opsmith_runtime::Result<()> {
    /// let tensor = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let sums = tensor.with_ndarray(|array: ndarray::ArrayViewD<'_, f32>| array.sum_axis(ndarray::Axis(0)))?;
    /// assert_eq!(sums.as_slice().unwrap(), [4.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If `T` is not the tensor's element type, a tensor was expanded far beyond its memory, or a device has the elements
    /// and fails.
    pub fn with_ndarray<T: Element, R>(&self, read: impl FnOnce(ArrayViewD<'_, T>) -> R) -> Result<R> {
        self.with_view(|view: View<'_, T>| {
            let numbers = |list: &[i64]| list.iter().map(|number| *number as usize).collect::<Vec<_>>();
            let sizes = IxDyn(&numbers(view.sizes()));
            if view.strides().iter().any(|stride| *stride < 0) || view.numel() == 0 {
                let elements: Vec<T> = view.iter().collect();
                let array =
                    ArrayD::from_shape_vec(sizes, elements).expect("as many elements as the shape has");
                return read(array.view());
            }
            let shape = sizes.strides(IxDyn(&numbers(view.strides())));
            // SAFETY: the view's sizes and strides reach only elements that are valid for reads while it lives, and no
            // stride is negative. Several indices of one element are allowed in a view for reading.
            read(unsafe { ArrayViewD::from_shape_ptr(shape, view.as_ptr()) })
        })
    }
}
