//! The forms of an operator without recording: from inference to the kernel.
//!
//! In: an operator definition and arguments. Out: outputs, new or given. What a given output must be
//! like is in `targets`, what inputs are made into in `convert`.

use opsmith_core::{Backend, DType, DTypeCategory};
use smallvec::SmallVec;

use super::borrows::Borrows;
use super::convert::{check_dtypes, convert_inputs};
use super::numbers;
use super::observer;
use super::targets::{
    check_inplace, check_out, refuse_endless, refuse_overlap_with_inputs, refuse_overlapping_target,
    refuse_partial_overlap, shares_elsewhere,
};
use super::written;
use crate::arg::Arg;
use crate::copy;
use crate::error::{Error, Result};
use crate::layout::{checked_numel, same_sizes};
use crate::op::{ElementType, Inferred, Kernel, KernelCall, OpDef, OutSpec, Outputs, Uniform};
use crate::tensor::Tensor;

/// The functional form without recording.
pub(crate) fn forward(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    if let Some(view) = op.view {
        let base = args[0].tensor();
        let outs: Outputs =
            view(args)?.into_iter().map(|layout| base.with_layout(layout)).collect::<Result<_>>()?;
        if let Some(observer) = observer::observer() {
            observer.decided_by(op, args)?;
            observer.viewed(op, args, &outs)?;
        }
        return Ok(outs);
    }
    if let Some((kernel, dtype, like)) = uniform_kernel(op, args) {
        let out = Tensor::uninitialized(like.shape(), dtype, like.device())?;
        // SAFETY: the operands are alike, so that the output is as inference says, and it is new.
        unsafe {
            run_uniform(kernel, Call { op, args, outs: std::slice::from_ref(&out), shared: false }, like)?
        };
        let mut outs = Outputs::new();
        outs.push(out);
        return Ok(outs);
    }
    if let Some(observer) = observer::observer() {
        observer.decided_by(op, args)?;
        if let Some(outs) = observer.data_dependent(op, args) {
            return outs;
        }
    }
    let Some(inferred) = op.inferred(args) else { return compose(op, args) };
    let inferred = inferred?;
    if op.composite.is_some() && !has_kernel(op, inferred.device.backend, inferred.compute) {
        return compose(op, args);
    }
    let outs: Outputs = inferred.outs.iter().map(|spec| allocate(spec, &inferred)).collect::<Result<_>>()?;
    run_kernel(op, args, &inferred, &outs, false)?;
    Ok(outs)
}

/// The kernel, the output's dtype and a tensor of the output's shape and device, where every tensor
/// operand has one shape, dtype and device, so that inference has nothing to decide ([`Uniform`]).
#[inline]
fn uniform_kernel<'a>(op: &OpDef, args: &[Arg<'a>]) -> Option<(Kernel, DType, &'a Tensor)> {
    if op.uniform == Uniform::No {
        return None;
    }
    let mut first: Option<&'a Tensor> = None;
    for arg in args {
        match (*arg, first) {
            (Arg::Tensor(tensor), None) => first = Some(tensor),
            (Arg::Tensor(tensor), Some(first)) => {
                let same = tensor.dtype() == first.dtype()
                    && same_sizes(tensor.shape(), first.shape())
                    && tensor.device() == first.device();
                if !same {
                    return None;
                }
            }
            (Arg::Scalar(scalar), Some(first)) if scalar.dtype().category() > first.dtype().category() => {
                return None;
            }
            (Arg::Scalar(_), None) => return None,
            _ => {}
        }
    }
    let first = first?;
    let dtype = match op.uniform {
        Uniform::Fixed(dtype) => dtype,
        Uniform::SameIfInexact if !first.dtype().is_differentiable() => return None,
        _ => first.dtype(),
    };
    let kernel = op.kernels.get(first.device().backend, first.dtype())?;
    Some((kernel, dtype, first))
}

