//! Derivatives of functions: `jvp`, `vjp`, `jacobian`, `hessian`, `hvp`.
//!
//! In: functions of tensors. Out: their derivatives at a point. The caller's tensors do not change; calls made while
//! the caller records can be differentiated further.

use std::collections::HashSet;

use super::super::context::TensorMeta;
use super::super::custom::custom;
use super::super::handle::{Options, check_like, grad};
use super::super::mode::Scope;
use super::super::node::Kind;
use super::super::{attach, edge_of, recording};
use super::level::{Hidden, Level, LevelId};
use super::{rules, tangent, transpose};
use crate::copy;
use crate::error::{Error, Result, ShapeText};
use crate::layout::Layout;
use crate::scalar::Scalar;
use crate::shared::Shared;
use crate::tensor::Tensor;

/// The value of a function and its derivative along `tangents`, one for each input: the Jacobian times
/// the tangents. Computed in forward mode, in one run of the function, whatever the size of its results.
///
/// For `f(x) = x²` at 3 along 1, the value is 9 and the derivative 6. A result that does not depend on
/// the inputs has the derivative `None`.
///
/// # Errors
/// Errors of the function; if a tangent does not have its input's shape and dtype; or if a called operator has no
/// derivative.
pub fn jvp(
    function: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[&Tensor],
    tangents: &[&Tensor],
) -> Result<(Vec<Tensor>, Vec<Option<Tensor>>)> {
    check_count("tangents", tangents.len(), "inputs", inputs.len())?;
    let level = Level::open();
    let mut duals = Vec::with_capacity(inputs.len());
    for (index, (input, along)) in inputs.iter().zip(tangents).enumerate() {
        check_differentiable(input, index)?;
        check_like("the tangent", along, "the input", &TensorMeta::of(input))?;
        let dual = twin(input)?;
        tangent::own_tangent(&dual, level.id(), Some((*along).clone()));
        duals.push(dual);
    }
    let outs = function(&duals)?;
    let found = outs.iter().map(|out| tangent::tangent(out, level.id())).collect::<Result<Vec<_>>>()?;
    let outs = without(outs, level.id())?;
    Ok((outs, found))
}

/// The value of a function and the gradients of its inputs, from those of its results: `cotangents`
/// times the Jacobian. Computed in reverse mode.
///
/// For `f(x) = x²` at 3 from 1, the value is 9 and the gradient 6. An input that the results do not
/// depend on has the gradient `None`.
///
/// # Errors
/// Errors of the function; if a cotangent does not have its result's shape and dtype; or if a called operator has no
/// derivative.
pub fn vjp(
    function: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[&Tensor],
    cotangents: &[&Tensor],
) -> Result<(Vec<Tensor>, Vec<Option<Tensor>>)> {
    let outer = recording();
    let (own, outs) = run(function, inputs)?;
    check_count("cotangents", cotangents.len(), "results", outs.len())?;
    for (cotangent, out) in cotangents.iter().zip(&outs) {
        check_like("the cotangent", cotangent, "the result", &TensorMeta::of(out))?;
    }
    let starts: Vec<Option<&Tensor>> = cotangents.iter().map(|cotangent| Some(*cotangent)).collect();
    let found = pull(&outs, &own, &starts, Options { create_graph: outer, ..Options::default() })?;
    let found = found.into_iter().map(|gradient| gradient.map(|gradient| public(gradient, &own)).transpose());
    let found = found.collect::<Result<_>>()?;
    let tracked = |out| if outer { public(out, &own) } else { transpose::untracked(&out) };
    Ok((outs.into_iter().map(tracked).collect::<Result<_>>()?, found))
}

/// The derivatives of each element of a function's result by each element of its input: a tensor with
/// the shape of the result followed by that of the input.
///
/// For `f(x) = x²` at `[1, 2]` it is `[[2, 0], [0, 4]]`. Runs backward for each element of the result,
/// or forward for each element of the input, whichever are fewer.
///
/// # Errors
/// As [`jvp`] and [`vjp`], and for complex tensors, for which neither gives the other.
pub fn jacobian(function: impl Fn(&Tensor) -> Result<Tensor>, input: &Tensor) -> Result<Tensor> {
    check_real(input)?;
    let outer = recording();
    let (own, outs) = run(|inputs| Ok(vec![function(&inputs[0])?]), &[input])?;
    check_real(&outs[0])?;
    let out = &outs[0];
    let sizes = [out.shape(), input.shape()].concat();
    if out.numel() <= input.numel() {
        let mut rows = Vec::new();
        for element in 0..out.numel() {
            let unit = unit(out, element)?;
            let options = Options { create_graph: outer, retain_graph: true };
            let row = pull(&outs, &own, &[Some(&unit)], options)?.swap_remove(0);
            rows.push(row.map_or_else(|| rules::zeros_like(input), |row| public(row, &own))?);
        }
        return join(&rows, &sizes, input, false);
    }
    drop((own, outs));
    let mut columns = Vec::new();
    for element in 0..input.numel() {
        let run = |inputs: &[Tensor]| Ok(vec![function(&inputs[0])?]);
        let (mut outs, mut found) = jvp(run, &[input], &[&unit(input, element)?])?;
        let out = outs.swap_remove(0);
        columns.push(found.swap_remove(0).map_or_else(|| rules::zeros_like(&out), Ok)?);
    }
    join(&columns, &sizes, input, true)
}

