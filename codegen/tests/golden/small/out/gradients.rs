// @generated from spec.yaml by codegen/src/emit/gradients.rs.
// One operator's share: `opsmith expand NAME`.

/// `plus.Tensor`, self: `grad` (spec.yaml:8).
pub fn plus_tensor_grad_self(cx: &GradContext<'_>) -> Result<Gradients> {
    let Some(grad) = cx.grad(0) else { return Ok(Gradient::none(1)) };
    Ok(Gradient::one(Some(grad.clone())))
}

/// `plus.Tensor`, other: `grown(grad)` (spec.yaml:8).
pub fn plus_tensor_grad_other(cx: &GradContext<'_>) -> Result<Gradients> {
    let Some(grad) = cx.grad(0) else { return Ok(Gradient::none(1)) };
    Ok(Gradient::one(Some(raw::grown(grad, false)?)))
}

pub static PLUS_TENSOR: GradDef = GradDef::elementwise(
    &[GradientFormula::new(&[0], plus_tensor_grad_self), GradientFormula::new(&[1], plus_tensor_grad_other)],
    &[0],
);

/// `plus.Scalar`, self: `grad` (spec.yaml:24).
pub fn plus_scalar_grad_self(cx: &GradContext<'_>) -> Result<Gradients> {
    let Some(grad) = cx.grad(0) else { return Ok(Gradient::none(1)) };
    Ok(Gradient::one(Some(grad.clone())))
}

pub static PLUS_SCALAR: GradDef = GradDef::elementwise(
    &[GradientFormula::new(&[0], plus_scalar_grad_self)],
    &[0],
);

/// `grown`, self: `not_implemented("of an example")` (spec.yaml:31).
pub fn grown_grad_self(cx: &GradContext<'_>) -> Result<Gradients> {
    Ok(Gradient::one(rt::autograd::not_implemented::<Option<Tensor>>("of an example")?))
}

pub static GROWN: GradDef = GradDef::new(&[GradientFormula::new(&[0], grown_grad_self)], &[0]);

/// `product`, self: `product(grad, flipped(mat2, 0, 1))` (spec.yaml:39).
pub fn product_grad_self(cx: &GradContext<'_>) -> Result<Gradients> {
    let Some(grad) = cx.grad(0) else { return Ok(Gradient::none(1)) };
    let mat2 = &cx.tensor(1)?;
    Ok(Gradient::one(Some(raw::product(grad, &raw::flipped(mat2, 0, 1)?)?)))
}

/// `product`, mat2: `flipped(self, 0, 1).product(grad)` (spec.yaml:39).
pub fn product_grad_mat2(cx: &GradContext<'_>) -> Result<Gradients> {
    let Some(grad) = cx.grad(0) else { return Ok(Gradient::none(1)) };
    let self_ = &cx.tensor(0)?;
    Ok(Gradient::one(Some(raw::product(&raw::flipped(self_, 0, 1)?, grad)?)))
}

pub static PRODUCT: GradDef = GradDef::new(
    &[
        GradientFormula::new(&[0], product_grad_self).reads_arguments(&[1]),
        GradientFormula::new(&[1], product_grad_mat2).reads_arguments(&[0]),
    ],
    &[0],
);

/// `largest`, self: `spread(grad, indices, self.sizes())` (spec.yaml:52).
pub fn largest_grad_self(cx: &GradContext<'_>) -> Result<Gradients> {
    let Some(grad_values) = cx.grad(0) else { return Ok(Gradient::none(1)) };
    let result_indices = &cx.result(1)?;
    Ok(Gradient::one(Some(raw::spread(grad_values, result_indices, &cx.meta(0).sizes[..])?)))
}

pub static LARGEST: GradDef = GradDef::new(
    &[GradientFormula::new(&[0], largest_grad_self).reads_outputs(&[1])],
    &[0],
);

pub static SPREAD: GradDef = GradDef { non_differentiable: bits(&[0]), ..GradDef::new(&[], &[0]) };

/// `flipped`, self: `flipped(grad, dim0, dim1)` (spec.yaml:74).
pub fn flipped_grad_self(cx: &GradContext<'_>) -> Result<Gradients> {
    let Some(grad) = cx.grad(0) else { return Ok(Gradient::none(1)) };
    let dim0 = cx.attribute(1).int();
    let dim1 = cx.attribute(2).int();
    Ok(Gradient::one(Some(raw::flipped(grad, dim0, dim1)?)))
}

pub static FLIPPED: GradDef = GradDef::new(
    &[GradientFormula::new(&[0], flipped_grad_self).reads_attributes(&[1, 2])],
    &[0],
);
