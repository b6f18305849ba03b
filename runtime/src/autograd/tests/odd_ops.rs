//! Operators with unusual signatures or formulas: lists, several outputs, compositions, mistakes.

use opsmith_core::DType;
use smallvec::smallvec;

use super::ops::{Formulas, ONE, UNARY, arg, blank, cpu, formula, plus, result, scaled, table, times};
use crate::arg::Arg;
use crate::autograd::{GradContext, Gradient};
use crate::call::{invoke, invoke_inplace, invoke_single};
use crate::error::{Error, Result};
use crate::infer;
use crate::op::*;
use crate::pointwise::map1;
use crate::tensor::Tensor;

fn like(args: &[Arg<'_>], dtypes: &[DType]) -> Result<Inferred> {
    let mut first = None;
    args.iter().for_each(|arg| arg.for_each_tensor(|tensor| first = first.or(Some(tensor))));
    let sizes = first.map(|tensor| tensor.shape().into()).unwrap_or_default();
    let outs = dtypes.iter().map(|&dtype| OutSpec { sizes: Clone::clone(&sizes), dtype }).collect();
    Ok(Inferred { outs, compute: DType::F64, device: infer::device_of(args)? })
}

// both(self) -> (Tensor twice, Tensor thrice, Tensor sign): two outputs with gradients, one without

fn both_infer(args: &[Arg<'_>]) -> Result<Inferred> {
    like(args, &[DType::F64, DType::F64, DType::F64])
}

/// The call with one of its outputs.
fn one_output<'a>(call: &KernelCall<'a>, index: usize) -> KernelCall<'a> {
    // SAFETY: the same call, in which no other code uses this output.
    unsafe { KernelCall::new(call.op(), call.args(), std::slice::from_ref(&call.outs()[index])) }
}

fn both_kernel(call: &KernelCall<'_>) -> Result<()> {
    for (index, factor) in [2.0, 3.0].into_iter().enumerate() {
        map1(&one_output(call, index), [0], |a: f64| a * factor)?;
    }
    map1(&one_output(call, 2), [0], f64::signum)
}

fn both_self(context: &GradContext<'_>) -> Formulas {
    let twice = context.grad(0).map(|grad| scaled(grad, 2.0)).transpose()?;
    let thrice = context.grad(1).map(|grad| scaled(grad, 3.0)).transpose()?;
    Ok(smallvec![match (twice, thrice) {
        (Some(a), Some(b)) => plus(&a, &b)?.into(),
        (a, b) => a.or(b).into(),
    }])
}

pub static BOTH: OpDef = OpDef {
    infer: Some(both_infer),
    kernels: table!(F64 => both_kernel),
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0, 0, 0, both_self)],
        differentiable_outputs: 0b011,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("both", UNARY, &[result(Some("twice")), result(Some("thrice")), result(Some("sign"))])
};

pub fn both(a: &Tensor) -> Result<[Tensor; 3]> {
    let outs = invoke(&BOTH, &[a.into()])?;
    Ok([outs[0].clone(), outs[1].clone(), outs[2].clone()])
}

// dots(Tensor[] tensors, Tensor[] weights) -> sum of products, by one formula for both lists

