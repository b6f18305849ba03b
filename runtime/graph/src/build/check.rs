//! Symbolic inference of deferred calls by name, with unknown sizes and even unknown ranks.
//!
//! In: recorded calls, and the specifications of inputs. Out: the meta of every tensor, or the error of every call that
//! is rejected at all sizes. Meta tensors are placeholders for results, so that arguments are read as in any call by
//! name.

use std::collections::HashMap;

use opsmith_runtime::arg::Arg;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{Meta, Shape, Size};
use opsmith_runtime::internals::{self, Owned, StorageInternals as _, TensorInternals as _};
use opsmith_runtime::layout::Layout;
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::tensor::Tensor;

use super::builder::Handle;
use super::calls::{Call, chain, replay, resolve};
use crate::check::infer::CallInference;
use crate::ir::Site;
use crate::trace::{Dim, InputSpec};

/// The metas of all tensors of deferred calls.
pub(crate) struct InferredCalls {
    pub inference: CallInference,
    pub inputs: Vec<Meta>,
    /// The results of each call; `None` for a call that was rejected or needs one that was.
    pub of_calls: Vec<Option<Vec<Meta>>>,
    /// Errors, by the number of the call.
    pub errors: Vec<(usize, Error)>,
}

impl InferredCalls {
    /// Infers calls in order. Missing tensors of `outputs` are errors too.
    pub fn of(specs: &[InputSpec], calls: &[Call], outputs: &[Handle]) -> InferredCalls {
        let mut inference = CallInference::default();
        let inputs = inputs(specs, &mut inference);
        let mut known = Known::default();
        let stand_ins: Vec<Tensor> = inputs.iter().map(|meta| known.stand_in(meta.clone())).collect();
        let mut results = replay(calls, &stand_ins, &mut |call, args, named| {
            let named: Vec<_> = named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            let op = resolve(&call.name, args, &named)?;
            let metas = internals::with_bound(op, args, &named, |args| {
                let owned: Vec<Owned> = args.iter().map(|arg| known.argument(*arg)).collect();
                let args: Vec<_> = owned.iter().map(Owned::as_argument).collect();
                let outputs = inference.call(op, &args, &Site::Here(call.site))?;
                visible(op, outputs.outs.into_vec(), outputs.present)
            })?;
            Ok(metas.into_iter().map(|meta| known.stand_in(meta)).collect())
        });
        // Missing outputs are errors as well.
        let _ = results.all(outputs);
        let metas = |tensors: Vec<Tensor>| tensors.iter().map(|tensor| known.meta(tensor)).collect();
        let of_calls =
            std::mem::take(&mut results.of_calls).into_iter().map(|made| made.map(metas)).collect();
        let errors = std::mem::take(&mut results.errors).into_iter().map(|(number, error)| {
            let chain = chain(calls, specs, number);
            (number, if chain.is_empty() { error } else { error.with_note(chain) })
        });
        let errors = errors.collect();
        InferredCalls { inference, inputs, of_calls, errors }
    }
}

/// The metas of inputs. Sizes of one name are one symbol; those without a name stay unknown.
fn inputs(specs: &[InputSpec], inference: &mut CallInference) -> Vec<Meta> {
    let named = named(specs, inference);
    // A sum of a size that no dimension is stays unknown.
    let symbol = |name: &str| named.get(name).cloned().unwrap_or(Size::Unknown);
    let meta = |spec: &InputSpec| {
        let shape = match spec.is_of_any_rank() {
            true => Shape::UnknownRank,
            false => spec.dims.iter().map(|dim| dim.size(&symbol)).collect(),
        };
        Meta { device: spec.device, ..Meta::new(spec.dtype, shape) }
    };
    specs.iter().map(meta).collect()
}

/// The symbol of each named size.
fn named<'a>(specs: &'a [InputSpec], inference: &mut CallInference) -> HashMap<&'a str, Size> {
    let mut named: HashMap<&str, Size> = HashMap::new();
    for dim in specs.iter().flat_map(|spec| &spec.dims) {
        let Dim::Symbol { name, multiple_of, least, most } = dim else { continue };
        let symbols = &mut inference.context.symbols;
        let size = named.entry(name).or_insert_with(|| {
            Size::from(symbols.named(name, *least, *most).unwrap_or_else(|_| symbols.fresh()))
        });
        inference.context.declare_multiple(size, *multiple_of);
        inference.skip_guards();
    }
    named
}

/// The results visible to callers.
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

/// The metas of placeholders.
#[derive(Default)]
struct Known {
    by_address: HashMap<usize, Meta>,
    /// Keeps placeholders alive, so that their addresses stay unique.
    kept: Vec<Tensor>,
}

impl Known {
    /// A placeholder for a tensor of a meta.
    fn stand_in(&mut self, meta: Meta) -> Tensor {
        // The reading of arguments distinguishes tensors without dimensions.
        let sizes: &[i64] = if meta.shape.rank() == Some(0) { &[] } else { &[2] };
        let tensor = Tensor::described(Layout::contiguous(sizes), meta.dtype, meta.device);
        self.by_address.insert(tensor.storage().address(), meta);
        self.kept.push(tensor.clone());
        tensor
    }

    /// The meta of a tensor; one that is not a placeholder is a constant.
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
