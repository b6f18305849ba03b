//! Control flow that depends on values: branches and loops, eager and in graphs.
//!
//! In: tensors, and functions for branches and bodies. Out: tensors. In eager mode the predicate is read and Rust's
//! control flow is used. In a traced function both branches, or one iteration of a body, are recorded as regions of one
//! node, whose results have memory of their own.

use opsmith_runtime::copy;
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::internals::{self, TensorInternals as _};
use opsmith_runtime::layout::{Dims, Layout};
use opsmith_runtime::tensor::Tensor;

use super::IntoTensors;
use super::recorder;
use crate::ir::{Moving, NodeKind};

/// Runs one of two functions: the first if the predicate, a single truth value, is true.
///
/// Both must return the same number of tensors, of the same shapes and dtypes. In a traced function both are recorded,
/// and the choice is made when the graph runs.
///
/// ```
/// use opsmith_graph::cond;
/// use opsmith_runtime::Tensor;
/// let (x, y) = (Tensor::of(&[1.0f32]), Tensor::of(&[2.0f32]));
/// let chosen = cond(&Tensor::scalar(false, opsmith_runtime::DType::Bool), || Ok(x), || Ok(y))?;
/// assert_eq!(chosen[0].to_vec::<f32>()?, [2.0]);
/// # Ok::<(), opsmith_runtime::Error>(())
/// ```
///
/// # Errors
/// If the predicate is not a single `bool`, or the results of the functions differ in a traced function, and errors of
/// the functions.
pub fn cond<R: IntoTensors, S: IntoTensors>(
    predicate: &Tensor,
    then: impl FnOnce() -> Result<R>,
    otherwise: impl FnOnce() -> Result<S>,
) -> Result<Vec<Tensor>> {
    check_predicate(predicate)?;
    if !predicate.storage().is_meta() {
        return if predicate.item()?.to_bool() {
            then().map(R::into_tensors)
        } else {
            otherwise().map(S::into_tensors)
        };
    }
    let (outs, first) = recorder::region(|| {
        let results = then()?.into_tensors();
        let outs = results.iter().map(like).collect::<Result<Vec<_>>>()?;
        write(&outs, &results, "a branch")?;
        Ok(outs)
    })?;
    let ((), second) = recorder::region(|| write(&outs, &otherwise()?.into_tensors(), "the other branch"))?;
    let outs_of_step: Vec<&Tensor> = outs.iter().collect();
    recorder::control(NodeKind::Cond { branches: Box::new([first, second]) }, &[predicate], &outs_of_step);
    Ok(outs)
}

/// Runs a body while a condition holds, with the state returned by the previous iteration.
///
/// Shapes and dtypes of the state must not change.
///
/// # Errors
/// If the condition does not return a single `bool`, the body returns a state of other shapes or dtypes, and errors of
/// the functions.
pub fn while_loop(
    state: &[Tensor],
    condition: impl Fn(&[Tensor]) -> Result<Tensor>,
    body: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    if !internals::is_tracing() {
        let mut state = state.to_vec();
        loop {
            let predicate = condition(&state)?;
            check_predicate(&predicate)?;
            if !predicate.item()?.to_bool() {
                return Ok(state);
            }
            let next = body(&state)?;
            check_alike(&state, &next, "the body")?;
            state = next;
        }
    }
    let carried = carry(state)?;
    let (predicate, condition) = recorder::region(|| {
        let found = condition(&carried)?;
        check_predicate(&found)?;
        let predicate = like(&found)?;
        copy::copy(&predicate, &found)?;
        Ok(predicate)
    })?;
    let ((), body) = recorder::region(|| advance(&carried, &body(&carried)?))?;
    let kind = NodeKind::While { condition, predicate: recorder::tensor(&predicate), body };
    recorder::control(kind, &[], &carried.iter().collect::<Vec<_>>());
    Ok(carried)
}

