//! Size-dependent invariants of a loaded graph, checked at each bind.
//!
//! In: each node with the arguments and results found by binding. Out: nothing, or an error; and the buffers that a run
//! has to clear first. Afterwards every tensor of a node lies inside its memory, every call has the arguments that its
//! kernel requires, its results match inference and do not overlap its inputs, and no unwritten element is read. The
//! layouts are those of the plan.

use opsmith_runtime::arg::Arg;
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::infer::symbolic::{Bindings, Size};
use opsmith_runtime::internals::{self, TensorInternals as _};
use opsmith_runtime::layout::MAX_NUMEL;
use opsmith_runtime::op::{Inferred, OpDef};
use opsmith_runtime::tensor::Tensor;

use crate::ir::{BufferId, BufferKind, Graph, Moving, Node, NodeKind, TensorId};
use crate::plan::bind::number;

/// The state of memory while nodes are bound in order.
pub(crate) struct Verifier<'a> {
    graph: &'a Graph,
    symbols: &'a Bindings,
    /// Whether an earlier node, or a caller, wrote to a buffer.
    begun: Vec<bool>,
    /// Whether a whole buffer was written on every path through branches and loops.
    whole: Vec<bool>,
    /// Buffers with unwritten elements that a node may read: they are cleared before a run.
    cleared: Vec<bool>,
    /// Whether any node writes to a buffer.
    written: Vec<bool>,
}

