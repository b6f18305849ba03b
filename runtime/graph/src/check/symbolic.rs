//! Symbolic inference of a graph.
//!
//! In: a graph, node by node. Out: errors for nodes that fail at all sizes, and the conditions on sizes of the others.
//! Formulas found by tracing are compared with those of inference; inferred ones take precedence if they exist.

use std::collections::HashSet;

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{self, Bindings, Condition, Context, Meta, Shape, Size, Strides};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use super::Steps;
use super::infer::CallInference;
use crate::ir::{Argument, BufferKind, Graph, Node, NodeKind, TensorId, TensorInfo};

pub(crate) struct SymbolicGraph<'a> {
    graph: &'a Graph,
    pub inference: CallInference,
    metas: Vec<Option<Meta>>,
    /// The nodes that are rejected at the sizes of the example, by number among all visited ones. The others do not
    /// fail at all sizes, even if inference cannot decide them.
    refused: &'a HashSet<usize>,
}

/// An argument, owned while inference reads it.
enum Held<'a> {
    Given(symbolic::ArgumentMeta<'a>),
    Tensors(Vec<Meta>),
    OptionalTensors(Vec<Option<Meta>>),
}

impl<'a> SymbolicGraph<'a> {
    /// The tensors of inputs and constants, with the graph's symbols and guards.
    pub fn new(graph: &'a Graph, refused: &'a HashSet<usize>) -> SymbolicGraph<'a> {
        let inference = CallInference::of(Context::of(graph.symbols.clone(), &graph.guards));
        SymbolicGraph { graph, inference, metas: vec![None; graph.tensors.len()], refused }
    }

    /// Sets the meta of a tensor that no node made so far, from the graph's formulas.
    fn make(&mut self, id: TensorId) {
        if self.metas[id.index()].is_none() {
            self.metas[id.index()] = Some(self.by_formulas(id));
        }
    }

    fn by_formulas(&self, id: TensorId) -> Meta {
        let graph = self.graph;
        let info = graph.tensor(id);
        let buffer = &graph.buffers[info.buffer.index()];
        if let Some(constant) = constant(info, &buffer.kind) {
            return Meta::constant(&constant);
        }
        let shape: Shape =
            info.layout.sizes.iter().map(|size| self.inference.context.simplified(size)).collect();
        let strides = match buffer.root == id {
            true => Strides::Contiguous,
            false => self.strides(info),
        };
        Meta { dtype: info.dtype, shape, strides, device: info.device, value: None }
    }

    fn strides(&self, info: &TensorInfo) -> Strides {
        let strides =
            info.layout.strides.iter().map(|stride| self.inference.context.simplified(stride)).collect();
        let offset = self.inference.context.simplified(&info.layout.offset);
        let given = Strides::Given { strides, offset };
        match &given {
            Strides::Given { strides, offset } if strides.iter().chain([offset]).any(Size::is_unknown) => {
                Strides::Unknown
            }
            _ => given,
        }
    }

    fn call(&mut self, node: &Node, op: &'static OpDef) -> Result<()> {
        for arg in &node.args {
            arg.for_each_tensor(|id| self.make(id));
        }
        let Some(outputs) = self.inferred(node, op)? else { return self.results(node) };
        for (&id, meta) in node.outs.iter().zip(outputs.outs) {
            self.output(id, meta, node, op)?;
        }
        Ok(())
    }

    /// The results of a call by inference, of arguments whose metas are made; `None` if rules do not support one.
    fn inferred(&mut self, node: &Node, op: &'static OpDef) -> Result<Option<symbolic::OutputsMeta>> {
        let SymbolicGraph { metas, inference, .. } = self;
        let meta = |id: &TensorId| metas[id.index()].as_ref().expect("made above");
        let mut held: SmallVec<[Held<'_>; 6]> = SmallVec::new();
        for arg in &node.args {
            held.push(match arg {
                Argument::Tensor(id) => Held::Given(symbolic::ArgumentMeta::Tensor(meta(id))),
                Argument::Tensors(ids) => Held::Tensors(ids.iter().map(|id| meta(id).clone()).collect()),
                Argument::OptionalTensors(ids) => Held::OptionalTensors(
                    ids.iter().map(|id| id.as_ref().map(|id| meta(id).clone())).collect(),
                ),
                Argument::Value(value) => Held::Given(symbolic::ArgumentMeta::Plain(value.as_arg())),
                Argument::Int(size) => Held::Given(symbolic::ArgumentMeta::Int(size)),
                Argument::Ints(sizes) => Held::Given(symbolic::ArgumentMeta::Ints(sizes)),
                // Rules do not support such numbers: the traced result stays.
                Argument::Scalar(_) | Argument::Float(_) => return Ok(None),
            });
        }
        let args: SmallVec<[symbolic::ArgumentMeta<'_>; 6]> = held
            .iter()
            .map(|held| match held {
                Held::Given(arg) => *arg,
                Held::Tensors(metas) => symbolic::ArgumentMeta::Tensors(metas),
                Held::OptionalTensors(metas) => symbolic::ArgumentMeta::OptionalTensors(metas),
            })
            .collect();
        inference.call(op, &args, &node.site).map(Some)
    }

    /// A result of a call: new memory or a view, or existing memory that the call writes.
    fn output(&mut self, id: TensorId, mut meta: Meta, node: &Node, op: &'static OpDef) -> Result<()> {
        let is_view = matches!(node.kind, NodeKind::View { .. });
        let is_new = self.metas[id.index()].is_none()
            && (is_view || self.graph.buffers[self.graph.buffer_of(id).index()].root == id);
        let known = self.metas[id.index()].clone().unwrap_or_else(|| self.by_formulas(id));
        let (Some(traced), Some(inferred)) = (known.shape.sizes(), meta.shape.sizes()) else {
            self.make(id);
            return Ok(());
        };
        let context = &self.inference.context;
        let differs = traced.len() != inferred.len()
            || traced.iter().zip(inferred).any(|(a, b)| context.equal(a, b) == Condition::False);
        if differs {
            let symbols = &context.symbols;
            return Err(Error::graph(format!(
                "the result has the shape {}, and the graph has a tensor of shape {} for it",
                meta.shape.named(symbols),
                known.shape.named(symbols)
            ))
            .in_op(op.name, Vec::new()));
        }
        if !is_new {
            self.make(id);
            let pairs: Vec<(Size, Size)> = traced.iter().cloned().zip(inferred.iter().cloned()).collect();
            for (a, b) in pairs {
                let condition = self.inference.context.equal(&a, &b);
                let reason = "the result is written to a tensor of that shape";
                self.inference.assume(condition, op.name, reason, &node.site);
            }
            return Ok(());
        }
        let sizes = traced.iter().zip(inferred);
        meta.shape =
            sizes.map(|(traced, size)| if size.is_unknown() { traced } else { size }.clone()).collect();
        if is_view && meta.strides == Strides::Unknown {
            meta.strides = known.strides;
        }
        self.metas[id.index()] = Some(meta);
        Ok(())
    }
}

impl<'a> Steps<'a> for SymbolicGraph<'a> {
    fn graph(&self) -> &'a Graph {
        self.graph
    }

    fn step(&mut self, node: &Node, visited: usize) -> Result<()> {
        let Some(op) = node.kind.op() else { return self.results(node) };
        match self.call(node, op) {
            Ok(()) => Ok(()),
            Err(error) if self.refused.contains(&visited) => {
                Err(error.with_note(format!("called at {}", node.site)))
            }
            Err(error) => {
                self.inference.leave_open(&error, op.name, &node.site);
                self.results(node)
            }
        }
    }

    fn results(&mut self, node: &Node) -> Result<()> {
        node.outs.iter().for_each(|out| self.make(*out));
        Ok(())
    }
}

/// A tensor over a constant, with its elements.
fn constant(info: &TensorInfo, kind: &BufferKind) -> Option<Tensor> {
    let BufferKind::Constant(whole) = kind else { return None };
    let layout = info.layout.evaluate(&Bindings::default())?;
    layout.check_inside((whole.storage().bytes() / info.dtype.size()) as i64).ok()?;
    // SAFETY: the layout was just checked to lie inside the memory, all of which was written before the trace.
    Some(unsafe { Tensor::from_parts(whole.storage().clone(), layout, info.dtype, info.device) })
}
