//! Tracing: from a function to a graph.
//!
//! In: a function over tensors, and the dtypes and sizes of its inputs. Out: a [`Graph`]. The function runs on meta
//! tensors while the dispatcher's work is recorded (`recorder`). If sizes are symbols it runs several times, at several
//! sizes (`sample_points`); each varying number (size, stride, attribute) becomes a formula (`generalize`). The
//! function is the one for eager mode and may compute with `x.shape()`. If no formula fits a number, or the traces
//! differ in their calls, the graph is guarded to the first sizes.

pub(crate) mod calls;
pub(crate) mod compare;
pub(crate) mod composition;
pub(crate) mod control;
pub(crate) mod dynamic_sizes;
pub(crate) mod fit;
mod generalize;
pub(crate) mod observer;
pub(crate) mod recorder;
pub(crate) mod rng;
pub(crate) mod sample_points;
pub(crate) mod source;
mod spec;
pub(crate) mod specialize;
mod unify;
pub(crate) mod value_dependence;

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::op::Outputs;
use opsmith_runtime::tensor::Tensor;

use crate::ir::{Graph, TensorId};
use generalize::merge;
use recorder::{RawTrace, Stopped};
use sample_points::Point;
pub(crate) use spec::input_name;
pub use spec::{Dim, InputSpec};
use specialize::{FixedSymbols, Tracing};

/// The results that a traced function may return.
pub trait IntoTensors {
    /// The tensors in order.
    fn into_tensors(self) -> Vec<Tensor>;
}

impl IntoTensors for Tensor {
    fn into_tensors(self) -> Vec<Tensor> {
        vec![self]
    }
}

impl IntoTensors for Vec<Tensor> {
    fn into_tensors(self) -> Vec<Tensor> {
        self
    }
}

impl IntoTensors for Outputs {
    fn into_tensors(self) -> Vec<Tensor> {
        self.into_vec()
    }
}

impl<const N: usize> IntoTensors for [Tensor; N] {
    fn into_tensors(self) -> Vec<Tensor> {
        self.into()
    }
}

impl IntoTensors for (Tensor, Tensor) {
    fn into_tensors(self) -> Vec<Tensor> {
        vec![self.0, self.1]
    }
}

impl IntoTensors for (Tensor, Tensor, Tensor) {
    fn into_tensors(self) -> Vec<Tensor> {
        vec![self.0, self.1, self.2]
    }
}

/// One run of the traced function.
pub(crate) struct Run {
    pub raw: RawTrace,
    pub inputs: Vec<TensorId>,
    pub outputs: Vec<TensorId>,
    /// The shapes of the outputs.
    pub shapes: Vec<Vec<i64>>,
}

impl Graph {
    /// Traces a function, with inputs of the given specifications.
    ///
    /// The function is the one for eager mode. It must be deterministic, since with symbols it runs several times, for
    /// sizes of many kinds. If its calls differ between sizes, the graph is guarded to the first; a branch that no
    /// traced size takes is not recorded. Tensors captured from outside are constants of the graph, which it may write.
    /// Two data-dependent sizes are assumed equal only if the trace fails otherwise; a run where they differ is an
    /// error.
    ///
    /// ```
    /// use opsmith_graph::{Graph, InputSpec};
    /// use opsmith_runtime::{DType, Tensor};
    /// // A function would call operators here.
    /// let graph = Graph::trace(|x| Ok(x[0].clone()), [InputSpec::new(DType::F32, ["n".into()])])?;
    /// assert_eq!(graph.run(&[Tensor::of(&[1.0f32, 2.0])])?[0].to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), opsmith_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of the function; if it reads elements of a tensor, which do not exist yet.
    pub fn trace<R: IntoTensors>(
        function: impl Fn(&[Tensor]) -> Result<R>,
        inputs: impl IntoIterator<Item = impl Into<InputSpec>>,
    ) -> Result<Graph> {
        let specs: Vec<InputSpec> = inputs.into_iter().map(Into::into).collect();
        sample_points::check_ranks(&specs, false)?;
        let specs = sample_points::name_unknown_dims(specs);
        trace(&|inputs: &[Tensor]| function(inputs).map(R::into_tensors), specs, &FixedSymbols::new())
    }
}

type Function<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