impl<'a> Verifier<'a> {
    pub fn new(graph: &'a Graph, symbols: &'a Bindings) -> Verifier<'a> {
        let mut written = vec![false; graph.buffers.len()];
        graph.nodes.iter().for_each(|node| {
            node.for_each_write(&mut |id| written[graph.buffer_of(id).index()] = true);
        });
        let begun: Vec<bool> =
            graph.buffers.iter().map(|buffer| !matches!(buffer.kind, BufferKind::Internal)).collect();
        let whole = begun.clone();
        Verifier { graph, symbols, begun, whole, cleared: vec![false; graph.buffers.len()], written }
    }

    /// Checks a node and its arguments before inference.
    pub fn before(&mut self, node: &Node, args: &[Arg<'_>]) -> Result<()> {
        let mut reads = Vec::new();
        node.args.iter().for_each(|arg| arg.for_each_tensor(|id| reads.push(id)));
        if matches!(node.kind, NodeKind::Add | NodeKind::While { .. }) {
            reads.extend(&node.outs);
        }
        reads.into_iter().try_for_each(|id| self.read(id, node))?;
        if let Some(op) = node.kind.op() {
            opsmith_runtime::constraint::check(op, args)?;
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

    /// Rejects shapes that depend on elements which the graph changes: inference would read the old ones.
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

    /// Checks that a scan has as many iterations as positions, and that moving tensors stay inside their memory. The
    /// tensors themselves are checked where they are used.
    fn scan(&self, length: &Size, moving: &[Moving], args: &[Arg<'_>]) -> Result<()> {
        let length = number(length, self.symbols)?;
        if !args.iter().all(|arg| arg.tensor().shape().first() == Some(&length)) {
            return Err(malformed("a scan has another length than what it goes over"));
        }
        for moving in moving {
            let step = number(&moving.step, self.symbols)?;
            // Beyond this limit, offsets one position further could overflow.
            if !(-MAX_NUMEL..=MAX_NUMEL).contains(&step) {
                return Err(malformed("a scan leaves its memory"));
            }
        }
        Ok(())
    }

    /// Checks that the moving tensors of a scan lie inside their memory at the last iteration, too.
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

    /// Verifies the results of a call.
    pub fn call(&self, node: &Node, args: &[Arg<'_>], inferred: &Inferred, outs: &[Tensor]) -> Result<()> {
        let NodeKind::Call { op, compute } = &node.kind else { return Ok(()) };
        if inferred.compute != *compute || !internals::are_converted(op, args, *compute, inferred.device) {
            let text =
                format!("`{}` is called with dtypes or layouts that its kernel does not take", op.name);
            return Err(malformed(text));
        }
        if inferred.outs.len() != outs.len() {
            return Err(malformed(format!("`{}` has {} results", op.name, inferred.outs.len())));
        }
        if let Some(out) = outs.iter().find(|out| out.device() != inferred.device) {
            let (device, other) = (inferred.device, out.device());
            return Err(malformed(format!(
                "`{}` computes on {device}, and its result is on {other}",
                op.name
            )));
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
            // Tensors over one buffer share memory here as in a run, so overlapping outputs are found.
            if outs[..number].iter().any(|other| other.overlaps(out)) {
                return Err(malformed(format!("two results of `{}` share memory", op.name)));
            }
            if out.layout().has_internal_overlap() {
                return Err(malformed(format!("`{}` writes one element at several indices", op.name)));
            }
            internals::refuse_overlap_with_inputs(op, args, out)?;
        }
        Ok(())
    }

    /// Verifies the target of a copy or an addition.
    pub fn copy(&self, node: &Node, source: &Tensor, target: &Tensor) -> Result<()> {
        let adds = matches!(node.kind, NodeKind::Add);
        if !broadcasts(source.shape(), target.shape()) || (adds && source.dtype() != target.dtype()) {
            return Err(malformed("a copy has elements that its target does not hold"));
        }
        if adds && source.device() != target.device() {
            return Err(malformed("elements are added to those of another device"));
        }
        Ok(())
    }

    /// Records the writes of a node with the given results.
    pub fn after(&mut self, node: &Node, outs: &[Tensor]) {
        if matches!(node.kind, NodeKind::View { .. }) {
            return;
        }
        for (id, out) in node.outs.iter().zip(outs) {
            let buffer = self.graph.buffer_of(*id).index();
            self.begun[buffer] = true;
            // Writes in regions were recorded there.
            if node.kind.regions().is_empty() {
                self.whole[buffer] |= self.shows_all(out);
            }
        }
    }

    /// Whether a tensor covers every element of its memory.
    fn shows_all(&self, tensor: &Tensor) -> bool {
        let bytes = tensor.numel() as usize * tensor.dtype().size();
        bytes == tensor.storage().bytes() && !tensor.layout().has_internal_overlap()
    }

    /// The writes so far, for comparison after a region that may not run.
    pub fn written_so_far(&self) -> Vec<bool> {
        self.whole.clone()
    }

    /// Removes the writes of a region that may not run.
    pub fn forget(&mut self, before: Vec<bool>) -> Vec<bool> {
        std::mem::replace(&mut self.whole, before)
    }

    /// Records the writes common to both of two paths.
    pub fn join(&mut self, one: &[bool]) {
        self.whole.iter_mut().zip(one).for_each(|(whole, one)| *whole &= one);
    }

    /// Checks a predicate written by a loop's condition.
    pub fn predicate(&mut self, id: TensorId, tensor: &Tensor, node: &Node) -> Result<()> {
        self.read(id, node)?;
        check_predicate(Some(Arg::Tensor(tensor)))
    }

    /// The buffers to clear before a run.
    ///
    /// # Errors
    /// If an output is never written.
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
        Some(Arg::Tensor(tensor))
            if tensor.dtype() == opsmith_runtime::DType::Bool && tensor.numel() == 1 =>
        {
            Ok(())
        }
        _ => Err(malformed("a branch or loop is not decided by one bool")),
    }
}

/// Whether a shape broadcasts to another.
pub(crate) fn broadcasts(source: &[i64], target: &[i64]) -> bool {
    source.len() <= target.len()
        && source.iter().rev().zip(target.iter().rev()).all(|(from, to)| from == to || *from == 1)
}

/// The error of a graph that was not written by `Graph::save`.
pub(crate) fn malformed(text: impl Into<String>) -> Error {
    Error::graph(text).with_help("the files were not written by `Graph::save`, or were changed since")
}
