//! A graph made ready for known sizes: memory, tensors over it, and steps with everything looked up.
//!
//! In: a graph and the layouts that [`bind`](super::bind) found. Out: a [`Plan`], which runs without asking
//! for memory. A tensor of the plan lies in the arena, in a constant, or in memory that changes from run to
//! run (an input's, an output's); only those of the last kind are pointed elsewhere before a run.

use smallvec::SmallVec;

use super::bind::{Bound, argument};
use super::ir::{Argument, BufferKind, Graph, Node, NodeKind, Region, Site, TensorId};
use super::memory::{self, Lifetime};
use crate::arg::Value;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::{KernelFn, OpDef};
use crate::storage::Storage;
use crate::tensor::Tensor;

/// A graph at known sizes, ready to run.
pub(super) struct Plan {
    /// Every tensor of the graph, by number; those that nothing needs have no elements.
    pub tensors: Vec<Tensor>,
    pub steps: Vec<Step>,
    /// The tensors over each input, by position.
    pub inputs: Vec<Outside>,
    /// The memory that outputs are written to.
    pub results: Vec<Outside>,
    /// Lists that hold tensors of `inputs` or `results`, and are filled again before a run.
    pub lists: Vec<(usize, Vec<Option<TensorId>>)>,
    /// Arguments that are lists of tensors.
    pub list_values: Vec<Value>,
    /// External memory that is read, and that is written.
    pub reads: Vec<TensorId>,
    pub writes: Vec<TensorId>,
    /// Where tensors over inputs point between runs.
    pub nowhere: Storage,
    /// How much memory the arena has.
    pub arena_bytes: usize,
}

/// Memory that changes from run to run.
pub(super) struct Outside {
    pub root: TensorId,
    pub tensors: Vec<TensorId>,
    pub written: bool,
}

/// One step, with everything looked up.
pub(super) struct Step {
    pub kind: StepKind,
    pub args: Box<[StepArg]>,
    pub outs: SmallVec<[TensorId; 1]>,
    pub site: Site,
}

pub(super) enum StepKind {
    Kernel { kernel: KernelFn, op: &'static OpDef },
    Copy,
    Add,
    Cond { branches: [Vec<Step>; 2] },
    While { condition: Vec<Step>, predicate: TensorId, body: Vec<Step> },
    Scan { length: i64, moving: Vec<(TensorId, i64)>, body: Vec<Step> },
}

pub(super) enum StepArg {
    Tensor(TensorId),
    /// A list of tensors, by its position in [`Plan::list_values`].
    List(usize),
    Value(Value),
}

impl Plan {
    /// Makes a plan for the given layouts.
    ///
    /// # Errors
    /// If there is no memory, or no kernel.
    pub fn new(graph: &Graph, bound: &Bound) -> Result<Plan> {
        let uses = Uses::of(graph);
        let mut builder = Builder {
            graph,
            bound,
            plan: Plan {
                tensors: Vec::new(),
                steps: Vec::new(),
                inputs: Vec::new(),
                results: Vec::new(),
                lists: Vec::new(),
                list_values: Vec::new(),
                reads: Vec::new(),
                writes: Vec::new(),
                nowhere: Storage::meta(0)?,
                arena_bytes: 0,
            },
        };
        builder.tensors(&uses)?;
        builder.plan.steps = builder.steps(&graph.nodes)?;
        builder.plan.let_go();
        Ok(builder.plan)
    }
}

/// When buffers are needed, in positions of the graph's nodes.
pub(super) struct Uses {
    /// The first and last node that touches each buffer.
    pub spans: Vec<Option<(usize, usize)>>,
    pub written: Vec<bool>,
    /// The buffers that outputs show.
    pub is_result: Vec<bool>,
}

impl Uses {
    pub fn of(graph: &Graph) -> Uses {
        let count = graph.buffers.len();
        let mut uses =
            Uses { spans: vec![None; count], written: vec![false; count], is_result: vec![false; count] };
        for (position, node) in graph.nodes.iter().enumerate() {
            let spans = &mut uses.spans;
            let mut touch = |id: TensorId| {
                let span = spans[graph.buffer_of(id).index()].get_or_insert((position, position));
                span.1 = position;
            };
            node.for_each_read(&mut touch);
            node.for_each_write(&mut touch);
            node.for_each_write(&mut |id| uses.written[graph.buffer_of(id).index()] = true);
        }
        for output in &graph.outputs {
            uses.is_result[graph.buffer_of(*output).index()] = true;
        }
        uses
    }

