// @generated from spec.yaml by codegen/src/emit/api.rs.
// One operator's share: `opsmith expand NAME`.

/// Options of [`plus`](fn@plus).
#[derive(Clone, Debug)]
#[must_use]
pub struct PlusOptions {
    alpha: rt::Scalar,
}

impl Default for PlusOptions {
    fn default() -> Self {
        PlusOptions { alpha: rt::Scalar::Int(1i64) }
    }
}

rt::options!(PlusOptions);

impl PlusOptions {
    /// Sets `alpha` (Scalar, `1` by default).
    pub fn alpha(mut self, alpha: impl Into<rt::Scalar>) -> Self {
        self.alpha = alpha.into();
        self
    }
}

/// Adds `alpha * other` to `self`.
///
/// A second paragraph.
///
/// ```text
/// plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
/// plus.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor
/// ```
///
/// # Arguments
/// - `self`: Tensor
/// - `other`: Tensor or Scalar
/// - `alpha`: Scalar, `1` by default
///
/// # Results
/// - shape `broadcast(self, other)` (the shapes of the operands, broadcast together); dtype `promote(self, other, alpha)` (the operands' promoted dtype)
/// - computed in `int64`, `bfloat16`, `float32`
/// - `other` a number: shape `broadcast(self)` (the shapes of the operands, broadcast together); dtype `promote(self, other, alpha)` (the operands' promoted dtype)
///
/// # Gradients
/// - `self`: `grad`
/// - `other`: `grown(grad)`
///
/// # Errors
/// - if `self`, `other` cannot be broadcast together
/// - if the dtype to compute in is outside `int64`, `bfloat16`, `float32`
/// - if tensors are on several devices
///
/// Declared at [`spec.yaml:8`](../../../spec.yaml#L8) and [`spec.yaml:22`](../../../spec.yaml#L22).
#[track_caller]
pub fn plus<'a>(self_: &rt::Tensor, other: impl Into<rt::TensorOrScalar<'a>>) -> rt::Result<rt::Tensor> {
    let other: rt::TensorOrScalar<'_> = other.into();
    rt::call::invoke_single(
        other.choose(&super::defs::PLUS_TENSOR, &super::defs::PLUS_SCALAR),
        &[self_.into(), other.into(), rt::Arg::Scalar(rt::Scalar::Int(1i64))],
    )
}

/// Adds `alpha * other` to `self`.
///
/// As [`plus`](fn@super::plus), with options.
#[track_caller]
pub fn plus_with<'a>(
    self_: &rt::Tensor,
    other: impl Into<rt::TensorOrScalar<'a>>,
    options: impl Into<PlusOptions>,
) -> rt::Result<rt::Tensor> {
    let options: PlusOptions = options.into();
    let other: rt::TensorOrScalar<'_> = other.into();
    rt::call::invoke_single(
        other.choose(&super::defs::PLUS_TENSOR, &super::defs::PLUS_SCALAR),
        &[self_.into(), other.into(), options.alpha.into()],
    )
}

/// Adds `alpha * other` to `self`.
///
/// As [`plus`](fn@super::plus). In place: writes the result into the first argument; one of another shape, or of a dtype that does not hold it, is an error.
#[track_caller]
pub fn plus_<'a>(self_: &rt::Tensor, other: impl Into<rt::TensorOrScalar<'a>>) -> rt::Result<()> {
    let other: rt::TensorOrScalar<'_> = other.into();
    rt::call::invoke_inplace(
        other.choose(&super::defs::PLUS_TENSOR, &super::defs::PLUS_SCALAR),
        &[self_.into(), other.into(), rt::Arg::Scalar(rt::Scalar::Int(1i64))],
    )
}

