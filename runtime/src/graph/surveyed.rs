//! What is known of calls by name while sizes, and even ranks, are unknown.
//!
//! In: calls that were noted, and what inputs are like. Out: what is known of every tensor, or every call that is
//! refused whatever sizes are. Tensors stand for what is known of them, so that calls by name are read as ever.

use std::collections::HashMap;

use super::builder::Handle;
use super::calls::{Call, chain, meant, replay};
use super::ir::Site;
use super::survey::Survey;
use super::trace::{Dim, InputSpec};
use crate::arg::Arg;
use crate::boxed;
use crate::error::{Error, Result};
use crate::infer::symbolic::{Condition, Meta, Owned, Shape, Size};
use crate::layout::Layout;
use crate::op::{ArgKind, OpDef};
use crate::tensor::Tensor;

/// What is known of the tensors of calls.
pub(super) struct Surveyed {
    pub survey: Survey,
    pub inputs: Vec<Meta>,
    /// The results of each call; none of one that was refused, or needs one that was.
    pub of_calls: Vec<Option<Vec<Meta>>>,
    /// What was refused, by the number of the call.
    pub errors: Vec<(usize, Error)>,
}

impl Surveyed {
    /// Infers calls one after the other. What an output names must be there, too.
    pub fn of(specs: &[InputSpec], calls: &[Call], outputs: &[Handle]) -> Surveyed {
        let mut survey = Survey::default();
        let inputs = inputs(specs, &mut survey);
        let mut known = Known::default();
        let stand_ins: Vec<Tensor> = inputs.iter().map(|meta| known.stand_in(meta.clone())).collect();
        let mut results = replay(calls, &stand_ins, &mut |call, args, named| {
            let named: Vec<_> = named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            let op = meant(&call.name, args, &named)?;
            let metas = boxed::with_bound(op, args, &named, |args| {
                let owned: Vec<Owned> = args.iter().map(|arg| known.argument(*arg)).collect();
                let args: Vec<_> = owned.iter().map(Owned::as_argument).collect();
                let outputs = survey.call(op, &args, &Site::Here(call.site))?;
                visible(op, outputs.outs.into_vec(), outputs.present)
            })?;
            Ok(metas.into_iter().map(|meta| known.stand_in(meta)).collect())
        });
        // Outputs that are not there are mistakes as well.
        let _ = results.all(outputs);
        let metas = |tensors: Vec<Tensor>| tensors.iter().map(|tensor| known.meta(tensor)).collect();
        let of_calls =
            std::mem::take(&mut results.of_calls).into_iter().map(|made| made.map(metas)).collect();
        let errors = std::mem::take(&mut results.errors).into_iter().map(|(number, error)| {
            let chain = chain(calls, specs, number);
            (number, if chain.is_empty() { error } else { error.with_note(chain) })
        });
        let errors = errors.collect();
        Surveyed { survey, inputs, of_calls, errors }
    }
}

/// What inputs are like. Sizes of one name are one symbol; those without a name stay unknown.
fn inputs(specs: &[InputSpec], survey: &mut Survey) -> Vec<Meta> {
    let mut named: HashMap<&str, Size> = HashMap::new();
    let mut metas = Vec::with_capacity(specs.len());
    for spec in specs {
        let mut sizes = Vec::with_capacity(spec.dims.len());
        for dim in &spec.dims {
            sizes.push(match dim {
                Dim::Fixed(size) => Size::Const(*size),
                Dim::Unknown | Dim::AnyRank => Size::Unknown,
                Dim::Symbol { name, multiple_of } => {
                    let symbols = &mut survey.context.symbols;
                    let size = match named.get(name.as_str()) {
                        Some(size) => size.clone(),
                        None => {
                            let symbol = symbols.named(name, 0, None).unwrap_or_else(|_| symbols.fresh());
                            named.entry(name).or_insert(Size::from(symbol)).clone()
                        }
                    };
                    if *multiple_of > 1 {
                        let rest = symbols.remainder(&size, &Size::Const(*multiple_of));
                        survey.declare(Condition::Equal(rest, Size::Const(0)));
                    }
                    size
                }
            });
        }
        let shape = match spec.is_of_any_rank() {
            true => Shape::UnknownRank,
            false => sizes.into_iter().collect(),
        };
        metas.push(Meta { device: spec.device, ..Meta::new(spec.dtype, shape) });
    }
    metas
}

/// The results that callers get.
fn visible(op: &'static OpDef, mut outs: Vec<Meta>, present: u64) -> Result<Vec<Meta>> {
    if matches!(op.schema.returns, [only] if only.ty.kind == ArgKind::Tensors) {
        return Ok(outs);
    }
    outs.truncate(op.schema.returns.len() - op.hidden);
    match (0..outs.len()).find(|result| present & 1 << result == 0) {
        None => Ok(outs),
        Some(result) => {
            Err(Error::graph(format!("result {result} is absent here, and a graph computes tensors"))
                .in_op(op.name, Vec::new()))
        }
    }
}

/// What is known of tensors that stand for others.
#[derive(Default)]
struct Known {
    by_address: HashMap<usize, Meta>,
    /// Kept, so that no other gets its address.
    kept: Vec<Tensor>,
}

impl Known {
    /// A tensor without elements that stands for what is known.
    fn stand_in(&mut self, meta: Meta) -> Tensor {
        // Whether there are dimensions at all is what reading of arguments asks for.
        let sizes: &[i64] = if meta.shape.rank() == Some(0) { &[] } else { &[2] };
        let tensor = Tensor::described(Layout::contiguous(sizes), meta.dtype, meta.device);
        self.by_address.insert(tensor.storage().address(), meta);
        self.kept.push(tensor.clone());
        tensor
    }

    /// What is known of a tensor; one that stands for no other is a constant.
    fn meta(&self, tensor: &Tensor) -> Meta {
        match self.by_address.get(&tensor.storage().address()) {
            Some(meta) => meta.clone(),
            None => Meta::constant(tensor),
        }
    }

    fn argument(&self, arg: Arg<'_>) -> Owned {
        match arg {
            Arg::Tensor(tensor) => Owned::Tensor(self.meta(tensor)),
            Arg::Tensors(tensors) => Owned::Tensors(tensors.iter().map(|tensor| self.meta(tensor)).collect()),
            Arg::OptionalTensors(tensors) => Owned::OptionalTensors(
                tensors.iter().map(|tensor| tensor.as_ref().map(|tensor| self.meta(tensor))).collect(),
            ),
            other => Owned::Plain(other.to_value()),
        }
    }
}
