//! Size-independent invariants of a loaded graph: all references are valid, symbols have bounds, calls have the
//! arguments of their operators, views share memory with their bases, and loops move private tensors.
//!
//! In: a loaded graph. Out: nothing, or an error. Checked once; `verify` has the invariants that depend on sizes.

use std::collections::HashSet;

use opsmith_runtime::DType;
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::op::{ArgDef, ArgKind, OpDef};
use opsmith_runtime::tensor::Tensor;

use super::load::unknown;
use crate::ir::{Argument, BufferKind, Graph, Node, NodeKind, SymbolSource, SymbolicScalar, TensorId};
use crate::plan::verify::malformed;

/// Checks all invariants that do not depend on sizes.
pub(super) fn check(graph: &Graph) -> Result<()> {
    references(graph)?;
    symbols(graph)?;
    graph.tensors.iter().try_for_each(|info| {
        let root = graph.tensor(graph.buffers[info.buffer.index()].root);
        // A `bool` must be 0 or 1, which reinterpreted bytes of another dtype need not be.
        let is_bool = |dtype| dtype == DType::Bool;
        let alike = info.device == root.device
            && info.dtype.size() == root.dtype.size()
            && is_bool(info.dtype) == is_bool(root.dtype);
        if alike { Ok(()) } else { Err(malformed("a tensor has elements of another kind than its memory")) }
    })?;
    let moving = moving(&graph.nodes)?;
    Rules { graph, moving }.nodes(&graph.nodes, &HashSet::new(), true)
}

/// Checks that every reference in a graph is valid.
fn references(graph: &Graph) -> Result<()> {
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

/// Checks that the dimensions that symbols are read from exist.
fn symbols(graph: &Graph) -> Result<()> {
    let has_dim = |id: TensorId, dim: usize| {
        graph.tensors.get(id.index()).is_some_and(|info| dim < info.layout.sizes.len())
    };
    for (info, source) in graph.symbols.infos().iter().zip(&graph.sources) {
        let exists = match *source {
            SymbolSource::Input { input, dim } => graph.inputs.get(input).is_some_and(|id| has_dim(*id, dim)),
            SymbolSource::Node { tensor, dim } => has_dim(tensor, dim),
            SymbolSource::Derived => true,
        };
        if !exists {
            return Err(malformed(format!("`{}` is said to be a size that does not exist", info.name)));
        }
    }
    Ok(())
}

/// The tensors that loops move, each in one loop only.
fn moving(nodes: &[Node]) -> Result<HashSet<TensorId>> {
    fn visit(nodes: &[Node], found: &mut HashSet<TensorId>) -> bool {
        nodes.iter().all(|node| {
            let own = match &node.kind {
                NodeKind::Scan { moving, .. } => moving.as_slice(),
                _ => &[],
            };
            own.iter().all(|moving| found.insert(moving.tensor))
                && node.kind.regions().into_iter().all(|region| visit(&region.nodes, found))
        })
    }
    let mut found = HashSet::new();
    match visit(nodes, &mut found) {
        true => Ok(found),
        false => Err(malformed("two loops move one tensor")),
    }
}

/// Invariants of nodes.
struct Rules<'a> {
    graph: &'a Graph,
    /// The tensors that loops move.
    moving: HashSet<TensorId>,
}

