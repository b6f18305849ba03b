//! Looks whether a graph that was read does only what operators allow.
//!
//! In: a graph, and values of its symbols. Out: nothing, or an error. After it, every number names something,
//! every tensor lies inside its memory, every call has the arguments that its kernel was promised, and what it
//! writes is what inference says. Sizes decide some of it, so it is asked again before a plan for others is made.

use super::super::bind::argument;
use super::super::ir::{Argument, BufferKind, Graph, Node, NodeKind, SymbolSource, TensorId};
use super::load::{malformed, unknown};
use crate::arg::{Arg, Value};
use crate::dispatch;
use crate::error::{Error, Result, ShapeText};
use crate::facts::ValueUse;
use crate::layout::{Layout, checked_numel};
use crate::op::{ArgDef, ArgKind, OpDef};
use crate::storage::Storage;
use crate::tensor::Tensor;

/// Whether every number in a graph names something.
pub(super) fn references(graph: &Graph) -> Result<()> {
    let tensor = |id: TensorId| match graph.tensors.get(id.index()) {
        Some(_) => Ok(()),
        None => Err(unknown("tensor", id.0)),
    };
    for info in &graph.tensors {
        if info.buffer.index() >= graph.buffers.len() {
            return Err(unknown("buffer", info.buffer.0));
        }
    }
    graph.inputs.iter().chain(&graph.outputs).try_for_each(|id| tensor(*id))?;
    for (number, buffer) in graph.buffers.iter().enumerate() {
        tensor(buffer.root)?;
        if graph.buffer_of(buffer.root).index() != number {
            return Err(malformed(format!("the root of buffer {number} lies in another one")));
        }
        if let BufferKind::Input(input) = buffer.kind
            && graph.inputs.get(input) != Some(&buffer.root)
        {
            return Err(malformed(format!(
                "buffer {number} is said to be of input {input}, which it is not"
            )));
        }
    }
    for (number, input) in graph.inputs.iter().enumerate() {
        let buffer = &graph.buffers[graph.buffer_of(*input).index()];
        if !matches!(buffer.kind, BufferKind::Input(of) if of == number) {
            return Err(malformed(format!("input {number} has no memory of its own")));
        }
    }
    for (number, symbol) in graph.symbols.iter().enumerate() {
        match symbol.source {
            SymbolSource::Input { input, dim } => {
                let info = graph.inputs.get(input).map(|id| graph.tensor(*id));
                if info.is_none_or(|info| dim >= info.layout.sizes.len()) {
                    return Err(malformed(format!(
                        "`{}` is said to be a size that does not exist",
                        symbol.name
                    )));
                }
            }
            SymbolSource::Quotient { symbol: of, by, .. } => {
                let of = graph.symbols[..number].get(of).map(|info| info.source);
                if by < 1 || !matches!(of, Some(SymbolSource::Input { .. })) {
                    return Err(malformed(format!("`{}` is no quotient of an input's size", symbol.name)));
                }
            }
            SymbolSource::Node { tensor: id, dim } => {
                tensor(id)?;
                if dim >= graph.tensor(id).layout.sizes.len() {
                    return Err(malformed(format!(
                        "`{}` is said to be a size that does not exist",
                        symbol.name
                    )));
                }
            }
        }
    }
    graph.nodes.iter().try_for_each(|node| of_node(node, &tensor))
}

fn of_node(node: &Node, tensor: &dyn Fn(TensorId) -> Result<()>) -> Result<()> {
    let mut result = Ok(());
    let mut look = |id: TensorId| {
        if result.is_ok() {
            result = tensor(id);
        }
    };
    node.args.iter().for_each(|arg| arg.for_each_tensor(&mut look));
    node.outs.iter().copied().for_each(&mut look);
    match &node.kind {
        NodeKind::While { predicate, .. } => look(*predicate),
        NodeKind::Scan { moving, .. } => moving.iter().for_each(|moving| look(moving.tensor)),
        _ => {}
    }
    result?;
    let regions = node.kind.regions();
    regions.iter().flat_map(|region| &region.nodes).try_for_each(|node| of_node(node, tensor))
}

/// Whether a graph is right where symbols have values.
pub(in super::super) fn graph(graph: &Graph, symbols: &[Option<i64>]) -> Result<()> {
    let mut written = vec![false; graph.buffers.len()];
    graph.nodes.iter().for_each(|node| {
        node.for_each_write(&mut |id| written[graph.buffer_of(id).index()] = true);
    });
    let begun = vec![false; graph.buffers.len()];
    let mut verifier = Verifier { graph, symbols, storages: Vec::new(), begun, written };
    verifier.memory()?;
    graph.nodes.iter().try_for_each(|node| verifier.node(node))?;
    match graph.outputs.iter().find(|id| !verifier.begun[graph.buffer_of(**id).index()]) {
        Some(id) => Err(malformed(format!("nothing writes tensor {}, which is an output", id.0))),
        None => Ok(()),
    }
}