/// The second derivatives of a function with one result by each pair of elements of its input: a tensor
/// with the input's shape twice. For `f(x) = Σ x³` at `[1, 2]` it is `[[6, 0], [0, 12]]`.
///
/// # Errors
/// As [`hvp`].
pub fn hessian(function: impl Fn(&Tensor) -> Result<Tensor>, input: &Tensor) -> Result<Tensor> {
    check_real(input)?;
    let rows = (0..input.numel())
        .map(|element| hvp(&function, input, &unit(input, element)?))
        .collect::<Result<Vec<_>>>()?;
    join(&rows, &[input.shape(), input.shape()].concat(), input, false)
}

/// The derivative, along `vector`, of the gradient of a function with one result: its Hessian times the
/// vector. Computed forward over reverse, in one run of the function and one backward pass.
///
/// For `f(x) = Σ x³` at `[1, 2]` along `[1, 1]` it is `[6, 12]`.
///
/// # Errors
/// As [`jvp`]; if the function's result has more than one element; or if a called operator has no second derivative.
pub fn hvp(function: impl Fn(&Tensor) -> Result<Tensor>, input: &Tensor, vector: &Tensor) -> Result<Tensor> {
    let gradient = |inputs: &[Tensor]| -> Result<Vec<Tensor>> {
        let outer = recording();
        let (own, outs) = run(|inputs| Ok(vec![function(&inputs[0])?]), &[&inputs[0]])?;
        let options = Options { create_graph: outer, ..Options::default() };
        let found = pull(&outs, &own, &[None], options)?.swap_remove(0);
        Ok(vec![found.map_or_else(|| rules::zeros_like(&inputs[0]), |found| public(found, &own))?])
    };
    let (_, mut found) = jvp(gradient, &[input], &[vector])?;
    found.swap_remove(0).map_or_else(|| rules::zeros_like(input), Ok)
}

/// Runs a function, recorded, on inputs with graph nodes of their own.
fn run(
    function: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[&Tensor],
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    // Recording is forced even if the caller has disabled it: the graph is private to this function.
    let _forced = Scope::force();
    let mut own = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter().enumerate() {
        check_differentiable(input, index)?;
        own.push(transpose::separate(input)?);
    }
    let outs = function(&own)?;
    Ok((own, outs))
}

/// The gradients of inputs; `None` for an input that the results do not depend on.
fn pull(
    outs: &[Tensor],
    inputs: &[Tensor],
    starts: &[Option<&Tensor>],
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let tracked = || outs.iter().zip(starts).filter(|(out, _)| out.requires_grad());
    let roots: Vec<&Tensor> = tracked().map(|(out, _)| out).collect();
    let starts: Vec<Option<&Tensor>> = tracked().map(|(_, start)| *start).collect();
    if roots.is_empty() {
        return Ok(vec![None; inputs.len()]);
    }
    grad(&roots, &inputs.iter().collect::<Vec<_>>(), &starts, options)
}

/// A result of a transform for the caller. If its graph leads to the transform's own tensors alone, it and its tangents
/// leave the graph: these tensors are private, so no caller can ask for their gradients.
fn public(result: Tensor, own: &[Tensor]) -> Result<Tensor> {
    if leads_outside(&result, own)? {
        return Ok(result);
    }
    let result = transpose::untracked(&result)?;
    for level in tangent::levels(&result) {
        let along = tangent::tangent(&result, level)?.map(|tangent| public(tangent, own)).transpose()?;
        tangent::own_tangent(&result, level, along);
    }
    Ok(result)
}

