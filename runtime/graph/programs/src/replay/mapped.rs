//! Calls inside `torch.vmap`, which maps a function over a dimension of its tensors.
//!
//! In: an operator's arguments, with the mapped dimensions of each tensor. Out: its results for all elements of those, which
//! are their first dimensions. One call where the operator takes each element, or each line, alone; otherwise one for each
//! element of the mapped dimensions, which a traced replay records as a loop.

use std::cell::RefCell;

use opsmith_core::{ArgKind, DType};
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::facts::Lines;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::library::Form;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;

use super::control::scan_any;
use super::frame::{Arguments, Frame, Levels};
use crate::errors::unsupported;
use crate::model::{Argument, Node};
use crate::operators;
use crate::structural::{self, AT_POSITION, EXPAND, MOVED_DIM, NEW_DIM, PICK, Structural};

/// An argument: its name and value, and the mapped dimensions of each of its tensors.
#[derive(Clone)]
struct Given<'n> {
    name: &'n str,
    value: Value,
    levels: Vec<Levels>,
}

/// Calls an operator with given arguments by name.
type Call<'c> = &'c dyn Fn(Vec<Value>, Vec<(&str, Value)>) -> Result<Vec<Value>>;

/// Calls an operator for all elements of the mapped dimensions.
pub(super) fn call(
    op: &OpDef,
    form: Form,
    node: &Node,
    frame: &Frame,
    (args, named): Arguments<'_>,
    call: Call<'_>,
) -> Result<Vec<Value>> {
    let levels_of = |argument: &Argument| frame.levels(argument).into_iter().cloned().collect();
    let by_position = op.schema.args.iter().zip(args).zip(&node.args).map(|((arg, value), argument)| Given {
        name: arg.name,
        value,
        levels: levels_of(argument),
    });
    let by_name = named.into_iter().zip(&node.named).map(|((name, value), (_, argument))| Given {
        name,
        value,
        levels: levels_of(argument),
    });
    let given: Vec<Given<'_>> = by_position.chain(by_name).collect();
    let levels = frame.all_levels(node);
    let is_whole = given.first().is_some_and(|first| first.levels.first() == Some(&levels));
    if form == Form::Inplace && !is_whole {
        let text = format!("`{}` in `torch.vmap`, of a tensor that has fewer mapped dimensions,", op.name);
        return Err(unsupported(text));
    }
    let sizes = sizes_of(&given, &levels)?;
    if let Some(together) = together(op, &given, &levels, &sizes)? {
        return call(Vec::new(), together.into_iter().map(|given| (given.name, given.value)).collect());
    }
    if form == Form::Inplace {
        return Err(unsupported(format!("`{}` in `torch.vmap`, which writes its argument,", op.name)));
    }
    one_by_one(&given, &levels, call)
}

/// The sizes of mapped dimensions.
fn sizes_of(given: &[Given<'_>], levels: &Levels) -> Result<Vec<i64>> {
    let size = |level: &i64| {
        let mut sizes = Vec::new();
        for given in given {
            for (tensor, own) in tensors(&given.value).into_iter().zip(&given.levels) {
                if let Some(dim) = own.iter().position(|known| known == level) {
                    sizes.push(tensor.shape()[dim]);
                }
            }
        }
        let first = sizes.first().copied().unwrap_or(1);
        match sizes.iter().find(|size| **size != first) {
            Some(other) => Err(Error::shape(format!(
                "a function is mapped over dimensions of sizes {first} and {other}"
            ))),
            None => Ok(first),
        }
    };
    levels.iter().map(size).collect()
}

/// The arguments of one call for all elements of the mapped dimensions; `None` if there is none.
fn together<'n>(
    op: &OpDef,
    given: &[Given<'n>],
    levels: &Levels,
    sizes: &[i64],
) -> Result<Option<Vec<Given<'n>>>> {
    let mut given = given.to_vec();
    let rank = ranks(&given).max().unwrap_or(0);
    if op.forms.elementwise && op.rules.is_some_and(|rules| !rules.shapes.is_empty()) {
        for given in &mut given {
            given.each(|tensor, own| with_levels(tensor, own, levels, sizes, rank))?;
        }
        return Ok(Some(given));
    }
    if operators::find(PICK).is_ok_and(|(picks, _)| std::ptr::eq(picks, op)) {
        return together_picked(given, levels, sizes);
    }
    if let Some(lines) = op.facts.lines {
        return together_by_lines(op, lines, given, levels, sizes);
    }
    Ok(None)
}

