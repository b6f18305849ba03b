//! From a call to a kernel: inference, conversion of inputs, allocation or checking of outputs,
//! choice of the kernel, borrows.
//!
//! In: an operator definition and borrowed arguments. Out: tensors. Every form of every operator,
//! typed or boxed, comes through here; recording for gradients wraps it (`autograd`).

use opsmith_core::{DType, can_cast};
use smallvec::SmallVec;

use crate::arg::{Arg, Value, describe_operands};
use crate::autograd;
use crate::copy;
use crate::error::{Error, Result, ShapeText};
use crate::layout::checked_numel;
use crate::library::Form;
use crate::op::{ElementType, Inferred, KernelCall, OpDef, OutSpec, Outputs, Uniform};
use crate::storage::Borrows;
use crate::tensor::Tensor;

/// Calls the functional form.
///
/// # Errors
/// Whatever inference, conversion or the kernel report, with the operator and operands added.
#[inline]
pub fn invoke(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let result =
        if autograd::must_record(op, args) { autograd::invoke_recorded(op, args) } else { forward(op, args) };
    result.map_err(|error| in_op(error, op.name, op, args))
}

/// Calls the functional form of an operator with one output.
///
/// # Errors
/// As [`invoke`].
#[inline]
pub fn invoke_single(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Tensor> {
    let mut outs = invoke(op, args)?;
    debug_assert_eq!(outs.len(), 1);
    Ok(outs.swap_remove(0))
}

/// Calls the in-place form: writes the result into the first argument.
///
/// # Errors
/// As [`invoke`], and if the result does not fit into the tensor.
pub fn invoke_inplace(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    let result = if autograd::recording() {
        autograd::invoke_inplace_recorded(op, args)
    } else {
        forward_inplace(op, args)
    };
    result.map_err(|error| in_op(error, op.forms.inplace.unwrap_or(op.name), op, args))
}

/// Calls the out form: writes the results into the given tensors.
///
/// A given tensor without elements is replaced by one of the right shape; any other shape than the
/// result's is refused.
///
/// # Errors
/// As [`invoke`], and if a result does not fit into its tensor.
pub fn invoke_out(op: &'static OpDef, args: &[Arg<'_>], outs: &mut [&mut Tensor]) -> Result<()> {
    let result = autograd::check_out(op, args, outs).and_then(|()| forward_out(op, args, outs));
    for out in outs.iter() {
        out.storage().set_last_writer(op, Form::Out);
    }
    result.map_err(|error| in_op(error, op.forms.out.unwrap_or(op.name), op, args))
}

