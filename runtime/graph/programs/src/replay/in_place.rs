//! Calls that write their arguments: in-place forms, and operators that update statistics.
//!
//! In: a node's arguments. Out: arguments whose memory is apart from the written one, and the results of a call after which the
//! statistics are the new ones.

use opsmith_runtime::arg::Value;
use opsmith_runtime::boxed;
use opsmith_runtime::copy;
use opsmith_runtime::error::Result;
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::tensor::Tensor;

use super::Replay;
use super::frame::Frame;
use crate::errors::unsupported;
use crate::model::Node;
use crate::operators;
use crate::structural::{CLONE, Statistics};

/// The arguments of an in-place form, in which those in the memory of the written one, but at other positions, are copies, as of
/// `x[:, 0] = x[:, 1]`. An exporter refuses a call whose elements overlap, so that the copies have the elements of the call.
pub(super) fn apart(mut args: Vec<Value>) -> Result<Vec<Value>> {
    let Some((Value::Tensor(target), others)) = args.split_first_mut() else { return Ok(args) };
    let copied = |tensor: &mut Tensor| -> Result<()> {
        let same = tensor.dtype() == target.dtype() && tensor.layout() == target.layout();
        if tensor.overlaps(target) && !same {
            *tensor = operators::call(CLONE, &[Value::Tensor(tensor.clone())])?;
        }
        Ok(())
    };
    for value in others {
        match value {
            Value::Tensor(tensor) => copied(tensor)?,
            Value::Tensors(tensors) => tensors.iter_mut().try_for_each(copied)?,
            Value::OptionalTensors(tensors) => tensors.iter_mut().flatten().try_for_each(copied)?,
            _ => {}
        }
    }
    Ok(args)
}

impl Replay<'_> {
    /// Calls an operator, and updates the statistics that it is given if it is told to.
    pub(super) fn update(
        &self,
        statistics: Statistics,
        node: &Node,
        frame: &Frame,
    ) -> Result<Option<Vec<Value>>> {
        let Some((args, named)) = frame.arguments(node) else { return Ok(None) };
        let tensors = statistics.arguments.map(|position| match args.get(position) {
            Some(Value::Tensor(tensor)) => Some(tensor.clone()),
            _ => None,
        });
        let updates = matches!(args.get(statistics.updates), Some(Value::Bool(true)));
        let ([Some(first), Some(second)], true, true) = (tensors, updates, named.is_empty()) else {
            return self.operator(&node.target, node, frame);
        };
        if !frame.all_levels(node).is_empty() {
            return Err(unsupported("an update of statistics in `torch.vmap`"));
        }
        let (op, _) = operators::find(statistics.functional)?;
        let mut results = boxed::call_definition(op, &args[..statistics.takes.min(args.len())], &[])?;
        for (old, result) in [first, second].iter().zip(statistics.results) {
            match results.get(result) {
                Some(Value::Tensor(new)) => copy::copy(old, &new.detach())?,
                _ => return Err(unsupported(format!("`{}` without new statistics", statistics.functional))),
            }
        }
        results.truncate(1);
        Ok(Some(results))
    }
}
