//! Execution of a graph.
//!
//! In: a plan and inputs. Out: outputs. A warm run points the tensors over inputs at the given memory, calls
//! the kernels one after the other, and does not allocate.

mod executable;
pub(crate) mod records;
mod recycle;
mod segments;
mod tiled;

use std::borrow::Borrow;
use std::mem::MaybeUninit;

use opsmith_runtime::arg::{Arg, Value, describe_operands};
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::infer::symbolic::Bindings;
use opsmith_runtime::internals::{
    self, Borrows, GeneratorInternals as _, Span, TensorInternals as _, endless,
};
use opsmith_runtime::op::KernelCall;
use opsmith_runtime::parallel;
use opsmith_runtime::random::GeneratorState;
use opsmith_runtime::scalar::Scalar;
use opsmith_runtime::scratch::Scratch;
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use crate::ir::{Graph, RunState, ShapeConstant, SymbolSource, TensorId};
use crate::plan::bind::bind;
use crate::plan::{Plan, Step, StepArg, StepKind};
use crate::show::table::counted;

use executable::Executable;
use records::Counts;

/// The states of generators that the function makes, by number.
pub(crate) type GeneratorStates = Scratch<GeneratorState>;

impl Graph {
    /// Runs the graph.
    ///
    /// The first run for some sizes makes a plan for them, which later runs use. Concurrent runs from several threads
    /// have a plan each.
    ///
    /// # Errors
    /// If the inputs do not match the graph's specifications, and errors of kernels.
    pub fn run<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Vec<Tensor>> {
        let mut outputs = Vec::with_capacity(self.outputs.len());
        self.run_into(inputs, &mut outputs)?;
        Ok(outputs)
    }

