//! Recording of the dispatcher's work while a function is traced.
//!
//! In: allocations, views, copies and kernel calls, from the functions that do them in eager mode. Out: a [`RawTrace`].
//! At this level inference, conversion, composition and differentiation are the code of eager mode, so a graph runs
//! exactly the kernels that eager mode runs. Traced tensors are meta tensors (`Storage::meta`).

use std::cell::RefCell;
use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use opsmith_core::DType;
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::{self, StorageInternals as _};
use opsmith_runtime::layout::Layout;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::random::GeneratorState;
use opsmith_runtime::storage::Storage;
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use super::observer::Observing;
use super::rng::Generators;
use super::source;
use super::value_dependence::ValueDependence;
use crate::ir::{
    Argument, BufferId, Node, NodeKind, Region, ShapeConstant, Site, TensorId, TensorInfo, exactly,
};

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// The record of one run of a function.
#[derive(Default)]
pub(crate) struct RawTrace {
    pub storages: Vec<RawStorage>,
    /// Tensors; their buffers are the storages.
    pub tensors: Vec<TensorInfo<Layout>>,
    pub nodes: Vec<Node<i64>>,
    /// Data-dependent sizes.
    pub unknown: Vec<DataDependentSize>,
    /// Constants whose elements determined a shape.
    pub shape_constants: Vec<ShapeConstant>,
    /// Initial states of generators that the function makes.
    pub generators: Vec<GeneratorState>,
}

/// A data-dependent size: known when the node that makes its tensor has run.
pub(crate) struct DataDependentSize {
    pub tensor: TensorId,
    pub dim: usize,
    /// Its placeholder.
    pub example: i64,
    /// Its upper bound, as far as known.
    pub most: i64,
}

pub(crate) struct RawStorage {
    /// Keeps the storage alive, so that its address stays unique.
    pub storage: Storage,
    /// The tensors over it; the first covers it.
    pub tensors: SmallVec<[u32; 2]>,
}

/// The recording of this thread.
#[derive(Default)]
pub(crate) struct Recorder {
    trace: RawTrace,
    by_address: HashMap<usize, u32>,
    /// The tensors that do not move, by storage, dtype and layout: a linear search would be slow for a function with
    /// many views of one tensor.
    by_layout: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Nodes of the regions around the current one, which is `trace.nodes`.
    outside: Vec<Vec<Node<i64>>>,
    /// Memory of tensors that the function makes from numbers.
    made: Vec<Storage>,
    /// Placeholder values for data-dependent sizes, in order.
    examples: Vec<i64>,
    elements: ValueDependence,
    /// The random generators that the function makes and uses.
    pub(crate) generators: Generators,
}

/// The failure of a recorded function.
pub(crate) struct Stopped {
    pub error: Error,
    /// Number of nodes recorded before it.
    pub steps: usize,
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped { error, steps: 0 }
    }
}

/// Runs a function while this thread records; the recording ends even if it panics.
///
/// `examples` are placeholders for data-dependent sizes.
///
/// # Errors
/// If this thread records already, and errors of the function.
pub(crate) fn record<R>(
    examples: Vec<i64>,
    function: impl FnOnce() -> Result<R>,
) -> Result<(R, RawTrace), Stopped> {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            RECORDER.with_borrow_mut(|recorder| *recorder = None);
        }
    }
    if internals::is_tracing() {
        let error = Error::graph("a function is traced while another one is");
        return Err(error.with_help("call the inner function instead of tracing it").into());
    }
    RECORDER.with_borrow_mut(|recorder| *recorder = Some(Recorder { examples, ..Recorder::default() }));
    let _end = End;
    let _observing = Observing::begin();
    let result = function().map_err(|error| Stopped { error, steps: with(|recorder| recorder.steps()) })?;
    let mut recorder = RECORDER.with_borrow_mut(Option::take).expect("it was put there, and ends here");
    let shape_constants = recorder.elements.take_shape_constants();
    let generators = recorder.generators.into_starts()?;
    Ok((result, RawTrace { generators, shape_constants, ..recorder.trace }))
}