/// Of an operator that computes each line alone: dimensions are counted from the last.
fn together_by_lines<'n>(
    op: &OpDef,
    lines: Lines,
    mut given: Vec<Given<'n>>,
    levels: &Levels,
    sizes: &[i64],
) -> Result<Option<Vec<Given<'n>>>> {
    let Some(rank) = given.first().and_then(|first| ranks(std::slice::from_ref(first)).next()) else {
        return Ok(None);
    };
    // Tensors with fewer dimensions are the same for all lines.
    let has_other = |given: &Given<'_>| {
        let mut all = tensors(&given.value).into_iter().zip(&given.levels);
        all.any(|(tensor, own)| tensor.dim() - own.len() != rank && !own.is_empty())
    };
    if rank == 0 || given.iter().any(has_other) {
        return Ok(None);
    }
    if let Lines::Along(dims) = lines {
        let arg = &op.schema.args[usize::from(dims)];
        let Some(dims) = given.iter_mut().find(|given| given.name == arg.name) else { return Ok(None) };
        let from_last = |dim: i64| Ok::<_, Error>(wrap_dim(dim, rank)? as i64 - rank as i64);
        dims.value = match &dims.value {
            Value::Int(dim) => Value::Int(from_last(*dim)?),
            Value::None if matches!(arg.ty.kind, ArgKind::Ints(_)) => {
                Value::Ints((-(rank as i64)..0).collect())
            }
            Value::Ints(all) if all.is_empty() => Value::Ints((-(rank as i64)..0).collect()),
            Value::Ints(all) => Value::Ints(all.iter().map(|dim| from_last(*dim)).collect::<Result<_>>()?),
            _ => return Ok(None),
        };
    }
    for given in &mut given {
        given.each(|tensor, own| match tensor.dim() - own.len() == rank {
            true => with_levels(tensor, own, levels, sizes, rank),
            false => Ok(tensor.clone()),
        })?;
    }
    Ok(Some(given))
}

/// Of the operator that picks elements by positions, which are mapped, and the tensor is not: positions broadcast, and their
/// dimensions are the first ones of the result if all of them are there.
fn together_picked<'n>(
    mut given: Vec<Given<'n>>,
    levels: &Levels,
    sizes: &[i64],
) -> Result<Option<Vec<Given<'n>>>> {
    let [whole, positions] = given.as_mut_slice() else { return Ok(None) };
    let Value::OptionalTensors(list) = &positions.value else { return Ok(None) };
    let is_mask = |tensor: &Tensor| !tensor.dtype().is_int() || tensor.dtype() == DType::U8;
    let is_other = |tensor: &Option<Tensor>| tensor.as_ref().is_none_or(is_mask);
    if whole.levels.iter().any(|own| !own.is_empty()) || list.iter().any(is_other) {
        return Ok(None);
    }
    let rank = ranks(std::slice::from_ref(positions)).max().unwrap_or(0);
    positions.each(|tensor, own| with_levels(tensor, own, levels, sizes, rank))?;
    Ok(Some(given))
}

