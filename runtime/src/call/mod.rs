//! Entry points of operator calls, with recording, tangents and call sites of the thread.
//!
//! In: an operator definition and borrowed arguments. Out: tensors, or an error with the operator and its operands.
//! Every form of every operator, typed or boxed, enters here. Recording and tangents belong to automatic
//! differentiation (`autograd`), everything else to the dispatcher (`dispatch`). Neither may know this file.

mod pairs;
mod values;

pub use pairs::invoke_pairs;
pub use values::{Results, conjugated, or_empty, several};

use std::panic::Location;

use crate::arg::{Arg, FromValue, Value};
use crate::autograd;
use crate::dispatch;
use crate::dispatch::spans::{self, Span, SpanScope};
use crate::error::{Error, Result};
use crate::library::Form;
use crate::op::{OpDef, Outputs};
use crate::tensor::Tensor;
use crate::trace_hook::{self, SiteScope};

/// The site of a call while the thread traces, and the call's span while a profiler listens: `None` for a call that nothing
/// observes, which one branch tells.
#[inline(always)]
fn enter(
    op: &'static OpDef,
    form: Form,
    args: &[Arg<'_>],
    site: &'static Location<'static>,
) -> Option<(SiteScope, SpanScope)> {
    let observed = trace_hook::is_tracing() | spans::may_listen();
    if observed { Some(enter_observed(op, form, args, site)) } else { None }
}

#[cold]
#[inline(never)]
fn enter_observed(
    op: &'static OpDef,
    form: Form,
    args: &[Arg<'_>],
    site: &'static Location<'static>,
) -> (SiteScope, SpanScope) {
    (trace_hook::enter(site), spans::open(|| Span::Call { op, form, args, site }))
}

/// Calls the functional form.
///
/// # Errors
/// Errors of inference, conversion or the kernel, with the operator and operands added.
#[track_caller]
pub fn invoke(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let _scope = enter(op, Form::Functional, args, Location::caller());
    autograd::invoke(op, args)
}

/// Calls the functional form of an operator with one output.
///
/// # Errors
/// As [`invoke`].
#[track_caller]
pub fn invoke_single(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Tensor> {
    let _scope = enter(op, Form::Functional, args, Location::caller());
    if let Some(result) = autograd::invoke_plain(op, args) {
        return result.map_err(|error| op.error_of_call(error, op.name, args));
    }
    // In place: bytes just written would be moved before they are there.
    match autograd::invoke(op, args) {
        Ok(ref mut outs) => {
            debug_assert_eq!(outs.len(), 1);
            Ok(outs.swap_remove(0))
        }
        Err(error) => Err(error),
    }
}

/// Calls the functional form of an operator whose output is a list.
///
/// # Errors
/// As [`invoke`].
#[track_caller]
pub fn invoke_list(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Vec<Tensor>> {
    Ok(invoke(op, args)?.into_vec())
}

/// Calls the functional form of an operator with several outputs, of which those behind the last that is asked for are
/// dropped.
///
/// # Errors
/// As [`invoke`].
#[track_caller]
pub fn invoke_several<R: Results>(op: &'static OpDef, args: &[Arg<'_>]) -> Result<R> {
    Ok(R::first_of(invoke(op, args)?))
}

/// Calls the in-place form: writes the result into the first argument.
///
/// # Errors
/// As [`invoke`], and if the result does not fit into the tensor.
#[track_caller]
pub fn invoke_inplace(op: &'static OpDef, args: &[Arg<'_>]) -> Result<()> {
    let _scope = enter(op, Form::Inplace, args, Location::caller());
    let result =
        autograd::invoke_plain_inplace(op, args).unwrap_or_else(|| autograd::invoke_inplace(op, args));
    match result {
        Ok(()) => {
            args[0].tensor().storage().set_last_writer(op.form_name(Form::Inplace));
            Ok(())
        }
        Err(error) => Err(op.error_of_call(error, op.forms.inplace.unwrap_or(op.name), args)),
    }
}

/// Calls the out form: writes the results into the given tensors.
///
/// A given tensor without elements is replaced by one of the right shape; any other mismatch of shapes is an error.
///
/// # Errors
/// As [`invoke`], and if a result does not fit into its tensor.
#[track_caller]
pub fn invoke_out(op: &'static OpDef, args: &[Arg<'_>], outs: &mut [&mut Tensor]) -> Result<()> {
    let _scope = enter(op, Form::Out, args, Location::caller());
    let plain = if let [out] = &*outs { autograd::invoke_plain_out(op, args, out) } else { None };
    let checked = || autograd::check_out(op, args, outs).and_then(|()| dispatch::out(op, args, outs));
    match plain.unwrap_or_else(checked) {
        Ok(()) => {
            for out in outs.iter() {
                out.storage().set_last_writer(op.form_name(Form::Out));
            }
            Ok(())
        }
        Err(error) => Err(op.error_of_call(error, op.forms.out.unwrap_or(op.name), args)),
    }
}

/// Calls an operator that returns no tensors.
///
/// # Errors
/// Errors of the operator, with the operator and operands added.
#[track_caller]
pub fn invoke_host(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Vec<Value>> {
    let _scope = enter(op, Form::Functional, args, Location::caller());
    let Some(host) = op.host else {
        return Err(op.error_of_call(Error::not_implemented("the operator returns tensors"), op.name, args));
    };
    host(args).map_err(|error| op.error_of_call(error, op.name, args))
}

/// Calls an operator that returns no tensors, for its value.
///
/// # Errors
/// As [`invoke_host`].
#[track_caller]
pub fn invoke_value<T: FromValue>(op: &'static OpDef, args: &[Arg<'_>]) -> Result<T> {
    values::only(invoke_host(op, args)?)
}

/// Returns an error for a call of an operator that another project computes and that has no kernel here.
///
/// # Errors
/// Always, with the operator.
#[cold]
pub fn supplied<T>(op: &'static OpDef) -> Result<T> {
    let error = Error::not_implemented("its kernels are supplied by another project, and none is here");
    Err(error.in_op(op.name, Vec::new()))
}