    /// Sets the number of threads that run independent nodes; 1 by default. Results are the same, bit for bit. More
    /// threads help if independent nodes take some tens of microseconds or more, and need more memory, since concurrent
    /// nodes' buffers are live together.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
        self.state = RunState::default();
        self.variants.iter_mut().for_each(|variant| variant.graph.set_threads(threads));
    }

    /// As [`Graph::run`], with the outputs in a list that is reused between runs: its former contents are released
    /// first, so that their memory and handles can be reused. After the first run for some sizes, and if no other
    /// handle to the previous outputs exists, neither this function nor the kernels of the stock library allocate
    /// system memory.
    ///
    /// # Errors
    /// As [`Graph::run`].
    pub fn run_into<T: Borrow<Tensor>>(&self, inputs: &[T], outputs: &mut Vec<Tensor>) -> Result<()> {
        self.shape_constants.iter().try_for_each(ShapeConstant::check).inspect_err(|_| outputs.clear())?;
        if let Some(variant) = self.variant_for(inputs) {
            return variant.run_into(inputs, outputs);
        }
        let mut places: GeneratorStates = self.generators.iter().copied().collect();
        // A plan points its tensors at other memory after the run.
        internals::apart(|| self.run_drawing(inputs, outputs, &mut places))
    }

    /// As [`Graph::run_into`], with given states of the function's generators, which are updated.
    pub(crate) fn run_drawing<T: Borrow<Tensor>>(
        &self,
        inputs: &[T],
        outputs: &mut Vec<Tensor>,
        places: &mut GeneratorStates,
    ) -> Result<()> {
        let _phase = internals::open_span(|| Span::Phase { name: "graph" });
        let executable = Executable::of(self);
        if !executable.segments.is_empty() {
            outputs.clear();
            return segments::run(self, &executable.segments, inputs, outputs, places);
        }
        let key = self.match_inputs(inputs).inspect_err(|_| outputs.clear())?;
        let mut plan = match executable.take(&key) {
            Some(plan) => plan,
            None => Plan::new(self, &bind(self, key.clone())?)?,
        };
        plan.take_back(outputs);
        plan.generators.iter().for_each(|(number, own)| own.go_to(places[*number]));
        plan.run(inputs, &executable.counts)?;
        plan.generators.iter().for_each(|(number, own)| places[*number] = own.place());
        plan.hand_out(&self.outputs, outputs);
        plan.let_go();
        executable.give_back(&key, plan);
        Ok(())
    }

    /// The values of the symbols, from the inputs' shapes.
    fn match_inputs<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Bindings> {
        if inputs.len() != self.inputs.len() {
            return Err(Error::graph(format!(
                "the graph has {}, and got {}",
                counted(self.inputs.len(), "input"),
                inputs.len()
            )));
        }
        let symbols = self.symbol_values(inputs);
        for (number, input) in inputs.iter().enumerate() {
            self.match_input(number, input.borrow(), &symbols)?;
        }
        Ok(symbols)
    }

    /// The value of each symbol that is known before the graph runs.
    pub(crate) fn symbol_values<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Bindings {
        self.symbols.values(|symbol| match self.source(symbol) {
            // A shape with too few dimensions is rejected later.
            SymbolSource::Input { input, dim } => {
                Some(inputs[input].borrow().shape().get(dim).copied().unwrap_or(0))
            }
            SymbolSource::Node { .. } | SymbolSource::Derived => None,
        })
    }

    fn match_input(&self, number: usize, input: &Tensor, symbols: &Bindings) -> Result<()> {
        let info = self.tensor(self.inputs[number]);
        let sizes = &info.layout.sizes;
        let fits = input.dtype() == info.dtype
            && input.device() == info.device
            && input.dim() == sizes.len()
            && sizes.iter().zip(input.shape()).all(|(size, given)| size.bind(symbols) == Some(*given));
        if !fits {
            return Err(self.misfit(number, input));
        }
        if input.requires_grad() && internals::recording() && !self.grad_inputs.contains(&number) {
            return Err(Error::graph(format!(
                "input `{}` requires a gradient, and running a graph records nothing",
                self.input_names[number]
            ))
            .with_help(
                "compute the gradient inside the traced function with `grad`, or run the graph under no_grad",
            ));
        }
        if let Some(what) = endless(input) {
            return Err(Error::graph(format!("input `{}` {what}", self.input_names[number]))
                .with_help("expand the tensor in the traced function"));
        }
        if internals::is_tracing() || input.storage().is_meta() {
            return Err(Error::graph("a graph runs while a function is traced")
                .with_help("call the function that the graph was traced from"));
        }
        Ok(())
    }

    #[cold]
    fn misfit(&self, number: usize, input: &Tensor) -> Error {
        let info = self.tensor(self.inputs[number]);
        let sizes: Vec<String> = info.layout.sizes.iter().map(|size| self.text(size)).collect();
        Error::graph(format!(
            "input `{}` is {} of shape {} on {}, and the graph takes {} of shape ({}) on {}",
            self.input_names[number],
            input.dtype(),
            ShapeText(input.shape()),
            input.device(),
            info.dtype,
            sizes.join(", "),
            info.device
        ))
        .with_help("trace the function with a symbol where the size differs from run to run")
    }
}

impl Plan {
    fn run<T: Borrow<Tensor>>(&mut self, inputs: &[T], counts: &Counts) -> Result<()> {
        for (number, input) in inputs.iter().enumerate() {
            self.point_at_input(number, input.borrow(), inputs)?;
        }
        self.renew_results()?;
        self.clear()?;
        for (position, ids) in &self.lists {
            match &mut self.list_values[*position] {
                Value::Tensors(list) => {
                    list.extend(ids.iter().flatten().map(|id| self.tensors[id.index()].clone()));
                }
                Value::OptionalTensors(list) => {
                    list.extend(ids.iter().map(|id| id.map(|id| self.tensors[id.index()].clone())));
                }
                _ => {}
            }
        }
        self.run_steps(counts)
    }

