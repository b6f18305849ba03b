//! Arguments for calls of any operator: those its spec declares or, if there are none, arguments found by trying
//! candidates for its signature.
//!
//! In: an operator's definition and a dtype. Out: argument lists. Deterministic, so a failure is reproducible.

use std::sync::{Mutex, PoisonError};

use opsmith::{DType, Tensor, Value};
use opsmith_runtime::generated::call;
use opsmith_runtime::op::{ArgDef, ArgKind, ElementType, OpDef};
use opsmith_runtime::sample::{Fill, SampleTensor};
use opsmith_runtime::{Arg, Scalar, boxed};

/// Number of samples generated for an operator that declares none.
const MADE: usize = 4;

/// Shapes of the tensor arguments, in order; the last is for all further ones.
const SHAPES: [&[&[i64]]; 12] = [
    &[&[2, 3]],
    &[&[3], &[2, 1]],
    &[&[2, 1], &[3], &[2, 3]],
    &[&[3]],
    &[&[2, 3], &[3, 2]],
    &[&[2], &[2, 3], &[3, 2]],
    &[&[2, 2, 3], &[2, 3, 2]],
    &[&[2], &[2, 2, 3], &[2, 3, 2]],
    &[&[2, 3], &[3]],
    &[&[2], &[2, 3], &[3]],
    &[&[3, 3]],
    &[&[]],
];

/// Ranges of their elements: the common domain, the positive part, and beyond one.
const RANGES: [(f64, f64); 3] = [(-1.0, 1.0), (0.1, 0.9), (1.1, 3.0)];

/// The argument lists of an operator: the samples of its spec, or generated ones.
pub fn samples(op: &'static OpDef, dtype: DType) -> Vec<Vec<Value>> {
    if op.samples.is_empty() {
        return made(op).iter().filter_map(|choice| choice.build(op, dtype)).collect();
    }
    op.samples.iter().filter_map(|sample| sample.values(op, dtype).ok()).collect()
}

/// Dtypes to call operators in, the most exact ones first.
const DTYPES: [DType; 9] = [
    DType::F64,
    DType::C128,
    DType::F32,
    DType::C64,
    DType::BF16,
    DType::F16,
    DType::I64,
    DType::I32,
    DType::Bool,
];

/// The most exact dtype in which some of an operator's samples are accepted.
pub fn exact_dtype(op: &'static OpDef) -> Option<DType> {
    DTYPES.into_iter().find(|&dtype| {
        samples(op, dtype).iter().any(|values| {
            let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
            repeatable(op, || boxed::functional(op, &args)).is_ok()
        })
    })
}

/// The samples of the spec, and generated ones with other shapes and numbers.
pub fn arguments(op: &'static OpDef, dtype: DType) -> Vec<Vec<Value>> {
    let mut found = samples(op, dtype);
    if !op.samples.is_empty() {
        found.extend(made(op).iter().filter_map(|choice| choice.build(op, dtype)));
    }
    found
}

/// A choice of values for a signature.
#[derive(Clone, Copy)]
struct Choice {
    shapes: &'static [&'static [i64]],
    range: (f64, f64),
    /// The choice of values for attributes without default.
    attributes: usize,
}

/// The first choices that the operator accepts, with different ranges and shapes.
fn made(op: &'static OpDef) -> Vec<Choice> {
    let mut found: Vec<Choice> = Vec::new();
    for range in RANGES {
        for shapes in SHAPES {
            for attributes in 0..3 {
                let choice = Choice { shapes, range, attributes };
                let tried = found.iter().any(|other| other.shapes == shapes && other.range == range);
                if !tried && found.len() < MADE && choice.is_accepted(op) {
                    found.push(choice);
                }
            }
        }
        // A later range is needed only if the earlier ones are outside the function's domain.
        if found.len() >= 2 {
            break;
        }
    }
    found
}

/// Runs a call so that an operator that draws random numbers draws the same ones every time, whatever
/// other threads draw through this function.
pub fn repeatable<R>(op: &OpDef, call: impl FnOnce() -> R) -> R {
    if op.facts.deterministic {
        return call();
    }
    drawing(|| {
        opsmith_runtime::random::manual_seed(7);
        call()
    })
}

/// Runs work that draws from the shared default generator, exclusively among all such work of a program.
pub fn drawing<R>(work: impl FnOnce() -> R) -> R {
    static DRAWING: Mutex<()> = Mutex::new(());
    let _alone = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

impl Choice {
    fn is_accepted(&self, op: &'static OpDef) -> bool {
        let outs = |dtype: DType| {
            let values = self.build(op, dtype)?;
            let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
            repeatable(op, || call::invoke(op, &args)).ok()
        };
        // An operator may support complex numbers only, or only one dtype.
        let Some(outs) = DTYPES.into_iter().find_map(outs) else { return false };
        outs.iter().all(|out| match out.dtype() {
            DType::F64 => out.to_vec::<f64>().is_ok_and(|x| x.iter().all(|x| x.is_finite())),
            _ => true,
        })
    }

    fn build(&self, op: &'static OpDef, dtype: DType) -> Option<Vec<Value>> {
        let mut tensors = 0;
        let mut shape = || {
            tensors += 1;
            *self.shapes.get(tensors - 1).or(self.shapes.last()).unwrap_or(&&[][..])
        };
        op.schema
            .args
            .iter()
            .zip(op.element_types)
            .enumerate()
            .map(|(index, (arg, element))| self.argument(arg, *element, index, dtype, &mut shape))
            .collect()
    }

    fn argument(
        &self,
        arg: &ArgDef,
        element: ElementType,
        index: usize,
        dtype: DType,
        shape: &mut dyn FnMut() -> &'static [i64],
    ) -> Option<Value> {
        let tensor = |shape: &'static [i64], seed: usize| -> Option<Tensor> {
            let fill = match element {
                ElementType::Fixed { kernel: DType::Bool, .. } => Fill::Mask,
                ElementType::Fixed { .. } => Fill::Integers(0, 2),
                _ => Fill::Between(self.range.0, self.range.1),
            };
            let dtype = if element == ElementType::Real { dtype.to_real() } else { dtype };
            SampleTensor { shape, fill }.build(dtype, seed).ok()
        };
        match arg.ty.kind {
            ArgKind::Tensor => return Some(Value::Tensor(tensor(shape(), index)?)),
            ArgKind::Tensors => {
                let shape = shape();
                return Some(Value::Tensors(vec![tensor(shape, index)?, tensor(shape, index + 11)?]));
            }
            _ => {}
        }
        if let Some(default) = arg.default {
            return Some(default.as_arg(arg.ty).to_value());
        }
        if arg.ty.optional {
            return Some(Value::None);
        }
        Some(match arg.ty.kind {
            ArgKind::Bool => Value::Bool(self.attributes == 0),
            ArgKind::Int => Value::Int([0, 1, 2][self.attributes]),
            ArgKind::Float => Value::Float(0.3),
            ArgKind::Scalar => {
                Value::Scalar([Scalar::from(0.3), Scalar::from(1.7), Scalar::from(2i64)][self.attributes])
            }
            ArgKind::Ints(_) => Value::Ints([vec![0], vec![1, 0], vec![2, 3]][self.attributes].clone()),
            ArgKind::DType => Value::DType(dtype),
            _ => return None,
        })
    }
}