/// Whether an operator has a kernel, so that its composition is not needed.
pub(crate) fn has_kernel(op: &OpDef, backend: Backend, compute: DType) -> bool {
    op.kernels.get(backend, compute).is_some()
}

fn compose(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    match op.composite {
        Some(composite) => composite(args),
        None => Err(Error::not_implemented("the operator has neither a kernel nor a composition")),
    }
}

#[inline]
fn allocate(spec: &OutSpec, inferred: &Inferred) -> Result<Tensor> {
    // Shapes that a spec computes by itself have passed no rule.
    checked_numel(&spec.sizes)?;
    Tensor::uninitialized(&spec.sizes, spec.dtype, inferred.device)
}

/// The in-place form without recording.
pub(crate) fn forward_inplace(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    let target = args[0].tensor();
    if let Some((kernel, dtype, like)) = uniform_kernel(op, args)
        && dtype == target.dtype()
        && target.is_contiguous()
        && !shares_elsewhere(args, target)
    {
        let call = Call { op, args, outs: std::slice::from_ref(target), shared: true };
        // SAFETY: the operands are alike, so that the target is as inference says; what shows its memory shows the
        // same elements.
        return unsafe { run_uniform(kernel, call, like) };
    }
    refuse_overlapping_target(target, "self")?;
    let Some(infer) = op.infer.filter(|_| op.forms.elementwise) else {
        // The kernel may read an input after writing the output, so it gets memory of its own.
        let results = forward(op, args)?;
        check_inplace(target, results[0].shape(), results[0].dtype())?;
        copy::copy(target, &results[0])?;
        return Ok(());
    };
    let inferred = infer(args)?;
    let spec = &inferred.outs[0];
    check_inplace(target, &spec.sizes, spec.dtype)?;
    refuse_partial_overlap(op, args, target)?;
    if spec.dtype == target.dtype()
        && (op.composite.is_none() || has_kernel(op, inferred.device.backend, inferred.compute))
    {
        return run_kernel(op, args, &inferred, std::slice::from_ref(target), true);
    }
    let results = forward(op, args)?;
    copy::copy(target, &results[0])
}

/// The out form without recording.
pub(crate) fn forward_out(op: &'static OpDef, args: &[Arg<'_>], outs: &mut [&mut Tensor]) -> Result<()> {
    if let ([out], Some((kernel, dtype, like))) = (&mut *outs, uniform_kernel(op, args))
        && out.dtype() == dtype
        && out.shape() == like.shape()
        && out.device() == like.device()
        && out.is_contiguous()
        && !shares_elsewhere(args, out)
    {
        let call = Call { op, args, outs: std::slice::from_ref(*out), shared: true };
        // SAFETY: as for an in-place form.
        return unsafe { run_uniform(kernel, call, like) };
    }
    if let Some(observer) = observer::observer() {
        observer.decided_by(op, args)?;
    }
    let inferred = match op.inferred(args) {
        Some(inferred) => inferred?,
        None => return copy_out(op, forward(op, args)?, outs),
    };
    let visible = inferred.outs.len() - op.hidden;
    if outs.len() != visible {
        return Err(Error::argument(format!(
            "the operator has {visible} outputs, {} tensors were given for them",
            outs.len()
        )));
    }
    for (index, spec) in inferred.outs[..visible].iter().enumerate() {
        check_out(op, index, spec, &inferred, outs[index])?;
        refuse_overlap_with_inputs(op, args, outs[index])?;
        if outs[..index].iter().any(|other| other.overlaps(outs[index])) {
            return Err(
                Error::aliasing("two outputs share memory").with_help("give each output its own tensor")
            );
        }
    }
    let direct = (op.composite.is_none() || has_kernel(op, inferred.device.backend, inferred.compute))
        && outs
            .iter()
            .zip(&inferred.outs)
            .all(|(out, spec)| out.dtype() == spec.dtype && out.shape() == &spec.sizes[..]);
    if direct {
        let mut targets: Outputs = outs.iter().map(|out| (**out).clone()).collect();
        for spec in &inferred.outs[visible..] {
            targets.push(allocate(spec, &inferred)?);
        }
        return run_kernel(op, args, &inferred, &targets, true);
    }
    copy_out(op, forward(op, args)?, outs)
}

