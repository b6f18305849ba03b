//! Runs a kernel: conversion of inputs, borrows, and the call; or reports the event while this thread traces.
//!
//! In: a definition, arguments, and outputs that match inference. Out: the outputs, written.

use opsmith_core::{DType, DTypeCategory};
use smallvec::SmallVec;

use super::borrows::Borrows;
use super::convert::{check_dtypes, convert_inputs};
use super::spans::{self, Span};
use super::targets::{refuse_endless, same_elements};
use super::{host_fallback, numbers, observer, written};
use crate::arg::Arg;
use crate::backend;
use crate::copy;
use crate::error::{Error, Result, ShapeText};
use crate::op::{ElementType, Inferred, Kernel, KernelCall, OpDef};
use crate::tensor::{Tensor, on_device, replacements};

/// Runs the kernel for existing outputs that match inference.
///
/// `shared`: the outputs are visible to other code and must be borrowed. `since`: the count of replaced tensors before
/// inference read these.
pub(super) fn run_kernel(
    op: &'static OpDef,
    args: &[Arg<'_>],
    inferred: &Inferred,
    outs: &[Tensor],
    shared: bool,
    since: u64,
) -> Result<()> {
    let kernel = host_fallback::kernel(op, inferred.device.backend, inferred.compute)?;
    numbers::check(op, args, inferred.compute)?;
    let observer = observer::observer();
    if observer.is_none()
        && outs.iter().all(|out| out.numel() == 0)
        && !outs.is_empty()
        && !reads_integers(op, args)
    {
        return check_dtypes(op, args, inferred.compute);
    }
    refuse_endless(op, args, outs)?;
    let compute = inferred.compute;
    let converted = convert_inputs(op, args, compute, inferred.device)?;
    let mut replaced: SmallVec<[Arg<'_>; 8]> = SmallVec::new();
    // Converted inputs were converted after inference read them; the others are checked when they are borrowed.
    refuse_replaced(args, &[], since)?;
    let args = match &converted {
        None => args,
        Some(values) => {
            replaced.extend_from_slice(args);
            values.iter().for_each(|(index, value)| replaced[*index] = value.as_arg());
            &replaced
        }
    };
    if let Some(observer) = observer {
        return observer.called(op, compute, args, outs, shared);
    }
    // SAFETY: the caller compared the outputs with inference and checked for overlaps; inputs are converted, and the
    // kernel is the one for their dtype.
    unsafe { run_borrowed(kernel, Call { op, args, outs, shared, since }) }
}

/// Whether a call has integer tensors that did not select its kernel, such as indices. They may be invalid even if the
/// results are empty, so the kernel runs to check them.
#[cold]
fn reads_integers(op: &OpDef, args: &[Arg<'_>]) -> bool {
    let mut found = false;
    for (index, arg) in args.iter().enumerate() {
        arg.for_each_tensor(|tensor| {
            found |= tensor.numel() != 0 && is_checked_by_kernel(op, index, tensor.dtype());
        });
    }
    found
}

/// Whether kernels check the elements of an argument of this dtype, even if there is nothing to write.
pub(crate) fn is_checked_by_kernel(op: &OpDef, argument: usize, dtype: DType) -> bool {
    op.custom.is_none()
        && dtype.category() == DTypeCategory::Int
        && matches!(op.element_types[argument], ElementType::Fixed { .. } | ElementType::Any)
}

/// Arguments and outputs of a kernel call.
struct Call<'a> {
    op: &'static OpDef,
    args: &'a [Arg<'a>],
    outs: &'a [Tensor],
    /// Whether the outputs are visible to other code, so that they hold elements and must be borrowed.
    shared: bool,
    /// The count of replaced tensors before inference read these.
    since: u64,
}

/// Runs a kernel while the storages are borrowed.
///
/// # Safety
/// The kernel is one of the operator, and the call fulfils the requirements of [`KernelCall::new`] except for the
/// borrows.
#[inline(always)]
unsafe fn run_borrowed(kernel: Kernel, call: Call<'_>) -> Result<()> {
    let Call { op, args, outs, shared, since } = call;
    let mut held = Borrows::default();
    held.add(args, if shared { outs } else { &[] })?;
    refuse_replaced(args, outs, since)?;
    // SAFETY: the caller promises a valid call; the tensors stay as the caller checked them while their storages are
    // borrowed, until this returns. Shared tensors hold elements.
    unsafe {
        let call = KernelCall::new(op, args, outs);
        run_prepared(kernel, &if shared { call.with_elements() } else { call })
    }
}

/// Rejects tensors that another thread replaced since inference read their shapes.
///
/// # Errors
/// If there is one.
#[inline]
pub(super) fn refuse_replaced(reads: &[Arg<'_>], writes: &[Tensor], since: u64) -> Result<()> {
    if replacements() == since { Ok(()) } else { refuse_these_replaced(reads, writes, since) }
}

#[cold]
fn refuse_these_replaced(reads: &[Arg<'_>], writes: &[Tensor], since: u64) -> Result<()> {
    let mut found = writes.iter().any(|tensor| tensor.is_replaced_since(since));
    reads.iter().for_each(|arg| arg.for_each_tensor(|tensor| found |= tensor.is_replaced_since(since)));
    if !found {
        return Ok(());
    }
    Err(Error::aliasing(
        "another thread wrote a result into a tensor without elements while this call looked at it",
    )
    .with_help("wait for the thread before the tensor is used"))
}

/// Runs a kernel: a host kernel immediately, a device kernel in this thread's stream.
///
/// # Safety
/// As [`Kernel::run`].
#[inline]
pub(crate) unsafe fn run_prepared(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { if spans::may_listen() { run_reported(kernel, call) } else { run_unreported(kernel, call) } }
}

/// As [`run_prepared`], with a span.
///
/// # Safety
/// As [`Kernel::run`].
#[cold]
#[inline(never)]
unsafe fn run_reported(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    let _span = spans::open(|| Span::Kernel { op: call.op(), kernel, args: call.args(), outs: call.outs() });
    // SAFETY: the caller's promise.
    unsafe { run_unreported(kernel, call) }
}

/// As [`run_prepared`], without a span.
///
/// # Safety
/// As [`Kernel::run`].
#[inline(always)]
unsafe fn run_unreported(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
    if call.op().forms.updates {
        start_as_copy(call)?;
    }
    if call.is_on_host() {
        // SAFETY: the caller's promise.
        return unsafe { written::run(kernel, call) };
    }
    // Its loop is held back, and its operands' uses are noted when it is launched.
    if backend::holds_back() && call.op().kernels.is_expression(call.device().backend, kernel) {
        // SAFETY: the caller's promise.
        return unsafe { kernel.run(call) };
    }
    let for_each = |visit: &mut dyn FnMut(&Tensor)| {
        call.args().iter().for_each(|arg| arg.for_each_tensor(&mut *visit));
        call.outs().iter().for_each(visit);
    };
    // SAFETY: the caller's promise, as of `Kernel::run`.
    on_device(call.device(), for_each, |work| unsafe {
        let _submission = spans::submission(call.device(), work.queue().stream.0);
        kernel.run(call)
    })
}

/// Copies the first argument into the result that the kernel updates, unless it is that memory.
///
/// # Errors
/// If the result has another shape.
#[inline(never)]
fn start_as_copy(call: &KernelCall<'_>) -> Result<()> {
    let (Some(Arg::Tensor(source)), [out]) = (call.args().first(), call.outs()) else {
        return Err(Error::argument(
            "an operator that updates its first argument has a tensor there, and one result",
        ));
    };
    if same_elements(source, out) && source.shares_storage(out) {
        return Ok(());
    }
    if source.shape() != out.shape() {
        return Err(Error::shape(format!(
            "the result has the shape {}, and starts as a copy of the first argument, of shape {}",
            ShapeText(out.shape()),
            ShapeText(source.shape())
        ))
        .with_help("give the operator the rule `shape: follow(…)` of that argument"));
    }
    copy::convert(out, source)
}