struct Verifier<'a> {
    graph: &'a Graph,
    symbols: &'a [Option<i64>],
    /// Memory without elements, as large as each buffer; that of constants, whose elements may decide shapes.
    storages: Vec<Storage>,
    /// Whether somebody wrote a buffer.
    begun: Vec<bool>,
    /// Whether a step writes to a buffer.
    written: Vec<bool>,
}

impl Verifier<'_> {
    fn layout(&self, id: TensorId) -> Result<Layout> {
        let info = self.graph.tensor(id);
        match info.layout.evaluate(self.symbols) {
            Some(layout) => Ok(layout),
            // Inference finds the rest when the graph is bound, which refuses what does not lie inside.
            None => Ok(info.example.clone()),
        }
    }

    fn memory(&mut self) -> Result<()> {
        for (number, buffer) in self.graph.buffers.iter().enumerate() {
            let layout = self.layout(buffer.root)?;
            let bytes = checked_numel(&layout.sizes)? as usize * self.graph.tensor(buffer.root).dtype.size();
            let held = match &buffer.kind {
                BufferKind::Constant(whole) => whole.storage().bytes() == bytes,
                _ => true,
            };
            if layout.offset != 0 || !layout.is_contiguous() || !held {
                return Err(malformed(format!("the root of buffer {number} does not show all of it")));
            }
            self.begun[number] = !matches!(buffer.kind, BufferKind::Internal);
            self.storages.push(match &buffer.kind {
                BufferKind::Constant(whole) => whole.storage().clone(),
                _ => Storage::meta(bytes)?,
            });
        }
        (0..self.graph.tensors.len()).try_for_each(|number| self.tensor(TensorId(number as u32)).map(drop))
    }

    /// A tensor without elements, if it lies inside its memory.
    fn tensor(&self, id: TensorId) -> Result<Tensor> {
        let (info, layout) = (self.graph.tensor(id), self.layout(id)?);
        checked_numel(&layout.sizes)?;
        let storage = &self.storages[info.buffer.index()];
        let root = self.graph.tensor(self.graph.buffers[info.buffer.index()].root);
        let size = info.dtype.size() as i64;
        let fits = |(low, high): (i64, i64)| {
            low >= 0 && high.checked_mul(size).is_some_and(|high| high <= storage.bytes() as i64)
        };
        if !layout.extent().is_none_or(fits) || (root.dtype != info.dtype && size != root.dtype.size() as i64)
        {
            return Err(malformed(format!("tensor {} reaches outside its memory", id.0)));
        }
        // SAFETY: the layout was just found to lie inside; there are no elements to read, or those of a constant.
        Ok(unsafe { Tensor::from_parts(storage.clone(), layout, info.dtype, info.device) })
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        self.step(node).map_err(|error| error.with_note(format!("called at {}", node.site)))
    }

    /// Refuses shapes by elements that the graph changes: they would be those of before.
    fn decided(&self, op: &OpDef, node: &Node) -> Result<()> {
        for (def, arg) in op.schema.args.iter().zip(&node.args).filter(|(def, _)| def.value != ValueUse::None)
        {
            let mut changes = false;
            arg.for_each_tensor(|id| {
                // Two buffers may be one constant.
                let storage = &self.storages[self.graph.buffer_of(id).index()];
                let written = self.storages.iter().zip(&self.written);
                changes |= !storage.is_meta()
                    && written.into_iter().any(|(other, written)| *written && other.same(storage));
            });
            if changes {
                let text =
                    format!("`{}` goes by the elements of `{}`, which a step changes", op.name, def.name);
                return Err(malformed(text));
            }
        }
        Ok(())
    }

    fn step(&mut self, node: &Node) -> Result<()> {
        let mut unwritten = None;
        let mut look = |id: TensorId| {
            if !self.begun[self.graph.buffer_of(id).index()] {
                unwritten = Some(id);
            }
        };
        node.args.iter().for_each(|arg| arg.for_each_tensor(&mut look));
        if let Some(id) = unwritten {
            return Err(malformed(format!(
                "`{}` reads tensor {}, which nothing wrote",
                node.kind.name(),
                id.0
            )));
        }
        if let Some(op) = node.kind.op() {
            self.decided(op, node)?;
        }
        let tensor = &mut |id: TensorId| self.tensor(id);
        let values = node
            .args
            .iter()
            .map(|arg| argument(arg, self.symbols, tensor))
            .collect::<Result<Vec<Value>>>()?;
        let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
        let outs = node.outs.iter().map(|out| self.tensor(*out)).collect::<Result<Vec<Tensor>>>()?;
        match &node.kind {
            NodeKind::Call { op, compute } => {
                arguments(op, &args)?;
                if node.outs.iter().any(|id| self.graph.is_found_by_node(*id)) {
                    // Such a step runs as in eager mode, which checks it then.
                    node.outs.iter().for_each(|out| self.begun[self.graph.buffer_of(*out).index()] = true);
                    return Ok(());
                }
                let Some(inferred) = op.inferred(&args) else {
                    return Err(malformed(format!("`{}` has no kernel that a step could run", op.name)));
                };
                let inferred = inferred.map_err(|error| error.in_op(op.name, Vec::new()))?;
                if inferred.compute != *compute || !dispatch::are_converted(op, &args, *compute) {
                    return Err(malformed(format!(
                        "`{}` is called with dtypes that its kernel does not take",
                        op.name
                    )));
                }
                if inferred.outs.len() != outs.len() {
                    return Err(malformed(format!("`{}` has {} results", op.name, inferred.outs.len())));
                }
                for (out, spec) in outs.iter().zip(&inferred.outs) {
                    if out.dtype() != spec.dtype
                        || out.shape() != &spec.sizes[..]
                        || out.layout().has_internal_overlap()
                    {
                        return Err(malformed(format!(
                            "`{}` writes {} {}, and gives {} {}",
                            op.name,
                            out.dtype(),
                            ShapeText(out.shape()),
                            spec.dtype,
                            ShapeText(&spec.sizes)
                        )));
                    }
                }
            }
            NodeKind::View { op } => {
                arguments(op, &args)?;
                let (Some(view), Some(Arg::Tensor(base))) = (op.view, args.first()) else {
                    return Err(malformed(format!("`{}` is no view", op.name)));
                };
                let layouts = view(&args).map_err(|error| error.in_op(op.name, Vec::new()))?;
                let alike = layouts.len() == outs.len()
                    && outs.iter().zip(&layouts).all(|(out, layout)| {
                        out.layout() == layout && out.dtype() == base.dtype() && out.shares_storage(base)
                    });
                if !alike {
                    return Err(malformed(format!("`{}` makes another view than it does", op.name)));
                }
            }
            NodeKind::Copy | NodeKind::Add => {
                let ([Arg::Tensor(source)], [target]) = (args.as_slice(), outs.as_slice()) else {
                    return Err(malformed("a copy has one source and one target"));
                };
                let adds = matches!(node.kind, NodeKind::Add);
                if !broadcasts(source.shape(), target.shape()) || (adds && source.dtype() != target.dtype()) {
                    return Err(malformed("a copy has elements that its target does not hold"));
                }
            }
            NodeKind::Cond { .. } => self.predicate(node.args.first())?,
            NodeKind::While { .. } => {}
            NodeKind::Scan { length, moving, .. } => {
                let number = |size: &crate::symbolic::Size| {
                    let value = size.evaluate(|symbol| *self.symbols.get(symbol.0 as usize)?);
                    value.ok_or_else(|| malformed("the length of a scan is not known"))
                };
                let length = number(length)?;
                for moving in moving {
                    let step = number(&moving.step)?;
                    let mut last = self.layout(moving.tensor)?;
                    let moved =
                        step.checked_mul((length - 1).max(0)).and_then(|by| last.offset.checked_add(by));
                    last.offset = moved.ok_or_else(|| malformed("a scan leaves its memory"))?;
                    self.tensor(moving.tensor)?.with_layout(last)?;
                }
            }
        }
        for region in node.kind.regions() {
            for inside in &region.nodes {
                self.node(inside)?;
            }
        }
        if let NodeKind::While { predicate, .. } = &node.kind {
            self.predicate(Some(&Argument::Tensor(*predicate)))?;
        }
        for out in &node.outs {
            self.begun[self.graph.buffer_of(*out).index()] = true;
        }
        Ok(())
    }

    fn predicate(&self, arg: Option<&Argument>) -> Result<()> {
        if let Some(Argument::Tensor(id)) = arg {
            let tensor = self.tensor(*id)?;
            if tensor.dtype() == crate::DType::Bool && tensor.numel() == 1 {
                return Ok(());
            }
        }
        Err(malformed("a branch or loop is not decided by one bool"))
    }
}

fn arguments(op: &OpDef, args: &[Arg<'_>]) -> Result<()> {
    let defs = op.schema.args;
    // As calls by name: an operator says itself what an empty list stands for.
    let is_list = |kind: ArgKind, arg: Arg<'_>| {
        matches!((kind, arg), (ArgKind::Ints(_), Arg::Ints(_)) | (ArgKind::Bools(_), Arg::Bools(_)))
    };
    let accepts = |def: &ArgDef, arg: Arg<'_>| def.ty.accepts(arg) || is_list(def.ty.kind, arg);
    let fit = args.len() == defs.len() && defs.iter().zip(args).all(|(def, arg)| accepts(def, *arg));
    if !fit {
        return Err(malformed(format!(
            "`{}` is called with arguments that are not of its signature",
            op.name
        )));
    }
    crate::constraint::check(op, args).map_err(|error: Error| error.in_op(op.name, Vec::new()))
}

fn broadcasts(source: &[i64], target: &[i64]) -> bool {
    source.len() <= target.len()
        && source.iter().rev().zip(target.iter().rev()).all(|(from, to)| from == to || *from == 1)
}
