//! The form in which a program runs: a graph, or calls one after the other.
//!
//! In: a source and its inputs. Out: its graph, with sizes unified where calls require it, or the node for which there is none.

use std::borrow::Borrow;
use std::sync::{Arc, Mutex, PoisonError};

use opsmith_graph::{BufferKind, Dim, Graph, InputSpec, Passes};
use opsmith_runtime::device::Device;
use opsmith_runtime::error::Error;
use opsmith_runtime::tensor::Tensor;

use crate::errors::ProgramErrors;
use crate::inputs::{self, ProgramInput};
use crate::sizes::ProgramSize;
use crate::source::{Replaying, Source};

/// A program that can run.
pub(crate) struct Built {
    pub form: Form,
    /// The inputs of each run, in which sizes that must be equal have one name.
    pub inputs: Vec<ProgramInput>,
    /// The sizes that must be equal though the file has several names for them.
    pub equal: Equal,
}

/// The form in which a program runs.
pub(crate) enum Form {
    Graph {
        graph: Arc<Graph>,
        /// The versions of weights that the graph holds as constants.
        versions: Vec<(Tensor, u64)>,
        /// Whether the program checks sizes.
        checks_sizes: bool,
        /// The only shapes of inputs for which the graph is, and the mistake at others, if there is no graph for many.
        only: Option<(Shapes, Error)>,
        /// Graphs for sizes at which the first one does not hold.
        others: Others,
        /// The graph before its passes, if it is for many sizes: compared with a trace at those of a run before the first one.
        general: Option<Arc<Graph>>,
        /// Sizes at which it agrees with the program.
        agreed: Agreed,
    },
    /// One call after the other, since this node or input needs elements before the graph is known.
    Calls(String),
}

impl Built {
    /// The form of a program whose file has these mistakes.
    ///
    /// # Errors
    /// Those mistakes, operators that no library has, and nodes that fail.
    pub fn of(
        source: &Source,
        inputs: &[ProgramInput],
        mut mistakes: Vec<Error>,
    ) -> Result<Built, ProgramErrors> {
        mistakes.extend(source.missing());
        let replay = Replaying::new(source);
        let mut only = None;
        // Without the right sizes of inputs, no node would be right.
        let traced = match source.has_sizes() {
            true if mistakes.is_empty() => {
                Some(trace_with_equal(&replay, source, inputs).or_else(|errors| {
                    let (graph, shapes) = trace_example(source, inputs).ok_or_else(|| errors.clone())?;
                    only = Some((shapes, errors.into_error()));
                    Ok((Traced::Graph(graph), inputs.to_vec(), Equal::new()))
                }))
            }
            true => {
                let traced = trace(&replay, inputs.iter().map(|input| input.spec(source.device())));
                Some(traced.map(|traced| (traced, inputs.to_vec(), Equal::new())))
            }
            false => None,
        };
        let traced = match traced {
            Some(Ok(traced)) => Some(traced),
            Some(Err(errors)) if mistakes.is_empty() || !replay.errors().is_empty() => {
                mistakes.extend(errors.errors().iter().cloned());
                None
            }
            _ => None,
        };
        ProgramErrors::of(mistakes)?;
        let (traced, inputs, equal) = traced.expect("a program without mistakes was traced");
        let graph = match traced {
            Traced::Lacking(place) => return Ok(Built { form: Form::Calls(place), inputs, equal }),
            Traced::Graph(graph) => graph,
        };
        // Weights that the program does not write itself are constants until others write them.
        let written = written(&graph);
        let held = source.weights().into_iter().map(|weight| weight.tensor);
        let held = held.filter(|weight| !written.iter().any(|buffer| buffer.shares_storage(weight)));
        let versions = held.map(|weight| (weight.clone(), weight.version())).collect();
        let optimised = Arc::new(graph.optimize(&Passes::all().frozen()));
        let has_sizes = inputs.iter().flat_map(|input| &input.sizes);
        let is_general =
            only.is_none() && has_sizes.into_iter().any(|size| !matches!(size, ProgramSize::Fixed(_)));
        let form = Form::Graph {
            graph: optimised,
            general: is_general.then(|| Arc::new(*graph)),
            agreed: Agreed::default(),
            versions,
            checks_sizes: replay.checks_sizes(),
            only,
            others: Others::default(),
        };
        Ok(Built { form, inputs, equal })
    }

    /// Whether no weight was written since.
    pub fn is_current(&self) -> bool {
        match &self.form {
            Form::Graph { versions, .. } => {
                versions.iter().all(|(weight, version)| weight.version() == *version)
            }
            Form::Calls(_) => true,
        }
    }
}