impl Rules<'_> {
    /// Checks the nodes of the graph or of a region; `moving` are the tensors that the surrounding loop moves.
    fn nodes(&self, nodes: &[Node], moving: &HashSet<TensorId>, is_top: bool) -> Result<()> {
        nodes.iter().try_for_each(|node| {
            self.node(node, moving, is_top)
                .map_err(|error| error.with_note(format!("called at {}", node.site)))
        })
    }

    fn node(&self, node: &Node, moving: &HashSet<TensorId>, is_top: bool) -> Result<()> {
        self.moving_are_copied(node, moving)?;
        if node.outs.iter().any(|out| self.graph.is_found_by_node(*out))
            && !(is_top && matches!(node.kind, NodeKind::Call { .. }))
        {
            return Err(malformed(
                "a size that elements decide is found by what is no call of the graph's own",
            ));
        }
        let mut inside = HashSet::new();
        match &node.kind {
            NodeKind::Call { op, .. } => signature(self.graph, op, node)?,
            NodeKind::View { op } => {
                signature(self.graph, op, node)?;
                self.view(op, node)?;
            }
            NodeKind::Copy | NodeKind::Add => {
                if !matches!((node.args.as_slice(), node.outs.as_slice()), ([Argument::Tensor(_)], [_])) {
                    return Err(malformed("a copy has one source and one target"));
                }
            }
            NodeKind::Cond { .. } => {
                if !matches!(node.args.as_slice(), [Argument::Tensor(_)]) {
                    return Err(malformed("a branch or loop is not decided by one bool"));
                }
            }
            NodeKind::While { .. } => {}
            NodeKind::Scan { moving: own, .. } => {
                inside.extend(own.iter().map(|moving| moving.tensor));
                if node.args.is_empty() || !node.args.iter().all(|arg| matches!(arg, Argument::Tensor(_))) {
                    return Err(malformed("a scan goes over no tensor"));
                }
            }
        }
        let regions = node.kind.regions();
        // An inner loop does not access the moving tensors of the loop around it.
        regions.into_iter().try_for_each(|region| self.nodes(&region.nodes, &inside, false))
    }

    /// Checks that moving tensors are only sources or targets of copies, in the loop that moves them: other nodes
    /// assume a fixed offset.
    fn moving_are_copied(&self, node: &Node, moving: &HashSet<TensorId>) -> Result<()> {
        let mut astray = false;
        let mut look = |id: TensorId| {
            let is_copied = matches!(node.kind, NodeKind::Copy) && moving.contains(&id);
            astray |= self.moving.contains(&id) && !is_copied;
        };
        node.args.iter().for_each(|arg| arg.for_each_tensor(&mut look));
        node.outs.iter().copied().for_each(&mut look);
        if let NodeKind::While { predicate, .. } = &node.kind {
            look(*predicate);
        }
        if astray { Err(malformed("a step uses a tensor that a loop moves")) } else { Ok(()) }
    }

    fn view(&self, op: &OpDef, node: &Node) -> Result<()> {
        let (Some(_), Some(Argument::Tensor(base))) = (op.view, node.args.first()) else {
            return Err(malformed(format!("`{}` is no view", op.name)));
        };
        let base = self.graph.tensor(*base);
        let shows = |out: &TensorId| {
            let out = self.graph.tensor(*out);
            (out.buffer, out.dtype, out.device) == (base.buffer, base.dtype, base.device)
        };
        match node.outs.iter().all(shows) {
            true => Ok(()),
            false => Err(malformed(format!("`{}` makes another view than it does", op.name))),
        }
    }
}

/// Checks a node's arguments against its operator's signature.
fn signature(graph: &Graph, op: &OpDef, node: &Node) -> Result<()> {
    let tensor = |id: &TensorId| {
        let info = graph.tensor(*id);
        Tensor::meta(&[], info.dtype, info.device)
    };
    let scalar = |scalar: &SymbolicScalar| scalar.map(|_| Ok(1)).map(SymbolicScalar::scalar);
    // A size-dependent argument is replaced by a number: a signature restricts types alone.
    let value = |arg: &Argument| {
        Ok::<Value, Error>(match arg {
            Argument::Tensor(id) => Value::Tensor(tensor(id)?),
            Argument::Tensors(ids) => Value::Tensors(ids.iter().map(tensor).collect::<Result<_>>()?),
            Argument::OptionalTensors(ids) => Value::OptionalTensors(
                ids.iter().map(|id| id.as_ref().map(tensor).transpose()).collect::<Result<_>>()?,
            ),
            Argument::Value(value) => value.clone(),
            Argument::Int(_) => Value::Int(1),
            Argument::Ints(sizes) => Value::Ints(vec![1; sizes.len()]),
            Argument::Scalar(value) => Value::Scalar(scalar(value)?),
            Argument::Float(value) => Value::Float(scalar(value)?.to_f64()),
        })
    };
    let values = node.args.iter().map(value).collect::<Result<Vec<Value>>>()?;
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    let defs = op.schema.args;
    // As in calls by name, operators define the meaning of an empty list.
    let is_list = |kind: ArgKind, arg: Arg<'_>| {
        matches!((kind, arg), (ArgKind::Ints(_), Arg::Ints(_)) | (ArgKind::Bools(_), Arg::Bools(_)))
    };
    let accepts = |def: &ArgDef, arg: Arg<'_>| arg.has_type(def.ty) || is_list(def.ty.kind, arg);
    if args.len() == defs.len() && defs.iter().zip(&args).all(|(def, arg)| accepts(def, *arg)) {
        return Ok(());
    }
    Err(malformed(format!("`{}` is called with arguments that are not of its signature", op.name)))
}