/// Traces a function whose results are a list. Sizes in `fixed` have variants of their own.
fn trace(function: Function<'_>, specs: Vec<InputSpec>, fixed: &FixedSymbols) -> Result<Graph> {
    let symbols = sample_points::symbols(&specs)?;
    let run = |point: &Point| run_at(function, &specs, point);
    let noted = |point: &Point, is_first: bool| {
        run(point).map_err(|error| sample_points::note(error, point, &symbols, is_first, &run))
    };
    let mut points = sample_points::points(&symbols, &[], 0);
    let mut runs = vec![noted(&points[0], true)?];
    let unknown = runs[0].raw.unknown.len();
    let mut unified = Vec::new();
    if unknown > 0 {
        // The first run determines the number of data-dependent sizes; each is one more symbol.
        let steps = |unified: &[usize]| {
            let point = &sample_points::points(&symbols, unified, 0)[0];
            attempt(function, &specs, point).err().map(|stopped| stopped.steps)
        };
        unified = unify::find(unknown, &steps).unwrap_or_else(|| (0..unknown).collect());
        points = sample_points::points(&symbols, &unified, 0);
        runs = vec![noted(&points[0], true)?];
        // The example should be a possible size. Bounds may depend on one another.
        for _ in 0..unknown {
            let bounds: Vec<i64> = runs[0].raw.unknown.iter().map(|size| size.most).collect();
            let mut point = points[0].clone();
            if !sample_points::keep_bounds(&mut point, symbols.len(), &unified, &bounds) {
                break;
            }
            // If the function fails at these sizes, a run at actual sizes will report it.
            let Ok(found) = run(&point) else { break };
            (points[0], runs) = (point, vec![found]);
        }
    }
    for point in &points[1..] {
        runs.push(noted(point, false)?);
    }
    let (mut graph, unfitted) = merge(&specs, &symbols, &points, &unified, &runs, false);
    if unfitted && !symbols.is_empty() {
        // Formulas of quotients need more points, but the function does not run at all of them.
        let example = points.swap_remove(0);
        points = sample_points::points(&symbols, &unified, sample_points::MANY);
        points[0] = example;
        let more: Result<Vec<Run>> = points[runs.len()..].iter().map(run).collect();
        if let Ok(more) = more {
            runs.extend(more);
            graph = merge(&specs, &symbols, &points, &unified, &runs, true).0;
        }
    }
    if graph.guards.is_empty() {
        let trace = |specs: Vec<InputSpec>, fixed: &FixedSymbols| trace(function, specs, fixed);
        let (example, specs) = (&points[0], &specs);
        let of = Tracing { specs, symbols: &symbols, example, fixed, run: &run, trace: &trace };
        specialize::add(&mut graph, &of);
    }
    Ok(graph)
}

/// Records the function with sizes from a point.
fn run_at(function: Function<'_>, specs: &[InputSpec], point: &Point) -> Result<Run> {
    attempt(function, specs, point).map_err(|stopped| stopped.error)
}

fn attempt(function: Function<'_>, specs: &[InputSpec], point: &Point) -> Result<Run, Stopped> {
    let names = sample_points::names(specs);
    let run = || {
        let inputs = specs.iter().map(|spec| input(spec, &names, point)).collect::<Result<Vec<_>>>()?;
        let ids: Vec<TensorId> = inputs.iter().map(recorder::tensor).collect();
        let outputs = function(&inputs)?;
        if let Some(position) =
            outputs.iter().position(|output| output.storage().is_meta() && !recorder::knows(output))
        {
            return Err(Error::graph(format!("output {position} belongs to another traced function")));
        }
        let shapes = outputs.iter().map(|output| output.shape().to_vec()).collect();
        Ok((ids, outputs.iter().map(recorder::tensor).collect(), shapes))
    };
    let ((inputs, outputs, shapes), raw) = recorder::record(point[names.len()..].to_vec(), run)?;
    Ok(Run { raw, inputs, outputs, shapes })
}

fn input(spec: &InputSpec, names: &[&str], point: &Point) -> Result<Tensor> {
    let sizes: Vec<i64> = spec.dims.iter().map(|dim| sample_points::size_at(dim, names, point)).collect();
    opsmith_runtime::layout::checked_numel(&sizes)?;
    let tensor = Tensor::meta(&sizes, spec.dtype, spec.device)?;
    if spec.requires_grad { tensor.requires_grad_(true) } else { Ok(tensor) }
}
