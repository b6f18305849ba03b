//! Operators whose results have sizes that depend on elements, while a function is traced.
//!
//! In: a call with tensors that have no elements. Out: its results, with symbols where sizes depend on what is
//! not there yet. Which sizes those are is found by inferring the call with invented elements: sizes that
//! differ between two inventions depend on them.

use super::recorder;
use crate::arg::{Arg, Value};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::facts::ValueUse;
use crate::op::{Inferred, OpDef, Outputs};
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::with_dtype;

/// Whether inference of a call wants elements that a traced function does not have.
pub(crate) fn wants_elements(op: &OpDef, args: &[Arg<'_>]) -> bool {
    op.schema.args.iter().zip(args).any(|(def, arg)| {
        let mut meta = false;
        arg.for_each_tensor(|tensor| meta |= tensor.storage().is_meta());
        def.value != ValueUse::None && meta
    })
}

/// Records a call for which [`wants_elements`] holds.
///
/// # Errors
/// If the elements must be known when the graph is made.
pub(crate) fn call(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let required = op.schema.args.iter().zip(args).any(|(def, arg)| {
        let mut meta = false;
        arg.for_each_tensor(|tensor| meta |= tensor.storage().is_meta());
        def.value == ValueUse::Required && meta
    });
    if required {
        return Err(must_be_known(op, args));
    }
    let invented: Vec<Inferred> =
        INVENTIONS.iter().map(|invention| inferred(op, args, *invention)).collect::<Result<_>>()?;
    let first = &invented[0];
    let ranks =
        |inferred: &Inferred| -> Vec<usize> { inferred.outs.iter().map(|out| out.sizes.len()).collect() };
    if invented.iter().any(|other| ranks(other) != ranks(first)) {
        return Err(must_be_known(op, args));
    }
    let varies = first.outs.iter().enumerate().map(|(number, out)| {
        let bound = |dim: usize| {
            let sizes = invented.iter().map(|inferred| inferred.outs[number].sizes[dim]);
            sizes.clone().any(|size| size != out.sizes[dim]).then(|| sizes.max().unwrap_or(0))
        };
        (0..out.sizes.len()).map(bound).collect()
    });
    let varies: Vec<Vec<Option<i64>>> = varies.collect();
    let found = invented.into_iter().next().ok_or_else(|| must_be_known(op, args))?;
    recorder::call_of_unknown_size(op, found, args, &varies)
}

/// Elements by their position: a selection of everything, of nothing, and elements that all differ. What an
/// operator's sizes depend on differs between them; if it does not, the run that finds other sizes says so.
const INVENTIONS: [fn(i64) -> i64; 3] = [|_| 1, |_| 0, |position| position];

/// What inference says of invented elements.
fn inferred(op: &OpDef, args: &[Arg<'_>], invention: fn(i64) -> i64) -> Result<Inferred> {
    let invented = op.schema.args.iter().zip(args).map(|(def, arg)| match arg {
        Arg::Tensor(tensor) if def.value != ValueUse::None && tensor.storage().is_meta() => {
            filled(tensor, invention).map(Value::Tensor)
        }
        other => Ok(other.to_value()),
    });
    let values = invented.collect::<Result<Vec<_>>>()?;
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    let inferred = op.inferred(&args).ok_or_else(|| must_be_known(op, &args))?;
    inferred.map_err(|_| must_be_known(op, &args))
}

fn filled(like: &Tensor, invention: fn(i64) -> i64) -> Result<Tensor> {
    let tensor = Tensor::with_memory(like.shape(), like.dtype(), like.device())?;
    with_dtype!(like.dtype(), T => {
        for position in 0..like.numel() {
            let element = T::from_scalar(Scalar::Int(invention(position)));
            // SAFETY: new memory for so many elements of the dtype, which nobody else knows.
            unsafe { tensor.data_ptr().cast::<T>().add(position as usize).write(element) };
        }
    });
    Ok(tensor)
}

fn must_be_known(op: &OpDef, args: &[Arg<'_>]) -> Error {
    let names = op.schema.args.iter().zip(args).filter(|(def, arg)| {
        let mut meta = false;
        arg.for_each_tensor(|tensor| meta |= tensor.storage().is_meta());
        def.value != ValueUse::None && meta
    });
    let names: Vec<String> = names.map(|(def, _)| format!("`{}`", def.name)).collect();
    Error::graph(format!(
        "the elements of {} decide the shape of the result, so they must be known when the graph is made",
        names.join(" and ")
    ))
    .with_help("make the tensor outside the traced function, so that it is a constant of the graph")
}