/// Whether a tensor's graph leads to a leaf that is none of these tensors.
fn leads_outside(tensor: &Tensor, own: &[Tensor]) -> Result<bool> {
    let Some(edge) = edge_of(tensor)? else { return Ok(false) };
    let leaves = own.iter().filter_map(|own| edge_of(own).transpose());
    let leaves = leaves.map(|edge| Ok(Shared::as_ptr(&edge?.node))).collect::<Result<Vec<_>>>()?;
    let (mut seen, mut open) = (HashSet::new(), vec![&edge.node]);
    while let Some(node) = open.pop() {
        let place = Shared::as_ptr(node);
        if matches!(node.kind, Kind::Leaf(_)) && !leaves.contains(&place) {
            return Ok(true);
        }
        if seen.insert(place) {
            open.extend(node.edges.iter().flatten().map(|edge| &edge.node));
        }
    }
    Ok(false)
}

/// A new tensor with the same elements, edge and tangents.
fn twin(tensor: &Tensor) -> Result<Tensor> {
    let mut twin = transpose::untracked(tensor)?;
    if let Some(edge) = edge_of(tensor)? {
        attach(&mut twin, edge);
    }
    Ok(twin)
}

/// The results without tangents of the closed level. Views of inputs are copied: a view would follow its base's
/// tangents.
fn without(outs: Vec<Tensor>, level: LevelId) -> Result<Vec<Tensor>> {
    let _hidden = Hidden::new(level);
    outs.iter().map(twin).collect()
}

/// Zeros with a one at an index in row-major order.
fn unit(like: &Tensor, element: i64) -> Result<Tensor> {
    let unit = rules::zeros_like(like)?;
    let place = Layout { sizes: Default::default(), strides: Default::default(), offset: element };
    copy::copy(&unit.with_layout(&place)?, &Tensor::scalar(Scalar::Float(1.0), like.dtype()))?;
    Ok(unit)
}

/// Tensors joined into one of the given sizes: as its rows or, for `columns`, along its last dimensions, which are
/// those of `input`. A differentiable step of the graph.
fn join(parts: &[Tensor], sizes: &[i64], input: &Tensor, columns: bool) -> Result<Tensor> {
    let whole = Layout::contiguous(sizes);
    let count = parts.len() as i64;
    let part_layout = move |index: i64, part: &[i64]| {
        let mut layout = Layout::contiguous(part);
        if columns {
            layout.strides.iter_mut().for_each(|stride| *stride *= count);
            layout.offset = index;
        } else {
            layout.offset = index * layout.numel();
        }
        layout
    };
    let (dtype, device) = (input.dtype(), input.device());
    let refs: Vec<&Tensor> = parts.iter().collect();
    let layouts: Vec<Layout> =
        parts.iter().enumerate().map(|(index, part)| part_layout(index as i64, part.shape())).collect();
    let places = layouts.clone();
    let build = |parts: &[&Tensor], _: &mut super::super::custom::Saver| {
        let joined = Tensor::uninitialized(&whole.sizes, dtype, device)?;
        for (part, layout) in parts.iter().zip(&layouts) {
            copy::copy(&joined.with_layout(layout)?, part)?;
        }
        Ok(vec![joined])
    };
    let split = move |context: &super::super::custom::CustomContext<'_>| {
        let Some(gradient) = context.grad(0) else { return Ok(vec![None; places.len()]) };
        let base = Layout::contiguous(gradient.shape());
        places
            .iter()
            .map(|view| {
                let step = super::super::strided::Step::Take;
                let taken = super::super::strided::Strided { step, base: base.clone(), view: view.clone() };
                taken.take(gradient).map(Some)
            })
            .collect()
    };
    Ok(custom("jacobian", &refs, build, split)?.swap_remove(0))
}

fn check_count(what: &str, found: usize, of: &str, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::argument(format!("{found} {what} were given for {wanted} {of}"))
        .with_help(format!("give one of the {what} for each of the {of}")))
}

fn check_differentiable(input: &Tensor, index: usize) -> Result<()> {
    if input.dtype().is_differentiable() {
        return Ok(());
    }
    Err(Error::autograd(format!("input {index} is {}, which has no derivative", input.dtype())).with_help(
        "only floating-point and complex tensors have; use the others from the function's surroundings",
    ))
}

fn check_real(tensor: &Tensor) -> Result<()> {
    if tensor.dtype().is_complex() {
        let shape = ShapeText(tensor.shape());
        return Err(Error::autograd(format!(
            "the Jacobian of a complex tensor (of shape {shape}) is not one tensor of complex numbers"
        ))
        .with_help("use jvp and vjp, or split it into real and imaginary parts"));
    }
    Ok(())
}
