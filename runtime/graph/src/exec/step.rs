//! Execution of a step without regions.
//!
//! In: a step, the plan's tensors and lists. Out: its outputs, written; or the error of its kernel, with the call.

use std::mem::MaybeUninit;

use opsmith_runtime::arg::{Arg, Value, describe_operands};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::{self, Span};
use opsmith_runtime::op::{Kernel, KernelCall, OpDef};
use opsmith_runtime::scratch::Scratch;
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use crate::ir::TensorId;
use crate::plan::{FEW_ARGS, FusedKernel, Step, StepArg, StepKind};

/// Runs a step without regions; `IN_TURN`: a failed scratch allocation may end a function of `until_out_of_memory` that runs it.
#[inline]
pub(super) fn run_plain<const IN_TURN: bool>(step: &Step, tensors: &[Tensor], lists: &[Value]) -> Result<()> {
    let result = bare::<IN_TURN>(step, tensors, lists);
    result.map_err(|error| describe(step, error, |id| &tensors[id.index()], lists))
}

/// An error of a step, with its operator, operands and call site.
#[cold]
pub(super) fn describe<'a>(
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

#[cold]
pub(super) fn malformed(step: &Step) -> Error {
    Error::graph(format!("a step at {} does not have the arguments that it needs", step.site))
}

/// An argument in the form for kernels.
fn ready<'a>(arg: &'a StepArg, tensor: impl Fn(TensorId) -> &'a Tensor, lists: &'a [Value]) -> Arg<'a> {
    match arg {
        StepArg::Tensor(id) => Arg::Tensor(tensor(*id)),
        StepArg::Plain(arg) => *arg,
        StepArg::List(position) => lists[*position].as_arg(),
        StepArg::Value(value) => value.as_arg(),
    }
}

/// As [`run_plain`]; its error is that of the kernel alone.
#[inline(always)]
pub(super) fn bare<const IN_TURN: bool>(step: &Step, tensors: &[Tensor], lists: &[Value]) -> Result<()> {
    if let StepKind::Kernel { kernel, op, one_shape, direct: true, gives_bool } = &step.kind
        && let [only] = step.outs.as_slice()
        && !internals::is_listening()
    {
        let mut room = [const { MaybeUninit::uninit() }; FEW_ARGS];
        let args = gather(&mut room, &step.args, tensors, lists);
        // SAFETY: as in `run_kernel`; the output is on the host, and the operator does not update.
        return unsafe {
            let call = call_of(op, args, std::slice::from_ref(&tensors[only.index()]), *one_shape);
            if IN_TURN && !gives_bool {
                internals::run_in_turn(*kernel, &call)
            } else {
                internals::run_on_host(*kernel, &call)
            }
        };
    }
    other(step, tensors, lists)
}

/// As [`bare`], of a step of any kind.
#[inline(never)]
fn other(step: &Step, tensors: &[Tensor], lists: &[Value]) -> Result<()> {
    match &step.kind {
        StepKind::Kernel { kernel, op, one_shape, .. } => {
            run_kernel(step, (*kernel, op, *one_shape), tensors, lists)
        }
        StepKind::Copy => copy(step, tensors),
        StepKind::Add => add(step, tensors),
        StepKind::Chain(fused) => run_chain(fused, tensors),
        _ => Err(malformed(step)),
    }
}

/// The arguments in the form for kernels; of more than there is room for, the first ones.
#[inline(always)]
fn gather<'a, 'r>(
    room: &'r mut [MaybeUninit<Arg<'a>>; FEW_ARGS],
    args: &'a [StepArg],
    tensors: &'a [Tensor],
    lists: &'a [Value],
) -> &'r [Arg<'a>] {
    let count = args.len().min(FEW_ARGS);
    for (place, arg) in room[..count].iter_mut().zip(args) {
        // In place: an argument that is made elsewhere is moved byte by byte.
        match arg {
            StepArg::Tensor(id) => place.write(Arg::Tensor(&tensors[id.index()])),
            StepArg::Plain(arg) => place.write(*arg),
            StepArg::List(position) => place.write(lists[*position].as_arg()),
            StepArg::Value(value) => place.write(value.as_arg()),
        };
    }
    // SAFETY: as many were written.
    unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), count) }
}

/// The call of a step.
///
/// # Safety
/// As of [`KernelCall::new`]; with `one_shape`, all tensors have one shape.
#[inline(always)]
unsafe fn call_of<'a>(
    op: &'static OpDef,
    args: &'a [Arg<'a>],
    outs: &'a [Tensor],
    one_shape: bool,
) -> KernelCall<'a> {
    // SAFETY: the caller's promise.
    unsafe {
        let call = KernelCall::new(op, args, outs);
        if one_shape { internals::with_one_shape(call) } else { call }
    }
}

/// Runs a kernel with any number of arguments and outputs, on any device.
#[inline(never)]
fn run_kernel(
    step: &Step,
    (kernel, op, one_shape): (Kernel, &'static OpDef, bool),
    tensors: &[Tensor],
    lists: &[Value],
) -> Result<()> {
    let _span = internals::open_span(|| {
        let node = step.outs.first().map_or(0, |out| out.0);
        Span::Step { op, node, site: step.site.of_span() }
    });
    let mut room = [const { MaybeUninit::uninit() }; FEW_ARGS];
    let many: Scratch<Arg<'_>>;
    let args: &[Arg<'_>] = if step.args.len() <= FEW_ARGS {
        gather(&mut room, &step.args, tensors, lists)
    } else {
        many = step.args.iter().map(|arg| ready(arg, |id| &tensors[id.index()], lists)).collect();
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
    // SAFETY: tracing inferred the outputs and converted the inputs; the plan's layouts are inside its memory, where an
    // output overlaps an input only if the operator is element-wise; the run has borrowed the storages. The plan compared
    // the shapes, which are those of the tiles of a group, too.
    unsafe { internals::run_kernel(kernel, &call_of(op, args, outs, one_shape)) }
}

#[inline(never)]
fn copy(step: &Step, tensors: &[Tensor]) -> Result<()> {
    let [StepArg::Tensor(source)] = &*step.args else { return Err(malformed(step)) };
    // SAFETY: the run has borrowed the storages; tracing or verification ensured that the two do not overlap.
    unsafe { internals::convert(&tensors[step.outs[0].index()], &tensors[source.index()]) }
}

#[inline(never)]
fn add(step: &Step, tensors: &[Tensor]) -> Result<()> {
    let [StepArg::Tensor(source)] = &*step.args else { return Err(malformed(step)) };
    // SAFETY: the run has borrowed the storages; tracing or verification ensured that the two do not overlap.
    unsafe { internals::add(&tensors[step.outs[0].index()], &tensors[source.index()]) }
}

#[inline(never)]
fn run_chain(fused: &FusedKernel, tensors: &[Tensor]) -> Result<()> {
    let _span = internals::open_span(|| Span::Phase { name: "fused kernel" });
    let operands: SmallVec<[&Tensor; 24]> = fused.operands.iter().map(|id| &tensors[id.index()]).collect();
    // SAFETY: the plan's tensors have the layouts that the chain was made for, inside their memory, where a result overlaps
    // an operand only as the same elements; the run has borrowed the storages.
    unsafe { fused.chain.run(fused.device, &operands) }
}
