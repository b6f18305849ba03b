//! Tracing: from a function to a graph.
//!
//! In: a function over tensors, and the dtypes and sizes of its inputs. Out: a [`Graph`]. The function runs on meta
//! tensors while the dispatcher's work is recorded (`recorder`). If sizes are symbols it runs several times, at several
//! sizes (`sample_points`); each varying number (size, stride, attribute) becomes a formula (`generalize`). The
//! function is the one for eager mode and may compute with `x.shape()`. If no formula fits a number, or the traces
//! differ in their calls, the graph is guarded to the first sizes.

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
pub(crate) mod specialize;
mod unify;
pub(crate) mod value_dependence;

use opsmith_core::DType;
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{Size, Symbol};
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::op::Outputs;
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use crate::ir::{Graph, SymbolicLayout, TensorId};
use generalize::merge;
use recorder::{RawTrace, Stopped};
use sample_points::{InputSymbol, Point};
use specialize::{FixedSymbols, Tracing};

/// The specification of an input: dtype, dimensions, device.
#[derive(Clone, Debug)]
pub struct InputSpec {
    /// Its name, for messages and pictures.
    pub name: Option<String>,
    /// Its element type.
    pub dtype: DType,
    /// Its device.
    pub device: Device,
    /// Its sizes.
    pub dims: Vec<Dim>,
    /// Whether the function computes gradients with respect to it.
    pub requires_grad: bool,
}

/// One size of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dim {
    /// A number.
    Fixed(i64),
    /// A size that differs from run to run, independent of all others.
    Unknown,
    /// As the only dimension: any rank.
    AnyRank,
    /// A size that differs from run to run; equal names are equal sizes.
    Symbol {
        /// Its name.
        name: String,
        /// A divisor of all its values.
        multiple_of: i64,
        /// Its least value.
        least: i64,
        /// Its greatest value; `None` if there is no bound.
        most: Option<i64>,
    },
}

impl Dim {
    /// A size that differs from run to run and is always a multiple of a number.
    pub fn multiple(name: impl Into<String>, of: i64) -> Dim {
        Dim::Symbol { name: name.into(), multiple_of: of.max(1), least: 0, most: None }
    }

    /// A size that differs from run to run between bounds, both inclusive: `Dim::between("length", 2, Some(16))`. The
    /// function is traced within them, and a run at another size is an error.
    pub fn between(name: impl Into<String>, least: i64, most: Option<i64>) -> Dim {
        Dim::Symbol { name: name.into(), multiple_of: 1, least: least.max(0), most }
    }
}

/// A number; −1 is an unknown size, and −2, alone, an unknown rank.
impl From<i64> for Dim {
    fn from(size: i64) -> Dim {
        match size {
            -1 => Dim::Unknown,
            -2 => Dim::AnyRank,
            size => Dim::Fixed(size),
        }
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Dim {
        Dim::multiple(name, 1)
    }
}

/// The name of an input, given or from its position.
pub(crate) fn input_name(inputs: &[InputSpec], position: usize) -> String {
    let given = inputs.get(position).and_then(|input| input.name.clone());
    given.unwrap_or_else(|| format!("input{position}"))
}

impl InputSpec {
    /// An input on the CPU: `InputSpec::new(DType::F32, ["batch".into(), 64.into()])`.
    pub fn new(dtype: DType, dims: impl IntoIterator<Item = Dim>) -> InputSpec {
        InputSpec {
            name: None,
            dtype,
            device: Device::CPU,
            dims: dims.into_iter().collect(),
            requires_grad: false,
        }
    }

    /// An input on the CPU of any rank, for [`super::GraphBuilder::open`].
    pub fn of_any_rank(dtype: DType) -> InputSpec {
        InputSpec::new(dtype, [Dim::AnyRank])
    }

    /// Whether it may have any rank.
    pub fn is_of_any_rank(&self) -> bool {
        self.dims == [Dim::AnyRank]
    }

    /// The same input with a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> InputSpec {
        self.name = Some(name.into());
        self
    }

    /// The same input on a device.
    #[must_use]
    pub fn on(mut self, device: Device) -> InputSpec {
        self.device = device;
        self
    }

    /// The same input, with respect to which the function computes gradients.
    #[must_use]
    pub fn requiring_grad(mut self) -> InputSpec {
        self.requires_grad = true;
        self
    }
}

impl InputSpec {
    /// The row-major layout of the sizes, with the positions of the symbols.
    pub(crate) fn layout(&self, symbols: &[InputSymbol]) -> SymbolicLayout {
        let size = |dim: &Dim| match dim {
            Dim::Fixed(size) => Size::Const(*size),
            Dim::Unknown | Dim::AnyRank => Size::Unknown,
            Dim::Symbol { name, .. } => {
                let number = symbols.iter().position(|symbol| symbol.name == *name).unwrap_or(0);
                Size::from(Symbol(number as u32))
            }
        };
        let sizes: SmallVec<[Size; 4]> = self.dims.iter().map(size).collect();
        let mut strides: SmallVec<[Size; 4]> = SmallVec::new();
        let mut stride = Size::Const(1);
        for size in sizes.iter().rev() {
            strides.push(stride.clone());
            stride = stride * size.clone();
        }
        strides.reverse();
        SymbolicLayout { sizes, strides, offset: Size::Const(0) }
    }
}

impl From<&Tensor> for InputSpec {
    fn from(tensor: &Tensor) -> InputSpec {
        InputSpec {
            name: None,
            dtype: tensor.dtype(),
            device: tensor.device(),
            dims: tensor.shape().iter().map(|size| Dim::Fixed(*size)).collect(),
            requires_grad: tensor.requires_grad(),
        }
    }
}

impl From<&&Tensor> for InputSpec {
    fn from(tensor: &&Tensor) -> InputSpec {
        InputSpec::from(*tensor)
    }
}

impl From<&InputSpec> for InputSpec {
    fn from(spec: &InputSpec) -> InputSpec {
        spec.clone()
    }
}

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
