//! Nodes with blocks: branches, loops, and blocks in place.
//!
//! In: a node whose arguments are blocks, and the values before it. Out: its results. In a traced replay, branches and
//! loops are regions of the graph.

use opsmith_graph::{cond, scan, while_loop};
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::Replay;
use super::frame::Frame;
use crate::errors::unsupported;
use crate::model::{Argument, Block, Node};
use crate::operators;
use crate::structural::{AT_POSITION, JOIN, NEW_DIM, SLICE, STACK};

/// The results of a node; `None` if an argument is that of a failed one.
type Results = Result<Option<Vec<Value>>>;

impl Replay<'_> {
    /// `cond(predicate, then, otherwise, operands)`.
    pub(super) fn branch(&self, node: &Node, frame: &Frame) -> Results {
        let [Argument::Slot(predicate), Argument::Block(then), Argument::Block(otherwise), operands @ ..] =
            node.args.as_slice()
        else {
            return Err(unsupported("a branch without predicate and two blocks"));
        };
        let Some(operands) = frame.operands(operands)? else { return Ok(None) };
        let inexact = frame.is_inexact(node);
        match frame.at(*predicate) {
            None => Ok(None),
            Some(Value::Tensor(predicate)) => {
                let results = cond(
                    predicate,
                    || self.tensors(then, &operands, inexact),
                    || self.tensors(otherwise, &operands, inexact),
                )?;
                Ok(Some(results.into_iter().map(Value::Tensor).collect()))
            }
            // A predicate of sizes is known while the program is replayed.
            Some(Value::Bool(truth)) => {
                let results = self.tensors(if *truth { then } else { otherwise }, &operands, inexact)?;
                Ok(Some(results.into_iter().map(Value::Tensor).collect()))
            }
            Some(other) => Err(unsupported(format!("a predicate that is {}", other.as_arg().kind()))),
        }
    }

    /// `while_loop(condition, body, state, additional)`: both blocks take the state and the additional tensors.
    pub(super) fn repeat(&self, node: &Node, frame: &Frame) -> Results {
        let [Argument::Block(condition), Argument::Block(body), state, additional @ ..] =
            node.args.as_slice()
        else {
            return Err(unsupported("a loop without two blocks and a state"));
        };
        let Some(state) = frame.operands(std::slice::from_ref(state))? else { return Ok(None) };
        let Some(additional) = frame.operands(additional)? else { return Ok(None) };
        let inexact = frame.is_inexact(node);
        let with = |state: &[Tensor]| state.iter().chain(&additional).cloned().collect::<Vec<_>>();
        let holds = |state: &[Tensor]| {
            let mut results = self.tensors(condition, &with(state), inexact)?;
            match results.len() {
                1 => Ok(results.remove(0)),
                count => Err(Error::graph(format!("the condition of a loop returns {count} tensors"))),
            }
        };
        let results = while_loop(&state, holds, |state| self.tensors(body, &with(state), inexact))?;
        Ok(Some(results.into_iter().map(Value::Tensor).collect()))
    }

    /// A block in place, between some arguments that change no result, and before its operands.
    pub(super) fn inline(&self, node: &Node, frame: &Frame, before: usize, after: usize) -> Results {
        let block = node.args.get(before);
        let (Some(Argument::Block(block)), Some(operands)) = (block, node.args.get(before + 1 + after..))
        else {
            return Err(unsupported("a wrapper without a block"));
        };
        let Some(operands) = frame.operands(operands)? else { return Ok(None) };
        let results = self.tensors(block, &operands, frame.is_inexact(node))?;
        Ok(Some(results.into_iter().map(Value::Tensor).collect()))
    }

    /// `wrap_with_autocast(device_type, dtype, enabled, cache, body, operands…)`: a block with or without automatic casts.
    pub(super) fn autocast(&self, node: &Node, frame: &Frame) -> Results {
        let Some(Argument::Value(Value::Bool(enabled))) = node.args.get(2) else {
            return Err(unsupported("a region of automatic casts that does not say whether it casts"));
        };
        let outside = self.casts.replace(*enabled);
        let results = self.inline(node, frame, 4, 0);
        self.casts.set(outside);
        results
    }

    /// `map_impl(body, tensors, additional)`, a scan without state.
    pub(super) fn map(&self, node: &Node, frame: &Frame) -> Results {
        let [Argument::Block(body), over, additional @ ..] = node.args.as_slice() else {
            return Err(unsupported("a map without a block and tensors"));
        };
        let Some(over) = frame.operands(std::slice::from_ref(over))? else { return Ok(None) };
        let Some(additional) = frame.operands(additional)? else { return Ok(None) };
        self.scan_over(body, &[], &over, &additional, frame.is_inexact(node))
    }

    /// `scan(body, state, tensors, additional)`: the body takes the state, a position of each tensor and the additional
    /// tensors, and returns the next state and results.
    pub(super) fn scan(&self, node: &Node, frame: &Frame) -> Results {
        let [Argument::Block(body), state, over, additional @ ..] = node.args.as_slice() else {
            return Err(unsupported("a scan without a block, a state and tensors"));
        };
        let Some(state) = frame.operands(std::slice::from_ref(state))? else { return Ok(None) };
        let Some(over) = frame.operands(std::slice::from_ref(over))? else { return Ok(None) };
        let Some(additional) = frame.operands(additional)? else { return Ok(None) };
        self.scan_over(body, &state, &over, &additional, frame.is_inexact(node))
    }

    /// `associative_scan(body, tensors, additional)`: the body takes the result so far, a position of each tensor and the
    /// additional tensors, and returns the next result; the first result is the first position.
    pub(super) fn accumulate(&self, node: &Node, frame: &Frame) -> Results {
        let [Argument::Block(body), over, additional @ ..] = node.args.as_slice() else {
            return Err(unsupported("an accumulation without a block and tensors"));
        };
        let Some(over) = frame.operands(std::slice::from_ref(over))? else { return Ok(None) };
        let Some(additional) = frame.operands(additional)? else { return Ok(None) };
        let inexact = frame.is_inexact(node);
        let first =
            |whole: &Tensor| operators::call(AT_POSITION, &[whole.into(), Value::Int(0), Value::Int(0)]);
        let others = |whole: &Tensor| operators::call(SLICE, &[whole.into(), Value::Int(0), Value::Int(1)]);
        let state = over.iter().map(first).collect::<Result<Vec<_>>>()?;
        let rest = over.iter().map(others).collect::<Result<Vec<_>>>()?;
        let next = |state: &[Tensor], parts: &[Tensor]| {
            let given: Vec<Tensor> = state.iter().chain(parts).chain(&additional).cloned().collect();
            let next = self.tensors(body, &given, inexact)?;
            Ok((next.clone(), next))
        };
        let recorded = over.iter().chain(&additional).any(Tensor::requires_grad);
        let (_, stacks) = scan_any(recorded, &state, &rest, next)?;
        let joined = state.iter().zip(stacks).map(|(first, stack)| {
            let first = operators::call(NEW_DIM, &[first.into(), Value::Int(0)])?;
            Ok(Value::Tensor(operators::call(JOIN, &[Value::Tensors(vec![first, stack])])?))
        });
        Ok(Some(joined.collect::<Result<_>>()?))
    }

    fn scan_over(
        &self,
        block: &Block,
        state: &[Tensor],
        over: &[Tensor],
        additional: &[Tensor],
        inexact: bool,
    ) -> Results {
        let body = |state: &[Tensor], parts: &[Tensor]| {
            let given: Vec<Tensor> = state.iter().chain(parts).chain(additional).cloned().collect();
            let mut next = self.tensors(block, &given, inexact)?;
            if next.len() < state.len() {
                let text = format!("a scan has {} states, and its body returns {}", state.len(), next.len());
                return Err(Error::graph(text));
            }
            let results = next.split_off(state.len());
            Ok((next, results))
        };
        let recorded = state.iter().chain(over).chain(additional).any(Tensor::requires_grad);
        let (state, stacks) = scan_any(recorded, state, over, body)?;
        Ok(Some(state.into_iter().chain(stacks).map(Value::Tensor).collect()))
    }
}