/// Runs a body for each position along the first dimension of some tensors.
///
/// The body gets the state and the tensors' elements at the position, and returns the next state and results. Returns
/// the last state and the results of all iterations, stacked along a new first dimension. Not recorded for gradients;
/// use a loop in Rust for those.
///
/// # Errors
/// If the tensors have different sizes along their first dimension, the body returns a state or results of other shapes
/// or dtypes than before, and errors of the body.
#[allow(clippy::type_complexity, reason = "a body returns two lists, and a type of its own would hide that")]
pub fn scan(
    state: &[Tensor],
    over: &[Tensor],
    body: impl Fn(&[Tensor], &[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>)>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let length = common_length(over)?;
    if state.iter().chain(over).any(Tensor::requires_grad) && internals::recording() {
        return Err(Error::graph("a scan is not recorded for gradients")
            .with_help("write the loop in Rust, or detach what goes in"));
    }
    if internals::is_tracing() {
        scan_traced(state, over, length, body)
    } else {
        scan_eager(state, over, length, body)
    }
}

type Body<'a> = &'a dyn Fn(&[Tensor], &[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>)>;

fn scan_eager(
    state: &[Tensor],
    over: &[Tensor],
    length: i64,
    body: impl Fn(&[Tensor], &[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>)>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let mut state = state.to_vec();
    let mut stacks: Vec<Tensor> = Vec::new();
    for position in 0..length {
        let parts = over.iter().map(|whole| part(whole, position)).collect::<Result<Vec<_>>>()?;
        let (next, results) = body(&state, &parts)?;
        check_alike(&state, &next, "the body")?;
        if position == 0 {
            stacks = results.iter().map(|result| stack(result, length)).collect::<Result<_>>()?;
        }
        let places = stacks.iter().map(|stack| part(stack, position)).collect::<Result<Vec<_>>>()?;
        write(&places, &results, "the body")?;
        state = next;
    }
    if length == 0 {
        return Err(no_positions());
    }
    Ok((state, stacks))
}

fn scan_traced(
    state: &[Tensor],
    over: &[Tensor],
    length: i64,
    body: impl Fn(&[Tensor], &[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>)>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    if length == 0 {
        return Err(no_positions());
    }
    let body: Body<'_> = &body;
    let carried = carry(state)?;
    let mut moving: Vec<Moving<i64>> = Vec::new();
    let (stacks, inside) = recorder::region(|| {
        let mut parts = Vec::with_capacity(over.len());
        for whole in over {
            let shown = part(whole, 0)?;
            let copied = like(&shown)?;
            let tensor = recorder::copy_moving(&copied, &shown, true);
            moving.push(Moving { tensor, step: step(whole) });
            parts.push(copied);
        }
        let (next, results) = body(&carried, &parts)?;
        let stacks = results.iter().map(|result| stack(result, length)).collect::<Result<Vec<_>>>()?;
        for (stack, result) in stacks.iter().zip(&results) {
            let tensor = recorder::copy_moving(&part(stack, 0)?, result, false);
            moving.push(Moving { tensor, step: step(stack) });
        }
        advance(&carried, &next)?;
        Ok(stacks)
    })?;
    let outs: Vec<&Tensor> = carried.iter().chain(&stacks).collect();
    let args: Vec<&Tensor> = over.iter().collect();
    recorder::control(NodeKind::Scan { length, moving, body: inside }, &args, &outs);
    Ok((carried, stacks))
}

fn no_positions() -> Error {
    Error::graph("a scan over no position would have results of unknown shape")
        .with_help("skip the scan where there is nothing to scan")
}

fn common_length(over: &[Tensor]) -> Result<i64> {
    let Some(first) = over.first() else {
        return Err(Error::graph("a scan needs a tensor to go over"));
    };
    let length = first.size(0)?;
    for (number, tensor) in over.iter().enumerate() {
        if tensor.size(0)? != length {
            return Err(Error::graph(format!(
                "tensor {number} of a scan has the shape {}, and the first {}: their first sizes differ",
                ShapeText(tensor.shape()),
                ShapeText(first.shape())
            )));
        }
    }
    Ok(length)
}

/// The elements at a position along the first dimension.
fn part(whole: &Tensor, position: i64) -> Result<Tensor> {
    let layout = whole.layout();
    let (sizes, strides): (Dims, Dims) = (layout.sizes[1..].into(), layout.strides[1..].into());
    Ok(whole.with_layout(Layout { sizes, strides, offset: layout.offset + position * step(whole) })?.detach())
}

fn step(whole: &Tensor) -> i64 {
    whole.strides()[0]
}

fn stack(result: &Tensor, length: i64) -> Result<Tensor> {
    let sizes: Dims = std::iter::once(length).chain(result.shape().iter().copied()).collect();
    opsmith_runtime::layout::checked_numel(&sizes)?;
    // SAFETY: each iteration writes the elements of its position.
    unsafe { Tensor::uninitialized(&sizes, result.dtype(), result.device()) }
}

fn check_predicate(predicate: &Tensor) -> Result<()> {
    if predicate.dtype() == opsmith_runtime::DType::Bool && predicate.numel() == 1 {
        return Ok(());
    }
    Err(Error::graph(format!(
        "a predicate is one bool, and this one is {} of shape {}",
        predicate.dtype(),
        ShapeText(predicate.shape())
    ))
    .with_help("compare, and reduce with `all` or `any`"))
}

/// New memory for a tensor's elements, which the caller copies.
fn like(tensor: &Tensor) -> Result<Tensor> {
    // SAFETY: the handle is new, and each use in this file writes every element, in a branch or on the next line,
    // before it reads one.
    unsafe { Tensor::uninitialized(tensor.shape(), tensor.dtype(), tensor.device()) }
}

/// The state in memory of its own, which a loop overwrites.
fn carry(state: &[Tensor]) -> Result<Vec<Tensor>> {
    let carried = state.iter().map(|tensor| {
        let own = like(tensor)?;
        copy::copy(&own, tensor)?;
        Ok(own)
    });
    refuse_recording(state)?;
    carried.collect()
}

/// Overwrites the state with the next one, which may be views of it.
fn advance(carried: &[Tensor], next: &[Tensor]) -> Result<()> {
    let apart = next.iter().map(|tensor| {
        let shared = carried.iter().any(|state| state.shares_storage(tensor));
        if shared { tensor.cast_untracked(tensor.dtype()) } else { Ok(tensor.clone()) }
    });
    let apart = apart.collect::<Result<Vec<_>>>()?;
    write(carried, &apart, "the body")
}

fn write(targets: &[Tensor], results: &[Tensor], who: &str) -> Result<()> {
    check_alike(targets, results, who)?;
    refuse_recording(results)?;
    targets.iter().zip(results).try_for_each(|(target, result)| copy::copy(target, result))
}

/// Rejects tensors that require a gradient, whose graph would end here silently.
fn refuse_recording(tensors: &[Tensor]) -> Result<()> {
    if internals::recording() && tensors.iter().any(Tensor::requires_grad) {
        return Err(Error::graph("control flow in a traced function is not recorded for gradients")
            .with_help("compute gradients inside the branch or body, or wrap the control flow in no_grad"));
    }
    Ok(())
}

fn check_alike(known: &[Tensor], new: &[Tensor], who: &str) -> Result<()> {
    let text = |tensors: &[Tensor]| {
        let each = tensors.iter().map(|tensor| format!("{} {}", tensor.dtype(), ShapeText(tensor.shape())));
        each.collect::<Vec<_>>().join(", ")
    };
    let alike = known.len() == new.len()
        && known.iter().zip(new).all(|(a, b)| (a.dtype(), a.shape()) == (b.dtype(), b.shape()));
    if alike {
        return Ok(());
    }
    Err(Error::graph(format!("{who} returned [{}], expected were [{}]", text(new), text(known)))
        .with_help("control flow needs the same shapes and dtypes whichever way it goes"))
}
