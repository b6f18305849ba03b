//! Planning: a graph made executable at known sizes.
//!
//! In: a graph and the layouts found by [`bind`]. Out: a [`Plan`], with memory allocated and kernels looked up, which
//! runs without allocating. A tensor of the plan lies in the arena, in a constant, or in memory that changes from run
//! to run (an input's, an output's); only tensors of the last kind are updated before a run.

mod arena;
pub(crate) mod bind;
mod chains;
pub(crate) mod fusion;
mod lent;
pub(crate) mod liveness;
mod offsets;
pub(crate) mod records;
mod reuse;
mod rows;
pub(crate) mod schedule;
mod step;
pub(crate) mod tiles;
mod times;
pub(crate) mod verify;

use opsmith_core::DType;
use opsmith_runtime::arg::Value;
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::{
    ArgumentInternals as _, Chain, GeneratorInternals as _, OperatorInternals as _, Start,
    StorageInternals as _, is_checked_by_kernel,
};
use opsmith_runtime::layout::Layout;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::random::Generator;
use opsmith_runtime::storage::Storage;
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use crate::ir::{Argument, BufferKind, Graph, Node, NodeKind, Region, TensorId};
use arena::InArenas;
use bind::{Bound, argument};
use chains::Links;
use fusion::{Fusion, Group};
use liveness::{BufferAssignment, BufferLocation};
use records::Records;
use schedule::levels;
pub(crate) use step::{FEW_ARGS, FusedKernel, Step, StepArg, StepKind, StepList};

/// A graph at known sizes, ready to run.
pub(crate) struct Plan {
    /// Every tensor of the graph, by number; unused ones have no elements.
    pub tensors: Vec<Tensor>,
    /// The steps, ordered by level.
    pub steps: Vec<Step>,
    /// The end of each level in `steps`; empty for sequential execution.
    pub levels: Vec<usize>,
    pub threads: usize,
    /// The tensors over each input, by position.
    pub inputs: Vec<External>,
    /// The memory of outputs.
    pub results: Vec<External>,
    /// Lists with tensors of `inputs` or `results`, which are refilled before a run.
    pub lists: Vec<(usize, Vec<Option<TensorId>>)>,
    /// Arguments that are lists of tensors.
    pub list_values: Vec<Value>,
    /// External memory that is read, and that is written.
    pub reads: Vec<TensorId>,
    pub writes: Vec<TensorId>,
    /// For each output: its tensor if it lies in an input, and a handle of the previous run to reuse.
    pub handles: Vec<(Option<TensorId>, Option<Tensor>)>,
    /// Private copies of generators that the function makes, with their numbers.
    pub generators: Vec<(usize, Generator)>,
    /// The tensors that a run borrows. The lists are empty between runs, but keep their capacity.
    pub borrowed: [Vec<Tensor>; 2],
    /// Roots of buffers that are cleared before each run.
    pub cleared: Vec<TensorId>,
    /// The storage of tensors over inputs between runs.
    pub nowhere: Storage,
    /// Size of the arenas in bytes.
    pub arena_bytes: usize,
    /// Records of its work on a device.
    pub records: Records,
}

/// Memory that changes from run to run.
pub(crate) struct External {
    pub root: TensorId,
    pub tensors: Vec<TensorId>,
    pub written: bool,
}

impl Plan {
    /// Makes a plan for the given layouts.
    ///
    /// # Errors
    /// If there is no memory, or no kernel.
    pub fn new(graph: &Graph, bound: &Bound) -> Result<Plan> {
        let fusion = Fusion::of(graph, bound);
        let levels = levels(graph, &fusion);
        let assignment = BufferAssignment::new(graph, &bound.layouts, &levels, &fusion, &bound.cleared)?;
        let mut builder = Builder {
            graph,
            bound,
            step_lists: 1,
            plan: Plan {
                tensors: Vec::new(),
                steps: Vec::new(),
                levels: Vec::new(),
                threads: 1,
                inputs: Vec::new(),
                results: Vec::new(),
                lists: Vec::new(),
                list_values: Vec::new(),
                reads: Vec::new(),
                writes: Vec::new(),
                handles: Vec::new(),
                generators: Vec::new(),
                borrowed: [Vec::new(), Vec::new()],
                cleared: bound.cleared.iter().map(|buffer| graph.buffers[buffer.index()].root).collect(),
                nowhere: Storage::meta(0)?,
                arena_bytes: 0,
                records: Records::default(),
            },
        };
        builder.tensors(&assignment)?;
        builder.plan.threads = graph.threads;
        let over_input = |id: TensorId| {
            let kind = &graph.buffers[graph.buffer_of(id).index()].kind;
            matches!(kind, BufferKind::Input(_)).then_some(id)
        };
        builder.plan.handles = graph.outputs.iter().map(|id| (over_input(*id), None)).collect();
        builder.top(&levels, &fusion)?;
        builder.plan.records = Records::of(graph, &builder.plan);
        builder.plan.let_go();
        Ok(builder.plan)
    }
}

struct Builder<'a> {
    graph: &'a Graph,
    bound: &'a Bound,
    /// Number of step lists so far.
    step_lists: usize,
    plan: Plan,
}

