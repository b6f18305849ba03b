// @generated from spec.yaml by codegen/src/emit/api.rs.
// One operator's share: `opsmith expand NAME`.

rt::options! {
    /// Options of [`plus`](fn@plus).
    PlusOptions;
    /// Sets `alpha` (Scalar, `1` by default).
    alpha: Scalar = Scalar::Int(1), set impl Into<Scalar> => alpha.into();
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
/// - each element: `self + (alpha * other)`
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
/// # Example
/// ```
/// # use golden::{plus_with, PlusOptions}; use opsmith::runtime::Tensor;
/// let x = Tensor::from_slice(&[-0.8f32, 0.87, 0.53, 0.2, -0.13, -0.47], &[2, 3])?;
/// let other = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
/// let result = plus_with(&x, &other, PlusOptions::new().alpha(2))?;
/// # Ok::<(), opsmith::runtime::Error>(())
/// ```
///
/// Forms: [`plus_with`](fn@super::plus_with), [`plus_`](fn@super::plus_), [`plus_with_`](fn@super::plus_with_), [`plus_out`](fn@super::plus_out), [`plus_with_out`](fn@super::plus_with_out).
///
/// Kernels: a loop made from the expression.
///
/// Deterministic: equal inputs give equal results, whatever the number of threads.
///
/// Declared at [`spec.yaml:8`](../../../spec.yaml#L8) and [`spec.yaml:24`](../../../spec.yaml#L24).
#[track_caller]
pub fn plus<'a>(self_: &Tensor, other: impl Into<TensorOrScalar<'a>>) -> Result<Tensor> {
    let other: TensorOrScalar<'a> = other.into();
    call::invoke_single(
        other.choose(&defs::PLUS_TENSOR, &defs::PLUS_SCALAR),
        &[self_.into(), other.into(), Arg::Scalar(Scalar::Int(1))],
    )
}

rt::forms! {
    plus: "Adds `alpha * other` to `self`.";
    [options] fn plus_with<'a>(
        self_: &Tensor,
        other => TensorOrScalar<'a>,
        options => PlusOptions,
    ) -> Result<Tensor> = call::invoke_single(
        other.choose(&defs::PLUS_TENSOR, &defs::PLUS_SCALAR),
        &[self_.into(), other.into(), options.alpha.into()],
    );
    [inplace] fn plus_<'a>(self_: &Tensor, other => TensorOrScalar<'a>) -> Result<()> = call::invoke_inplace(
        other.choose(&defs::PLUS_TENSOR, &defs::PLUS_SCALAR),
        &[self_.into(), other.into(), Arg::Scalar(Scalar::Int(1))],
    );
    [inplace options] fn plus_with_<'a>(
        self_: &Tensor,
        other => TensorOrScalar<'a>,
        options => PlusOptions,
    ) -> Result<()> = call::invoke_inplace(
        other.choose(&defs::PLUS_TENSOR, &defs::PLUS_SCALAR),
        &[self_.into(), other.into(), options.alpha.into()],
    );
    [out] fn plus_out(self_: &Tensor, other: &Tensor, out: &mut Tensor) -> Result<()> = call::invoke_out(
        &defs::PLUS_TENSOR,
        &[self_.into(), other.into(), Arg::Scalar(Scalar::Int(1))],
        &mut [out],
    );
    [out options] fn plus_with_out(
        self_: &Tensor,
        other: &Tensor,
        out: &mut Tensor,
        options => PlusOptions,
    ) -> Result<()> =
        call::invoke_out(&defs::PLUS_TENSOR, &[self_.into(), other.into(), options.alpha.into()], &mut [out]);
}

