//! Operators of tests of kernels: one tensor or none in, outputs of given dtypes out.

#![allow(dead_code, reason = "each test file is a crate of its own and uses some of this")]

use opsmith_runtime::generated::call;
use opsmith_runtime::library::Library;
use opsmith_runtime::op::*;
use opsmith_runtime::{Arg, Backend, DType, Device, Result, Tensor};

pub static LIBRARY: Library = Library { name: "tests", ..Library::EMPTY };

pub const fn required(kind: ArgKind) -> ArgType {
    ArgType { kind, optional: false }
}

pub const ARGS: &[ArgDef] = &[ArgDef::new("self", required(ArgKind::Tensor))];

/// `name(Tensor self) -> …` of CPU kernels in `f32`, with results of these names and dtypes in the shape of `self`.
pub fn unary(
    name: &'static str,
    kernel: KernelFn,
    outs: &'static [(Option<&'static str>, DType)],
    elementwise: bool,
) -> &'static OpDef {
    let infer: InferFn = match outs {
        [(_, DType::F32)] => |args| like(args, &[DType::F32]),
        [(_, DType::Bool)] => |args| like(args, &[DType::Bool]),
        [(_, DType::U8)] => |args| like(args, &[DType::U8]),
        [(_, DType::F32), (_, DType::F32)] => |args| like(args, &[DType::F32; 2]),
        _ => unreachable!("a test says how to infer its dtypes"),
    };
    let table = KernelTable::new().with(Backend::Cpu, "tests::kernel", &[(DType::F32, kernel)]);
    let returns: Vec<ReturnDef> =
        outs.iter().map(|(name, _)| ReturnDef { name: *name, ty: required(ArgKind::Tensor) }).collect();
    let schema = Schema { text: "", args: ARGS, returns: Vec::leak(returns) };
    Box::leak(Box::new(OpDef {
        forms: Forms { inplace: Some("tests_"), out: Some("tests.out"), elementwise, ..Forms::NONE },
        infer: Some(infer),
        element_types: &[ElementType::Dispatch],
        // SAFETY: a test's kernel accesses the call by safe functions, which check it.
        kernels: unsafe { Kernels::of(Box::leak(Box::new(table))) },
        ..OpDef::new(name, schema, "tests.yaml:1", &LIBRARY)
    }))
}

fn like(args: &[Arg<'_>], dtypes: &[DType]) -> Result<Inferred> {
    let tensor = args[0].tensor();
    let outs = dtypes.iter().map(|&dtype| OutSpec { sizes: tensor.shape().into(), dtype }).collect();
    Ok(Inferred { outs, compute: DType::F32, device: Device::CPU })
}

/// Calls the functional form.
pub fn call(op: &'static OpDef, x: &Tensor) -> Result<Vec<Tensor>> {
    Ok(call::invoke(op, &[x.into()])?.into_vec())
}
