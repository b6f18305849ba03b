// @generated from spec.yaml by codegen/src/emit/gradients.rs.
// One operator's share: `opsmith expand NAME`.

/// `plus.Tensor`, self: `grad` (spec.yaml:8).
#[allow(unused_variables, reason = "a formula may consist of a refusal")]
pub fn plus_tensor_0(
    cx: &rt::autograd::GradContext<'_>,
) -> rt::Result<rt::op::Gradients> {
    let Some(grad0) = cx.grad(0) else {
        return Ok(rt::autograd::Gradient::none(1));
    };
    Ok(rt::autograd::Gradient::one(Some(grad0.clone())))
}

/// `plus.Tensor`, other: `grown(grad)` (spec.yaml:8).
#[allow(unused_variables, reason = "a formula may consist of a refusal")]
pub fn plus_tensor_1(
    cx: &rt::autograd::GradContext<'_>,
) -> rt::Result<rt::op::Gradients> {
    let Some(grad0) = cx.grad(0) else {
        return Ok(rt::autograd::Gradient::none(1));
    };
    Ok(rt::autograd::Gradient::one(Some(super::raw::grown(grad0, false)?)))
}

pub static PLUS_TENSOR: rt::op::GradDef = rt::op::GradDef {
    formulas: &[
        rt::op::Formula {
            arguments: &[0],
            reads_arguments: 0,
            reads_outputs: 0,
            reads_attributes: 0,
            backends: 3,
            backward: plus_tensor_0,
        },
        rt::op::Formula {
            arguments: &[1],
            reads_arguments: 0,
            reads_outputs: 0,
            reads_attributes: 0,
            backends: 3,
            backward: plus_tensor_1,
        },
    ],
    differentiable_outputs: 1,
    constant_outputs: 0,
    non_differentiable: 0,
    forward: rt::op::Forward::ElementWise {
        complex: false,
    },
};

/// `grown`, self: `not_implemented("of an example")` (spec.yaml:22).
#[allow(unused_variables, reason = "a formula may consist of a refusal")]
pub fn grown_0(cx: &rt::autograd::GradContext<'_>) -> rt::Result<rt::op::Gradients> {
    Ok(
        rt::autograd::Gradient::one(
            rt::autograd::not_implemented::<Option<rt::Tensor>>("of an example")?,
        ),
    )
}

pub static GROWN: rt::op::GradDef = rt::op::GradDef {
    formulas: &[
        rt::op::Formula {
            arguments: &[0],
            reads_arguments: 0,
            reads_outputs: 0,
            reads_attributes: 0,
            backends: 3,
            backward: grown_0,
        },
    ],
    differentiable_outputs: 1,
    constant_outputs: 0,
    non_differentiable: 0,
    forward: rt::op::Forward::Transposed,
};

/// `product`, self: `product(grad, flipped(mat2, 0, 1))` (spec.yaml:30).
#[allow(unused_variables, reason = "a formula may consist of a refusal")]
pub fn product_0(cx: &rt::autograd::GradContext<'_>) -> rt::Result<rt::op::Gradients> {
    let Some(grad0) = cx.grad(0) else {
        return Ok(rt::autograd::Gradient::none(1));
    };
    let mat2 = &cx.tensor(1)?;
    Ok(
        rt::autograd::Gradient::one(
            Some(super::raw::product(grad0, &super::raw::flipped(mat2, 0i64, 1i64)?)?),
        ),
    )
}

/// `product`, mat2: `flipped(self, 0, 1).product(grad)` (spec.yaml:30).
#[allow(unused_variables, reason = "a formula may consist of a refusal")]
pub fn product_1(cx: &rt::autograd::GradContext<'_>) -> rt::Result<rt::op::Gradients> {
    let Some(grad0) = cx.grad(0) else {
        return Ok(rt::autograd::Gradient::none(1));
    };
    let self_ = &cx.tensor(0)?;
    Ok(
        rt::autograd::Gradient::one(
            Some(super::raw::product(&super::raw::flipped(self_, 0i64, 1i64)?, grad0)?),
        ),
    )
}

pub static PRODUCT: rt::op::GradDef = rt::op::GradDef {
    formulas: &[
        rt::op::Formula {
            arguments: &[0],
            reads_arguments: 2,
            reads_outputs: 0,
            reads_attributes: 0,
            backends: 3,
            backward: product_0,
        },
        rt::op::Formula {
            arguments: &[1],
            reads_arguments: 1,
            reads_outputs: 0,
            reads_attributes: 0,
            backends: 3,
            backward: product_1,
        },
    ],
    differentiable_outputs: 1,
    constant_outputs: 0,
    non_differentiable: 0,
    forward: rt::op::Forward::Transposed,
};

/// `largest`, self: `spread(grad, indices, self.sizes())` (spec.yaml:43).
#[allow(unused_variables, reason = "a formula may consist of a refusal")]
pub fn largest_0(cx: &rt::autograd::GradContext<'_>) -> rt::Result<rt::op::Gradients> {
    let Some(grad0) = cx.grad(0) else {
        return Ok(rt::autograd::Gradient::none(1));
    };
    let result1 = &cx.result(1)?;
    Ok(
        rt::autograd::Gradient::one(
            Some(super::raw::spread(grad0, result1, &cx.meta(0).sizes[..])?),
        ),
    )
}

pub static LARGEST: rt::op::GradDef = rt::op::GradDef {
    formulas: &[
        rt::op::Formula {
            arguments: &[0],
            reads_arguments: 0,
            reads_outputs: 2,
            reads_attributes: 0,
            backends: 3,
            backward: largest_0,
        },
    ],
    differentiable_outputs: 1,
    constant_outputs: 0,
    non_differentiable: 0,
    forward: rt::op::Forward::Transposed,
};

pub static SPREAD: rt::op::GradDef = rt::op::GradDef {
    formulas: &[],
    differentiable_outputs: 1,
    constant_outputs: 0,
    non_differentiable: 1,
    forward: rt::op::Forward::Transposed,
};

/// `flipped`, self: `flipped(grad, dim0, dim1)` (spec.yaml:62).
#[allow(unused_variables, reason = "a formula may consist of a refusal")]
pub fn flipped_0(cx: &rt::autograd::GradContext<'_>) -> rt::Result<rt::op::Gradients> {
    let Some(grad0) = cx.grad(0) else {
        return Ok(rt::autograd::Gradient::none(1));
    };
    let dim0 = cx.attribute(1).int();
    let dim1 = cx.attribute(2).int();
    Ok(rt::autograd::Gradient::one(Some(super::raw::flipped(grad0, dim0, dim1)?)))
}

pub static FLIPPED: rt::op::GradDef = rt::op::GradDef {
    formulas: &[
        rt::op::Formula {
            arguments: &[0],
            reads_arguments: 0,
            reads_outputs: 0,
            reads_attributes: 6,
            backends: 3,
            backward: flipped_0,
        },
    ],
    differentiable_outputs: 1,
    constant_outputs: 0,
    non_differentiable: 0,
    forward: rt::op::Forward::Transposed,
};
