//! In-place forms that write several arguments, or one that is not the first.
//!
//! In: a definition with pairs of arguments and results. Out: the results that are in no pair. The functional form runs
//! first, recorded if required; then its results are written into the arguments, all or none.

use std::borrow::Cow;
use std::panic::Location;

use super::{enter, invoke};
use crate::arg::Arg;
use crate::autograd;
use crate::copy;
use crate::dispatch::{check_target, refuse_overlapping_target};
use crate::error::{Error, Result};
use crate::library::Form;
use crate::op::{OpDef, Outputs};
use crate::tensor::Tensor;

/// Calls the in-place form of an operator with pairs; returns the results that are in no pair.
///
/// The result of an absent optional argument is dropped.
///
/// # Errors
/// As [`invoke`]; if a result does not fit into its argument; and if an argument or its result is part of a graph.
#[track_caller]
pub fn invoke_pairs(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let _scope = enter(op, Form::Inplace, args, Location::caller());
    run(op, args).map_err(|error| op.error_of_call(error, op.forms.inplace.unwrap_or(op.name), args))
}

fn run(op: &'static OpDef, args: &[Arg<'_>]) -> Result<Outputs> {
    let targets = targets(op, args);
    for (index, (target, name, _)) in targets.iter().enumerate() {
        refuse_overlapping_target(target, name)?;
        if let Some((_, other, _)) = targets[..index].iter().find(|(other, ..)| other.overlaps(target)) {
            return Err(Error::aliasing(format!(
                "`{other}` and `{name}` share memory, and both are written"
            ))
            .with_help("give each its own tensor"));
        }
        if autograd::recording() && target.requires_grad() {
            return Err(in_graph(format!("`{name}` is part of a graph"), op));
        }
    }
    let results = invoke(op, args)?;
    // All targets are checked before the first write, so that a rejected call changes nothing.
    for (target, name, output) in &targets {
        let result = &results[*output];
        check_target(target, name, result.shape(), result.dtype())?;
        if autograd::recording() && result.requires_grad() {
            return Err(in_graph(format!("what would be written into `{name}` is part of a graph"), op));
        }
    }
    for (target, _, output) in &targets {
        copy::copy(target, &results[*output])?;
        target.storage().set_last_writer(op.form_name(Form::Inplace));
    }
    let written = |index: &usize| op.inplace_pairs.iter().any(|(_, output)| *output as usize == *index);
    if op.inplace_pairs.iter().any(|(argument, _)| matches!(args[*argument as usize], Arg::Tensors(_))) {
        return Ok(Outputs::new());
    }
    let visible = results.len() - op.hidden;
    let rest = results.into_iter().take(visible).enumerate().filter(|(index, _)| !written(index));
    Ok(rest.map(|(_, result)| result).collect())
}

/// The tensors to write, each with its name in messages and the position of its result. A list is written item by item: its
/// result, a list too, is the only one.
fn targets<'a>(op: &'static OpDef, args: &[Arg<'a>]) -> Vec<(&'a Tensor, Cow<'static, str>, usize)> {
    let mut targets = Vec::new();
    for &(argument, output) in op.inplace_pairs {
        let name = op.schema.args[argument as usize].name;
        match args[argument as usize] {
            Arg::Tensor(tensor) => targets.push((tensor, Cow::Borrowed(name), output as usize)),
            Arg::Tensors(list) => {
                let items = list.iter().enumerate();
                targets.extend(items.map(|(at, item)| (item, Cow::Owned(format!("{name}[{at}]")), at)));
            }
            _ => {}
        }
    }
    targets
}

fn in_graph(message: String, op: &OpDef) -> Error {
    Error::autograd(format!("{message}, and an in-place form that writes several arguments is not recorded"))
        .with_help(format!("use the functional form `{}`, or call this one under no_grad", op.name))
}
