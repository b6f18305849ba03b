//! Binding: the layout of every tensor of a graph at known sizes.
//!
//! In: a graph and a value for each symbol. Out: a meta tensor for each of its tensors. Traced formulas are not
//! trusted: inference runs again for every node, so a size that an operator rejects is an error here, with the operator
//! and its call site, and so is a formula that contradicts inference. Nodes of a loaded graph are verified
//! (`plan::verify`) with the layouts of the plan.

use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::infer::symbolic::{Bindings, Guard, Size};
use opsmith_runtime::internals::{OperatorInternals as _, TensorInternals as _};
use opsmith_runtime::layout::{Layout, MAX_NUMEL};
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use super::verify::Verifier;
use crate::ir::{Argument, BufferId, BufferKind, Graph, Node, NodeKind, Region, SymbolicScalar, TensorId};

/// A graph's tensors at known sizes, and its arguments in the form of calls.
pub(crate) struct Bound {
    /// A value for each symbol.
    pub symbols: Bindings,
    /// The layout of each tensor; `None` for those that no node uses.
    pub layouts: Vec<Option<Layout>>,
    /// Buffers to clear before each run, since a loaded graph may read unwritten elements of them.
    pub cleared: Vec<BufferId>,
}

/// Computes every layout.
///
/// # Errors
/// If the sizes violate a guard, an operator rejects them, or a formula contradicts inference.
pub(crate) fn bind(graph: &Graph, symbols: Bindings) -> Result<Bound> {
    check_guards(graph, &symbols)?;
    // Without symbols, all numbers of the trace are exact.
    if !graph.loaded && graph.symbols.is_empty() {
        let layouts = graph.tensors.iter().map(|info| info.layout.evaluate(&symbols)).collect();
        return Ok(Bound { symbols, layouts, cleared: Vec::new() });
    }
    let mut binder = Binder::new(graph, &symbols);
    binder.verifier = graph.loaded.then(|| Verifier::new(graph, &symbols));
    binder.start()?;
    binder.nodes(&graph.nodes)?;
    // The node of a view may have been dropped by a pass, so an output over it is bound here.
    graph.outputs.iter().try_for_each(|output| binder.tensor(*output).map(drop))?;
    let cleared = binder.verifier.take().map_or_else(|| Ok(Vec::new()), Verifier::finish)?;
    let layouts = binder.metas.into_iter().map(|meta| meta.map(|meta| meta.layout().clone())).collect();
    Ok(Bound { symbols, layouts, cleared })
}

/// Binds a graph to the sizes of its example, and checks every tensor, including unused ones.
///
/// # Errors
/// As [`bind`].
pub(crate) fn everything(graph: &Graph) -> Result<()> {
    let bound = bind(graph, graph.example())?;
    let mut binder = Binder::new(graph, &bound.symbols);
    binder.metas = vec![None; graph.tensors.len()];
    for (number, buffer) in graph.buffers.iter().enumerate() {
        let Some(layout) = graph.tensor(buffer.root).layout.evaluate(&bound.symbols) else { continue };
        let root = binder.tensor(buffer.root)?;
        let held = match &buffer.kind {
            BufferKind::Constant(whole) => whole.storage().bytes() == root.storage().bytes(),
            _ => true,
        };
        if layout.offset != 0 || !layout.is_contiguous() || !held {
            return Err(Error::graph(format!("the root of buffer {number} does not show all of it")));
        }
    }
    (0..graph.tensors.len()).try_for_each(|number| {
        let id = TensorId(number as u32);
        let is_known = graph.tensor(id).layout.evaluate(&bound.symbols).is_some();
        if is_known { binder.tensor(id).map(drop) } else { Ok(()) }
    })
}

