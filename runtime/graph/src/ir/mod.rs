//! The intermediate representation: buffers, tensors over them, and nodes in execution order.
//!
//! A buffer is memory; a tensor is a layout over a buffer, as in eager mode, so views and in-place calls
//! need no translation: a view is another tensor of the same buffer, an in-place call a node that writes
//! to an existing buffer. The order of nodes is an order of execution; two nodes commute if neither writes to
//! memory that the other touches ([`Node::for_each_read`], [`Node::for_each_write`]).
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
use opsmith_runtime::layout::Layout;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::random::GeneratorState;
use opsmith_runtime::scalar::Scalar;
use opsmith_runtime::tensor::Tensor;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

pub(crate) use parts::{ShapeConstant, Variant};
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

/// A function as data: what it computes, in which order, on which memory.
#[derive(Clone, Default, Debug)]
pub struct Graph {
    pub(crate) symbols: Symbols,
    /// Where the value of each symbol is read.
    pub(crate) sources: Vec<SymbolSource>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) tensors: Vec<TensorInfo>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<TensorId>,
    pub(crate) input_names: Vec<String>,
    pub(crate) outputs: Vec<TensorId>,
    /// Conditions under which the graph is right for other sizes than those it was traced with; equations.
    pub(crate) guards: Vec<Guard>,
    /// Where generators that the function makes start in each run.
    pub(crate) generators: Vec<GeneratorState>,
    /// The inputs with respect to which the function computes gradients.
    pub(crate) grad_inputs: Vec<usize>,
    /// Whether element-wise calls may write over inputs that nothing needs any more.
    pub(crate) reuse: bool,
    /// How many threads run steps that do not depend on each other; one after the other below 2.
    pub(crate) threads: usize,
    /// Whether it was loaded, so that every plan is verified.
    pub(crate) loaded: bool,
    /// Constants whose elements decided shapes; a loaded graph has its own, which never change.
    pub(crate) shape_constants: Vec<ShapeConstant>,
    /// Graphs for sizes at which the function takes other steps.
    pub(crate) variants: Vec<Variant>,
    /// What runs keep; all else is data.
    pub(crate) state: RunState,
}

/// Where the value of a symbol is read; the symbol's other properties are in the table of symbols.
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
        /// The tensor whose first dimension it is.
        tensor: TensorId,
        /// The dimension.
        dim: usize,
    },
    /// It is computed from other symbols.
    Derived,
}

/// Memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its role.
    pub kind: BufferKind,
    /// The tensor that shows all of it.
    pub root: TensorId,
}

/// The role of a buffer.
#[derive(Clone, Debug)]
pub enum BufferKind {
    /// Memory that a caller brings, by the input's position.
    Input(usize),
    /// Memory that the function found: a tensor made outside it. A node may write to it.
    Constant(Tensor),
    /// Memory of the graph's own.
    Internal,
}

/// A tensor: a layout over a buffer. In one run of a traced function the layout is one of numbers.
#[derive(Clone, Debug)]
pub struct TensorInfo<L = SymbolicLayout> {
    /// Its memory.
    pub buffer: BufferId,
    /// Its element type.
    pub dtype: DType,
    /// Where it is.
    pub device: Device,
    /// Sizes, strides and offset.
    pub layout: L,
}

/// Sizes, strides and offset, each a number or a formula.
#[derive(Clone, PartialEq, Debug)]
pub struct SymbolicLayout {
    /// Elements along each dimension.
    pub sizes: SmallVec<[Size; 4]>,
    /// Elements to step in memory for one step along each dimension.
    pub strides: SmallVec<[Size; 4]>,
    /// Elements to skip at the start of the buffer.
    pub offset: Size,
}

/// One step. Numbers that depend on sizes are formulas; in one run of a traced function they are values, of which tracing
/// does not know yet on what they depend.
#[derive(Clone, Debug)]
pub struct Node<N = Size> {
    /// The kind of work.
    pub kind: NodeKind<N>,
    /// Its arguments, in the order of the operator's signature.
    pub args: Vec<Argument<N>>,
    /// The tensors it makes or writes to.
    pub outs: SmallVec<[TensorId; 1]>,
    /// The call in the traced function that it came from.
    pub site: Site,
}

/// The kind of a node.
#[derive(Clone, Debug)]
pub enum NodeKind<N = Size> {
    /// Runs an operator's kernel on inputs that are as it wants them.
    Call {
        /// The operator.
        op: &'static OpDef,
        /// The dtype that chooses the kernel.
        compute: DType,
    },
    /// Makes a tensor over memory that exists. Nothing runs.
    View {
        /// The operator.
        op: &'static OpDef,
    },
    /// Writes the only argument, broadcast and converted, into the only output.
    Copy,
    /// Adds the only argument to the only output, which may show one element at several indices.
    Add,
    /// Runs one of two branches: the first if the only argument, a truth value, is true. Both write the
    /// outputs.
    Cond {
        /// The steps of each branch.
        branches: Box<[Region<N>; 2]>,
    },
    /// Runs a body as long as a condition holds. The outputs are the state: written before, and by each
    /// run of the body.
    While {
        /// Computes the predicate from the state.
        condition: Region<N>,
        /// A truth value that the condition writes.
        predicate: TensorId,
        /// Computes the next state.
        body: Region<N>,
    },
    /// Runs a body once for each position along a dimension. The outputs are the state and the stacks of
    /// results.
    Scan {
        /// How often the body runs.
        length: N,
        /// Tensors inside that show another part of their buffer in each run.
        moving: Vec<Moving<N>>,
        /// The steps of one run.
        body: Region<N>,
    },
}

/// Steps inside a step.
#[derive(Clone, Debug)]
pub struct Region<N = Size> {
    /// The steps in the order they run.
    pub nodes: Vec<Node<N>>,
}

/// A tensor that moves over its buffer from one run of a body to the next.
#[derive(Clone, PartialEq, Debug)]
pub struct Moving<N = Size> {
    /// The tensor; its layout is that of the first run.
    pub tensor: TensorId,
    /// How many elements further it starts in each run.
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
    /// Anything else; holds no tensor.
    Value(Value),
    /// An integer that depends on sizes.
    Int(N),
    /// Integers of which some depend on sizes.
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

/// Where a node was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Site {
    /// Nowhere: it was added by a pass, or loaded without its place.
    #[default]
    Unknown,
    /// In this program.
    Here(&'static Location<'static>),
    /// In the program that saved the graph.
    Elsewhere(String),
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
    /// A layout of numbers.
    pub fn of(layout: &Layout) -> SymbolicLayout {
        SymbolicLayout {
            sizes: layout.sizes.iter().map(|size| Size::Const(*size)).collect(),
            strides: layout.strides.iter().map(|stride| Size::Const(*stride)).collect(),
            offset: Size::Const(layout.offset),
        }
    }

    /// The layout where symbols have values; `None` if something is unknown.
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
    /// The same number of another integer.
    ///
    /// # Errors
    /// That of the function.
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
