//! Conversion of inputs for a kernel: to its device, the declared dtype, and row-major layout where declared.

use opsmith_core::{DType, DTypeCategory, DTypeSet};

use crate::arg::{Arg, Value};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::op::{ElementType, OpDef};
use crate::tensor::Tensor;

/// Converts inputs for the kernel: to the dispatch dtype, to row-major layout, or from a number on the host to one on
/// the device. `None` if none needs it, as in most calls.
///
/// # Errors
/// If a dtype is not accepted, or an operand is on another device.
#[inline]
pub(super) fn convert_inputs(
    op: &OpDef,
    args: &[Arg<'_>],
    compute: DType,
    device: Device,
) -> Result<Option<Vec<(usize, Value)>>> {
    if are_converted(op, args, compute, device) {
        return Ok(None);
    }
    convert_each(op, args, compute, device).map(Some)
}

/// As [`convert_inputs`], if one needs it: the converted inputs, with their positions.
#[inline(never)]
fn convert_each(op: &OpDef, args: &[Arg<'_>], compute: DType, device: Device) -> Result<Vec<(usize, Value)>> {
    let mut replaced = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        if is_converted(op, index, *arg, compute, device) {
            continue;
        }
        let (wanted, contiguous) = (op.element_types[index], op.contiguous & (1 << index) != 0);
        let convert = |tensor: &Tensor| {
            let tensor = &moved(op, args, index, tensor, device)?;
            convert_input(op, index, tensor, wanted, compute, contiguous)
        };
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
    Ok(replaced)
}

/// Checks that the kernel accepts every input's dtype, even if the result is empty.
///
/// # Errors
/// Names the argument and the accepted dtypes.
pub(super) fn check_dtypes(op: &OpDef, args: &[Arg<'_>], compute: DType) -> Result<()> {
    for (index, (arg, wanted)) in args.iter().zip(op.element_types).enumerate() {
        let mut refused = None;
        arg.for_each_tensor(|tensor| {
            if kernel_dtype(*wanted, tensor.dtype(), compute).is_none() && !holds_nothing(tensor) {
                refused = Some(tensor.dtype());
            }
        });
        if let (Some(given), ElementType::Fixed { accepted, .. }) = (refused, wanted) {
            return Err(not_accepted(op, index, given, *accepted));
        }
    }
    Ok(())
}

fn not_accepted(op: &OpDef, index: usize, given: DType, accepted: DTypeSet) -> Error {
    let names: Vec<_> = accepted.iter().map(DType::name).collect();
    Error::dtype(format!("`{}` must be {}, got {given}", op.schema.args[index].name, names.join(" or ")))
}

/// Whether no input needs a conversion for its kernel.
#[inline]
pub(crate) fn are_converted(op: &OpDef, args: &[Arg<'_>], compute: DType, device: Device) -> bool {
    args.iter().enumerate().all(|(index, arg)| is_converted(op, index, *arg, compute, device))
}

/// Whether an argument is as its kernel wants it.
#[inline(always)]
fn is_converted(op: &OpDef, index: usize, arg: Arg<'_>, compute: DType, device: Device) -> bool {
    let wanted = op.element_types.get(index).copied().unwrap_or(ElementType::NotTensor);
    if matches!(wanted, ElementType::NotTensor) {
        return true;
    }
    let contiguous = op.contiguous & (1 << index) != 0;
    let mut fine = true;
    arg.for_each_tensor(|tensor| {
        fine &= kernel_dtype(wanted, tensor.dtype(), compute) == Some(tensor.dtype())
            && (!contiguous || tensor.is_contiguous())
            && tensor.device() == device;
    });
    fine
}

/// Whether an input may have any integer dtype where a set of them is declared: it has no elements.
fn holds_nothing(tensor: &Tensor) -> bool {
    tensor.numel() == 0 && tensor.dtype().category() == DTypeCategory::Int
}

/// The kernel's dtype for an input of the given dtype; `None` if the input is not accepted.
#[inline]
fn kernel_dtype(wanted: ElementType, given: DType, compute: DType) -> Option<DType> {
    match wanted {
        ElementType::NotTensor | ElementType::Any => Some(given),
        ElementType::Dispatch => Some(compute),
        ElementType::Real => Some(compute.to_real()),
        ElementType::Opmath => Some(compute.to_compute()),
        ElementType::Fixed { kernel, accepted } => accepted.contains(given).then_some(kernel),
    }
}

/// An operand on the kernel's device. A number on the host combines with operands of any device; a call that names the
/// device itself, such as a conversion, accepts operands on any device.
fn moved(op: &OpDef, args: &[Arg<'_>], index: usize, tensor: &Tensor, device: Device) -> Result<Tensor> {
    if tensor.device() == device {
        return Ok(tensor.clone());
    }
    let is_number = tensor.dim() == 0 && tensor.is_on_host();
    if is_number || args.iter().any(|arg| matches!(arg, Arg::Device(_))) {
        return tensor.moved_untracked(device);
    }
    let name = op.schema.args[index].name;
    Err(Error::device(format!("`{name}` is on {}, and the call computes on {device}", tensor.device()))
        .with_help(format!("move `{name}` there first")))
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
        let ElementType::Fixed { kernel, accepted } = wanted else { unreachable!("only fixed types refuse") };
        if holds_nothing(tensor) && accepted.iter().any(|accepted| accepted.category() == DTypeCategory::Int)
        {
            return tensor.cast_untracked(kernel);
        }
        return Err(not_accepted(op, index, tensor.dtype(), accepted));
    };
    if dtype != tensor.dtype() {
        tensor.cast_untracked(dtype)
    } else if contiguous {
        tensor.contiguous_untracked()
    } else {
        Ok(tensor.clone())
    }
}