/// Adds `alpha * other` to `self`.
///
/// As [`plus`](fn@super::plus), with options. In place: writes the result into the first argument; one of another shape, or of a dtype that does not hold it, is an error.
#[track_caller]
pub fn plus_with_<'a>(
    self_: &rt::Tensor,
    other: impl Into<rt::TensorOrScalar<'a>>,
    options: impl Into<PlusOptions>,
) -> rt::Result<()> {
    let options: PlusOptions = options.into();
    let other: rt::TensorOrScalar<'_> = other.into();
    rt::call::invoke_inplace(
        other.choose(&super::defs::PLUS_TENSOR, &super::defs::PLUS_SCALAR),
        &[self_.into(), other.into(), options.alpha.into()],
    )
}

/// Adds `alpha * other` to `self`.
///
/// As [`plus`](fn@super::plus). Writes the result into `out`, which must have the result's shape or no elements; any other is an error.
#[track_caller]
pub fn plus_out(self_: &rt::Tensor, other: &rt::Tensor, out: &mut rt::Tensor) -> rt::Result<()> {
    rt::call::invoke_out(
        &super::defs::PLUS_TENSOR,
        &[self_.into(), other.into(), rt::Arg::Scalar(rt::Scalar::Int(1i64))],
        &mut [out],
    )
}

/// Adds `alpha * other` to `self`.
///
/// As [`plus`](fn@super::plus), with options. Writes the result into `out`, which must have the result's shape or no elements; any other is an error.
#[track_caller]
pub fn plus_with_out(
    self_: &rt::Tensor,
    other: &rt::Tensor,
    out: &mut rt::Tensor,
    options: impl Into<PlusOptions>,
) -> rt::Result<()> {
    let options: PlusOptions = options.into();
    rt::call::invoke_out(
        &super::defs::PLUS_TENSOR,
        &[self_.into(), other.into(), options.alpha.into()],
        &mut [out],
    )
}

/// Options of [`grown`](fn@grown).
#[derive(Clone, Debug)]
#[must_use]
pub struct GrownOptions {
    twice: bool,
}

impl Default for GrownOptions {
    fn default() -> Self {
        GrownOptions { twice: false }
    }
}

rt::options!(GrownOptions);

impl GrownOptions {
    /// Sets `twice` (bool, `false` by default).
    pub fn twice(mut self, twice: bool) -> Self {
        self.twice = twice;
        self
    }
}

/// Grows each element; integers become floats.
///
/// ```text
/// grown(Tensor self, bool twice=False) -> Tensor
/// ```
///
/// # Arguments
/// - `self`: Tensor
/// - `twice`: bool, `false` by default
///
/// # Results
/// - shape `follow(self)` (the shape of the given input); dtype `promote_float(self)` (the operands' promoted dtype; an integer result becomes the default float)
/// - computed in `float32`
///
/// # Gradients
/// - `self`: `not_implemented("of an example")`
///
/// # Errors
/// - if the dtype to compute in is outside `float32`
///
/// Declared at [`spec.yaml:29`](../../../spec.yaml#L29).
#[track_caller]
pub fn grown(self_: &rt::Tensor) -> rt::Result<rt::Tensor> {
    rt::call::invoke_single(&super::defs::GROWN, &[self_.into(), rt::Arg::Bool(false)])
}

/// Grows each element; integers become floats.
///
/// As [`grown`](fn@super::grown), with options.
#[track_caller]
pub fn grown_with(self_: &rt::Tensor, options: impl Into<GrownOptions>) -> rt::Result<rt::Tensor> {
    let options: GrownOptions = options.into();
    rt::call::invoke_single(&super::defs::GROWN, &[self_.into(), options.twice.into()])
}

/// Grows each element; integers become floats.
///
/// As [`grown`](fn@super::grown). In place: writes the result into the first argument; one of another shape, or of a dtype that does not hold it, is an error.
#[track_caller]
pub fn grown_(self_: &rt::Tensor) -> rt::Result<()> {
    rt::call::invoke_inplace(&super::defs::GROWN, &[self_.into(), rt::Arg::Bool(false)])
}

