//! The steps of a plan.
//!
//! In: nodes of a graph, as the builder of a plan looks them up. Out: data that a run executes: kernels, arguments in the form of
//! calls, and facts about each call that need not be found again in each run.

use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::device::Device;
use opsmith_runtime::internals::Chain;
use opsmith_runtime::op::{Kernel, OpDef};
use smallvec::SmallVec;

use super::tiles::Tiled;
use crate::ir::{Site, TensorId};

/// Maximal number of arguments that a run gathers on the stack.
pub(crate) const FEW_ARGS: usize = 8;

/// One step, with kernel and arguments looked up.
pub(crate) struct Step {
    pub kind: StepKind,
    pub args: Box<[StepArg]>,
    pub outs: SmallVec<[TensorId; 1]>,
    pub site: Site,
}

/// The steps of a branch, a loop's condition or its body, which lie at the same addresses each time.
pub(crate) struct StepList {
    /// Its number in the plan, larger than that of the list around it. The plan's own steps have the number 0.
    pub number: usize,
    pub steps: Vec<Step>,
}

pub(crate) enum StepKind {
    Kernel {
        kernel: Kernel,
        op: &'static OpDef,
        /// Whether every tensor of the call has one shape.
        one_shape: bool,
        /// Whether a run has nothing to find out about the call: it has one output, on the host, at most [`FEW_ARGS`]
        /// arguments, and its operator does not update the first.
        direct: bool,
        /// Whether an output is `bool`, whose memory must be made valid where the kernel writes nothing.
        gives_bool: bool,
    },
    Copy,
    Add,
    Cond {
        branches: [StepList; 2],
    },
    While {
        condition: StepList,
        predicate: TensorId,
        body: StepList,
    },
    Scan {
        length: i64,
        moving: Vec<(TensorId, i64)>,
        body: Vec<Step>,
    },
    /// A fused group.
    Tiled(Box<Tiled>),
    /// A fused group on a device.
    Chain(Box<FusedKernel>),
}

impl StepKind {
    /// Whether there are no steps inside.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        matches!(self, StepKind::Kernel { .. } | StepKind::Copy | StepKind::Add | StepKind::Chain(_))
    }
}

/// A kernel of several calls.
pub(crate) struct FusedKernel {
    pub chain: Chain,
    pub device: Device,
    /// The results, then the tensors that are read.
    pub operands: Vec<TensorId>,
}

pub(crate) enum StepArg {
    Tensor(TensorId),
    /// A list of tensors, by its position in [`Plan::list_values`].
    List(usize),
    /// An attribute that owns nothing, in the form of calls.
    Plain(Arg<'static>),
    Value(Value),
}
