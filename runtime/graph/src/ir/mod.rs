//! The intermediate representation: buffers, tensors over them, and nodes in execution order.
//!
//! A buffer is memory; a tensor is a layout over a buffer, as in eager mode, so views and in-place calls need no
//! translation: a view is another tensor of the same buffer, an in-place call is a node that writes to an existing
//! buffer. The order of nodes is an execution order; two nodes commute if neither writes to memory that the other reads
//! or writes ([`Node::for_each_read`], [`Node::for_each_write`]).
//!
//! Sizes are formulas over the graph's symbols ([`Size`]); without symbols all are numbers.

mod access;
mod node;
mod parts;
mod state;

use std::fmt;
use std::panic::Location;

use opsmith_core::DType;
use opsmith_runtime::arg::Value;
use opsmith_runtime::device::Device;
use opsmith_runtime::infer::symbolic::{Bindings, Guard, Size, Symbols};
use opsmith_runtime::internals::StepSite;
use opsmith_runtime::layout::Layout;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::random::GeneratorState;
use opsmith_runtime::scalar::Scalar;
use opsmith_runtime::tensor::Tensor;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

pub(crate) use parts::{ShapeConstant, Variant, exactly};
pub(crate) use state::RunState;

/// The number of a tensor in [`Graph::tensors`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TensorId(pub u32);

/// The number of a buffer in [`Graph::buffers`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BufferId(pub u32);

impl TensorId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl BufferId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function as data: its operations, their order, and their memory.
#[derive(Clone, Default, Debug)]
pub struct Graph {
    pub(crate) symbols: Symbols,
    /// The source of each symbol's value.
    pub(crate) sources: Vec<SymbolSource>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) tensors: Vec<TensorInfo>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<TensorId>,
    pub(crate) input_names: Vec<String>,
    pub(crate) outputs: Vec<TensorId>,
    /// Guards: conditions under which the graph is valid for other sizes than the traced ones.
    pub(crate) guards: Vec<Guard>,
    /// Initial states, in each run, of generators that the function makes.
    pub(crate) generators: Vec<GeneratorState>,
    /// The inputs with respect to which the function computes gradients.
    pub(crate) grad_inputs: Vec<usize>,
    /// Whether element-wise calls may write over dead inputs.
    pub(crate) reuse: bool,
    /// Maximal number of elements of a tile if consecutive element-wise calls run tile by tile.
    pub(crate) tile: Option<i64>,
    /// Number of threads that run independent nodes; one thread below 2.
    pub(crate) threads: usize,
    /// Whether it was loaded from a file, so that every plan is verified.
    pub(crate) loaded: bool,
    /// Constants whose elements determined shapes; a loaded graph has private ones, which never change.
    pub(crate) shape_constants: Vec<ShapeConstant>,
    /// Graphs for sizes at which the function makes other calls.
    pub(crate) variants: Vec<Variant>,
    /// The cached state of runs; all other fields are data.
    pub(crate) state: RunState,
}

/// The source of a symbol's value; its other properties are in the table of symbols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SymbolSource {
    /// The size of an input along a dimension.
    Input {
        /// The input's position.
        input: usize,
        /// The dimension.
        dim: usize,
    },
    /// A data-dependent size: known once its node has run.
    Node {
        /// The tensor whose size it is.
        tensor: TensorId,
        /// The dimension.
        dim: usize,
    },
    /// Computed from other symbols.
    Derived,
}

/// Memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its role.
    pub kind: BufferKind,
    /// The tensor over the whole buffer.
    pub root: TensorId,
}

/// The role of a buffer.
#[derive(Clone, Debug)]
pub enum BufferKind {
    /// Memory of the caller, by the input's position.
    Input(usize),
    /// Memory captured by the function: a tensor made outside it. A node may write to it.
    Constant(Tensor),
    /// Private memory of the graph.
    Internal,
}

/// A tensor: a layout over a buffer. In the trace of a single run, the layout consists of numbers.
#[derive(Clone, Debug)]
pub struct TensorInfo<L = SymbolicLayout> {
    /// Its memory.
    pub buffer: BufferId,
    /// Its element type.
    pub dtype: DType,
    /// Its device.
    pub device: Device,
    /// Sizes, strides and offset.
    pub layout: L,
}

/// Sizes, strides and offset, each a number or a formula.
#[derive(Clone, PartialEq, Debug)]
pub struct SymbolicLayout {
    /// Elements along each dimension.
    pub sizes: SmallVec<[Size; 4]>,
    /// Stride in elements along each dimension.
    pub strides: SmallVec<[Size; 4]>,
    /// Offset of the first element in the buffer.
    pub offset: Size,
}

/// A node: one step. Size-dependent numbers are formulas; in the trace of a single run they are values whose dependence
/// on sizes is not determined yet.
#[derive(Clone, Debug)]
pub struct Node<N = Size> {
    /// The kind of work.
    pub kind: NodeKind<N>,
    /// Its arguments, in the order of the operator's signature.
    pub args: Vec<Argument<N>>,
    /// The tensors that it makes or writes.
    pub outs: SmallVec<[TensorId; 1]>,
    /// The site of its call in the traced function.
    pub site: Site,
}