/// Grows each element; integers become floats.
///
/// As [`grown`](fn@super::grown), with options. In place: writes the result into the first argument; one of another shape, or of a dtype that does not hold it, is an error.
#[track_caller]
pub fn grown_with_(self_: &rt::Tensor, options: impl Into<GrownOptions>) -> rt::Result<()> {
    let options: GrownOptions = options.into();
    rt::call::invoke_inplace(&super::defs::GROWN, &[self_.into(), options.twice.into()])
}

/// Grows each element; integers become floats.
///
/// As [`grown`](fn@super::grown). Writes the result into `out`, which must have the result's shape or no elements; any other is an error.
#[track_caller]
pub fn grown_out(self_: &rt::Tensor, out: &mut rt::Tensor) -> rt::Result<()> {
    rt::call::invoke_out(&super::defs::GROWN, &[self_.into(), rt::Arg::Bool(false)], &mut [out])
}

/// Grows each element; integers become floats.
///
/// As [`grown`](fn@super::grown), with options. Writes the result into `out`, which must have the result's shape or no elements; any other is an error.
#[track_caller]
pub fn grown_with_out(
    self_: &rt::Tensor,
    out: &mut rt::Tensor,
    options: impl Into<GrownOptions>,
) -> rt::Result<()> {
    let options: GrownOptions = options.into();
    rt::call::invoke_out(&super::defs::GROWN, &[self_.into(), options.twice.into()], &mut [out])
}

/// The matrix product.
///
/// ```text
/// product(Tensor self, Tensor mat2) -> Tensor
/// ```
///
/// # Arguments
/// - `self`: Tensor
/// - `mat2`: Tensor
///
/// # Results
/// - shape `[self.size(0), mat2.size(1)]`; dtype `same(self, mat2)` (the dtype all operands share; different dtypes are an error)
/// - computed in `float32`, `float64`
///
/// # Gradients
/// - `self`: `product(grad, flipped(mat2, 0, 1))`
/// - `mat2`: `flipped(self, 0, 1).product(grad)`
///
/// # Errors
/// - unless `self.dim() == 2`
/// - unless `mat2.dim() == 2`
/// - unless `self.size(1) == mat2.size(-2)`
/// - if `self`, `mat2` have different dtypes
/// - if the dtype to compute in is outside `float32`, `float64`
/// - if tensors are on several devices
///
/// Declared at [`spec.yaml:37`](../../../spec.yaml#L37).
#[track_caller]
pub fn product(self_: &rt::Tensor, mat2: &rt::Tensor) -> rt::Result<rt::Tensor> {
    rt::call::invoke_single(&super::defs::PRODUCT, &[self_.into(), mat2.into()])
}

/// The matrix product.
///
/// As [`product`](fn@super::product). Writes the result into `out`, which must have the result's shape or no elements; any other is an error.
#[track_caller]
pub fn product_out(self_: &rt::Tensor, mat2: &rt::Tensor, out: &mut rt::Tensor) -> rt::Result<()> {
    rt::call::invoke_out(&super::defs::PRODUCT, &[self_.into(), mat2.into()], &mut [out])
}

/// Options of [`largest`](fn@largest).
#[derive(Clone, Debug)]
#[must_use]
pub struct LargestOptions {
    dim: Option<i64>,
}

impl Default for LargestOptions {
    fn default() -> Self {
        LargestOptions { dim: None }
    }
}

rt::options!(LargestOptions);

impl LargestOptions {
    /// Sets `dim` (int?, `None` by default).
    pub fn dim(mut self, dim: i64) -> Self {
        self.dim = Some(dim);
        self
    }
}

