//! The rules of a graph that was read that sizes decide, asked whenever it is bound to some.
//!
//! In: each step with the arguments and results that binding found for it. Out: nothing, or an error; and the buffers
//! that a run has to clear first. After it every tensor that a step touches lies inside its memory, every call has
//! the arguments that its kernel was promised, what it writes is what inference says and apart from what it reads,
//! and no element is read that nothing wrote. It looks at the very layouts that the plan is made of.

use super::super::bind::number;
use super::super::ir::{BufferId, BufferKind, Graph, Moving, Node, NodeKind, TensorId};
use super::load::malformed;
use crate::arg::Arg;
use crate::dispatch;
use crate::error::{Result, ShapeText};
use crate::facts::ValueUse;
use crate::infer::symbolic::Size;
use crate::layout::MAX_NUMEL;
use crate::op::{Inferred, OpDef};
use crate::tensor::Tensor;

/// What is known of memory while steps are bound one after the other.
pub(in super::super) struct Verifier<'a> {
    graph: &'a Graph,
    symbols: &'a [Option<i64>],
    /// Whether a step before wrote to a buffer, or a caller did.
    begun: Vec<bool>,
    /// Whether all of a buffer was written, whichever way branches and loops went.
    whole: Vec<bool>,
    /// Buffers of which a step may read what no step wrote: they are cleared before a run.
    cleared: Vec<bool>,
    /// Whether any step writes to a buffer.
    written: Vec<bool>,
}