    /// Whether a buffer lies in the arena.
    pub fn in_arena(&self, graph: &Graph, buffer: usize) -> bool {
        matches!(graph.buffers[buffer].kind, BufferKind::Internal)
            && !self.is_result[buffer]
            && self.spans[buffer].is_some()
    }
}

struct Builder<'a> {
    graph: &'a Graph,
    bound: &'a Bound,
    plan: Plan,
}

impl Builder<'_> {
    fn layout(&self, id: TensorId) -> Result<&Layout> {
        self.bound.layouts[id.index()]
            .as_ref()
            .ok_or_else(|| Error::graph(format!("the layout of tensor {} is not known", id.0)))
    }

    fn bytes(&self, buffer: usize) -> Result<usize> {
        let root = self.graph.buffers[buffer].root;
        let numel = self.layout(root)?.numel() as usize;
        Ok(numel * self.graph.tensor(root).dtype.size())
    }

    fn tensors(&mut self, uses: &Uses) -> Result<()> {
        let graph = self.graph;
        let arena: Vec<usize> =
            (0..graph.buffers.len()).filter(|&buffer| uses.in_arena(graph, buffer)).collect();
        let lifetimes = arena.iter().map(|&buffer| {
            let (first, last) = uses.spans[buffer].expect("only used buffers are in the arena");
            Ok(Lifetime { bytes: self.bytes(buffer)?, first, last })
        });
        let placement = memory::place(&lifetimes.collect::<Result<Vec<_>>>()?);
        let memory = Storage::uninitialized(placement.bytes)?;
        self.plan.arena_bytes = placement.bytes;
        // The storage of each buffer, and where the buffer starts in it.
        let mut homes: Vec<Option<(Storage, usize)>> = vec![None; graph.buffers.len()];
        for (&buffer, &offset) in arena.iter().zip(&placement.offsets) {
            homes[buffer] = Some((memory.clone(), offset));
        }
        for (number, buffer) in graph.buffers.iter().enumerate() {
            let outside =
                || Outside { root: buffer.root, tensors: Vec::new(), written: uses.written[number] };
            match &buffer.kind {
                BufferKind::Input(_) => {}
                BufferKind::Constant(whole) => {
                    homes[number] = Some((whole.storage().clone(), 0));
                    if uses.spans[number].is_some() {
                        let list =
                            if uses.written[number] { &mut self.plan.writes } else { &mut self.plan.reads };
                        list.push(buffer.root);
                    }
                }
                BufferKind::Internal if uses.is_result[number] => {
                    homes[number] = Some((Storage::uninitialized(self.bytes(number)?)?, 0));
                    self.plan.results.push(outside());
                }
                BufferKind::Internal => {}
            }
        }
        self.plan.inputs = graph
            .inputs
            .iter()
            .map(|root| {
                let buffer = graph.buffer_of(*root).index();
                Outside { root: *root, tensors: Vec::new(), written: uses.written[buffer] }
            })
            .collect();
        for (number, info) in graph.tensors.iter().enumerate() {
            let id = TensorId(number as u32);
            let buffer = info.buffer.index();
            let home = homes[buffer].clone();
            let (storage, start) = home.unwrap_or_else(|| (self.plan.nowhere.clone(), 0));
            let mut layout = match &self.bound.layouts[number] {
                Some(layout) => layout.clone(),
                // Nothing reached it, so nothing needs it.
                None => Layout::contiguous(&[0]),
            };
            layout.offset += (start / info.dtype.size()) as i64;
            // SAFETY: a buffer is as large as its root, inside which every layout of it was found to lie;
            // nodes write elements before others read them, as they did in the order they were recorded in.
            self.plan.tensors.push(unsafe { Tensor::from_parts(storage, layout, info.dtype, info.device) });
            let outside = match graph.buffers[buffer].kind {
                BufferKind::Input(input) => Some(&mut self.plan.inputs[input]),
                BufferKind::Internal if uses.is_result[buffer] => {
                    let root = graph.buffers[buffer].root;
                    self.plan.results.iter_mut().find(|result| result.root == root)
                }
                _ => None,
            };
            if let Some(outside) = outside {
                outside.tensors.push(id);
            }
        }
        Ok(())
    }

    fn steps(&mut self, nodes: &[Node]) -> Result<Vec<Step>> {
        let mut steps = Vec::with_capacity(nodes.len());
        for node in nodes {
            if let Some(step) = self.step(node)? {
                steps.push(step);
            }
        }
        Ok(steps)
    }

    fn region(&mut self, region: &Region) -> Result<Vec<Step>> {
        self.steps(&region.nodes)
    }

    /// The step of a node; `None` if there is nothing to do.
    fn step(&mut self, node: &Node) -> Result<Option<Step>> {
        let empty =
            !node.outs.is_empty() && node.outs.iter().all(|out| self.plan.tensors[out.index()].numel() == 0);
        let number = |size: &crate::symbolic::Size| {
            let value = size.evaluate(|symbol| *self.bound.symbols.get(symbol.0 as usize)?);
            value.ok_or_else(|| Error::graph(format!("the size {size} is not known")))
        };
        let kind = match &node.kind {
            NodeKind::View { .. } => return Ok(None),
            NodeKind::Call { .. } | NodeKind::Copy | NodeKind::Add if empty => return Ok(None),
            NodeKind::Call { op, compute } => {
                let device = node.outs.first().map_or(Device::CPU, |out| self.graph.tensor(*out).device);
                StepKind::Kernel { kernel: op.kernel(device.backend, *compute)?, op }
            }
            NodeKind::Copy => StepKind::Copy,
            NodeKind::Add => StepKind::Add,
            NodeKind::Cond { branches } => {
                StepKind::Cond { branches: [self.region(&branches[0])?, self.region(&branches[1])?] }
            }
            NodeKind::While { condition, predicate, body } => StepKind::While {
                condition: self.region(condition)?,
                predicate: *predicate,
                body: self.region(body)?,
            },
            NodeKind::Scan { length, moving, body } => StepKind::Scan {
                length: number(length)?,
                moving: moving
                    .iter()
                    .map(|moving| Ok((moving.tensor, number(&moving.step)?)))
                    .collect::<Result<_>>()?,
                body: self.region(body)?,
            },
        };
        let args = node.args.iter().map(|arg| self.argument(arg)).collect::<Result<_>>()?;
        Ok(Some(Step { kind, args, outs: node.outs.clone(), site: node.site.clone() }))
    }

    fn argument(&mut self, arg: &Argument) -> Result<StepArg> {
        let ids: Vec<Option<TensorId>> = match arg {
            Argument::Tensor(id) => return Ok(StepArg::Tensor(*id)),
            Argument::Tensors(ids) => ids.iter().copied().map(Some).collect(),
            Argument::OptionalTensors(ids) => ids.clone(),
            _ => {
                let none = &mut |_| Err(Error::graph("an attribute holds no tensor"));
                return Ok(StepArg::Value(argument(arg, &self.bound.symbols, none)?));
            }
        };
        let changes = ids.iter().flatten().any(|id| {
            let lists = self.plan.inputs.iter().chain(&self.plan.results);
            let mut lists = lists.map(|outside| &outside.tensors);
            lists.any(|tensors| tensors.contains(id))
        });
        let tensor = |id: &TensorId| self.plan.tensors[id.index()].clone();
        let value = match arg {
            Argument::Tensors(ids) => Value::Tensors(ids.iter().map(tensor).collect()),
            _ => Value::OptionalTensors(ids.iter().map(|id| id.as_ref().map(tensor)).collect()),
        };
        self.plan.list_values.push(value);
        let position = self.plan.list_values.len() - 1;
        if changes {
            self.plan.lists.push((position, ids));
        }
        Ok(StepArg::List(position))
    }
}
