//! The calls of an operator, and those of its composition.
//!
//! In: an operator, meta tensors and other arguments. Out: the nodes that a trace of either has, and the result.

use opsmith_core::DType;
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::autograd;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::with_bound;
use opsmith_runtime::layout::Layout;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;

use super::recorder;
use crate::ir::{Node, TensorId};

/// A trace of one call.
pub(crate) struct Calls {
    pub nodes: Vec<Node<i64>>,
    /// The numbers of the given tensors in it.
    pub given: Vec<TensorId>,
    /// The only result: its number, layout and dtype.
    pub result: (TensorId, Layout, DType),
}

/// The calls of an operator's composition, and those of the operator itself, of one result.
///
/// # Errors
/// If the operator has no composition, and errors of both.
pub(crate) fn calls_of(
    op: &'static OpDef,
    tensors: &[Tensor],
    arguments: &[(&str, Value)],
) -> Result<(Calls, Calls)> {
    let Some(composite) = op.composite else {
        return Err(Error::not_implemented("the operator has no composition"));
    };
    let composed = calls(op, tensors, arguments, &|args| Ok(composite(args)?.into_vec()))?;
    let own = calls(op, tensors, arguments, &|args| {
        let results = opsmith_runtime::boxed::functional(op, args)?;
        results.into_iter().map(Value::into_tensor).collect()
    })?;
    Ok((composed, own))
}

fn calls(
    op: &'static OpDef,
    tensors: &[Tensor],
    arguments: &[(&str, Value)],
    function: &dyn Fn(&[Arg<'_>]) -> Result<Vec<Tensor>>,
) -> Result<Calls> {
    let run = || {
        let given: Vec<TensorId> = tensors.iter().map(recorder::tensor).collect();
        let results = autograd::no_grad(|| with_bound(op, &[], arguments, function))?;
        let [result] = results.as_slice() else {
            return Err(Error::not_implemented("the operator has more than one result"));
        };
        Ok((given, (recorder::tensor(result), result.layout().clone(), result.dtype())))
    };
    let ((given, result), trace) = recorder::record(Vec::new(), run).map_err(|stopped| stopped.error)?;
    if !trace.unknown.is_empty() || !trace.shape_constants.is_empty() {
        return Err(Error::without_elements("the calls depend on elements"));
    }
    Ok(Calls { nodes: trace.nodes, given, result })
}
