//! `infer`: the cost of inference before a run, for one call and for a chain of 10,000.

use anyhow::{Context as _, Result};
use opsmith::runtime::infer::symbolic::{ArgumentMeta, Context, Inference, Meta, Shape, Size, infer};
use opsmith::runtime::op::OpDef;
use opsmith::{DType, LIBRARY};

use crate::harness::{CALL, Harness};

/// Calls of the chain.
const NODES: usize = 10_000;

pub fn run(harness: &mut Harness) -> Result<()> {
    if !harness.wants("infer.") {
        return Ok(());
    }
    let op = |name: &str| {
        LIBRARY
            .ops
            .iter()
            .copied()
            .find(|op| op.name == name)
            .with_context(|| format!("there is no `{name}`"))
    };
    let (maximum, mm) = (op("maximum")?, op("mm")?);
    let numbers = Meta::new(DType::F32, Shape::concrete(&[64, 64]));
    let mut context = Context::new();
    let rows = Size::from(context.symbols.fresh());
    let symbols = Meta::new(DType::F32, Shape::from_iter([rows, Size::Const(64)]));
    for (kind, left) in [("numbers", &numbers), ("symbols", &symbols)] {
        for (name, op) in [("maximum", maximum), ("mm", mm)] {
            let args = [
                ArgumentMeta::Tensor(left),
                ArgumentMeta::Tensor(if name == "mm" { &numbers } else { left }),
            ];
            harness.case(&format!("infer.symbolic.{kind}.{name}"), CALL, || infer(op, &args, &mut context));
        }
        harness
            .case(&format!("infer.symbolic.{kind}.chain_10000"), CALL, || chain(maximum, mm, left, &numbers));
    }
    Ok(())
}

/// Infers call after call, each with the result of the one before: products and maxima in turn.
fn chain(maximum: &'static OpDef, mm: &'static OpDef, first: &Meta, weight: &Meta) -> opsmith::Result<Meta> {
    let mut context = Context::new();
    context.symbols.fresh();
    let mut value = first.clone();
    for node in 0..NODES {
        let (op, other) = if node % 2 == 0 { (maximum, first) } else { (mm, weight) };
        let args = [ArgumentMeta::Tensor(&value), ArgumentMeta::Tensor(other)];
        if let Inference::Tensors(mut outputs) = infer(op, &args, &mut context)? {
            value = outputs.outs.swap_remove(0);
        }
    }
    Ok(value)
}