fn dots_infer(args: &[Arg<'_>]) -> Result<Inferred> {
    like(args, &[DType::F64])
}

fn dots_kernel(call: &KernelCall<'_>) -> Result<()> {
    let mut out = call.view_mut::<f64>(0);
    let (tensors, weights) = (call.views::<f64>(0), call.views::<f64>(1));
    for index in 0..out.numel() {
        let sum: f64 = tensors
            .iter()
            .zip(&weights)
            .map(|(a, b)| a.iter().nth(index).unwrap() * b.iter().nth(index).unwrap())
            .sum();
        out.as_mut_slice().expect("the output is row-major")[index] = sum;
    }
    Ok(())
}

fn dots_lists(context: &GradContext<'_>) -> Formulas {
    let Some(grad) = context.grad(0) else { return Ok(smallvec![Gradient::None, Gradient::None]) };
    let side = |argument: usize, other: usize| -> Result<Gradient> {
        if !context.needs(argument) {
            return Ok(Gradient::None);
        }
        let others = context.tensors(other)?;
        let item = |(index, tensor): (usize, &Tensor)| {
            context.needs_item(argument, index).then(|| times(grad, tensor)).transpose()
        };
        Ok(Gradient::List(others.iter().enumerate().map(item).collect::<Result<_>>()?))
    };
    Ok(smallvec![side(0, 1)?, side(1, 0)?])
}

pub static DOTS: OpDef = OpDef {
    infer: Some(dots_infer),
    contiguous: 0b11,
    kernels: table!(F64 => dots_kernel),
    grad: Some(&GradDef {
        formulas: &[formula(&[0, 1], 0b11, 0, 0, dots_lists)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("dots", &[arg("tensors", ArgKind::Tensors), arg("weights", ArgKind::Tensors)], ONE)
};

pub fn dots(tensors: &[Tensor], weights: &[Tensor]) -> Result<Tensor> {
    invoke_single(&DOTS, &[tensors.into(), weights.into()])
}

// cube(self) -> self * self * self, a composition that also has a kernel

fn cube_compose(args: &[Arg<'_>]) -> Result<Outputs> {
    let tensor = args[0].tensor();
    Ok(smallvec![times(&times(tensor, tensor)?, tensor)?])
}

fn cube_kernel(call: &KernelCall<'_>) -> Result<()> {
    map1(call, [0], |a: f64| a * a * a)
}

pub static CUBE: OpDef = OpDef {
    forms: Forms { inplace: Some("cube_"), out: None, elementwise: true, ..Forms::NONE },
    infer: Some(|args| like(args, &[DType::F64])),
    kernels: table!(F64 => cube_kernel),
    composite: Some(cube_compose),
    ..blank("cube", UNARY, ONE)
};

pub fn cube(a: &Tensor) -> Result<Tensor> {
    invoke_single(&CUBE, &[a.into()])
}

pub fn cube_(a: &Tensor) -> Result<()> {
    invoke_inplace(&CUBE, &[a.into()])
}

// itself(self) -> self, whose composition returns the argument, but which has a formula

pub static ITSELF: OpDef = OpDef {
    composite: Some(|args| Ok(smallvec![args[0].tensor().clone()])),
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0, 0, 0, |context| Ok(smallvec![context.grad(0).cloned().into()]))],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("itself", UNARY, ONE)
};

pub fn itself(a: &Tensor) -> Result<Tensor> {
    invoke_single(&ITSELF, &[a.into()])
}

// step(self) -> 1 where positive, with neither formula nor composition

fn step_kernel(call: &KernelCall<'_>) -> Result<()> {
    map1(call, [0], |a: f64| f64::from(a > 0.0))
}

pub static STEP: OpDef = OpDef {
    forms: Forms { inplace: Some("step_"), out: None, elementwise: true, ..Forms::NONE },
    infer: Some(|args| like(args, &[DType::F64])),
    kernels: table!(F64 => step_kernel),
    ..blank("step", UNARY, ONE)
};

pub fn step(a: &Tensor) -> Result<Tensor> {
    invoke_single(&STEP, &[a.into()])
}

pub fn step_(a: &Tensor) -> Result<()> {
    invoke_inplace(&STEP, &[a.into()])
}

// position(self) -> an integer result of an operator with a formula

fn position_kernel(call: &KernelCall<'_>) -> Result<()> {
    map1(call, [0], |a: f64| a as i64)
}

pub static POSITION: OpDef = OpDef {
    infer: Some(|args| like(args, &[DType::I64])),
    kernels: table!(F64 => position_kernel),
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0, 0, 0, |context| Ok(smallvec![context.grad(0).cloned().into()]))],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("position", UNARY, ONE)
};

pub fn position(a: &Tensor) -> Result<Tensor> {
    invoke_single(&POSITION, &[a.into()])
}

/// An identity with the given backward formula, from the given library.
macro_rules! identity {
    ($name:ident, $op:ident, $text:literal, $backward:expr, $library:expr) => {
        pub static $op: OpDef = OpDef {
            infer: Some(|args| like(args, &[DType::F64])),
    kernels: table!(F64 => |call| map1(call, [0], |a: f64| a)),
            grad: Some(&GradDef {
                formulas: &[formula(&[0], 0, 0, 0, $backward)],
                differentiable_outputs: 1,
                constant_outputs: 0,
                non_differentiable: 0,
                forward: Forward::Transposed,
            }),
            library: $library,
            ..blank($text, UNARY, ONE)
        };

        pub fn $name(a: &Tensor) -> Result<Tensor> {
            invoke_single(&$op, &[a.into()])
        }
    };
}

identity! {
    unfinished, UNFINISHED, "unfinished",
    |_| Err(Error::not_implemented("the derivative of `unfinished` is not implemented: nobody needed it")),
    &super::ops::LIBRARY
}
identity! { misshapen, MISSHAPEN, "misshapen", |_| Ok(smallvec![Tensor::of(&[1.0, 2.0]).into()]), &super::ops::LIBRARY }
identity! { orphaned, ORPHANED, "orphaned", |context| Ok(smallvec![context.grad(0).cloned().into()]), &super::ops::BARE }
identity! { undefined, UNDEFINED, "undefined", |_| Ok(smallvec![Gradient::None]), &super::ops::LIBRARY }
identity! { poison, POISON, "poison", |context| Ok(smallvec![context.grad(0).map(|grad| scaled(grad, f64::NAN)).transpose()?.into()]), &super::ops::LIBRARY }
