//! Nodes and weights that no result depends on, which exporters leave in programs.
//!
//! In: a model. Out: the model without such nodes, and which of its inputs are read.

use opsmith_runtime::library::Form;

use crate::model::{Block, Model, Node, Output, Slot};
use crate::numbers;
use crate::operators;
use crate::structural::{self, Structural};

/// Removes nodes whose results nothing reads, and returns whether each input is read.
pub(crate) fn remove(model: &mut Model) -> Vec<bool> {
    let outputs = model.outputs.iter().flat_map(|output| match output {
        Output::User { value, .. } => value.slots(),
        Output::Write { value, .. } => vec![*value],
        Output::Token => Vec::new(),
    });
    let is_read = remove_from(&mut model.block, outputs.collect());
    model.block.inputs.iter().map(|slot| is_read[*slot]).collect()
}

/// Removes the nodes of a block, and returns whether each value is read.
fn remove_from(block: &mut Block, outputs: Vec<Slot>) -> Vec<bool> {
    let mut is_read = vec![false; block.slots];
    outputs.into_iter().for_each(|slot| is_read[slot] = true);
    let mut kept = Vec::with_capacity(block.nodes.len());
    for node in std::mem::take(&mut block.nodes).into_iter().rev() {
        if node.outputs.iter().flat_map(|output| output.slots()).any(|slot| is_read[*slot])
            || has_effect(&node)
        {
            node.slots().for_each(|slot| is_read[slot] = true);
            kept.push(node);
        }
    }
    kept.reverse();
    block.nodes = kept;
    is_read
}

/// Whether a node has an effect beside its results: a write, a check, a draw, or that of an unknown operator.
fn has_effect(node: &Node) -> bool {
    if node.outputs.iter().all(|output| output.slots().is_empty()) || numbers::find(&node.target).is_some() {
        return numbers::find(&node.target).is_none();
    }
    let target = match structural::find(&node.target) {
        Some(Structural::Operator(other)) => other,
        Some(Structural::Layout(_) | Structural::MapIn | Structural::MapOut | Structural::Number(_)) => {
            return false;
        }
        Some(_) => return true,
        None => node.target.as_str(),
    };
    match operators::find(target) {
        Ok((op, form)) => form != Form::Functional || !op.facts.deterministic,
        Err(_) => operators::copied_view(target).is_none(),
    }
}
