//! New weights for a program, by their names.
//!
//! In: the weights of a program, and a checkpoint. Out: a new tensor for each name, or every mistake. Tied names stay those of one
//! tensor, for which any of them is enough: files of weights often have only one.

use std::collections::{BTreeMap, BTreeSet};

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::tensor::Tensor;

use super::Weight;
use crate::checkpoint::Checkpoint;
use crate::errors::ProgramErrors;

/// A tensor of a program with all of its names.
struct Tied<'a> {
    tensor: &'a Tensor,
    names: Vec<&'a str>,
    is_parameter: bool,
    is_saved: bool,
}

/// The new tensors of weights by their names. A function gets the numbers of tensors that are done and of all.
///
/// # Errors
/// Every mistake.
pub(super) fn tensors(
    weights: &[Weight<'_>],
    checkpoint: &mut Checkpoint,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<BTreeMap<String, Tensor>, ProgramErrors> {
    let all = tied(weights);
    let (mut new, mut mistakes) = (BTreeMap::new(), Vec::new());
    for (number, weight) in all.iter().enumerate() {
        match tensor(weight, checkpoint) {
            Ok(Some(tensor)) => {
                new.extend(weight.names.iter().map(|name| ((*name).to_owned(), tensor.clone())));
            }
            Ok(None) if weight.is_saved => mistakes.push(missing(weight)),
            Ok(None) => {}
            Err(error) => mistakes.push(error),
        }
        progress(number + 1, all.len());
    }
    let known: BTreeSet<&str> = all.iter().flat_map(|weight| weight.names.iter().copied()).collect();
    let unknown = checkpoint.names().into_iter().filter(|name| !known.contains(name));
    mistakes.extend(unknown.map(|name| {
        Error::not_found(format!("the program has no weight `{name}`"))
            .with_help("take the weights of the same model")
    }));
    ProgramErrors::of(mistakes)?;
    Ok(new)
}

/// The tensors of weights with their names, in the order of the first ones.
fn tied<'a>(weights: &[Weight<'a>]) -> Vec<Tied<'a>> {
    let mut all: Vec<Tied<'a>> = Vec::new();
    for weight in weights {
        let names = std::iter::once(weight.name).chain(weight.aliases.iter().map(String::as_str));
        let Some(known) = all.iter_mut().find(|known| known.tensor.same(weight.tensor)) else {
            let (tensor, is_parameter, is_saved) = (weight.tensor, weight.is_parameter, weight.is_saved);
            all.push(Tied { tensor, names: names.collect(), is_parameter, is_saved });
            continue;
        };
        known.names.extend(names);
        known.is_parameter |= weight.is_parameter;
        known.is_saved |= weight.is_saved;
    }
    all
}

/// The new tensor of a weight; `None` if the checkpoint has none of its names.
fn tensor(weight: &Tied<'_>, checkpoint: &mut Checkpoint) -> Result<Option<Tensor>> {
    let mut first: Option<(&str, Tensor)> = None;
    for &name in &weight.names {
        let Some(tensor) = checkpoint.tensor(name, weight.tensor)? else { continue };
        match &first {
            Some((known, other)) if !have_same_bits(other, &tensor)? => {
                return Err(Error::value(format!(
                    "the new weights `{known}` and `{name}` differ, and the program has one tensor for both"
                ))
                .with_help("save weights in which they are tied, or one of them alone"));
            }
            Some(_) => {}
            None => first = Some((name, tensor)),
        }
    }
    Ok(first.map(|(_, tensor)| tensor))
}

/// Whether two tensors of a checkpoint, of one dtype and shape, have the same elements.
fn have_same_bits(one: &Tensor, other: &Tensor) -> Result<bool> {
    let (one, other) = (one.contiguous_untracked()?, other.contiguous_untracked()?);
    let length = one.numel() as usize * one.dtype().size();
    if length == 0 || one.data_ptr() == other.data_ptr() {
        return Ok(true);
    }
    // SAFETY: the tensor is row-major on the host, so its elements are that many bytes, all written when the file was read, and
    // no other code has the tensors of the checkpoint.
    let bytes = unsafe { std::slice::from_raw_parts(one.data_ptr(), length) };
    // SAFETY: as above; dtype and shape are the same.
    let others = unsafe { std::slice::from_raw_parts(other.data_ptr(), length) };
    Ok(bytes == others)
}

/// The mistake of a weight that a checkpoint lacks.
fn missing(weight: &Tied<'_>) -> Error {
    let kind = if weight.is_parameter { "weight" } else { "buffer" };
    let names: Vec<String> = weight.names.iter().map(|name| format!("`{name}`")).collect();
    let error = Error::not_found(format!("the files have no {kind} {}", names.join(" or ")));
    let error = match names.len() {
        1 => error,
        _ => error.with_note("these are names of one tensor: one of them is enough"),
    };
    match weight.is_parameter {
        true => error.with_help("take the weights of the same model"),
        false => error.with_help(
            "save all of `module.state_dict()`: it has the buffers, as the running statistics of batch norm",
        ),
    }
}