impl<'a> Verifier<'a> {
    pub fn new(graph: &'a Graph, symbols: &'a [Option<i64>]) -> Verifier<'a> {
        let mut written = vec![false; graph.buffers.len()];
        graph.nodes.iter().for_each(|node| {
            node.for_each_write(&mut |id| written[graph.buffer_of(id).index()] = true);
        });
        let begun: Vec<bool> =
            graph.buffers.iter().map(|buffer| !matches!(buffer.kind, BufferKind::Internal)).collect();
        let whole = begun.clone();
        Verifier { graph, symbols, begun, whole, cleared: vec![false; graph.buffers.len()], written }
    }

    /// Looks at a step and its arguments before inference does.
    pub fn before(&mut self, node: &Node, args: &[Arg<'_>]) -> Result<()> {
        let mut reads = Vec::new();
        node.args.iter().for_each(|arg| arg.for_each_tensor(|id| reads.push(id)));
        if matches!(node.kind, NodeKind::Add | NodeKind::While { .. }) {
            reads.extend(&node.outs);
        }
        reads.into_iter().try_for_each(|id| self.read(id, node))?;
        if let Some(op) = node.kind.op() {
            crate::constraint::check(op, args)?;
            self.decided(op, node)?;
        }
        match &node.kind {
            NodeKind::Cond { .. } => check_predicate(args.first().copied()),
            NodeKind::Scan { length, moving, .. } => self.scan(length, moving, args),
            _ => Ok(()),
        }
    }

    fn read(&mut self, id: TensorId, node: &Node) -> Result<()> {
        let buffer = self.graph.buffer_of(id).index();
        if !self.begun[buffer] {
            let name = node.kind.name();
            return Err(malformed(format!("`{name}` reads tensor {}, which nothing wrote", id.0)));
        }
        self.cleared[buffer] |= !self.whole[buffer];
        Ok(())
    }

    /// Refuses shapes by elements that the graph changes: they would be those of before.
    fn decided(&self, op: &OpDef, node: &Node) -> Result<()> {
        for (def, arg) in op.schema.args.iter().zip(&node.args).filter(|(def, _)| def.value != ValueUse::None)
        {
            let mut changes = false;
            arg.for_each_tensor(|id| {
                let buffer = self.graph.buffer_of(id).index();
                let is_constant = matches!(self.graph.buffers[buffer].kind, BufferKind::Constant(_));
                let decides = def.value.counts(self.graph.tensor(id).dtype);
                changes |= decides && is_constant && self.written[buffer];
            });
            if changes {
                let text =
                    format!("`{}` goes by the elements of `{}`, which a step changes", op.name, def.name);
                return Err(malformed(text));
            }
        }
        Ok(())
    }

    /// Whether a scan has as many positions as what it goes over, and what it moves stays inside its memory. The
    /// tensors it moves are looked at where they are used.
    fn scan(&self, length: &Size, moving: &[Moving], args: &[Arg<'_>]) -> Result<()> {
        let length = number(length, self.symbols)?;
        if !args.iter().all(|arg| arg.tensor().shape().first() == Some(&length)) {
            return Err(malformed("a scan has another length than what it goes over"));
        }
        for moving in moving {
            let step = number(&moving.step, self.symbols)?;
            // Beyond, offsets of one position more could not be counted.
            if !(-MAX_NUMEL..=MAX_NUMEL).contains(&step) {
                return Err(malformed("a scan leaves its memory"));
            }
        }
        Ok(())
    }

    /// Whether tensors that a scan moves lie inside their memory at its last position, too.
    pub fn moved(
        &self,
        length: &Size,
        moving: &[Moving],
        mut tensor: impl FnMut(TensorId) -> Result<Tensor>,
    ) -> Result<()> {
        let length = number(length, self.symbols)?;
        for moving in moving {
            let first = tensor(moving.tensor)?;
            let mut last = first.layout().clone();
            let by = number(&moving.step, self.symbols)?.checked_mul((length - 1).max(0));
            let offset = by.and_then(|by| last.offset.checked_add(by));
            last.offset = offset.ok_or_else(|| malformed("a scan leaves its memory"))?;
            first.with_layout(last)?;
        }
        Ok(())
    }

    /// Looks at what a call writes.
    pub fn call(&self, node: &Node, args: &[Arg<'_>], inferred: &Inferred, outs: &[Tensor]) -> Result<()> {
        let NodeKind::Call { op, compute } = &node.kind else { return Ok(()) };
        if inferred.compute != *compute || !dispatch::are_converted(op, args, *compute) {
            let text =
                format!("`{}` is called with dtypes or layouts that its kernel does not take", op.name);
            return Err(malformed(text));
        }
        if inferred.outs.len() != outs.len() {
            return Err(malformed(format!("`{}` has {} results", op.name, inferred.outs.len())));
        }
        for (number, (out, spec)) in outs.iter().zip(&inferred.outs).enumerate() {
            if out.dtype() != spec.dtype || out.shape() != &spec.sizes[..] {
                return Err(malformed(format!(
                    "`{}` writes {} {}, and gives {} {}",
                    op.name,
                    out.dtype(),
                    ShapeText(out.shape()),
                    spec.dtype,
                    ShapeText(&spec.sizes)
                )));
            }
            // Views share memory by what the graph says, which here is one tensor's over another's.
            if outs[..number].iter().any(|other| other.overlaps(out)) {
                return Err(malformed(format!("two results of `{}` share memory", op.name)));
            }
            if out.layout().has_internal_overlap() {
                return Err(malformed(format!("`{}` writes one element at several indices", op.name)));
            }
            dispatch::refuse_overlap_with_inputs(op, args, out)?;
        }
        Ok(())
    }

    /// Looks at what a copy or an addition writes.
    pub fn copy(&self, node: &Node, source: &Tensor, target: &Tensor) -> Result<()> {
        let adds = matches!(node.kind, NodeKind::Add);
        if !broadcasts(source.shape(), target.shape()) || (adds && source.dtype() != target.dtype()) {
            return Err(malformed("a copy has elements that its target does not hold"));
        }
        Ok(())
    }

    /// Notes what a step wrote, whose results are the given tensors.
    pub fn after(&mut self, node: &Node, outs: &[Tensor]) {
        if matches!(node.kind, NodeKind::View { .. }) {
            return;
        }
        for (id, out) in node.outs.iter().zip(outs) {
            let buffer = self.graph.buffer_of(*id).index();
            self.begun[buffer] = true;
            // What steps inside a branch or loop write was noted there.
            if node.kind.regions().is_empty() {
                self.whole[buffer] |= self.shows_all(out);
            }
        }
    }

    /// Whether a tensor shows each element of its memory.
    fn shows_all(&self, tensor: &Tensor) -> bool {
        let bytes = tensor.numel() as usize * tensor.dtype().size();
        bytes == tensor.storage().bytes() && !tensor.layout().has_internal_overlap()
    }

    /// What is written so far, to be compared with what is after steps that may not run.
    pub fn written_so_far(&self) -> Vec<bool> {
        self.whole.clone()
    }

    /// Takes back what was written in steps that may not run.
    pub fn forget(&mut self, before: Vec<bool>) -> Vec<bool> {
        std::mem::replace(&mut self.whole, before)
    }

    /// Notes what was written whichever of two ways was gone.
    pub fn join(&mut self, one: &[bool]) {
        self.whole.iter_mut().zip(one).for_each(|(whole, one)| *whole &= one);
    }

    /// Looks at a predicate that steps inside a loop write.
    pub fn predicate(&mut self, id: TensorId, tensor: &Tensor, node: &Node) -> Result<()> {
        self.read(id, node)?;
        check_predicate(Some(Arg::Tensor(tensor)))
    }

    /// The buffers to clear before a run.
    ///
    /// # Errors
    /// If nothing writes an output.
    pub fn finish(mut self) -> Result<Vec<BufferId>> {
        for id in &self.graph.outputs {
            let buffer = self.graph.buffer_of(*id).index();
            if !self.begun[buffer] {
                return Err(malformed(format!("nothing writes tensor {}, which is an output", id.0)));
            }
            self.cleared[buffer] |= !self.whole[buffer];
        }
        let cleared = (0..self.cleared.len()).filter(|&buffer| self.cleared[buffer]);
        Ok(cleared.map(|buffer| BufferId(buffer as u32)).collect())
    }
}

fn check_predicate(arg: Option<Arg<'_>>) -> Result<()> {
    match arg {
        Some(Arg::Tensor(tensor)) if tensor.dtype() == crate::DType::Bool && tensor.numel() == 1 => Ok(()),
        _ => Err(malformed("a branch or loop is not decided by one bool")),
    }
}

/// Whether a shape broadcasts to another.
pub(in super::super) fn broadcasts(source: &[i64], target: &[i64]) -> bool {
    source.len() <= target.len()
        && source.iter().rev().zip(target.iter().rev()).all(|(from, to)| from == to || *from == 1)
}