/// A kernel in C++.
///
/// ```text
/// largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)
/// ```
///
/// # Arguments
/// - `self`: Tensor
/// - `dim`: int?, `None` by default
///
/// # Results
/// - `values`: shape `follow(self)` (the shape of the given input); dtype `follow(self)` (the dtype of the given input)
/// - `indices`: shape `follow(self)` (the shape of the given input); dtype `int64`
/// - computed in `float32`
///
/// # Gradients
/// - `self`: `spread(grad, indices, self.sizes())`
///
/// # Errors
/// - if the dtype to compute in is outside `float32`
///
/// Declared at [`spec.yaml:50`](../../../spec.yaml#L50).
#[track_caller]
pub fn largest(self_: &rt::Tensor) -> rt::Result<(rt::Tensor, rt::Tensor)> {
    let [out0, out1] = rt::call::several(
        rt::call::invoke(&super::defs::LARGEST, &[self_.into(), rt::Arg::None])?,
    );
    Ok((out0, out1))
}

/// A kernel in C++.
///
/// As [`largest`](fn@super::largest), with options.
#[track_caller]
pub fn largest_with(
    self_: &rt::Tensor,
    options: impl Into<LargestOptions>,
) -> rt::Result<(rt::Tensor, rt::Tensor)> {
    let options: LargestOptions = options.into();
    let [out0, out1] = rt::call::several(
        rt::call::invoke(&super::defs::LARGEST, &[self_.into(), options.dim.into()])?,
    );
    Ok((out0, out1))
}

/// Puts values at indices.
///
/// ```text
/// spread(Tensor self, Tensor index, int[] size) -> Tensor
/// ```
///
/// # Arguments
/// - `self`: Tensor
/// - `index`: Tensor
/// - `size`: int[]
///
/// # Results
/// - shape `full(size)` (the given sizes); dtype `follow(self)` (the dtype of the given input)
/// - computed in `float32`
///
/// # Errors
/// - if the dtype to compute in is outside `float32`
/// - if tensors are on several devices
///
/// Declared at [`spec.yaml:60`](../../../spec.yaml#L60).
#[track_caller]
pub fn spread(self_: &rt::Tensor, index: &rt::Tensor, size: impl AsRef<[i64]>) -> rt::Result<rt::Tensor> {
    rt::call::invoke_single(&super::defs::SPREAD, &[self_.into(), index.into(), rt::Arg::Ints(size.as_ref())])
}

/// Swaps two dimensions.
///
/// ```text
/// flipped(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
/// ```
///
/// # Arguments
/// - `self`: Tensor
/// - `dim0`: int
/// - `dim1`: int
///
/// # Gradients
/// - `self`: `flipped(grad, dim0, dim1)`
///
/// # Errors
/// - unless `self.dim() >= 2`
/// - if shapes and attributes do not go together
///
/// Declared at [`spec.yaml:69`](../../../spec.yaml#L69).
#[track_caller]
pub fn flipped(self_: &rt::Tensor, dim0: i64, dim1: i64) -> rt::Result<rt::Tensor> {
    rt::call::invoke_single(&super::defs::FLIPPED, &[self_.into(), dim0.into(), dim1.into()])
}

/// Two results, built from others.
///
/// ```text
/// sum_and_growth(Tensor self, Tensor other) -> (Tensor, Tensor)
/// ```
///
/// # Arguments
/// - `self`: Tensor
/// - `other`: Tensor
///
/// # Errors
/// - if tensors are on several devices
///
/// Declared at [`spec.yaml:76`](../../../spec.yaml#L76).
#[track_caller]
pub fn sum_and_growth(self_: &rt::Tensor, other: &rt::Tensor) -> rt::Result<(rt::Tensor, rt::Tensor)> {
    let [out0, out1] = rt::call::several(
        rt::call::invoke(&super::defs::SUM_AND_GROWTH, &[self_.into(), other.into()])?,
    );
    Ok((out0, out1))
}

/// The only element.
///
/// ```text
/// item(Tensor self) -> Scalar
/// ```
///
/// # Arguments
/// - `self`: Tensor
///
/// # Errors
/// - unless `self.numel() == 1`
///
/// Declared at [`spec.yaml:80`](../../../spec.yaml#L80).
#[track_caller]
pub fn item(self_: &rt::Tensor) -> rt::Result<rt::Scalar> {
    rt::call::host_result(rt::call::invoke_host(&super::defs::ITEM, &[self_.into()])?)
}