impl Builder<'_> {
    /// The storage of each buffer, and the buffer's offset in it. Allocates the arenas and the results.
    fn locations(&mut self, assignment: &BufferAssignment) -> Result<Vec<Option<(Storage, usize)>>> {
        let graph = self.graph;
        let arenas = assignment.arenas.iter().map(|arena| Storage::on(arena.device, arena.bytes));
        let arenas = arenas.collect::<Result<Vec<Storage>>>()?;
        self.plan.arena_bytes = assignment.arenas.iter().map(|arena| arena.bytes).sum();
        let mut locations: Vec<Option<(Storage, usize)>> = vec![None; graph.buffers.len()];
        for (number, buffer) in graph.buffers.iter().enumerate() {
            match (assignment.locations[number], &buffer.kind) {
                (BufferLocation::Arena { device, offset }, _) => {
                    let arena = arenas.iter().find(|arena| arena.device() == device);
                    locations[number] = arena.map(|arena| (arena.clone(), offset));
                }
                (BufferLocation::Constant, BufferKind::Constant(whole)) => {
                    locations[number] = Some((whole.storage().clone(), 0));
                    if assignment.live_ranges[number].is_some() {
                        let plan = &mut self.plan;
                        let list =
                            if assignment.written[number] { &mut plan.writes } else { &mut plan.reads };
                        list.push(buffer.root);
                    }
                }
                (BufferLocation::Result, _) => {
                    let bytes = liveness::bytes(graph, &self.bound.layouts, number)?;
                    locations[number] = Some((Storage::on(graph.tensor(buffer.root).device, bytes)?, 0));
                    let written = assignment.written[number];
                    self.plan.results.push(External { root: buffer.root, tensors: Vec::new(), written });
                }
                _ => {}
            }
        }
        for (number, location) in assignment.locations.iter().enumerate() {
            if let BufferLocation::Lent { result, offset } = *location {
                locations[number] = locations[result].clone().map(|(storage, _)| (storage, offset));
            }
        }
        Ok(locations)
    }

    fn tensors(&mut self, assignment: &BufferAssignment) -> Result<()> {
        let graph = self.graph;
        let locations = self.locations(assignment)?;
        self.plan.inputs = graph
            .inputs
            .iter()
            .map(|root| {
                let buffer = graph.buffer_of(*root).index();
                External { root: *root, tensors: Vec::new(), written: assignment.written[buffer] }
            })
            .collect();
        let mut in_arenas = InArenas::default();
        for (number, info) in graph.tensors.iter().enumerate() {
            let id = TensorId(number as u32);
            let buffer = info.buffer.index();
            let home = locations[buffer].clone();
            let (storage, start) = home.unwrap_or_else(|| (self.plan.nowhere.clone(), 0));
            let mut layout = match &self.bound.layouts[number] {
                Some(layout) => layout.clone(),
                // A tensor that binding did not reach is unused.
                None => Layout::contiguous(&[0]),
            };
            layout.offset += (start / info.dtype.size()) as i64;
            // SAFETY: a buffer is as large as its root, and binding checked that every layout over it lies inside;
            // nodes write elements before others read them, as in the recorded order.
            let new = |layout| unsafe { Tensor::from_parts(storage, layout, info.dtype, info.device) };
            let tensor = match assignment.locations[buffer] {
                BufferLocation::Arena { device, .. } => {
                    in_arenas.tensor(device, layout, info.dtype, &self.plan.tensors, new)
                }
                _ => new(layout),
            };
            self.plan.tensors.push(tensor);
            let of_result = |buffer: usize| graph.buffers[buffer].root;
            let result = match assignment.locations[buffer] {
                BufferLocation::Result => Some(of_result(buffer)),
                BufferLocation::Lent { result, .. } => Some(of_result(result)),
                _ => None,
            };
            let outside = match (&graph.buffers[buffer].kind, result) {
                (BufferKind::Input(input), _) => Some(&mut self.plan.inputs[*input]),
                (_, Some(root)) => self.plan.results.iter_mut().find(|result| result.root == root),
                _ => None,
            };
            if let Some(outside) = outside {
                outside.tensors.push(id);
            }
        }
        Ok(())
    }

    /// The top-level nodes, by schedule level.
    fn top(&mut self, levels: &[usize], fusion: &Fusion) -> Result<()> {
        let nodes = &self.graph.nodes;
        let memory = tiles::tile_memory(fusion)?;
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        if self.plan.threads > 1 {
            order.sort_by_key(|&number| levels[number]);
        }
        let mut last = None;
        for number in order {
            let step = match fusion.group_of(number) {
                Some(group) if group.nodes.start == number => Some(self.group(group, &memory)?),
                Some(_) => None,
                None => self.step(&nodes[number])?,
            };
            let Some(step) = step else { continue };
            if self.plan.threads > 1 && last.is_some_and(|last| last != levels[number]) {
                self.plan.levels.push(self.plan.steps.len());
            }
            last = Some(levels[number]);
            self.plan.steps.push(step);
        }
        if self.plan.threads > 1 {
            self.plan.levels.push(self.plan.steps.len());
        }
        Ok(())
    }

    fn group(&mut self, group: &Group, memory: &[Storage]) -> Result<Step> {
        let site = self.graph.nodes[group.nodes.start].site.clone();
        let kind = match &group.links {
            Some(links) => StepKind::Chain(Box::new(self.fused_kernel(links)?)),
            None => StepKind::Tiled(Box::new(self.tiled(group, memory)?)),
        };
        Ok(Step { kind, args: Box::default(), outs: SmallVec::new(), site })
    }

    fn fused_kernel(&self, links: &Links) -> Result<FusedKernel> {
        let results = links.stored.iter().map(|(_, id)| *id);
        let operands: Vec<TensorId> = results.chain(links.reads.iter().copied()).collect();
        let stored: Vec<usize> = links.stored.iter().map(|(link, _)| *link).collect();
        let tensors: Vec<&Tensor> = operands.iter().map(|id| &self.plan.tensors[id.index()]).collect();
        let chain = Chain::new(&links.links, &stored, &tensors)?;
        Ok(FusedKernel { chain, device: links.device, operands })
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

    fn region(&mut self, region: &Region) -> Result<StepList> {
        let number = self.step_lists;
        self.step_lists += 1;
        Ok(StepList { number, steps: self.steps(&region.nodes)? })
    }

    /// Whether a call has integer tensors that its kernel checks even if the results are empty.
    fn reads_integers(&self, op: &OpDef, node: &Node) -> bool {
        let mut found = false;
        for (argument, arg) in node.args.iter().enumerate() {
            arg.for_each_tensor(|id| {
                let is_empty = self.plan.tensors[id.index()].numel() == 0;
                found |= !is_empty && is_checked_by_kernel(op, argument, self.graph.tensor(id).dtype);
            });
        }
        found
    }

    /// Whether every tensor of a call has one shape.
    fn has_one_shape(&self, node: &Node) -> bool {
        let shape = |id: TensorId| self.plan.tensors[id.index()].shape();
        let Some(first) = node.outs.first().map(|out| shape(*out)) else { return false };
        let mut same = true;
        node.outs.iter().for_each(|out| same &= shape(*out) == first);
        node.args.iter().for_each(|arg| arg.for_each_tensor(|id| same &= shape(id) == first));
        same
    }

    /// The step of a node; `None` if there is nothing to run.
    fn step(&mut self, node: &Node) -> Result<Option<Step>> {
        let empty =
            !node.outs.is_empty() && node.outs.iter().all(|out| self.plan.tensors[out.index()].numel() == 0);
        let number = |size: &opsmith_runtime::infer::symbolic::Size| {
            let value = size.bind(&self.bound.symbols);
            value.ok_or_else(|| Error::graph(format!("the size {size} is not known")))
        };
        let kind = match &node.kind {
            NodeKind::View { .. } => return Ok(None),
            NodeKind::Call { op, .. } if empty && !self.reads_integers(op, node) => return Ok(None),
            NodeKind::Copy | NodeKind::Add if empty => return Ok(None),
            NodeKind::Call { op, compute } => {
                let device = node.outs.first().map_or(Device::CPU, |out| self.graph.tensor(*out).device);
                let kernel = op.kernel(device.backend, *compute)?;
                let direct = device == Device::CPU
                    && !op.forms.updates
                    && node.outs.len() == 1
                    && node.args.len() <= FEW_ARGS;
                let gives_bool = node.outs.iter().any(|out| self.graph.tensor(*out).dtype == DType::Bool);
                StepKind::Kernel { kernel, op, one_shape: self.has_one_shape(node), direct, gives_bool }
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
                body: self.steps(&body.nodes)?,
            },
        };
        let args = node.args.iter().map(|arg| self.argument(arg)).collect::<Result<_>>()?;
        Ok(Some(Step { kind, args, outs: node.outs.clone(), site: node.site.clone() }))
    }

    /// Replaces a generator that the function makes by a private one of this plan, so that concurrent runs do not share
    /// one.
    fn own_generator(&mut self, value: Value) -> Value {
        let Value::Generator(shared) = &value else { return value };
        let Some(Start { number, state }) = shared.start() else { return value };
        let generators = &mut self.plan.generators;
        if let Some((_, own)) = generators.iter().find(|(known, _)| *known == number) {
            return Value::Generator(own.clone());
        }
        let own = Generator::at(state);
        generators.push((number, own.clone()));
        Value::Generator(own)
    }

    fn argument(&mut self, arg: &Argument) -> Result<StepArg> {
        let ids: Vec<Option<TensorId>> = match arg {
            Argument::Tensor(id) => return Ok(StepArg::Tensor(*id)),
            Argument::Tensors(ids) => ids.iter().copied().map(Some).collect(),
            Argument::OptionalTensors(ids) => ids.clone(),
            _ => {
                let none = &mut |_| Err(Error::graph("an attribute holds no tensor"));
                let value = argument(arg, &self.bound.symbols, none)?;
                let plain = value.to_plain_arg();
                return Ok(plain.map_or_else(|| StepArg::Value(self.own_generator(value)), StepArg::Plain));
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
