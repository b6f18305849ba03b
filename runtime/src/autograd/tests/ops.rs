//! A small library of operators, written by hand as the generator would write them.

use opsmith_core::{Backend, DType};
use smallvec::{SmallVec, smallvec};

use crate::arg::Arg;
use crate::autograd::{GradContext, Gradient};
use crate::call::{invoke_inplace, invoke_single};
use crate::element::Element;
use crate::error::Result;
use crate::infer::{self, dtype, shape};
use crate::layout::Dims;
use crate::library::{Library, Roles};
use crate::op::*;
use crate::pointwise::{map1, map2};
use crate::tensor::Tensor;

pub use super::view_ops::{row, swap, widen};

pub static LIBRARY: Library = Library {
    name: "tests",
    roles: Some(Roles { accumulate: plus, sum_to, cast, conjugate: Some(conjugate) }),
    ..Library::EMPTY
};

/// A library without operators for the engine.
pub static BARE: Library = Library { name: "bare", ..Library::EMPTY };

pub type Formulas = Result<SmallVec<[Gradient; 2]>>;

const TENSOR: ArgType = ArgType { kind: ArgKind::Tensor, optional: false };

pub const fn arg(name: &'static str, kind: ArgKind) -> ArgDef {
    ArgDef::new(name, ArgType { kind, optional: false })
}

pub const fn result(name: Option<&'static str>) -> ReturnDef {
    ReturnDef { name, ty: TENSOR }
}

const NO_FORMS: Forms = Forms { inplace: None, out: None, elementwise: true, ..Forms::NONE };
pub const UNARY: &[ArgDef] = &[arg("self", ArgKind::Tensor)];
const BINARY: &[ArgDef] = &[arg("self", ArgKind::Tensor), arg("other", ArgKind::Tensor)];
pub const ONE: &[ReturnDef] = &[result(None)];
const DISPATCH: &[ElementType] = &[ElementType::Dispatch; 4];

/// A definition without behaviour, to be completed with `..`.
pub const fn blank(name: &'static str, args: &'static [ArgDef], returns: &'static [ReturnDef]) -> OpDef {
    let schema = Schema { text: "", args, returns };
    OpDef { forms: NO_FORMS, element_types: DISPATCH, ..OpDef::new(name, schema, "tests.yaml:1", &LIBRARY) }
}

