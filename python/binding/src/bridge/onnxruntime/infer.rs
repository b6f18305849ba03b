//! Inference of a node: shapes of its results before it runs, and mistakes of its arguments.
//!
//! In: dtypes and sizes of a node's inputs, whose names are symbols, and its attributes. Out: dtypes and sizes of its results. A
//! size that is a formula is named by its text, so that equal formulas are equal sizes of the model.

use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith_runtime::error::Result;
use opsmith_runtime::infer::symbolic::{Context, Meta, Origin, Shape, Size, SymbolInfo};
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::{DType, Tensor, Value};

use super::api::Described as Known;
use super::signature::{Attributes, Given, gives_list, results};
use crate::bridge::infer::{Described, outputs};

/// A result before it exists: its dtype, and a number or a name for each size; no sizes if their number is not known.
pub struct Inferred {
    pub dtype: DType,
    pub sizes: Option<Vec<(i64, String)>>,
}

/// The number of sizes that got a name here.
static NAMED: AtomicUsize = AtomicUsize::new(0);

fn symbol(context: &mut Context, size: &(Option<i64>, String)) -> Size {
    let (number, name) = size;
    match number {
        Some(number) => Size::Const(*number),
        None if name.is_empty() => {
            let name = format!("size{}", NAMED.fetch_add(1, Ordering::Relaxed));
            Size::from(context.symbols.add(SymbolInfo::new(name, Origin::Input)))
        }
        None => {
            let known = context.symbols.infos().iter().position(|info| info.name == *name);
            Size::from(match known {
                Some(place) => opsmith_runtime::infer::symbolic::Symbol(place as u32),
                None => context.symbols.add(SymbolInfo::new(name.clone(), Origin::Input)),
            })
        }
    }
}

fn meta(context: &mut Context, known: &Known) -> Meta {
    let sizes = known.sizes.iter().map(|size| symbol(context, size)).collect();
    Meta::new(known.dtype, Shape::Known(sizes))
}

/// Results of a call: the present ones, or the tensors of a list.
///
/// # Errors
/// If the inputs and attributes do not fit.
pub fn infer(
    op: &'static OpDef,
    attributes: &Attributes,
    inputs: Vec<Option<Known>>,
) -> Result<Vec<Inferred>> {
    let mut context = Context::new();
    let mut described: Vec<Described> = op.schema.args.iter().map(|_| Described::Plain).collect();
    let mut values = attributes.values.clone();
    let placeholder = || Tensor::from_slice::<f32>(&[0.0], &[]);
    for (name, given) in attributes.bound(op, inputs)? {
        let Some(place) = op.argument(name) else { continue };
        let (value, description) = match given {
            Given::Absent => (Value::None, Described::Plain),
            Given::One(known) => {
                (Value::Tensor(placeholder()?), Described::Tensor(meta(&mut context, &known)))
            }
            Given::List(list) => {
                let metas: Vec<Option<Meta>> =
                    list.iter().map(|known| known.as_ref().map(|known| meta(&mut context, known))).collect();
                let stands = metas.iter().map(|meta| meta.as_ref().map(|_| placeholder()).transpose());
                let stands = stands.collect::<Result<Vec<_>>>()?;
                match op.schema.args[place].ty.kind {
                    ArgKind::Tensors if metas.iter().all(Option::is_some) => (
                        Value::Tensors(stands.into_iter().flatten().collect()),
                        Described::Tensors(metas.into_iter().flatten().collect()),
                    ),
                    _ => (Value::OptionalTensors(stands), Described::OptionalTensors(metas)),
                }
            }
        };
        values.push((name, value));
        described[place] = description;
    }
    let found = outputs(op, &[], &values, &described, &mut context)?;
    let count = if gives_list(op) { found.outs.len() } else { results(op) };
    let size = |size: &Size| match size {
        Size::Const(number) => (*number, String::new()),
        Size::Unknown => (-1, format!("{}.{}", op.name, NAMED.fetch_add(1, Ordering::Relaxed))),
        formula => {
            let is_of_run = |symbol: &opsmith_runtime::infer::symbolic::Symbol| {
                matches!(context.symbols.origin(*symbol), Origin::Run)
            };
            let text = formula.named(&context.symbols).to_string();
            match formula.symbols().iter().any(is_of_run) {
                true => (-1, format!("{}.{text}.{}", op.name, NAMED.fetch_add(1, Ordering::Relaxed))),
                false => (-1, text),
            }
        }
    };
    let one = |out: &Meta| Inferred {
        dtype: out.dtype,
        sizes: out.shape.sizes().map(|sizes| sizes.iter().map(size).collect()),
    };
    Ok(found.outs.iter().take(count).map(one).collect())
}
