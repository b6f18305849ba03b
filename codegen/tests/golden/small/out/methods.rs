// @generated from spec.yaml by codegen/src/emit/methods.rs.
// One operator's share: `opsmith expand NAME`.

/// The operators of `golden` as methods of tensors.
pub trait GoldenExt {
    /// The tensor the methods work on.
    fn as_tensor(&self) -> &rt::Tensor;
    /// [`plus`](fn@super::plus): Adds `alpha * other` to `self`.
    #[track_caller]
    fn plus<'a>(&self, other: impl Into<rt::TensorOrScalar<'a>>) -> rt::Result<rt::Tensor> {
        super::functions::plus(self.as_tensor(), other)
    }
    /// [`plus_with`](fn@super::plus_with): Adds `alpha * other` to `self`.
    #[track_caller]
    fn plus_with<'a>(
        &self,
        other: impl Into<rt::TensorOrScalar<'a>>,
        options: impl Into<super::functions::PlusOptions>,
    ) -> rt::Result<rt::Tensor> {
        super::functions::plus_with(self.as_tensor(), other, options)
    }
    /// [`plus_`](fn@super::plus_): Adds `alpha * other` to `self`.
    #[track_caller]
    fn plus_<'a>(&self, other: impl Into<rt::TensorOrScalar<'a>>) -> rt::Result<()> {
        super::functions::plus_(self.as_tensor(), other)
    }
    /// [`plus_with_`](fn@super::plus_with_): Adds `alpha * other` to `self`.
    #[track_caller]
    fn plus_with_<'a>(
        &self,
        other: impl Into<rt::TensorOrScalar<'a>>,
        options: impl Into<super::functions::PlusOptions>,
    ) -> rt::Result<()> {
        super::functions::plus_with_(self.as_tensor(), other, options)
    }
    /// [`plus_out`](fn@super::plus_out): Adds `alpha * other` to `self`.
    #[track_caller]
    fn plus_out(&self, other: &rt::Tensor, out: &mut rt::Tensor) -> rt::Result<()> {
        super::functions::plus_out(self.as_tensor(), other, out)
    }
    /// [`plus_with_out`](fn@super::plus_with_out): Adds `alpha * other` to `self`.
    #[track_caller]
    fn plus_with_out(
        &self,
        other: &rt::Tensor,
        out: &mut rt::Tensor,
        options: impl Into<super::functions::PlusOptions>,
    ) -> rt::Result<()> {
        super::functions::plus_with_out(self.as_tensor(), other, out, options)
    }
    /// [`grown`](fn@super::grown): Grows each element; integers become floats.
    #[track_caller]
    fn grown(&self) -> rt::Result<rt::Tensor> {
        super::functions::grown(self.as_tensor())
    }
    /// [`grown_with`](fn@super::grown_with): Grows each element; integers become floats.
    #[track_caller]
    fn grown_with(&self, options: impl Into<super::functions::GrownOptions>) -> rt::Result<rt::Tensor> {
        super::functions::grown_with(self.as_tensor(), options)
    }
    /// [`grown_`](fn@super::grown_): Grows each element; integers become floats.
    #[track_caller]
    fn grown_(&self) -> rt::Result<()> {
        super::functions::grown_(self.as_tensor())
    }
    /// [`grown_with_`](fn@super::grown_with_): Grows each element; integers become floats.
    #[track_caller]
    fn grown_with_(&self, options: impl Into<super::functions::GrownOptions>) -> rt::Result<()> {
        super::functions::grown_with_(self.as_tensor(), options)
    }
    /// [`grown_out`](fn@super::grown_out): Grows each element; integers become floats.
    #[track_caller]
    fn grown_out(&self, out: &mut rt::Tensor) -> rt::Result<()> {
        super::functions::grown_out(self.as_tensor(), out)
    }
    /// [`grown_with_out`](fn@super::grown_with_out): Grows each element; integers become floats.
    #[track_caller]
    fn grown_with_out(
        &self,
        out: &mut rt::Tensor,
        options: impl Into<super::functions::GrownOptions>,
    ) -> rt::Result<()> {
        super::functions::grown_with_out(self.as_tensor(), out, options)
    }
    /// [`product`](fn@super::product): The matrix product.
    #[track_caller]
    fn product(&self, mat2: &rt::Tensor) -> rt::Result<rt::Tensor> {
        super::functions::product(self.as_tensor(), mat2)
    }
    /// [`product_out`](fn@super::product_out): The matrix product.
    #[track_caller]
    fn product_out(&self, mat2: &rt::Tensor, out: &mut rt::Tensor) -> rt::Result<()> {
        super::functions::product_out(self.as_tensor(), mat2, out)
    }
    /// [`largest`](fn@super::largest): A kernel in C++.
    #[track_caller]
    fn largest(&self) -> rt::Result<(rt::Tensor, rt::Tensor)> {
        super::functions::largest(self.as_tensor())
    }
    /// [`largest_with`](fn@super::largest_with): A kernel in C++.
    #[track_caller]
    fn largest_with(
        &self,
        options: impl Into<super::functions::LargestOptions>,
    ) -> rt::Result<(rt::Tensor, rt::Tensor)> {
        super::functions::largest_with(self.as_tensor(), options)
    }
    /// [`spread`](fn@super::spread): Puts values at indices.
    #[track_caller]
    fn spread(&self, index: &rt::Tensor, size: impl AsRef<[i64]>) -> rt::Result<rt::Tensor> {
        super::functions::spread(self.as_tensor(), index, size)
    }
    /// [`flipped`](fn@super::flipped): Swaps two dimensions.
    #[track_caller]
    fn flipped(&self, dim0: i64, dim1: i64) -> rt::Result<rt::Tensor> {
        super::functions::flipped(self.as_tensor(), dim0, dim1)
    }
    /// [`sum_and_growth`](fn@super::sum_and_growth): Two results, built from others.
    #[track_caller]
    fn sum_and_growth(&self, other: &rt::Tensor) -> rt::Result<(rt::Tensor, rt::Tensor)> {
        super::functions::sum_and_growth(self.as_tensor(), other)
    }
    /// [`item`](fn@super::item): The only element.
    #[track_caller]
    fn item(&self) -> rt::Result<rt::Scalar> {
        super::functions::item(self.as_tensor())
    }
}

impl GoldenExt for rt::Tensor {
    fn as_tensor(&self) -> &rt::Tensor {
        self
    }
}