pub const fn formula(
    arguments: &'static [u8],
    reads_arguments: u64,
    reads_outputs: u64,
    reads_attributes: u64,
    backward: fn(&GradContext<'_>) -> Formulas,
) -> GradientFormula {
    GradientFormula {
        arguments,
        reads_arguments,
        reads_outputs,
        reads_attributes,
        backends: u8::MAX,
        backward,
    }
}

pub const fn cpu(kernels: &[(DType, KernelFn)]) -> KernelTable {
    KernelTable::new().with(Backend::Cpu, "", kernels)
}

/// A table of CPU kernels by dtype.
macro_rules! table {
    ($($dtype:ident => $kernel:expr),* $(,)?) => {{
        static TABLE: KernelTable = cpu(&[$((DType::$dtype, $kernel)),*]);
        // SAFETY: the kernels take safe functions only.
        unsafe { $crate::op::Kernels::of(&TABLE) }
    }};
}
pub(super) use table;

fn infer_like(args: &[Arg<'_>], sizes: Dims, dtype: DType) -> Result<Inferred> {
    Ok(Inferred {
        outs: smallvec![OutSpec { sizes, dtype }],
        compute: dtype,
        device: infer::device_of(args)?,
    })
}

fn infer_broadcast(args: &[Arg<'_>]) -> Result<Inferred> {
    let operands = [args[0].into(), args[1].into()];
    infer_like(args, shape::broadcast(&operands)?, dtype::promote(&operands)?)
}

fn infer_unary(args: &[Arg<'_>]) -> Result<Inferred> {
    let tensor = args[0].tensor();
    infer_like(args, tensor.shape().into(), tensor.dtype())
}

fn infer_total(args: &[Arg<'_>]) -> Result<Inferred> {
    infer_like(args, Dims::new(), args[0].tensor().dtype())
}

fn infer_sum_to(args: &[Arg<'_>]) -> Result<Inferred> {
    infer_like(args, args[1].ints().into(), args[0].tensor().dtype())
}

// plus(self, other) -> self + other

fn plus_kernel<T: Element + std::ops::Add<Output = T>>(call: &KernelCall<'_>) -> Result<()> {
    map2(call, [0, 1], |a: T, b: T| a + b)
}

pub fn same_gradient(context: &GradContext<'_>) -> Formulas {
    Ok(smallvec![context.grad(0).cloned().into()])
}

pub static PLUS: OpDef = OpDef {
    forms: Forms { inplace: Some("plus_"), out: Some("plus.out"), elementwise: true, ..Forms::NONE },
    infer: Some(infer_broadcast),
    custom: None,
    uniform: UniformCall::Same,
    kernels: table!(F32 => plus_kernel::<f32>, F64 => plus_kernel::<f64>, I64 => plus_kernel::<i64>, C128 => plus_kernel::<crate::Complex64>),
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0, 0, 0, same_gradient), formula(&[1], 0, 0, 0, same_gradient)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("plus", BINARY, ONE)
};

pub fn plus(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    invoke_single(&PLUS, &[a.into(), b.into()])
}

pub fn plus_(a: &Tensor, b: &Tensor) -> Result<()> {
    invoke_inplace(&PLUS, &[a.into(), b.into()])
}

// times(self, other) -> self * other

fn times_kernel<T: Element + std::ops::Mul<Output = T>>(call: &KernelCall<'_>) -> Result<()> {
    map2(call, [0, 1], |a: T, b: T| a * b)
}

fn times_self(context: &GradContext<'_>) -> Formulas {
    let Some(grad) = context.grad(0) else { return Ok(smallvec![Gradient::None]) };
    Ok(smallvec![times(grad, &conjugate(&context.tensor(1)?)?)?.into()])
}

fn times_other(context: &GradContext<'_>) -> Formulas {
    let Some(grad) = context.grad(0) else { return Ok(smallvec![Gradient::None]) };
    Ok(smallvec![times(grad, &conjugate(&context.tensor(0)?)?)?.into()])
}

pub static TIMES: OpDef = OpDef {
    forms: Forms { inplace: Some("times_"), out: Some("times.out"), elementwise: true, ..Forms::NONE },
    infer: Some(infer_broadcast),
    custom: None,
    uniform: UniformCall::Same,
    kernels: table!(F32 => times_kernel::<f32>, F64 => times_kernel::<f64>, I64 => times_kernel::<i64>, C128 => times_kernel::<crate::Complex64>),
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0b10, 0, 0, times_self), formula(&[1], 0b01, 0, 0, times_other)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("times", BINARY, ONE)
};

pub fn times(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    invoke_single(&TIMES, &[a.into(), b.into()])
}

pub fn times_(a: &Tensor, b: &Tensor) -> Result<()> {
    invoke_inplace(&TIMES, &[a.into(), b.into()])
}

// conjugate(self)

fn conjugate_kernel(call: &KernelCall<'_>) -> Result<()> {
    map1(call, [0], |a: crate::Complex64| a.conj())
}

fn conjugate_self(context: &GradContext<'_>) -> Formulas {
    Ok(smallvec![context.grad(0).map(conjugate).transpose()?.into()])
}

pub static CONJUGATE: OpDef = OpDef {
    infer: Some(infer_unary),
    custom: None,
    uniform: UniformCall::Same,
    kernels: table!(C128 => conjugate_kernel),
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0, 0, 0, conjugate_self)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("conjugate", UNARY, ONE)
};

pub fn conjugate(a: &Tensor) -> Result<Tensor> {
    if a.dtype().is_complex() { invoke_single(&CONJUGATE, &[a.into()]) } else { Ok(a.clone()) }
}

// exponential(self) -> exp(self), whose formula reads the result

fn exponential_kernel(call: &KernelCall<'_>) -> Result<()> {
    map1(call, [0], f64::exp)
}

fn exponential_self(context: &GradContext<'_>) -> Formulas {
    let Some(grad) = context.grad(0) else { return Ok(smallvec![Gradient::None]) };
    Ok(smallvec![times(grad, &context.result(0)?)?.into()])
}

pub static EXPONENTIAL: OpDef = OpDef {
    forms: Forms { inplace: Some("exponential_"), out: None, elementwise: true, ..Forms::NONE },
    infer: Some(infer_unary),
    custom: None,
    uniform: UniformCall::Same,
    kernels: table!(F64 => exponential_kernel),
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0, 1, 0, exponential_self)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("exponential", UNARY, ONE)
};

pub fn exponential(a: &Tensor) -> Result<Tensor> {
    invoke_single(&EXPONENTIAL, &[a.into()])
}

pub fn exponential_(a: &Tensor) -> Result<()> {
    invoke_inplace(&EXPONENTIAL, &[a.into()])
}

// squared(self) -> self * self, in place too; its formula reads self

fn squared_kernel(call: &KernelCall<'_>) -> Result<()> {
    map1(call, [0], |a: f64| a * a)
}

fn squared_self(context: &GradContext<'_>) -> Formulas {
    let Some(grad) = context.grad(0) else { return Ok(smallvec![Gradient::None]) };
    let two = Tensor::scalar(2.0, grad.dtype());
    Ok(smallvec![times(&times(grad, &two)?, &context.tensor(0)?)?.into()])
}

pub static SQUARED: OpDef = OpDef {
    forms: Forms { inplace: Some("squared_"), out: None, elementwise: true, ..Forms::NONE },
    infer: Some(infer_unary),
    custom: None,
    uniform: UniformCall::Same,
    kernels: table!(F64 => squared_kernel),
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 1, 0, 0, squared_self)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("squared", UNARY, ONE)
};

pub fn squared(a: &Tensor) -> Result<Tensor> {
    invoke_single(&SQUARED, &[a.into()])
}

pub fn squared_(a: &Tensor) -> Result<()> {
    invoke_inplace(&SQUARED, &[a.into()])
}

// scaled(self, alpha) -> self * alpha, with an attribute

fn scaled_kernel(call: &KernelCall<'_>) -> Result<()> {
    let alpha = call.args()[1].float();
    map1(call, [0], |a: f64| a * alpha)
}

fn scaled_self(context: &GradContext<'_>) -> Formulas {
    let alpha = context.attribute(1).float();
    Ok(smallvec![context.grad(0).map(|grad| scaled(grad, alpha)).transpose()?.into()])
}

pub static SCALED: OpDef = OpDef {
    infer: Some(infer_unary),
    custom: None,
    uniform: UniformCall::Same,
    element_types: &[ElementType::Dispatch, ElementType::NotTensor],
    kernels: table!(F64 => scaled_kernel),
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0, 0, 0b10, scaled_self)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("scaled", &[arg("self", ArgKind::Tensor), arg("alpha", ArgKind::Float)], ONE)
};