    fn run_steps(&mut self, counts: &Counts) -> Result<()> {
        let [mut reads, mut writes] = std::mem::take(&mut self.borrowed);
        let roots = |list: &mut Vec<Tensor>, ids: &[TensorId], written: bool| {
            let inputs = self.inputs.iter().filter(|input| input.written == written).map(|input| input.root);
            list.extend(ids.iter().copied().chain(inputs).map(|id| self.tensors[id.index()].clone()));
        };
        roots(&mut reads, &self.reads, false);
        roots(&mut writes, &self.writes, true);
        let result = Borrows::acquire(&[Arg::Tensors(&reads)], &writes)
            .and_then(|_held| self.replay_or_launch(counts));
        reads.clear();
        writes.clear();
        self.borrowed = [reads, writes];
        result
    }

    /// Runs the steps one after the other, or level by level.
    fn launch(&mut self) -> Result<()> {
        if self.threads > 1 {
            run_levels(self.threads, &self.levels, &self.steps, &mut self.tensors, &self.list_values)
        } else {
            run_all(&self.steps, &mut self.tensors, &self.list_values)
        }
    }
}

fn run_all(steps: &[Step], tensors: &mut Vec<Tensor>, lists: &[Value]) -> Result<()> {
    steps.iter().try_for_each(|step| run_step(step, tensors, lists))
}

/// Runs the nodes level by level; those of one level in several threads.
fn run_levels(
    threads: usize,
    levels: &[usize],
    steps: &[Step],
    tensors: &mut Vec<Tensor>,
    lists: &[Value],
) -> Result<()> {
    let mut start = 0;
    for &end in levels {
        let together = &steps[start..end];
        start = end;
        if let [alone] = together {
            run_step(alone, tensors, lists)?;
            continue;
        }
        // The error of the first node that failed, in node order, so that the error is deterministic.
        let failure = parallel::FirstError::default();
        let tensors: &[Tensor] = tensors;
        parallel::run(threads, together.len(), &|number| {
            failure.note(number, run_plain(&together[number], tensors, lists));
        });
        failure.into_result()?;
    }
    Ok(())
}

/// Maximal number of arguments gathered on the stack.
const FEW: usize = 8;

/// An argument in the form for kernels.
#[inline(always)]
fn ready<'a>(arg: &'a StepArg, tensor: impl Fn(TensorId) -> &'a Tensor, lists: &'a [Value]) -> Arg<'a> {
    match arg {
        StepArg::Tensor(id) => Arg::Tensor(tensor(*id)),
        StepArg::Plain(arg) => *arg,
        StepArg::List(position) => lists[*position].as_arg(),
        StepArg::Value(value) => value.as_arg(),
    }
}

/// Runs a step without regions.
#[inline]
fn run_plain(step: &Step, tensors: &[Tensor], lists: &[Value]) -> Result<()> {
    bare(step, tensors, lists).map_err(|error| describe(step, error, |id| &tensors[id.index()], lists))
}

/// An error of a step, with its operator, operands and call site.
#[cold]
fn describe<'a>(
    step: &'a Step,
    error: Error,
    tensor: impl Fn(TensorId) -> &'a Tensor,
    lists: &'a [Value],
) -> Error {
    let StepKind::Kernel { op, .. } = &step.kind else { return error };
    let names = op.schema.args.iter().map(|arg| arg.name);
    let args = step.args.iter().map(|arg| ready(arg, &tensor, lists));
    let error = error.in_op(op.name, describe_operands(names.zip(args)));
    error.with_note(format!("called at {}", step.site))
}