/// Runs a function on meta tensors and drops the record, for the shapes and dtypes of its results.
///
/// # Errors
/// As [`record`].
pub(crate) fn rehearse<R>(args: &[Arg<'_>], function: impl FnOnce() -> Result<R>) -> Result<R> {
    let run = || {
        args.iter().for_each(|arg| arg.for_each_tensor(|known| _ = tensor(known)));
        function()
    };
    let (result, trace) = record(Vec::new(), run).map_err(|stopped| stopped.error)?;
    // The sizes of results would be those of placeholders.
    if !trace.unknown.is_empty() {
        return Err(Error::without_elements("the sizes of the results depend on elements"));
    }
    Ok(result)
}

/// The site of the recorded node's call.
fn site() -> Site {
    source::current().or_else(|| internals::site().map(Site::Here)).unwrap_or(Site::Unknown)
}

pub(crate) fn with<R>(body: impl FnOnce(&mut Recorder) -> R) -> R {
    RECORDER.with_borrow_mut(|recorder| body(recorder.as_mut().expect("the thread records")))
}

/// Records a kernel; its outputs are visible to other code if `shared`.
pub(crate) fn call(
    op: &'static OpDef,
    compute: DType,
    args: &[Arg<'_>],
    outs: &[Tensor],
    shared: bool,
) -> Result<()> {
    if shared {
        count_writes(outs)?;
    }
    push(NodeKind::Call { op, compute }, args, outs)
}

/// Counts a write, as the kernel would, so that automatic differentiation detects it.
///
/// # Errors
/// If the function made the tensor from numbers: eager mode makes it anew in each run, but a graph has it once.
fn count_writes(outs: &[Tensor]) -> Result<()> {
    let is_made = |out: &Tensor| {
        let made = |recorder: &mut Recorder| recorder.made.iter().any(|made| made.same(out.storage()));
        !out.storage().is_meta() && with(made)
    };
    if outs.iter().any(is_made) {
        return Err(Error::graph("a tensor that the traced function makes from numbers is changed by it")
            .with_help("change a copy of it, which an operator makes in every run, or make it outside"));
    }
    outs.iter().try_for_each(|out| with(|recorder| recorder.elements.write(out.storage())))?;
    outs.iter().for_each(|out| out.storage().count_write());
    Ok(())
}

/// Records a call whose results may depend on elements.
///
/// # Errors
/// If the function changes those elements.
pub(crate) fn shape_depends_on(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    with(|recorder| {
        let site = site();
        recorder.elements.decide(op, args, &site)
    })
}

/// Whether the traced function writes this storage; if so its contents are stale while tracing.
pub(crate) fn changes(storage: &Storage) -> bool {
    with(|recorder| recorder.elements.is_written(storage))
}

/// Records a tensor that the function makes from numbers.
pub(crate) fn made(tensor: &Tensor) {
    with(|recorder| recorder.made.push(tensor.storage().clone()));
}

/// Records views of the first argument.
pub(crate) fn view(op: &'static OpDef, args: &[Arg<'_>], outs: &[Tensor]) -> Result<()> {
    push(NodeKind::View { op }, args, outs)
}

/// Records a copy of elements.
pub(crate) fn copy(target: &Tensor, source: &Tensor) -> Result<()> {
    count_writes(std::slice::from_ref(target))?;
    push(NodeKind::Copy, &[Arg::Tensor(source)], std::slice::from_ref(target))
}

/// Records a copy from or to a tensor whose offset changes with a loop's iterations; returns that tensor's number,
/// which is its own: an equal layout elsewhere does not move.
pub(crate) fn copy_moving(target: &Tensor, source: &Tensor, source_moves: bool) -> TensorId {
    with(|recorder| {
        let moving = recorder.new_tensor(if source_moves { source } else { target }, true);
        let (from, to) = match source_moves {
            true => (moving, recorder.tensor(target)),
            false => (recorder.tensor(source), moving),
        };
        recorder.push(NodeKind::Copy, vec![Argument::Tensor(from)], SmallVec::from_elem(to, 1));
        moving
    })
}

/// Records an addition of elements to a tensor whose indices may overlap in memory.
pub(crate) fn add(target: &Tensor, source: &Tensor) -> Result<()> {
    count_writes(std::slice::from_ref(target))?;
    push(NodeKind::Add, &[Arg::Tensor(source)], std::slice::from_ref(target))
}

fn push(kind: NodeKind<i64>, args: &[Arg<'_>], outs: &[Tensor]) -> Result<()> {
    with(|recorder| {
        let args = exactly(args.len(), args.iter().map(|arg| recorder.argument(*arg)))?;
        let outs = outs.iter().map(|out| recorder.tensor(out)).collect();
        recorder.push(kind, args, outs);
        Ok(())
    })
}

/// The number of a tensor in the trace.
pub(crate) fn tensor(tensor: &Tensor) -> TensorId {
    with(|recorder| recorder.tensor(tensor))
}

/// Records a function's nodes as a region of their own.
pub(crate) fn region<R>(function: impl FnOnce() -> Result<R>) -> Result<(R, Region<i64>)> {
    with(|recorder| {
        let outside = std::mem::take(&mut recorder.trace.nodes);
        recorder.outside.push(outside);
    });
    let result = function();
    let inside = with(|recorder| {
        let outside = recorder.outside.pop().expect("pushed above");
        std::mem::replace(&mut recorder.trace.nodes, outside)
    });
    Ok((result?, Region { nodes: inside }))
}

/// Adds a node with regions.
pub(crate) fn control(kind: NodeKind<i64>, args: &[&Tensor], outs: &[&Tensor]) {
    with(|recorder| {
        let args = args.iter().map(|arg| Argument::Tensor(recorder.tensor(arg))).collect();
        let outs = outs.iter().map(|out| recorder.tensor(out)).collect();
        recorder.push(kind, args, outs);
    });
}

impl Recorder {
    /// Whether a branch or loop is being recorded.
    pub(crate) fn is_in_region(&self) -> bool {
        !self.outside.is_empty()
    }

    /// Number of nodes so far, including those around a region.
    fn steps(&self) -> usize {
        self.trace.nodes.len() + self.outside.iter().map(Vec::len).sum::<usize>()
    }

    fn push(&mut self, kind: NodeKind<i64>, args: Vec<Argument<i64>>, outs: SmallVec<[TensorId; 1]>) {
        self.generators.count(&kind, &args);
        let site = site();
        self.trace.nodes.push(Node { kind, args, outs, site });
    }

    /// The argument of a node.
    ///
    /// # Errors
    /// If a tensor belongs to another traced function.
    fn argument(&mut self, arg: Arg<'_>) -> Result<Argument<i64>> {
        Ok(match arg {
            Arg::Tensor(tensor) => Argument::Tensor(self.own(tensor)?),
            Arg::Tensors(tensors) => {
                Argument::Tensors(tensors.iter().map(|tensor| self.own(tensor)).collect::<Result<_>>()?)
            }
            Arg::OptionalTensors(tensors) => {
                let own =
                    |tensor: &Option<Tensor>| tensor.as_ref().map(|tensor| self.own(tensor)).transpose();
                Argument::OptionalTensors(tensors.iter().map(own).collect::<Result<_>>()?)
            }
            Arg::Generator(generator) => {
                Argument::Value(Value::Generator(self.generators.in_graph(generator)))
            }
            other => Argument::Value(other.to_value()),
        })
    }

    /// The number of a tensor that this function made, or that has elements.
    fn own(&mut self, tensor: &Tensor) -> Result<TensorId> {
        let storage = tensor.storage();
        if storage.is_meta() && !self.by_address.contains_key(&storage.address()) {
            return Err(Error::graph("a tensor of another traced function has no elements here")
                .with_help("compute it in this function, or make it an input"));
        }
        Ok(self.tensor(tensor))
    }

    fn tensor(&mut self, tensor: &Tensor) -> TensorId {
        let storage = self.storage(tensor);
        let is_same = |number: &u32| is_over(&self.trace.tensors[*number as usize], storage, tensor);
        match self.by_layout.find(self.hash(storage, tensor.dtype(), tensor.layout()), is_same) {
            Some(number) => TensorId(*number),
            None => self.new_tensor(tensor, false),
        }
    }

    /// Adds a tensor. One that `moves` changes its offset with a loop's iterations, and is never looked up by layout.
    fn new_tensor(&mut self, tensor: &Tensor, moves: bool) -> TensorId {
        let storage = self.storage(tensor);
        let number = self.trace.tensors.len() as u32;
        self.trace.tensors.push(TensorInfo {
            buffer: BufferId(storage),
            layout: tensor.layout().clone(),
            dtype: tensor.dtype(),
            device: tensor.device(),
        });
        self.trace.storages[storage as usize].tensors.push(number);
        if !moves {
            let hash = self.hash(storage, tensor.dtype(), tensor.layout());
            let Recorder { by_layout, hasher, trace, .. } = self;
            by_layout.insert_unique(hash, number, |number| {
                let info = &trace.tensors[*number as usize];
                hash_layout(hasher, info.buffer.0, info.dtype, &info.layout)
            });
        }
        TensorId(number)
    }

    fn hash(&self, storage: u32, dtype: DType, layout: &Layout) -> u64 {
        hash_layout(&self.hasher, storage, dtype, layout)
    }

    fn storage(&mut self, tensor: &Tensor) -> u32 {
        let storage = tensor.storage();
        *self.by_address.entry(storage.address()).or_insert_with(|| {
            self.trace.storages.push(RawStorage { storage: storage.clone(), tensors: SmallVec::new() });
            self.trace.storages.len() as u32 - 1
        })
    }
}

fn hash_layout(hasher: &DefaultHashBuilder, storage: u32, dtype: DType, layout: &Layout) -> u64 {
    let Layout { sizes, strides, offset } = layout;
    hasher.hash_one((storage, dtype, sizes, strides, offset))
}

/// Whether a recorded tensor has the layout and dtype of a tensor over a storage.
fn is_over(info: &TensorInfo<Layout>, storage: u32, tensor: &Tensor) -> bool {
    info.buffer == BufferId(storage) && info.dtype == tensor.dtype() && info.layout == *tensor.layout()
}

/// Whether a meta tensor belongs to this trace.
pub(crate) fn knows(tensor: &Tensor) -> bool {
    with(|recorder| recorder.by_address.contains_key(&tensor.storage().address()))
}

/// Whether a branch or a loop is being recorded.
pub(crate) fn is_inside_region() -> bool {
    with(|recorder| !recorder.outside.is_empty())
}

/// Placeholder value for the `after`-th data-dependent size recorded from here on.
pub(crate) fn example(after: usize) -> i64 {
    with(|recorder| {
        let known = recorder.examples.get(recorder.trace.unknown.len() + after);
        known.copied().unwrap_or(super::sample_points::FIRST_EXAMPLE)
    })
}

/// The data-dependent sizes that were recorded so far.
pub(crate) fn data_dependent_sizes<T>(of: impl FnMut(&DataDependentSize) -> T) -> Vec<T> {
    with(|recorder| recorder.trace.unknown.iter().map(of).collect())
}

/// Records a data-dependent size.
pub(crate) fn size_depends_on_data(tensor: &Tensor, dim: usize, example: i64, most: i64) {
    with(|recorder| {
        let tensor = recorder.tensor(tensor);
        recorder.trace.unknown.push(DataDependentSize { tensor, dim, example, most });
    });
}