/// Rejects sizes that violate a guard.
pub(crate) fn check_guards(graph: &Graph, symbols: &Bindings) -> Result<()> {
    for (symbol, info) in graph.symbols.all().zip(graph.symbols.infos()) {
        let Some(value) = symbols.get(symbol) else { continue };
        let most = info.most.bind(symbols);
        if value < info.least || most.is_some_and(|most| value > most) {
            let bounds = match most {
                None => format!("at least {}", info.least),
                Some(most) => format!("from {} to {most}", info.least),
            };
            return Err(Error::of_other_sizes(format!(
                "`{}` is {value}, and the graph was made for {bounds}: other sizes take other steps",
                info.name
            ))
            .with_help("trace the function again with that size as a number"));
        }
        if value % info.multiple_of != 0 {
            return Err(Error::graph(format!(
                "`{}` is {value}, and was declared to be a multiple of {}",
                info.name, info.multiple_of
            )));
        }
    }
    let broken = |guard: &&Guard| guard.condition.holds(symbols) == Some(false);
    let Some(guard) = graph.guards.iter().find(broken) else { return Ok(()) };
    let given = guard.condition.symbols().into_iter().filter_map(|symbol| {
        Some(format!("{} is {}", Size::from(symbol).named(&graph.symbols), symbols.get(symbol)?))
    });
    let given: Vec<String> = given.collect();
    Err(Error::of_other_sizes(format!(
        "the graph is only for {}, and {}: {}",
        guard.condition.named(&graph.symbols),
        given.join(", "),
        guard.reason
    ))
    .with_help("trace the function again with that size, or write it so that it does the same for all sizes"))
}

/// Runs inference node by node.
pub(crate) struct Binder<'a> {
    pub graph: &'a Graph,
    symbols: &'a Bindings,
    metas: Vec<Option<Tensor>>,
    /// Verifies the nodes of a loaded graph.
    verifier: Option<Verifier<'a>>,
}