/// Calls for each element of the mapped dimensions, the outermost first.
fn one_by_one(given: &[Given<'_>], levels: &Levels, call: Call<'_>) -> Result<Vec<Value>> {
    let [outermost, inner @ ..] = levels.as_slice() else {
        return call(Vec::new(), given.iter().map(|given| (given.name, given.value.clone())).collect());
    };
    let is_mapped = |own: &Levels| own.first() == Some(outermost);
    let mut over = Vec::new();
    for given in given {
        let all = tensors(&given.value).into_iter().zip(&given.levels);
        over.extend(all.filter(|(_, own)| is_mapped(own)).map(|(tensor, _)| tensor.clone()));
    }
    let inner = inner.to_vec();
    // The results of all calls are alike: lists of as many tensors.
    let lengths: RefCell<Vec<Option<usize>>> = RefCell::default();
    let recorded = given.iter().flat_map(|given| tensors(&given.value)).any(Tensor::requires_grad);
    let (_, stacks) = scan_any(recorded, &[], &over, |_, parts| {
        let (mut parts, mut given) = (parts.iter(), given.to_vec());
        for given in &mut given {
            given.each(|tensor, own| match is_mapped(own) {
                true => Ok(parts.next().unwrap_or(tensor).clone()),
                false => Ok(tensor.clone()),
            })?;
            given.levels.iter_mut().filter(|own| is_mapped(own)).for_each(|own| {
                own.remove(0);
            });
        }
        let (mut flat, mut found) = (Vec::new(), Vec::new());
        for result in one_by_one(&given, &inner, call)? {
            match result {
                Value::Tensor(tensor) => {
                    found.push(None);
                    flat.push(tensor);
                }
                Value::Tensors(list) => {
                    found.push(Some(list.len()));
                    flat.extend(list);
                }
                other => {
                    let kind = other.as_arg().kind();
                    return Err(unsupported(format!("a result in `torch.vmap` that is {kind}")));
                }
            }
        }
        lengths.replace(found);
        Ok((Vec::new(), flat))
    })?;
    let mut stacks = stacks.into_iter();
    let results = lengths.take().into_iter().map(|length| match length {
        Some(length) => Some(Value::Tensors(stacks.by_ref().take(length).collect())),
        None => stacks.next().map(Value::Tensor),
    });
    results.collect::<Option<_>>().ok_or_else(|| Error::graph("a mapped call has lost results"))
}

/// The results of a node that starts, enters or leaves a mapped function.
///
/// # Errors
/// If the arguments are others than those of `torch.vmap`, or it draws random numbers for each element.
pub(super) fn boundary(act: Structural, node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
    let Some((args, _)) = frame.arguments(node) else { return Ok(None) };
    let own = node.args.first().and_then(|argument| frame.levels(argument).first().copied());
    let none = Levels::new();
    match (act, args.as_slice()) {
        (Structural::MapStart, [_, Value::Str(random)]) if random == "error" => Ok(Some(vec![Value::None])),
        (Structural::MapStart, [_, Value::Str(random)]) => {
            Err(unsupported(format!("`torch.vmap` with random numbers, `randomness=\"{random}\"`,"))
                .with_help("draw them outside, and map over them"))
        }
        (Structural::MapIn, [Value::Tensor(tensor), Value::Int(dim), Value::Int(_)]) => {
            map_in(tensor, own.unwrap_or(&none), *dim).map(Some)
        }
        (
            Structural::MapOut,
            [Value::Tensor(tensor), Value::Int(level), Value::Int(size), Value::Int(dim)],
        ) => map_out(tensor, own.unwrap_or(&none), *level, *size, *dim).map(Some),
        _ => Err(unsupported("a call of `torch.vmap` with other arguments")),
    }
}

/// The mapped dimensions of a node's results.
pub(super) fn levels_after(node: &Node, frame: &Frame) -> Levels {
    let mut levels = frame.all_levels(node);
    let level = |at: usize| match node.args.get(at) {
        Some(Argument::Value(Value::Int(level))) => Some(*level),
        _ => None,
    };
    match structural::find(&node.target) {
        Some(Structural::MapIn) => levels.extend(level(2)),
        Some(Structural::MapOut) => levels.retain(|known| Some(*known) != level(1)),
        _ => {}
    }
    levels
}

/// `_add_batch_dim(tensor, dim, level)`: a dimension becomes a mapped one.
fn map_in(tensor: &Tensor, own: &Levels, dim: i64) -> Result<Vec<Value>> {
    let dim = wrap_dim(dim, tensor.dim() - own.len())? + own.len();
    Ok(vec![Value::Tensor(moved(tensor, dim, own.len())?)])
}

/// `_remove_batch_dim(tensor, level, size, dim)`: a mapped dimension becomes one of the tensor.
fn map_out(tensor: &Tensor, own: &Levels, level: i64, size: i64, dim: i64) -> Result<Vec<Value>> {
    let at = own.iter().position(|known| *known == level);
    let others = own.len() - usize::from(at.is_some());
    let rank = tensor.dim() - own.len();
    let dim = wrap_dim(dim, rank + 1)? + others;
    let found = match at {
        Some(at) => moved(tensor, at, dim)?,
        None => {
            let one = operators::call(NEW_DIM, &[tensor.into(), Value::Int(dim as i64)])?;
            let mut sizes = one.shape().to_vec();
            sizes[dim] = size;
            operators::call(EXPAND, &[Value::Tensor(one), Value::Ints(sizes)])?
        }
    };
    Ok(vec![Value::Tensor(found)])
}

/// The arguments of a node for the first element of each mapped dimension, whose sizes and dtypes all have.
///
/// # Errors
/// If a dimension has no element.
pub(super) fn of_first<'n>(node: &'n Node, frame: &Frame, arguments: Arguments<'n>) -> Result<Arguments<'n>> {
    let (mut args, named) = arguments;
    for (value, argument) in args.iter_mut().zip(&node.args) {
        let (Value::Tensor(tensor), Some(own)) = (&*value, frame.levels(argument).first().copied()) else {
            continue;
        };
        let first = own.iter().try_fold(tensor.clone(), |tensor, _| {
            operators::call(AT_POSITION, &[Value::Tensor(tensor), Value::Int(0), Value::Int(0)])
        })?;
        *value = Value::Tensor(first);
    }
    Ok((args, named))
}

fn moved(tensor: &Tensor, from: usize, to: usize) -> Result<Tensor> {
    if from == to {
        return Ok(tensor.clone());
    }
    operators::call(MOVED_DIM, &[tensor.into(), Value::Int(from as i64), Value::Int(to as i64)])
}

/// A view of a tensor with all mapped dimensions, and then so many others.
fn with_levels(tensor: &Tensor, own: &Levels, levels: &Levels, sizes: &[i64], rank: usize) -> Result<Tensor> {
    let mut view = tensor.clone();
    let insert = |dim: usize, view: &mut Tensor| -> Result<()> {
        *view = operators::call(NEW_DIM, &[(&*view).into(), Value::Int(dim as i64)])?;
        Ok(())
    };
    for _ in tensor.dim() - own.len()..rank {
        insert(own.len(), &mut view)?;
    }
    for (dim, level) in levels.iter().enumerate() {
        if !own.contains(level) {
            insert(dim, &mut view)?;
        }
    }
    if own == levels {
        return Ok(view);
    }
    let all: Vec<i64> = sizes.iter().chain(&view.shape()[levels.len()..]).copied().collect();
    operators::call(EXPAND, &[Value::Tensor(view), Value::Ints(all)])
}

impl Given<'_> {
    /// Replaces each tensor, which `change` gets with its mapped dimensions.
    fn each(&mut self, mut change: impl FnMut(&Tensor, &Levels) -> Result<Tensor>) -> Result<()> {
        let mut levels = self.levels.iter();
        let mut each = |tensor: &mut Tensor| -> Result<()> {
            if let Some(own) = levels.next() {
                *tensor = change(tensor, own)?;
            }
            Ok(())
        };
        match &mut self.value {
            Value::Tensor(tensor) => each(tensor),
            Value::Tensors(list) => list.iter_mut().try_for_each(each),
            Value::OptionalTensors(list) => list.iter_mut().flatten().try_for_each(each),
            _ => Ok(()),
        }
    }
}

/// The numbers of dimensions of tensors, without mapped ones.
fn ranks<'g>(given: &'g [Given<'_>]) -> impl Iterator<Item = usize> + use<'g> {
    given.iter().flat_map(|given| {
        tensors(&given.value).into_iter().zip(&given.levels).map(|(tensor, own)| tensor.dim() - own.len())
    })
}

/// The tensors of a value, in order.
fn tensors(value: &Value) -> Vec<&Tensor> {
    match value {
        Value::Tensor(tensor) => vec![tensor],
        Value::Tensors(list) => list.iter().collect(),
        Value::OptionalTensors(list) => list.iter().flatten().collect(),
        _ => Vec::new(),
    }
}