/// Runs a step without regions; its error is that of the kernel alone.
#[inline]
fn bare(step: &Step, tensors: &[Tensor], lists: &[Value]) -> Result<()> {
    match &step.kind {
        StepKind::Kernel { kernel, op, one_shape } => {
            let _span = internals::open_span(|| {
                let node = step.outs.first().map_or(0, |out| out.0);
                Span::Step { op, node, site: step.site.of_span() }
            });
            let tensor = |id: TensorId| &tensors[id.index()];
            let mut few = [const { MaybeUninit::<Arg<'_>>::uninit() }; FEW];
            let many: Scratch<Arg<'_>>;
            let args: &[Arg<'_>] = if step.args.len() <= FEW {
                few.iter_mut().zip(&step.args).for_each(|(place, arg)| {
                    place.write(ready(arg, tensor, lists));
                });
                // SAFETY: as many were written.
                unsafe { std::slice::from_raw_parts(few.as_ptr().cast(), step.args.len()) }
            } else {
                many = step.args.iter().map(|arg| ready(arg, tensor, lists)).collect();
                &many
            };
            let several: Scratch<Tensor>;
            let outs = match step.outs.as_slice() {
                [only] => std::slice::from_ref(&tensors[only.index()]),
                outs => {
                    several = outs.iter().map(|out| tensors[out.index()].clone()).collect();
                    &several
                }
            };
            // SAFETY: tracing inferred the outputs and converted the inputs; the plan's layouts are inside its memory,
            // where an output overlaps an input only if the operator is element-wise; the run has borrowed the
            // storages. The plan compared the shapes, which are those of the tiles of a group, too.
            unsafe {
                let call = KernelCall::new(op, args, outs);
                let call = if *one_shape { internals::with_one_shape(call) } else { call };
                internals::run_kernel(*kernel, &call)
            }
        }
        StepKind::Copy => {
            let [StepArg::Tensor(source)] = &*step.args else { return Err(malformed(step)) };
            // SAFETY: the run has borrowed the storages; tracing or verification ensured that the two do not overlap.
            unsafe { internals::convert(&tensors[step.outs[0].index()], &tensors[source.index()]) }
        }
        StepKind::Add => {
            let [StepArg::Tensor(source)] = &*step.args else { return Err(malformed(step)) };
            // SAFETY: the run has borrowed the storages; tracing or verification ensured that the two do not overlap.
            unsafe { internals::add(&tensors[step.outs[0].index()], &tensors[source.index()]) }
        }
        StepKind::Chain(fused) => {
            let _span = internals::open_span(|| Span::Phase { name: "fused kernel" });
            let operands: SmallVec<[&Tensor; 24]> =
                fused.operands.iter().map(|id| &tensors[id.index()]).collect();
            // SAFETY: the plan's tensors have the layouts that the chain was made for, inside their memory, where a result overlaps
            // an operand only as the same elements; the run has borrowed the storages.
            unsafe { fused.chain.run(fused.device, &operands) }
        }
        _ => Err(malformed(step)),
    }
}

fn run_step(step: &Step, tensors: &mut Vec<Tensor>, lists: &[Value]) -> Result<()> {
    match &step.kind {
        StepKind::Kernel { .. } | StepKind::Copy | StepKind::Add | StepKind::Chain(_) => {
            run_plain(step, tensors, lists)
        }
        StepKind::Tiled(tiled) => tiled::run(tiled, tensors),
        StepKind::Cond { branches } => {
            let [StepArg::Tensor(predicate)] = &*step.args else { return Err(malformed(step)) };
            let chosen = if truth(&tensors[predicate.index()])? { 0 } else { 1 };
            run_all(&branches[chosen], tensors, lists)
        }
        StepKind::While { condition, predicate, body } => loop {
            run_all(condition, tensors, lists)?;
            if !truth(&tensors[predicate.index()])? {
                return Ok(());
            }
            run_all(body, tensors, lists)?;
        },
        StepKind::Scan { length, moving, body } => {
            let mut result = Ok(());
            let mut moved = 0;
            while moved < *length && result.is_ok() {
                result = run_all(body, tensors, lists);
                moved += 1;
                for (id, step) in moving {
                    // SAFETY: tracing or verification checked that the tensor's last position lies inside its buffer.
                    unsafe { tensors[id.index()].shift(*step) };
                }
            }
            for (id, step) in moving {
                // SAFETY: back to the first position.
                unsafe { tensors[id.index()].shift(-*step * moved) };
            }
            result
        }
    }
}

/// The value of a predicate.
fn truth(predicate: &Tensor) -> Result<bool> {
    // SAFETY: the predicate has one element, in memory that this run has borrowed.
    Ok(unsafe { internals::read_one(predicate)? } != Scalar::Bool(false))
}

#[cold]
fn malformed(step: &Step) -> Error {
    Error::graph(format!("a step at {} does not have the arguments that it needs", step.site))
}