impl<'a> Binder<'a> {
    pub fn new(graph: &'a Graph, symbols: &'a Bindings) -> Binder<'a> {
        Binder { graph, symbols, metas: Vec::new(), verifier: None }
    }

    /// The tensors of inputs and constants.
    pub fn start(&mut self) -> Result<()> {
        self.metas = vec![None; self.graph.tensors.len()];
        for buffer in &self.graph.buffers {
            if let BufferKind::Constant(whole) = &buffer.kind {
                // Inference may read elements of arguments declared in `value_depends`.
                self.metas[buffer.root.index()] = Some(whole.clone());
            } else if !matches!(buffer.kind, BufferKind::Internal) {
                let layout = self.graph.tensor(buffer.root).layout.evaluate(self.symbols);
                self.make_root(buffer.root, layout)?;
            }
        }
        Ok(())
    }

    fn make_root(&mut self, id: TensorId, layout: Option<Layout>) -> Result<()> {
        let info = self.graph.tensor(id);
        let layout = layout.ok_or_else(|| Error::graph("the size of an input is not known"))?;
        opsmith_runtime::layout::checked_numel(&layout.sizes)?;
        self.metas[id.index()] = Some(Tensor::meta(&layout.sizes, info.dtype, info.device)?);
        Ok(())
    }

    /// A tensor over its buffer's memory, with the layout given by its formulas.
    pub fn tensor(&mut self, id: TensorId) -> Result<Tensor> {
        if let Some(tensor) = &self.metas[id.index()] {
            return Ok(tensor.clone());
        }
        let info = self.graph.tensor(id);
        let layout = info.layout.evaluate(self.symbols);
        let root = self.graph.buffers[info.buffer.index()].root;
        if root == id {
            self.make_root(id, layout)?;
        } else {
            let layout = layout.ok_or_else(|| Error::graph("the layout of a tensor is not known"))?;
            let storage = self.tensor(root)?.storage().clone();
            check_inside(&layout, storage.bytes() / info.dtype.size()).map_err(|error| {
                Error::graph("a view would reach outside its memory at these sizes").with_note(format!(
                    "tensor {}: {}",
                    id.0,
                    error.message()
                ))
            })?;
            // SAFETY: the layout was just checked to lie inside; the memory is a meta storage, or a constant's.
            let tensor = unsafe { Tensor::from_parts(storage, layout, info.dtype, info.device) };
            self.metas[id.index()] = Some(tensor);
        }
        Ok(self.metas[id.index()].clone().expect("made above"))
    }

    fn nodes(&mut self, nodes: &[Node]) -> Result<()> {
        nodes.iter().try_for_each(|node| self.node_with_place(node))
    }

    /// Infers the results of a node.
    ///
    /// # Errors
    /// Errors of the operator, with the call site.
    pub fn node_with_place(&mut self, node: &Node) -> Result<()> {
        self.node(node).map_err(|error| {
            let error = if error.op().is_some() { error } else { in_node(error, node, self) };
            error.with_note(format!("called at {}", node.site))
        })
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        let symbols = self.symbols;
        let values = node
            .args
            .iter()
            .map(|arg| argument(arg, symbols, &mut |id| self.tensor(id)))
            .collect::<Result<SmallVec<[Value; 6]>>>()?;
        let args: SmallVec<[Arg<'_>; 6]> = values.iter().map(Value::as_arg).collect();
        if let Some(verifier) = &mut self.verifier {
            verifier.before(node, &args)?;
        }
        match &node.kind {
            // Data-dependent sizes cannot be inferred again: the node runs as in eager mode.
            NodeKind::Call { .. } if node.outs.iter().any(|out| self.graph.is_found_by_node(*out)) => {}
            NodeKind::Call { op, .. } => {
                let Some(inferred) = op.inferred(&args) else {
                    return Err(Error::graph("the operator's inference is not known"));
                };
                let inferred = inferred?;
                for (&out, spec) in node.outs.iter().zip(&inferred.outs) {
                    self.output(out, &spec.sizes)?;
                }
                if self.verifier.is_some() {
                    let outs = self.results(node)?;
                    self.verifier
                        .iter()
                        .try_for_each(|verifier| verifier.call(node, &args, &inferred, &outs))?;
                }
            }
            NodeKind::View { op } => {
                let view = op.view.ok_or_else(|| Error::graph("the operator is no view any more"))?;
                let base = args[0].tensor();
                let layouts = view.layouts(&args)?;
                if layouts.len() != node.outs.len() {
                    return Err(Error::graph(format!("it makes {} views here", layouts.len())));
                }
                for (&out, layout) in node.outs.iter().zip(layouts) {
                    let made = base.with_layout(layout)?.detach();
                    self.agree(out, made.layout())?;
                    self.metas[out.index()] = Some(made);
                }
            }
            NodeKind::Copy | NodeKind::Add => {
                let outs = self.results(node)?;
                if let (Some(verifier), [Arg::Tensor(source)], [target]) =
                    (&self.verifier, &args[..], &outs[..])
                {
                    verifier.copy(node, source, target)?;
                }
            }
            _ => self.inside(node)?,
        }
        let outs = self.results(node)?;
        if let Some(verifier) = &mut self.verifier {
            verifier.after(node, &outs);
        }
        Ok(())
    }

    /// The results of a node, new or written.
    fn results(&mut self, node: &Node) -> Result<SmallVec<[Tensor; 1]>> {
        node.outs.iter().map(|out| self.tensor(*out)).collect()
    }

    /// Binds the regions of a node; those of branches and bodies may not run.
    fn inside(&mut self, node: &Node) -> Result<()> {
        match &node.kind {
            NodeKind::Cond { branches } => {
                let one = self.perhaps(&branches[0])?;
                self.nodes(&branches[1].nodes)?;
                if let Some((verifier, one)) = self.verifier.as_mut().zip(one) {
                    verifier.join(&one);
                }
            }
            NodeKind::While { condition, predicate, body } => {
                self.nodes(&condition.nodes)?;
                let tensor = self.tensor(*predicate)?;
                if let Some(verifier) = &mut self.verifier {
                    verifier.predicate(*predicate, &tensor, node)?;
                }
                self.perhaps(body)?;
            }
            NodeKind::Scan { length, moving, body } => {
                self.perhaps(body)?;
                if let Some(verifier) = self.verifier.take() {
                    let moved = verifier.moved(length, moving, |id| self.tensor(id));
                    self.verifier = Some(verifier);
                    moved?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Binds a region that may not run; returns the buffers it writes, and resets that state.
    fn perhaps(&mut self, region: &Region) -> Result<Option<Vec<bool>>> {
        let before = self.verifier.as_ref().map(Verifier::written_so_far);
        self.nodes(&region.nodes)?;
        Ok(self.verifier.as_mut().zip(before).map(|(verifier, before)| verifier.forget(before)))
    }

    /// A result of a call: new memory, or existing memory that the call writes.
    fn output(&mut self, id: TensorId, sizes: &[i64]) -> Result<()> {
        let info = self.graph.tensor(id);
        let is_root = self.graph.buffers[info.buffer.index()].root == id;
        if is_root && self.metas[id.index()].is_none() {
            let layout = Layout::contiguous(sizes);
            self.agree(id, &layout)?;
            return self.make_root(id, Some(layout));
        }
        let known = self.tensor(id)?;
        if known.shape() != sizes {
            return Err(Error::graph(format!(
                "at these sizes the result has the shape {}, and the tensor that it is written to {}",
                ShapeText(sizes),
                ShapeText(known.shape())
            )));
        }
        Ok(())
    }

    /// Rejects a layout that contradicts the formulas.
    fn agree(&self, id: TensorId, layout: &Layout) -> Result<()> {
        let formulas = &self.graph.tensor(id).layout;
        let number = |size: &Size| size.bind(self.symbols);
        let agrees = formulas.sizes.len() == layout.sizes.len()
            && formulas
                .sizes
                .iter()
                .zip(&layout.sizes)
                .all(|(formula, size)| number(formula).is_none_or(|formula| formula == *size));
        if agrees {
            return Ok(());
        }
        Err(Error::graph(format!(
            "at these sizes a tensor has the shape {}, which the sizes that the function was traced with did not show",
            ShapeText(&layout.sizes)
        ))
        .with_help("trace the function again with these sizes as numbers"))
    }
}

fn in_node(error: Error, node: &Node, binder: &Binder<'_>) -> Error {
    let Some(op) = node.kind.op() else { return error };
    let known = |id: TensorId| binder.metas[id.index()].clone();
    let values = node.args.iter().filter_map(|arg| match arg {
        Argument::Tensor(id) => known(*id).map(Value::Tensor),
        Argument::Tensors(ids) => ids.iter().map(|id| known(*id)).collect::<Option<_>>().map(Value::Tensors),
        _ => Some(Value::None),
    });
    let values: Vec<Value> = values.collect();
    let names = op.schema.args.iter().map(|arg| arg.name);
    error.in_op(op.name, opsmith_runtime::arg::describe_operands(names.zip(values.iter().map(Value::as_arg))))
}

/// Rejects a layout that does not lie inside memory of `elements` elements. Strides of dimensions with at most one
/// position have no effect, but take part in arithmetic.
fn check_inside(layout: &Layout, capacity: usize) -> Result<()> {
    let counts = |number: &i64| (-MAX_NUMEL..=MAX_NUMEL).contains(number);
    if !layout.strides.iter().chain([&layout.offset]).all(counts) {
        return Err(Error::graph("a view has strides that are larger than any memory"));
    }
    layout.check_inside(capacity as i64)
}

/// The value of a formula.
///
/// # Errors
/// If it is unknown, or overflows 64 bits.
pub(crate) fn number(size: &Size, symbols: &Bindings) -> Result<i64> {
    size.bind(symbols).ok_or_else(|| Error::graph(format!("the size {size} is not known")))
}

/// An argument in the form of a call.
pub(crate) fn argument(
    arg: &Argument,
    symbols: &Bindings,
    tensor: &mut dyn FnMut(TensorId) -> Result<Tensor>,
) -> Result<Value> {
    let number = |size: &Size| number(size, symbols);
    let scalar = |scalar: &SymbolicScalar| scalar.map(number).map(SymbolicScalar::scalar);
    Ok(match arg {
        Argument::Tensor(id) => Value::Tensor(tensor(*id)?),
        Argument::Tensors(ids) => Value::Tensors(ids.iter().map(|id| tensor(*id)).collect::<Result<_>>()?),
        Argument::OptionalTensors(ids) => Value::OptionalTensors(
            ids.iter().map(|id| id.map(&mut *tensor).transpose()).collect::<Result<_>>()?,
        ),
        Argument::Value(value) => value.clone(),
        Argument::Int(size) => Value::Int(number(size)?),
        Argument::Ints(sizes) => Value::Ints(sizes.iter().map(number).collect::<Result<_>>()?),
        Argument::Scalar(value) => Value::Scalar(scalar(value)?),
        Argument::Float(value) => Value::Float(scalar(value)?.to_f64()),
    })
}
