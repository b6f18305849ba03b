//! Formulas of one backend: they run on its devices only, and save no tensors for calls on others.

use opsmith_core::{Backend, DType};
use smallvec::smallvec;

use super::ops::{Formulas, ONE, UNARY, blank, cpu, scaled, table, times};
use super::{check_error, gradient, leaf, values};
use crate::arg::Arg;
use crate::autograd::{GradContext, Gradient, Options, grad, jvp};
use crate::call::invoke_single;
use crate::error::{Error, Result};
use crate::infer;
use crate::op::*;
use crate::pointwise::map1;
use crate::tensor::Tensor;

const fn only(backend: Backend, reads: u64, backward: fn(&GradContext<'_>) -> Formulas) -> GradientFormula {
    GradientFormula {
        arguments: &[0],
        reads_arguments: reads,
        reads_outputs: 0,
        reads_attributes: 0,
        backends: 1 << backend.index(),
        backward,
    }
}

fn like(args: &[Arg<'_>]) -> Result<Inferred> {
    let tensor = args[0].tensor();
    let outs = smallvec![OutSpec { sizes: tensor.shape().into(), dtype: DType::F64 }];
    Ok(Inferred { outs, compute: DType::F64, device: infer::device_of(args)? })
}

fn square_kernel(call: &KernelCall<'_>) -> Result<()> {
    map1(call, [0], |a: f64| a * a)
}

fn twice_the_input(context: &GradContext<'_>) -> Formulas {
    let Some(grad) = context.grad(0) else { return Ok(smallvec![Gradient::None]) };
    Ok(smallvec![times(grad, &scaled(&context.tensor(0)?, 2.0)?)?.into()])
}

fn never_here(_: &GradContext<'_>) -> Formulas {
    Err(Error::not_implemented("the formula of another backend ran"))
}

/// Both backends have a formula; that of the GPU comes first and saves nothing.
static SQUARE: OpDef = OpDef {
    infer: Some(like),
    kernels: table!(F64 => square_kernel),
    grad: Some(&GradDef {
        formulas: &[only(Backend::Cuda, 0, never_here), only(Backend::Cpu, 1, twice_the_input)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::ElementWise { complex: false },
    }),
    ..blank("square", UNARY, ONE)
};

/// Only the GPU has a formula.
static ELSEWHERE: OpDef = OpDef {
    infer: Some(like),
    kernels: table!(F64 => square_kernel),
    grad: Some(&GradDef {
        formulas: &[only(Backend::Cuda, 1, never_here)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("elsewhere", UNARY, ONE)
};

fn square(tensor: &Tensor) -> Result<Tensor> {
    invoke_single(&SQUARE, &[tensor.into()])
}

#[test]
fn the_formula_of_the_device_runs() {
    let a = leaf(&[1.0, -3.0]);
    let one = Tensor::of(&[1.0, 1.0]);
    let result = square(&a).unwrap();
    assert!(result.graph_node().unwrap().saved_bytes() > 0, "the formula of the device reads the input");
    result.backward_with(Some(&one), Options::default()).unwrap();
    assert_eq!(gradient(&a), [2.0, -6.0]);
    let create = Options { create_graph: true, ..Options::default() };
    let first = grad(&[&square(&a).unwrap()], &[&a], &[Some(&one)], create).unwrap();
    let second = grad(&[first[0].as_ref().unwrap()], &[&a], &[Some(&one)], Options::default()).unwrap();
    assert_eq!(values(second[0].as_ref().unwrap()), [2.0, 2.0]);
    let along = |tensors: &[Tensor]| Ok(vec![square(&tensors[0])?]);
    let (_, tangents) = jvp(along, &[&a.detach()], &[&one]).unwrap();
    assert_eq!(values(tangents[0].as_ref().unwrap()), [2.0, -6.0]);
}

#[test]
fn without_a_formula_for_the_device_nothing_flows() {
    let a = leaf(&[2.0]);
    let result = invoke_single(&ELSEWHERE, &[(&a).into()]).unwrap();
    assert!(!result.requires_grad());
    check_error(
        result.backward(),
        "backward needs a tensor that is part of a graph, this one is not\n  help: compute it from tensors on which requires_grad_(true) was called, outside no_grad",
    );
}
