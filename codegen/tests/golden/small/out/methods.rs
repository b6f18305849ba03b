// @generated from spec.yaml by codegen/src/emit/methods.rs.
// One operator's share: `opsmith expand NAME`.

/// The operators of `golden` as methods of tensors.
pub trait TensorOps {
    /// The tensor the methods work on.
    fn as_tensor(&self) -> &rt::Tensor;
    /// Adds `alpha * other` to `self`.
    ///
    /// See [`plus`](fn@super::plus).
    #[track_caller]
    fn plus(&self, other: &rt::Tensor) -> rt::Result<rt::Tensor> {
        super::functions::plus(self.as_tensor(), other)
    }
    /// Adds `alpha * other` to `self`.
    ///
    /// See [`plus_with`](fn@super::plus_with).
    #[track_caller]
    fn plus_with(
        &self,
        other: &rt::Tensor,
        options: &super::functions::PlusOptions,
    ) -> rt::Result<rt::Tensor> {
        super::functions::plus_with(self.as_tensor(), other, options)
    }
    /// Adds `alpha * other` to `self`.
    ///
    /// See [`plus_`](fn@super::plus_).
    #[track_caller]
    fn plus_(&self, other: &rt::Tensor) -> rt::Result<()> {
        super::functions::plus_(self.as_tensor(), other)
    }
    /// Adds `alpha * other` to `self`.
    ///
    /// See [`plus_with_`](fn@super::plus_with_).
    #[track_caller]
    fn plus_with_(
        &self,
        other: &rt::Tensor,
        options: &super::functions::PlusOptions,
    ) -> rt::Result<()> {
        super::functions::plus_with_(self.as_tensor(), other, options)
    }
    /// Adds `alpha * other` to `self`.
    ///
    /// See [`plus_out`](fn@super::plus_out).
    #[track_caller]
    fn plus_out(&self, other: &rt::Tensor, out: &mut rt::Tensor) -> rt::Result<()> {
        super::functions::plus_out(self.as_tensor(), other, out)
    }
    /// Adds `alpha * other` to `self`.
    ///
    /// See [`plus_with_out`](fn@super::plus_with_out).
    #[track_caller]
    fn plus_with_out(
        &self,
        other: &rt::Tensor,
        out: &mut rt::Tensor,
        options: &super::functions::PlusOptions,
    ) -> rt::Result<()> {
        super::functions::plus_with_out(self.as_tensor(), other, out, options)
    }
    /// Grows each element; integers become floats.
    ///
    /// See [`grown`](fn@super::grown).
    #[track_caller]
    fn grown(&self) -> rt::Result<rt::Tensor> {
        super::functions::grown(self.as_tensor())
    }
    /// Grows each element; integers become floats.
    ///
    /// See [`grown_with`](fn@super::grown_with).
    #[track_caller]
    fn grown_with(
        &self,
        options: &super::functions::GrownOptions,
    ) -> rt::Result<rt::Tensor> {
        super::functions::grown_with(self.as_tensor(), options)
    }
    /// Grows each element; integers become floats.
    ///
    /// See [`grown_`](fn@super::grown_).
    #[track_caller]
    fn grown_(&self) -> rt::Result<()> {
        super::functions::grown_(self.as_tensor())
    }
    /// Grows each element; integers become floats.
    ///
    /// See [`grown_with_`](fn@super::grown_with_).
    #[track_caller]
    fn grown_with_(&self, options: &super::functions::GrownOptions) -> rt::Result<()> {
        super::functions::grown_with_(self.as_tensor(), options)
    }
    /// Grows each element; integers become floats.
    ///
    /// See [`grown_out`](fn@super::grown_out).
    #[track_caller]
    fn grown_out(&self, out: &mut rt::Tensor) -> rt::Result<()> {
        super::functions::grown_out(self.as_tensor(), out)
    }
    /// Grows each element; integers become floats.
    ///
    /// See [`grown_with_out`](fn@super::grown_with_out).
    #[track_caller]
    fn grown_with_out(
        &self,
        out: &mut rt::Tensor,
        options: &super::functions::GrownOptions,
    ) -> rt::Result<()> {
        super::functions::grown_with_out(self.as_tensor(), out, options)
    }
    /// The matrix product.
    ///
    /// See [`product`](fn@super::product).
    #[track_caller]
    fn product(&self, mat2: &rt::Tensor) -> rt::Result<rt::Tensor> {
        super::functions::product(self.as_tensor(), mat2)
    }
    /// The matrix product.
    ///
    /// See [`product_out`](fn@super::product_out).
    #[track_caller]
    fn product_out(&self, mat2: &rt::Tensor, out: &mut rt::Tensor) -> rt::Result<()> {
        super::functions::product_out(self.as_tensor(), mat2, out)
    }
    /// A kernel in C++.
    ///
    /// See [`largest`](fn@super::largest).
    #[track_caller]
    fn largest(&self) -> rt::Result<(rt::Tensor, rt::Tensor)> {
        super::functions::largest(self.as_tensor())
    }
    /// A kernel in C++.
    ///
    /// See [`largest_with`](fn@super::largest_with).
    #[track_caller]
    fn largest_with(
        &self,
        options: &super::functions::LargestOptions,
    ) -> rt::Result<(rt::Tensor, rt::Tensor)> {
        super::functions::largest_with(self.as_tensor(), options)
    }
    /// Puts values at indices.
    ///
    /// See [`spread`](fn@super::spread).
    #[track_caller]
    fn spread(
        &self,
        index: &rt::Tensor,
        size: impl AsRef<[i64]>,
    ) -> rt::Result<rt::Tensor> {
        super::functions::spread(self.as_tensor(), index, size)
    }
    /// Swaps two dimensions.
    ///
    /// See [`flipped`](fn@super::flipped).
    #[track_caller]
    fn flipped(&self, dim0: i64, dim1: i64) -> rt::Result<rt::Tensor> {
        super::functions::flipped(self.as_tensor(), dim0, dim1)
    }
    /// Two results, built from others.
    ///
    /// See [`sum_and_growth`](fn@super::sum_and_growth).
    #[track_caller]
    fn sum_and_growth(
        &self,
        other: &rt::Tensor,
    ) -> rt::Result<(rt::Tensor, rt::Tensor)> {
        super::functions::sum_and_growth(self.as_tensor(), other)
    }
    /// The only element.
    ///
    /// See [`item`](fn@super::item).
    #[track_caller]
    fn item(&self) -> rt::Result<rt::Scalar> {
        super::functions::item(self.as_tensor())
    }
}

impl TensorOps for rt::Tensor {
    fn as_tensor(&self) -> &rt::Tensor {
        self
    }
}