fn copy_out(op: &OpDef, results: Outputs, outs: &mut [&mut Tensor]) -> Result<()> {
    // Check all before the first write, so that a refused call changes nothing.
    for (index, result) in results.iter().take(outs.len()).enumerate() {
        let spec = OutSpec { sizes: result.shape().into(), dtype: result.dtype() };
        let inferred = Inferred { outs: SmallVec::new(), compute: result.dtype(), device: result.device() };
        check_out(op, index, &spec, &inferred, outs[index])?;
    }
    for (result, out) in results.iter().zip(outs) {
        if out.shape() == result.shape() {
            copy::copy(out, result)?;
            continue;
        }
        // A caller never sees a tensor that was not written.
        let replacement = Tensor::uninitialized(result.shape(), out.dtype(), out.device())?;
        copy::copy(&replacement, result)?;
        **out = replacement;
    }
    Ok(())
}

/// Runs the kernel for inferred outputs that exist.
///
/// `shared` says that others may know the outputs, so that they must be borrowed.
fn run_kernel(
    op: &'static OpDef,
    args: &[Arg<'_>],
    inferred: &Inferred,
    outs: &[Tensor],
    shared: bool,
) -> Result<()> {
    let kernel = op.kernel(inferred.device.backend, inferred.compute)?;
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
    let converted = convert_inputs(op, args, inferred.compute)?;
    let mut replaced: SmallVec<[Arg<'_>; 8]> = SmallVec::new();
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
    // SAFETY: the caller compared the outputs with what inference says, and looked for overlaps; inputs are
    // converted, and the kernel is the one for their dtype.
    unsafe { run_borrowed(kernel, Call { op, args, outs, shared }) }
}

/// Whether a call has integers that its kernel was not chosen by, such as indices. They may be wrong whatever the
/// results are, so that the kernel looks at them even if there is nothing to write.
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

/// Whether an argument of a dtype has elements that a kernel checks, whatever there is to write.
pub(crate) fn is_checked_by_kernel(op: &OpDef, argument: usize, dtype: DType) -> bool {
    op.custom.is_none()
        && dtype.category() == DTypeCategory::Int
        && matches!(op.element_types[argument], ElementType::Fixed { .. } | ElementType::Any)
}

/// What a kernel is called with.
struct Call<'a> {
    op: &'static OpDef,
    args: &'a [Arg<'a>],
    outs: &'a [Tensor],
    /// Whether others may know the outputs, so that they hold elements and must be borrowed.
    shared: bool,
}

/// Runs the kernel of operands that are alike, one of which is `like`.
///
/// # Safety
/// As [`run_borrowed`].
#[inline]
unsafe fn run_uniform(kernel: Kernel, call: Call<'_>, like: &Tensor) -> Result<()> {
    numbers::check(call.op, call.args, like.dtype())?;
    if let Some(observer) = observer::observer() {
        return observer.called(call.op, like.dtype(), call.args, call.outs, call.shared);
    }
    if call.outs[0].numel() == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { run_borrowed(kernel, call) }
}

/// Runs a kernel while the storages are borrowed.
///
/// # Safety
/// The kernel is one of the operator, and the call is as [`KernelCall::new`] wants it, but for the borrows.
#[inline]
unsafe fn run_borrowed(kernel: Kernel, call: Call<'_>) -> Result<()> {
    let Call { op, args, outs, shared } = call;
    let _held = Borrows::acquire(args, if shared { outs } else { &[] })?;
    // SAFETY: the caller's promise; the storages are borrowed until this returns. Tensors that others know hold
    // elements.
    unsafe {
        let call = KernelCall::new(op, args, outs);
        written::run(kernel, &if shared { call.with_elements() } else { call })
    }
}