pub fn scaled(a: &Tensor, alpha: f64) -> Result<Tensor> {
    invoke_single(&SCALED, &[a.into(), alpha.into()])
}

// total(self) -> the sum of all elements; sum_to(self, sizes) -> summed back to a shape

fn sum_to_kernel<T: Element + std::ops::Add<Output = T>>(call: &KernelCall<'_>) -> Result<()> {
    let (input, out) = (call.args()[0].tensor(), &call.outs()[0]);
    let mut sums = vec![T::default(); out.numel() as usize];
    let missing = input.dim() - out.dim();
    let steps = crate::layout::contiguous_strides(out.shape());
    let sizes = input.shape();
    for (position, element) in call.view::<T>(0).iter().enumerate() {
        let (mut rest, mut target) = (position as i64, 0);
        for dim in (0..sizes.len()).rev() {
            let index = rest % sizes[dim];
            rest /= sizes[dim];
            if dim >= missing && out.shape()[dim - missing] != 1 {
                target += index * steps[dim - missing];
            }
        }
        sums[target as usize] = sums[target as usize] + element;
    }
    // SAFETY: the output is new, row-major and of T.
    unsafe { std::ptr::copy_nonoverlapping(sums.as_ptr(), out.data_ptr().cast::<T>(), sums.len()) };
    Ok(())
}

fn expanded_gradient(context: &GradContext<'_>) -> Formulas {
    let sizes = &context.meta(0).sizes;
    Ok(smallvec![context.grad(0).map(|grad| widen(grad, sizes)).transpose()?.into()])
}

static EXPANDED: GradDef = GradDef {
    formulas: &[formula(&[0], 0, 0, 0, expanded_gradient)],
    differentiable_outputs: 1,
    constant_outputs: 0,
    non_differentiable: 0,
    forward: Forward::Transposed,
};

pub static TOTAL: OpDef = OpDef {
    infer: Some(infer_total),
    kernels: table!(F32 => sum_to_kernel::<f32>, F64 => sum_to_kernel::<f64>, C128 => sum_to_kernel::<crate::Complex64>),
    grad: Some(&EXPANDED),
    ..blank("total", UNARY, ONE)
};

pub fn total(a: &Tensor) -> Result<Tensor> {
    invoke_single(&TOTAL, &[a.into()])
}

pub const WITH_SIZES: &[ArgDef] = &[arg("self", ArgKind::Tensor), arg("sizes", ArgKind::Ints(None))];

pub static SUM_TO: OpDef = OpDef {
    infer: Some(infer_sum_to),
    element_types: &[ElementType::Dispatch, ElementType::NotTensor],
    kernels: table!(F32 => sum_to_kernel::<f32>, F64 => sum_to_kernel::<f64>, C128 => sum_to_kernel::<crate::Complex64>),
    grad: Some(&EXPANDED),
    ..blank("sum_to", WITH_SIZES, ONE)
};

pub fn sum_to(a: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    invoke_single(&SUM_TO, &[a.into(), sizes.into()])
}

// cast(self, dtype)

fn infer_cast(args: &[Arg<'_>]) -> Result<Inferred> {
    infer_like(args, args[0].tensor().shape().into(), args[1].dtype())
}

fn cast_kernel(call: &KernelCall<'_>) -> Result<()> {
    let converted = call.args()[0].tensor().cast_untracked(call.args()[1].dtype())?;
    crate::copy::copy(&call.outs()[0], &converted)
}

pub static CAST: OpDef = OpDef {
    infer: Some(infer_cast),
    element_types: &[ElementType::Any, ElementType::NotTensor],
    kernels: table!(F32 => cast_kernel, F64 => cast_kernel, I64 => cast_kernel, C128 => cast_kernel),
    // The engine converts the gradient.
    grad: Some(&GradDef {
        formulas: &[formula(&[0], 0, 0, 0, same_gradient)],
        differentiable_outputs: 1,
        constant_outputs: 0,
        non_differentiable: 0,
        forward: Forward::Transposed,
    }),
    ..blank("cast", &[arg("self", ArgKind::Tensor), arg("dtype", ArgKind::DType)], ONE)
};

pub fn cast(a: &Tensor, dtype: DType) -> Result<Tensor> {
    invoke_single(&CAST, &[a.into(), dtype.into()])
}