/// Calls an operator that returns no tensors.
///
/// # Errors
/// Whatever the operator reports, with the operator and operands added.
pub fn invoke_host(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Vec<Value>> {
    let Some(host) = op.host else {
        return Err(in_op(Error::not_implemented("the operator returns tensors"), op.name, op, args));
    };
    host(args).map_err(|error| in_op(error, op.name, op, args))
}

#[cold]
fn in_op(error: Error, name: &'static str, op: &'static OpDef, args: &[Arg<'_>]) -> Error {
    if error.op().is_some() {
        return error;
    }
    error.in_op(name, describe_operands(op.schema.args.iter().map(|arg| arg.name).zip(args.iter().copied())))
}

/// The functional form without recording.
pub(crate) fn forward(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    if let Some(view) = op.view {
        let base = args[0].tensor();
        return view(args)?.into_iter().map(|layout| base.with_layout(layout)).collect();
    }
    if let Some((kernel, dtype, like)) = uniform_kernel(op, args) {
        let out = Tensor::uninitialized(like.shape(), dtype, like.device())?;
        if out.numel() != 0 {
            run_borrowed(kernel, &KernelCall { op, args, outs: std::slice::from_ref(&out) }, false)?;
        }
        let mut outs = Outputs::new();
        outs.push(out);
        return Ok(outs);
    }
    let Some(infer) = op.infer else { return compose(op, args) };
    let inferred = infer(args)?;
    if op.composite.is_some() && !has_kernel(op, &inferred) {
        return compose(op, args);
    }
    let outs: Outputs = inferred.outs.iter().map(|spec| allocate(spec, &inferred)).collect::<Result<_>>()?;
    run_kernel(op, args, &inferred, &outs, false)?;
    Ok(outs)
}

/// The kernel, the output's dtype and a tensor of the output's shape and device, where every tensor
/// operand has one shape, dtype and device, so that inference has nothing to decide ([`Uniform`]).
#[inline]
fn uniform_kernel<'a>(op: &OpDef, args: &[Arg<'a>]) -> Option<(crate::op::KernelFn, DType, &'a Tensor)> {
    if op.uniform == Uniform::No {
        return None;
    }
    let mut first: Option<&'a Tensor> = None;
    for arg in args {
        match (*arg, first) {
            (Arg::Tensor(tensor), None) => first = Some(tensor),
            (Arg::Tensor(tensor), Some(first)) => {
                let same = tensor.dtype() == first.dtype()
                    && tensor.shape() == first.shape()
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
    let kernel = op.kernels?.get(first.device().backend, first.dtype())?;
    Some((kernel, dtype, first))
}

fn has_kernel(op: &OpDef, inferred: &Inferred) -> bool {
    op.kernels.is_some_and(|table| table.get(inferred.device.backend, inferred.compute).is_some())
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
    target.storage().set_last_writer(op, Form::Inplace);
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
    if spec.dtype == target.dtype() && (op.composite.is_none() || has_kernel(op, &inferred)) {
        return run_kernel(op, args, &inferred, std::slice::from_ref(target), true);
    }
    let results = forward(op, args)?;
    copy::copy(target, &results[0])
}

/// Whether an argument shows the target's storage without being the same elements.
#[inline]
fn shares_elsewhere(args: &[Arg<'_>], target: &Tensor) -> bool {
    let mut shares = false;
    for arg in args {
        arg.for_each_tensor(|tensor| {
            shares |= tensor.shares_storage(target) && !tensor.same(target) && !same_elements(tensor, target);
        });
    }
    shares
}

pub(crate) fn check_inplace(target: &Tensor, sizes: &[i64], dtype: DType) -> Result<()> {
    if target.shape() != sizes {
        return Err(Error::shape(format!(
            "the result has the shape {}, which self of shape {} cannot hold in place",
            ShapeText(sizes),
            ShapeText(target.shape())
        ))
        .with_help("an in-place form never broadcasts self; use the functional form"));
    }
    check_castable(dtype, target.dtype(), "self", "use the functional form, or convert self first")
}

fn check_castable(from: DType, to: DType, name: &str, help: &str) -> Result<()> {
    if can_cast(from, to) {
        return Ok(());
    }
    Err(Error::dtype(format!("the result is {from}, which cannot be written into {name} of dtype {to}"))
        .with_help(help.to_owned()))
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
        if out.numel() == 0 {
            return Ok(());
        }
        return run_borrowed(kernel, &KernelCall { op, args, outs: std::slice::from_ref(*out) }, true);
    }
    let inferred = match op.infer {
        Some(infer) => infer(args)?,
        None => return copy_out(op, forward(op, args)?, outs),
    };
    if outs.len() != inferred.outs.len() {
        return Err(Error::argument(format!(
            "the operator has {} outputs, {} tensors were given for them",
            inferred.outs.len(),
            outs.len()
        )));
    }
    for (index, spec) in inferred.outs.iter().enumerate() {
        check_out(op, index, spec, &inferred, outs[index])?;
        refuse_overlap_with_inputs(op, args, outs[index])?;
        if outs[..index].iter().any(|other| overlap(other, outs[index])) {
            return Err(
                Error::aliasing("two outputs share memory").with_help("give each output its own tensor")
            );
        }
    }
    let direct = (op.composite.is_none() || has_kernel(op, &inferred))
        && outs
            .iter()
            .zip(&inferred.outs)
            .all(|(out, spec)| out.dtype() == spec.dtype && out.shape() == &spec.sizes[..]);
    if direct {
        let targets: Outputs = outs.iter().map(|out| (**out).clone()).collect();
        return run_kernel(op, args, &inferred, &targets, true);
    }
    copy_out(op, forward(op, args)?, outs)
}

fn copy_out(op: &OpDef, results: Outputs, outs: &mut [&mut Tensor]) -> Result<()> {
    // Check all before the first write, so that a refused call changes nothing.
    for (index, result) in results.iter().enumerate() {
        let spec = OutSpec { sizes: result.shape().into(), dtype: result.dtype() };
        let inferred = Inferred { outs: SmallVec::new(), compute: result.dtype(), device: result.device() };
        check_out(op, index, &spec, &inferred, outs[index])?;
    }
    for (result, out) in results.iter().zip(outs) {
        if out.shape() != result.shape() {
            **out = Tensor::uninitialized(result.shape(), out.dtype(), out.device())?;
        }
        copy::copy(out, result)?;
    }
    Ok(())
}

fn check_out(op: &OpDef, index: usize, spec: &OutSpec, inferred: &Inferred, out: &Tensor) -> Result<()> {
    let name = match op.schema.returns.get(index).and_then(|result| result.name) {
        Some(name) => name.to_owned(),
        None if op.schema.returns.len() > 1 => format!("out[{index}]"),
        None => "out".to_owned(),
    };
    check_castable(spec.dtype, out.dtype(), &name, &format!("give an `{name}` of dtype {}", spec.dtype))?;
    if out.device() != inferred.device {
        return Err(Error::device(format!(
            "{name} is on {}, the inputs are on {}",
            out.device(),
            inferred.device
        ))
        .with_help("move one of them"));
    }
    if out.shape() != &spec.sizes[..] && out.numel() != 0 {
        return Err(Error::shape(format!(
            "{name} has the shape {}, the result {}",
            ShapeText(out.shape()),
            ShapeText(&spec.sizes)
        ))
        .with_help(format!("give an `{name}` of that shape, or one without elements, which is replaced")));
    }
    refuse_overlapping_target(out, &name)
}

fn refuse_overlapping_target(target: &Tensor, name: &str) -> Result<()> {
    if target.layout().has_internal_overlap() {
        return Err(Error::aliasing(format!(
            "{name} shows one memory location at several indices (strides {:?})",
            target.strides()
        ))
        .with_help("an expanded tensor cannot be written to; make a copy of it first"));
    }
    Ok(())
}

/// Whether two tensors touch a common byte of one storage (by their lowest and highest addresses).
pub(crate) fn overlap(a: &Tensor, b: &Tensor) -> bool {
    if !a.shares_storage(b) {
        return false;
    }
    let bytes = |tensor: &Tensor| {
        let size = tensor.dtype().size() as i64;
        tensor.layout().extent().map(|(low, high)| (low * size, high * size))
    };
    match (bytes(a), bytes(b)) {
        (Some((a_low, a_high)), Some((b_low, b_high))) => a_low < b_high && b_low < a_high,
        _ => false,
    }
}

fn same_elements(a: &Tensor, b: &Tensor) -> bool {
    a.dtype() == b.dtype() && a.layout() == b.layout()
}

fn refuse_overlap_with_inputs(op: &OpDef, args: &[Arg<'_>], out: &Tensor) -> Result<()> {
    for (arg, def) in args.iter().zip(op.schema.args) {
        let mut clash = false;
        arg.for_each_tensor(|tensor| {
            clash |= overlap(tensor, out) && !(op.forms.elementwise && same_elements(tensor, out));
        });
        if clash {
            return Err(Error::aliasing(format!("out shares memory with the input `{}`", def.name)).with_help(
                if op.forms.elementwise {
                    "out may be an input itself, but not overlap one at other positions; give it its own memory"
                } else {
                    "this kernel reads inputs after it starts writing; give out its own memory"
                },
            ));
        }
    }
    Ok(())
}

fn refuse_partial_overlap(op: &OpDef, args: &[Arg<'_>], target: &Tensor) -> Result<()> {
    for (arg, def) in args.iter().zip(op.schema.args).skip(1) {
        let mut clash = false;
        arg.for_each_tensor(|tensor| {
            clash |= !tensor.same(target) && overlap(tensor, target) && !same_elements(tensor, target);
        });
        if clash {
            return Err(Error::aliasing(format!(
                "self shares memory with the input `{}` at other positions",
                def.name
            ))
            .with_help("copy one of them first"));
        }
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
    if outs.iter().all(|out| out.numel() == 0) && !outs.is_empty() {
        return Ok(());
    }
    let converted = convert_inputs(op, args, inferred.compute)?;
    match &converted {
        None => run_borrowed(kernel, &KernelCall { op, args, outs }, shared),
        Some(replaced) => {
            let mut args: SmallVec<[Arg<'_>; 8]> = args.into();
            for (index, value) in replaced {
                args[*index] = value.as_arg();
            }
            run_borrowed(kernel, &KernelCall { op, args: &args, outs }, shared)
        }
    }
}

#[inline]
fn run_borrowed(kernel: crate::op::KernelFn, call: &KernelCall<'_>, shared: bool) -> Result<()> {
    let _held = Borrows::acquire(call.args, if shared { call.outs } else { &[] });
    kernel(call)
}

/// Inputs that must be converted before the kernel sees them: to the dispatch dtype, or to row-major.
fn convert_inputs(op: &OpDef, args: &[Arg<'_>], compute: DType) -> Result<Option<Vec<(usize, Value)>>> {
    let mut replaced = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let wanted = op.element_types[index];
        if wanted == ElementType::NotTensor {
            continue;
        }
        let contiguous = op.contiguous & (1 << index) != 0;
        let mut fine = true;
        arg.for_each_tensor(|tensor| {
            fine &= kernel_dtype(wanted, tensor.dtype(), compute) == Some(tensor.dtype())
                && (!contiguous || tensor.is_contiguous());
        });
        if fine {
            continue;
        }
        let convert = |tensor: &Tensor| convert_input(op, index, tensor, wanted, compute, contiguous);
        let value = match arg {
            Arg::Tensor(tensor) => Value::Tensor(convert(tensor)?),
            Arg::Tensors(tensors) => Value::Tensors(tensors.iter().map(convert).collect::<Result<_>>()?),
            Arg::OptionalTensors(tensors) => Value::OptionalTensors(
                tensors
                    .iter()
                    .map(|tensor| tensor.as_ref().map(convert).transpose())
                    .collect::<Result<_>>()?,
            ),
            _ => continue,
        };
        replaced.push((index, value));
    }
    Ok(if replaced.is_empty() { None } else { Some(replaced) })
}

/// The dtype a kernel sees for an input of the given dtype; `None` if the input is not accepted.
#[inline]
fn kernel_dtype(wanted: ElementType, given: DType, compute: DType) -> Option<DType> {
    match wanted {
        ElementType::NotTensor | ElementType::Any => Some(given),
        ElementType::Dispatch => Some(compute),
        ElementType::Real => Some(compute.to_real()),
        ElementType::Fixed { kernel, accepted } => accepted.contains(given).then_some(kernel),
    }
}

fn convert_input(
    op: &OpDef,
    index: usize,
    tensor: &Tensor,
    wanted: ElementType,
    compute: DType,
    contiguous: bool,
) -> Result<Tensor> {
    let Some(dtype) = kernel_dtype(wanted, tensor.dtype(), compute) else {
        let ElementType::Fixed { accepted, .. } = wanted else { unreachable!("only fixed types refuse") };
        let names: Vec<_> = accepted.iter().map(DType::name).collect();
        return Err(Error::dtype(format!(
            "`{}` must be {}, got {}",
            op.schema.args[index].name,
            names.join(" or "),
            tensor.dtype()
        )));
    };
    if dtype != tensor.dtype() {
        tensor.cast_untracked(dtype)
    } else if contiguous {
        tensor.contiguous_untracked()
    } else {
        Ok(tensor.clone())
    }
}

/// An optional value that a spec's expression takes for granted.
///
/// # Errors
/// If it is absent.
pub fn present<T>(value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::argument("an optional argument is absent that this call needs"))
}

/// An element of a list that a spec's expression names.
///
/// # Errors
/// If the list is shorter.
pub fn item<T>(list: &[T], position: i64) -> Result<&T> {
    usize::try_from(position)
        .ok()
        .and_then(|position| list.get(position))
        .ok_or_else(|| Error::index(format!("position {position} is outside a list of {}", list.len())))
}

/// A size that a spec's expression names; negative dimensions count from the end.
///
/// # Errors
/// If there is no such dimension.
#[inline]
pub fn size(sizes: &[i64], dim: i64) -> Result<i64> {
    let wrapped = crate::layout::wrap_dim(dim, sizes.len())?;
    sizes.get(wrapped).copied().ok_or_else(|| Error::index("a tensor without dimensions has no sizes"))
}

/// The integer quotient in a spec's expression, rounded toward zero.
///
/// # Errors
/// If the divisor is zero.
pub fn int_div(a: i64, b: i64) -> Result<i64> {
    if b == 0 {
        return Err(Error::value(format!("{a} cannot be divided by zero")));
    }
    Ok(a.wrapping_div(b))
}

/// The remainder in a spec's expression, with the sign of the dividend.
///
/// # Errors
/// If the divisor is zero.
pub fn int_rem(a: i64, b: i64) -> Result<i64> {
    if b == 0 {
        return Err(Error::value(format!("{a} cannot be divided by zero")));
    }
    Ok(a.wrapping_rem(b))
}

/// The outputs of an operator that always has `N` of them.
pub fn several<const N: usize>(outs: Outputs) -> [Tensor; N] {
    let count = outs.len();
    outs.into_iter()
        .collect::<Vec<_>>()
        .try_into()
        .unwrap_or_else(|_| unreachable!("inference gave {count} outputs, the signature has {N}"))
}

/// The one result of an operator that returns no tensor.
///
/// # Errors
/// If it returned something else than its signature says.
pub fn host_result<T: crate::arg::FromValue>(values: Vec<Value>) -> Result<T> {
    match <[Value; 1]>::try_from(values) {
        Ok([value]) => T::from_value(value),
        Err(values) => Err(Error::argument(format!("{} results where one was expected", values.len()))),
    }
}
