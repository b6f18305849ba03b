//! From a call to a kernel: inference, conversion of inputs, allocation or checking of outputs,
//! choice of the kernel, borrows.
//!
//! In: an operator definition and borrowed arguments. Out: tensors. Every form of every operator,
//! typed or boxed, comes through here; recording for gradients wraps it (`autograd`).

mod borrows;
mod convert;
mod forward;
mod numbers;
pub(crate) mod observer;
mod pairs;
mod targets;
mod values;
pub(crate) mod written;

use std::panic::Location;

pub use values::{conjugated, host_result, int_div, int_rem, item, or_empty, present, row, several, size};

pub use pairs::invoke_pairs;
pub use written::check_written;

pub(crate) use borrows::Borrows;
pub(crate) use convert::are_converted;
pub(crate) use forward::{forward, forward_inplace, forward_out, has_kernel, is_checked_by_kernel};
pub(crate) use targets::{check_inplace, endless, refuse_overlap_with_inputs};

use crate::arg::{Arg, Value, describe_operands};
use crate::autograd;
use crate::error::{Error, Result};
use crate::library::Form;
use crate::op::{OpDef, Outputs};
use crate::tensor::Tensor;
use crate::trace_hook;

/// This file, as places in backtraces name it.
pub(crate) const FILE: &str = file!();

/// Calls the functional form.
///
/// # Errors
/// Whatever inference, conversion or the kernel report, with the operator and operands added.
#[inline]
#[track_caller]
pub fn invoke(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let _site = trace_hook::enter(Location::caller());
    let result = if autograd::forward_is_active() {
        autograd::invoke_forward(op, args)
    } else {
        autograd::invoke(op, args)
    };
    result.map_err(|error| in_op(error, op.name, op, args))
}

/// Calls the functional form of an operator with one output.
///
/// # Errors
/// As [`invoke`].
#[inline]
#[track_caller]
pub fn invoke_single(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Tensor> {
    let mut outs = invoke(op, args)?;
    debug_assert_eq!(outs.len(), 1);
    Ok(outs.swap_remove(0))
}

/// Calls the in-place form: writes the result into the first argument.
///
/// # Errors
/// As [`invoke`], and if the result does not fit into the tensor.
#[track_caller]
pub fn invoke_inplace(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    let _site = trace_hook::enter(Location::caller());
    let result = if autograd::recording() || autograd::forward_is_active() {
        autograd::invoke_inplace(op, args)
    } else {
        forward_inplace(op, args)
    };
    match result {
        Ok(()) => {
            args[0].tensor().storage().set_last_writer(op.form_name(Form::Inplace));
            Ok(())
        }
        Err(error) => Err(in_op(error, op.forms.inplace.unwrap_or(op.name), op, args)),
    }
}

/// Calls the out form: writes the results into the given tensors.
///
/// A given tensor without elements is replaced by one of the right shape; any other shape than the
/// result's is refused.
///
/// # Errors
/// As [`invoke`], and if a result does not fit into its tensor.
#[track_caller]
pub fn invoke_out(op: &'static OpDef, args: &[Arg<'_>], outs: &mut [&mut Tensor]) -> Result<()> {
    let _site = trace_hook::enter(Location::caller());
    match autograd::check_out(op, args, outs).and_then(|()| forward_out(op, args, outs)) {
        Ok(()) => {
            for out in outs.iter() {
                out.storage().set_last_writer(op.form_name(Form::Out));
            }
            Ok(())
        }
        Err(error) => Err(in_op(error, op.forms.out.unwrap_or(op.name), op, args)),
    }
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

/// Refuses a call of an operator that another project computes and that has no kernel here.
///
/// # Errors
/// Always, with the operator.
#[cold]
pub fn supplied<T>(op: &'static OpDef) -> Result<T> {
    let error = Error::not_implemented("its kernels are supplied by another project, and none is here");
    Err(error.in_op(op.name, Vec::new()))
}

#[cold]
fn in_op(error: Error, name: &'static str, op: &'static OpDef, args: &[Arg<'_>]) -> Error {
    if error.op().is_some() {
        return error;
    }
    error.in_op(name, describe_operands(op.schema.args.iter().map(|arg| arg.name).zip(args.iter().copied())))
}