/// Shapes of inputs at which a graph agrees with its program, the last one used at the end.
#[derive(Default)]
pub(crate) struct Agreed(Mutex<Vec<Shapes>>);

impl Agreed {
    /// Whether these inputs have such shapes.
    pub fn has<T: Borrow<Tensor>>(&self, inputs: &[T]) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of =
            |shapes: &Shapes| shapes.iter().zip(inputs).all(|(shape, input)| shape == input.borrow().shape());
        let Some(at) = known.iter().rposition(is_of) else { return false };
        let last = known.len() - 1;
        known.swap(at, last);
        true
    }

    fn add(&self, shapes: Shapes) {
        /// As many as batches and lengths of text have.
        const MOST: usize = 4096;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() == MOST {
            known.swap_remove(0);
        }
        known.push(shapes);
    }
}

/// The way to run a program at some sizes.
pub(crate) enum Way {
    /// By its graph for many sizes.
    General,
    /// By a graph for these sizes, or one call after the other, else with this error.
    Other(Error),
    /// The program has mistakes at these sizes.
    Mistakes(ProgramErrors),
}

/// The way to run a program at the sizes of inputs; if they are new, its graph is compared with a trace there.
pub(crate) fn way<T: Borrow<Tensor>>(
    source: &Source,
    inputs: &[ProgramInput],
    general: &Graph,
    (agreed, others): (&Agreed, &Others),
    given: &[T],
) -> Way {
    let other = || Way::Other(Error::graph("the program has no graph at these sizes"));
    if agreed.has(given) {
        return Way::General;
    }
    let shapes = shapes(given);
    if others.known(&shapes).is_some() {
        return other();
    }
    let graph = match trace_at(&Replaying::new(source), inputs, &shapes, source.device()) {
        Ok(Traced::Graph(exact)) if general.agrees_with(&exact) => {
            agreed.add(shapes);
            return Way::General;
        }
        Ok(traced) => traced.optimised(),
        Err(errors) => return Way::Mistakes(errors),
    };
    others.add(shapes, graph);
    other()
}

/// The shapes of inputs.
pub(crate) fn shapes<T: Borrow<Tensor>>(inputs: &[T]) -> Shapes {
    inputs.iter().map(|input| input.borrow().shape().to_vec()).collect()
}

/// Graphs of a program by the shapes of its inputs, the last one used at the end; `None` where it has none.
#[derive(Default)]
pub(crate) struct Others(Mutex<Vec<(Shapes, Option<Arc<Graph>>)>>);

/// The shapes of all inputs.
pub(crate) type Shapes = Vec<Vec<i64>>;

impl Others {
    /// The graph for some shapes; `None` if elements decide about its nodes.
    ///
    /// # Errors
    /// The mistakes of the program at these shapes.
    pub fn graph(
        &self,
        source: &Source,
        inputs: &[ProgramInput],
        shapes: &Shapes,
    ) -> Result<Option<Arc<Graph>>, ProgramErrors> {
        if let Some(known) = self.known(shapes) {
            return Ok(known);
        }
        let graph = trace_at(&Replaying::new(source), inputs, shapes, source.device())?.optimised();
        self.add(shapes.clone(), graph.clone());
        Ok(graph)
    }

    /// The graph for some shapes, if there was a run at these.
    pub fn known(&self, shapes: &Shapes) -> Option<Option<Arc<Graph>>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|(known, _)| known == shapes)?;
        known[at..].rotate_left(1);
        known.last().map(|(_, graph)| graph.clone())
    }

    fn add(&self, shapes: Shapes, graph: Option<Arc<Graph>>) {
        /// As many as a server of batches and lengths meets; each holds an arena of its own.
        const MOST: usize = 16;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| *other != shapes);
        if known.len() == MOST {
            known.remove(0);
        }
        known.push((shapes, graph));
    }
}

/// Traces a replay at some shapes alone.
///
/// # Errors
/// As [`trace`].
pub(crate) fn trace_at(
    replay: &Replaying<'_>,
    inputs: &[ProgramInput],
    shapes: &Shapes,
    device: Device,
) -> Result<Traced, ProgramErrors> {
    let spec = |(input, shape): (&ProgramInput, &Vec<i64>)| {
        let sizes = shape.iter().map(|size| Dim::Fixed(*size));
        InputSpec::new(input.dtype, sizes).named(input.name.clone()).on(device)
    };
    trace(replay, inputs.iter().zip(shapes).map(spec))
}

