//! Execution of a graph.
//!
//! In: a plan and inputs. Out: outputs. A warm run points the tensors over inputs at the given memory, calls
//! the kernels one after the other, and does not allocate.

mod executable;
pub(crate) mod records;
mod recycle;
mod segments;
mod step;
mod tiled;

use std::borrow::Borrow;
use std::cell::Cell;

use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::embedder;
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::infer::symbolic::Bindings;
use opsmith_runtime::internals::{
    self, Borrows, GeneratorInternals as _, Span, TensorInternals as _, endless,
};
use opsmith_runtime::parallel;
use opsmith_runtime::random::GeneratorState;
use opsmith_runtime::scalar::Scalar;
use opsmith_runtime::scratch::Scratch;
use opsmith_runtime::tensor::Tensor;

use crate::ir::{Graph, RunState, ShapeConstant, SymbolSource, TensorId};
use crate::plan::bind::bind;
use crate::plan::{Plan, Step, StepArg, StepKind, StepList};
use crate::show::table::counted;

use executable::Executable;
use records::Counts;
use step::{describe, malformed, run_plain};

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
    let current = Cell::new(None);
    let all = internals::until_out_of_memory(|| {
        steps.iter().try_for_each(|step| {
            embedder::step()?;
            current.set(Some(step));
            run_step::<true>(step, tensors, lists)
        })
    });
    all.unwrap_or_else(|error| match current.get() {
        None => Err(error),
        Some(step) => Err(describe(step, error, |id| &tensors[id.index()], lists)),
    })
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
        embedder::step()?;
        if let [alone] = together {
            run_step::<false>(alone, tensors, lists)?;
            continue;
        }
        // The error of the first node that failed, in node order, so that the error is deterministic.
        let failure = parallel::FirstError::default();
        let tensors: &[Tensor] = tensors;
        parallel::run(threads, together.len(), &|number| {
            failure.note(number, run_plain::<false>(&together[number], tensors, lists));
        });
        failure.into_result()?;
    }
    Ok(())
}

#[inline(always)]
fn run_step<const IN_TURN: bool>(step: &Step, tensors: &mut Vec<Tensor>, lists: &[Value]) -> Result<()> {
    if step.kind.is_plain() {
        run_plain::<IN_TURN>(step, tensors, lists)
    } else {
        run_structured(step, tensors, lists, &mut |list, tensors| run_all(&list.steps, tensors, lists))
    }
}

/// Runs a group of calls, or a step with regions, whose lists are run by a function.
#[inline(never)]
fn run_structured(
    step: &Step,
    tensors: &mut Vec<Tensor>,
    lists: &[Value],
    run_list: &mut dyn FnMut(&StepList, &mut Vec<Tensor>) -> Result<()>,
) -> Result<()> {
    match &step.kind {
        StepKind::Kernel { .. } | StepKind::Copy | StepKind::Add | StepKind::Chain(_) => {
            run_plain::<false>(step, tensors, lists)
        }
        StepKind::Tiled(tiled) => tiled::run(tiled, tensors),
        StepKind::Cond { branches } => {
            let [StepArg::Tensor(predicate)] = &*step.args else { return Err(malformed(step)) };
            let chosen = if truth(&tensors[predicate.index()])? { 0 } else { 1 };
            run_list(&branches[chosen], tensors)
        }
        StepKind::While { condition, predicate, body } => loop {
            run_list(condition, tensors)?;
            if !truth(&tensors[predicate.index()])? {
                return Ok(());
            }
            run_list(body, tensors)?;
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