/// A scan; `recorded` if gradients are needed.
pub(super) fn scan_any(
    recorded: bool,
    state: &[Tensor],
    over: &[Tensor],
    body: impl Fn(&[Tensor], &[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>)>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    if recorded { unrolled(state, over, body) } else { scan(state, over, body) }
}

/// A scan as calls of operators, which are recorded for gradients.
fn unrolled(
    state: &[Tensor],
    over: &[Tensor],
    body: impl Fn(&[Tensor], &[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>)>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let length = over.first().ok_or_else(|| unsupported("a scan over no tensor"))?.size(0)?;
    let mut state = state.to_vec();
    let mut lists: Vec<Vec<Tensor>> = Vec::new();
    for position in 0..length {
        let part = |whole: &Tensor| {
            let args = [Value::Tensor(whole.clone()), Value::Int(0), Value::Int(position)];
            operators::call(AT_POSITION, &args)
        };
        let parts = over.iter().map(part).collect::<Result<Vec<_>>>()?;
        let (next, results) = body(&state, &parts)?;
        lists.resize_with(results.len(), Vec::new);
        lists.iter_mut().zip(results).for_each(|(list, result)| list.push(result));
        state = next;
    }
    let stacks = lists.into_iter().map(|list| operators::call(STACK, &[Value::Tensors(list)]));
    Ok((state, stacks.collect::<Result<Vec<_>>>()?))
}