/// Traces a program at the sizes at which it was exported, where its calls are right; `None` if the file does not tell them, or
/// there is a mistake.
fn trace_example(source: &Source, inputs: &[ProgramInput]) -> Option<(Box<Graph>, Shapes)> {
    let size = |size: &ProgramSize| match size {
        ProgramSize::Fixed(size) => Some(*size),
        ProgramSize::Symbol { name, .. } => source.example(name),
        ProgramSize::Sum { .. } => None,
    };
    let shapes =
        inputs.iter().map(|input| input.sizes.iter().map(size).collect()).collect::<Option<Shapes>>()?;
    match trace_at(&Replaying::new(source), inputs, &shapes, source.device()) {
        Ok(Traced::Graph(graph)) => Some((graph, shapes)),
        _ => None,
    }
}

/// The constants that a graph writes, as a cache of keys and values.
pub(crate) fn written(graph: &Graph) -> Vec<Tensor> {
    let mut written = Vec::new();
    for node in graph.nodes() {
        node.for_each_write(&mut |id| {
            let buffer = graph.tensors()[id.0 as usize].buffer;
            if let BufferKind::Constant(whole) = &graph.buffers()[buffer.0 as usize].kind {
                written.push(whole.clone());
            }
        });
    }
    written
}

/// The result of a trace.
pub(crate) enum Traced {
    Graph(Box<Graph>),
    /// The first node or input that needs elements.
    Lacking(String),
}

impl Traced {
    /// The graph after its passes; `None` without one.
    fn optimised(&self) -> Option<Arc<Graph>> {
        match self {
            Traced::Graph(graph) => Some(Arc::new(graph.optimize(&Passes::all().frozen()))),
            Traced::Lacking(_) => None,
        }
    }
}

/// Traces a replay.
///
/// # Errors
/// The mistakes of its nodes, or of tracing.
pub(crate) fn trace(
    replay: &Replaying<'_>,
    specs: impl IntoIterator<Item = InputSpec>,
) -> Result<Traced, ProgramErrors> {
    let traced = Graph::trace(|inputs: &[Tensor]| replay.call(inputs), specs);
    let mut errors = replay.errors();
    let error = match (traced, replay.lacking()) {
        (Ok(graph), _) => return Ok(Traced::Graph(Box::new(graph))),
        (Err(_), Some(place)) if errors.is_empty() => return Ok(Traced::Lacking(place)),
        (Err(error), _) => error,
    };
    match errors.is_empty() {
        true => errors.push(error),
        // Tracing adds the sizes to its error.
        false => errors.iter_mut().for_each(|refused| {
            *refused = error.notes().iter().fold(refused.clone(), |refused, note| refused.with_note(note));
        }),
    }
    Err(ProgramErrors::of(errors).expect_err("there is a mistake"))
}

/// Symbols that must be equal.
pub(crate) type Equal = Vec<(String, String)>;

/// Traces a replay, if it fails with some of the symbols equal: an exporter may give a size two names where only calls tell
/// that they are one, as the length of tokens and of their mask. The first pair that leaves the fewest mistakes is taken, and
/// so on.
///
/// # Errors
/// The mistakes with all symbols apart.
fn trace_with_equal(
    replay: &Replaying<'_>,
    source: &Source,
    inputs: &[ProgramInput],
) -> Result<(Traced, Vec<ProgramInput>, Equal), ProgramErrors> {
    /// More symbols would need too many traces.
    const MOST_SYMBOLS: usize = 8;
    let of = |inputs: &[ProgramInput]| trace(replay, inputs.iter().map(|input| input.spec(source.device())));
    let first = match of(inputs) {
        Ok(traced) => return Ok((traced, inputs.to_vec(), Equal::new())),
        Err(errors) => errors,
    };
    let (mut known, mut equal, mut least) = (inputs.to_vec(), Equal::new(), first.errors().len());
    loop {
        let symbols = inputs::symbols(&known);
        let mut best = None;
        if symbols.len() <= MOST_SYMBOLS {
            for (number, a) in symbols.iter().enumerate() {
                for b in &symbols[number + 1..] {
                    // Sizes that differed in the example are not one.
                    if source.example(a) != source.example(b) {
                        continue;
                    }
                    let Some(unified) = inputs::unified(&known, a, b) else { continue };
                    match of(&unified) {
                        Ok(traced) => {
                            equal.push((a.clone(), b.clone()));
                            return Ok((traced, unified, equal));
                        }
                        Err(errors) if errors.errors().len() < least => {
                            least = errors.errors().len();
                            best = Some((unified, (a.clone(), b.clone())));
                        }
                        Err(_) => {}
                    }
                }
            }
        }
        let Some((unified, pair)) = best else { return Err(first) };
        known = unified;
        equal.push(pair);
    }
}