/// The kind of a node.
#[derive(Clone, Debug)]
pub enum NodeKind<N = Size> {
    /// Runs an operator's kernel on converted inputs.
    Call {
        /// The operator.
        op: &'static OpDef,
        /// The dtype that selects the kernel.
        compute: DType,
    },
    /// Makes a tensor over existing memory, without a kernel.
    View {
        /// The operator.
        op: &'static OpDef,
    },
    /// Writes the only argument, broadcast and converted, into the only output.
    Copy,
    /// Adds the only argument to the only output, whose indices may overlap in memory.
    Add,
    /// Runs one of two branches: the first if the only argument, a predicate, is true. Both write the outputs.
    Cond {
        /// The nodes of each branch.
        branches: Box<[Region<N>; 2]>,
    },
    /// Runs a body while a condition holds. The outputs are the state: written before the loop, and by each iteration.
    While {
        /// Computes the predicate from the state.
        condition: Region<N>,
        /// A `bool` that the condition writes.
        predicate: TensorId,
        /// Computes the next state.
        body: Region<N>,
    },
    /// Runs a body once for each position along a dimension. The outputs are the state and the stacked results.
    Scan {
        /// Number of iterations.
        length: N,
        /// Tensors in the body whose offset changes with the iteration.
        moving: Vec<Moving<N>>,
        /// The nodes of one iteration.
        body: Region<N>,
    },
}

/// Nodes inside a node.
#[derive(Clone, Debug)]
pub struct Region<N = Size> {
    /// The nodes in execution order.
    pub nodes: Vec<Node<N>>,
}

/// A tensor whose offset changes from one iteration to the next.
#[derive(Clone, PartialEq, Debug)]
pub struct Moving<N = Size> {
    /// The tensor; its layout is that of the first iteration.
    pub tensor: TensorId,
    /// Change of its offset per iteration, in elements.
    pub step: N,
}

/// An argument of a node.
#[derive(Clone, Debug)]
pub enum Argument<N = Size> {
    /// A tensor.
    Tensor(TensorId),
    /// A list of tensors.
    Tensors(Vec<TensorId>),
    /// A list of tensors of which some may be absent.
    OptionalTensors(Vec<Option<TensorId>>),
    /// Any other argument; it has no tensor.
    Value(Value),
    /// An integer that depends on sizes.
    Int(N),
    /// Integers, some of which depend on sizes.
    Ints(Vec<N>),
    /// A number that depends on sizes.
    Scalar(SymbolicScalar<N>),
    /// A float that depends on sizes.
    Float(SymbolicScalar<N>),
}

/// A number that depends on sizes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolicScalar<N = Size> {
    /// An integer.
    Int(N),
    /// An integer as a float.
    Float(N),
    /// One divided by an integer.
    Reciprocal(N),
}

/// The site of a node's call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Site {
    /// None: a pass added the node, or it was loaded without a site.
    #[default]
    Unknown,
    /// A location in this program.
    Here(&'static Location<'static>),
    /// A location outside this program: in the one that saved the graph, or in the source of an imported one.
    Elsewhere(String),
}

impl Site {
    /// The site as profilers have it.
    pub(crate) fn of_span(&self) -> StepSite<'_> {
        match self {
            Site::Unknown => StepSite::Unknown,
            Site::Here(location) => StepSite::Here(location),
            Site::Elsewhere(text) => StepSite::Elsewhere(text),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Site::Unknown => f.write_str("unknown place"),
            Site::Here(location) => {
                write!(f, "{}:{}:{}", location.file(), location.line(), location.column())
            }
            Site::Elsewhere(text) => f.write_str(text),
        }
    }
}

impl SymbolicLayout {
    /// The layout of given numbers.
    pub fn of(layout: &Layout) -> SymbolicLayout {
        SymbolicLayout {
            sizes: layout.sizes.iter().map(|size| Size::Const(*size)).collect(),
            strides: layout.strides.iter().map(|stride| Size::Const(*stride)).collect(),
            offset: Size::Const(layout.offset),
        }
    }

    /// The layout for these values of symbols; `None` if a part is unknown.
    pub fn evaluate(&self, symbols: &Bindings) -> Option<Layout> {
        let number = |size: &Size| size.bind(symbols);
        Some(Layout {
            sizes: self.sizes.iter().map(number).collect::<Option<_>>()?,
            strides: self.strides.iter().map(number).collect::<Option<_>>()?,
            offset: number(&self.offset)?,
        })
    }
}

impl<N> SymbolicScalar<N> {
    /// The same kind of number, of another integer.
    ///
    /// # Errors
    /// Errors of the function.
    pub(crate) fn map<M, E>(&self, of: impl FnOnce(&N) -> Result<M, E>) -> Result<SymbolicScalar<M>, E> {
        Ok(match self {
            SymbolicScalar::Int(number) => SymbolicScalar::Int(of(number)?),
            SymbolicScalar::Float(number) => SymbolicScalar::Float(of(number)?),
            SymbolicScalar::Reciprocal(number) => SymbolicScalar::Reciprocal(of(number)?),
        })
    }
}

impl SymbolicScalar<i64> {
    /// The number.
    pub(crate) fn scalar(self) -> Scalar {
        match self {
            SymbolicScalar::Int(number) => Scalar::Int(number),
            SymbolicScalar::Float(number) => Scalar::Float(number as f64),
            SymbolicScalar::Reciprocal(number) => Scalar::Float(1.0 / number as f64),
        }
    }
}