rt::options! {
    /// Options of [`grown`](fn@grown). `twice` alone converts to them.
    GrownOptions;
    /// Sets `twice` (bool, `false` by default).
    twice: bool = false, set bool => twice, from [] bool;
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
/// - each element: `if twice { { let once = grow(self); grow(once) } } else { grow(self) }`
///
/// # Gradients
/// - `self`: `not_implemented("of an example")`
///
/// # Errors
/// - if the dtype to compute in is outside `float32`
///
/// Forms: [`grown_with`](fn@super::grown_with), [`grown_`](fn@super::grown_), [`grown_with_`](fn@super::grown_with_), [`grown_out`](fn@super::grown_out), [`grown_with_out`](fn@super::grown_with_out).
///
/// Kernels: a loop made from the expression.
///
/// Deterministic: equal inputs give equal results, whatever the number of threads.
///
/// Declared at [`spec.yaml:31`](../../../spec.yaml#L31).
#[track_caller]
pub fn grown(self_: &Tensor) -> Result<Tensor> {
    call::invoke_single(&defs::GROWN, &[self_.into(), Arg::Bool(false)])
}

rt::forms! {
    grown: "Grows each element; integers become floats.";
    [options] fn grown_with(self_: &Tensor, options => GrownOptions) -> Result<Tensor> =
        call::invoke_single(&defs::GROWN, &[self_.into(), options.twice.into()]);
    [inplace] fn grown_(self_: &Tensor) -> Result<()> =
        call::invoke_inplace(&defs::GROWN, &[self_.into(), Arg::Bool(false)]);
    [inplace options] fn grown_with_(self_: &Tensor, options => GrownOptions) -> Result<()> =
        call::invoke_inplace(&defs::GROWN, &[self_.into(), options.twice.into()]);
    [out] fn grown_out(self_: &Tensor, out: &mut Tensor) -> Result<()> =
        call::invoke_out(&defs::GROWN, &[self_.into(), Arg::Bool(false)], &mut [out]);
    [out options] fn grown_with_out(
        self_: &Tensor,
        out: &mut Tensor,
        options => GrownOptions,
    ) -> Result<()> = call::invoke_out(&defs::GROWN, &[self_.into(), options.twice.into()], &mut [out]);
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
/// - shape `[self.size(0), mat2.size(1)]` (2 dimensions: size 0 of `self` by size 1 of `mat2`); dtype `same(self, mat2)` (the dtype all operands share; different dtypes are an error)
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
/// Forms: [`product_out`](fn@super::product_out).
///
/// Kernels: [`kernel::product`](fn@crate::kernels::kernel::product) (CPU).
///
/// Deterministic: equal inputs give equal results, whatever the number of threads.
///
/// Declared at [`spec.yaml:39`](../../../spec.yaml#L39).
#[track_caller]
pub fn product(self_: &Tensor, mat2: &Tensor) -> Result<Tensor> {
    call::invoke_single(&defs::PRODUCT, &[self_.into(), mat2.into()])
}

rt::forms! {
    product: "The matrix product.";
    [out] fn product_out(self_: &Tensor, mat2: &Tensor, out: &mut Tensor) -> Result<()> =
        call::invoke_out(&defs::PRODUCT, &[self_.into(), mat2.into()], &mut [out]);
}

rt::options! {
    /// Options of [`largest`](fn@largest). `dim` alone converts to them.
    LargestOptions;
    /// Sets `dim` (int?, `None` by default).
    dim: Option<i64> = None, set i64 => Some(dim), from [] i64;
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
/// - formula:
///   - `values_j = max_i self_{j, i}, i along dim, or all dimensions without`
///   - `indices_j = min(argmax_i self_{j, i})`
///
/// # Gradients
/// - `self`: `spread(grad, indices, self.sizes())`
///
/// # Errors
/// - if the dtype to compute in is outside `float32`
///
/// Forms: [`largest_with`](fn@super::largest_with).
///
/// Kernels: `kernels/largest.cc:golden_largest` (CPU).
///
/// Deterministic: equal inputs give equal results, whatever the number of threads.
///
/// Declared at [`spec.yaml:52`](../../../spec.yaml#L52).
#[track_caller]
pub fn largest(self_: &Tensor) -> Result<(Tensor, Tensor)> {
    call::invoke_several(&defs::LARGEST, &[self_.into(), Arg::None])
}

rt::forms! {
    largest: "A kernel in C++.";
    [options] fn largest_with(self_: &Tensor, options => LargestOptions) -> Result<(Tensor, Tensor)> =
        call::invoke_several(&defs::LARGEST, &[self_.into(), options.dim.into()]);
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
/// # Gradients
/// - none: the result has no gradient
///
/// # Errors
/// - if the dtype to compute in is outside `float32`
/// - if tensors are on several devices
///
/// Kernels: [`kernel::spread`](fn@crate::kernels::kernel::spread) (CPU).
///
/// Deterministic: equal inputs give equal results, whatever the number of threads.
///
/// Declared at [`spec.yaml:65`](../../../spec.yaml#L65).
#[track_caller]
pub fn spread(self_: &Tensor, index: &Tensor, size: impl AsRef<[i64]>) -> Result<Tensor> {
    call::invoke_single(&defs::SPREAD, &[self_.into(), index.into(), Arg::Ints(size.as_ref())])
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
/// # Results
/// - shape as the layout function `view::flipped` says; dtype that of the tensor it is a view of
///
/// # Gradients
/// - `self`: `flipped(grad, dim0, dim1)`
///
/// # Errors
/// - unless `self.dim() >= 2`
/// - if shapes and attributes do not go together
///
/// Deterministic: equal inputs give equal results, whatever the number of threads.
///
/// Declared at [`spec.yaml:74`](../../../spec.yaml#L74).
#[track_caller]
pub fn flipped(self_: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    call::invoke_single(&defs::FLIPPED, &[self_.into(), dim0.into(), dim1.into()])
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
/// # Results
/// - shape `broadcast(self, other)` (the shapes of the operands, broadcast together); dtype `promote(self, other, 1)` (the operands' promoted dtype)
/// - shape `broadcast(self, other)` (the shapes of the operands, broadcast together); dtype `promote_float(plus.Tensor(self, other, 1))` (the operands' promoted dtype; an integer result becomes the default float)
/// - in terms of other operators: `{ let sum = plus.Tensor(self, other, 1); (sum, grown(sum, false)) }`
///
/// # Gradients
/// - those of the operators that it is composed of
///
/// # Errors
/// - if `self`, `other` cannot be broadcast together
/// - if `promote(self, other, 1)` is outside `int64`, `bfloat16`, `float32`
/// - if [`grown`](fn@super::grown) refuses the arguments of its call
/// - if tensors are on several devices
///
/// Deterministic: equal inputs give equal results, whatever the number of threads.
///
/// Declared at [`spec.yaml:81`](../../../spec.yaml#L81).
#[track_caller]
pub fn sum_and_growth(self_: &Tensor, other: &Tensor) -> Result<(Tensor, Tensor)> {
    call::invoke_several(&defs::SUM_AND_GROWTH, &[self_.into(), other.into()])
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
/// # Gradients
/// - none: the result has no gradient
///
/// # Errors
/// - unless `self.numel() == 1`
///
/// Deterministic: equal inputs give equal results, whatever the number of threads.
///
/// Declared at [`spec.yaml:85`](../../../spec.yaml#L85).
#[track_caller]
pub fn item(self_: &Tensor) -> Result<Scalar> {
    call::invoke_value(&defs::ITEM, &[self_.into()])
}
