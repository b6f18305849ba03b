//! Tangents from backward formulas.
//!
//! The gradients of a call's inputs are linear in those of its outputs. Their derivative by the
//! outputs' gradients is therefore the transpose of that linear map, which takes tangents of inputs to
//! tangents of outputs. It is found by differentiating the backward pass, so any operator whose
//! formulas can be differentiated by `grad` has tangents.

use smallvec::{SmallVec, smallvec};

use super::super::handle::{Options, grad};
use super::super::mode::Scope;
use super::super::node::Edge;
use super::super::strided::{Step, Strided};
use super::super::{attach, edge_of, recording};
use super::level::{Hidden, LevelId};
use super::{rules, tangent};
use crate::error::Result;
use crate::op::{Outputs, Tangents};
use crate::tensor::Tensor;

/// Runs a function of tensors that records itself, and returns the tangents of its outputs. Their level is hidden.
pub(super) fn transposed(
    tensors: &[Option<Tensor>],
    tangents: &[Option<Tensor>],
    run: impl FnOnce(&[Option<Tensor>]) -> Result<Outputs>,
) -> Result<(Outputs, Tangents)> {
    // The caller's graph reaches results through an operand or a tangent that is part of it; the nodes of this pass alone
    // are no reason to track them.
    let outer = recording() && tensors.iter().chain(tangents).flatten().any(Tensor::requires_grad);
    let forced = Scope::force();
    let mut sources: SmallVec<[(Tensor, Tensor); 2]> = SmallVec::new();
    let separated = tensors
        .iter()
        .zip(tangents)
        .map(|(tensor, tangent)| match (tensor, tangent) {
            (Some(tensor), Some(tangent)) => {
                let own = separate(tensor)?;
                sources.push((own.clone(), tangent.clone()));
                Ok(Some(own))
            }
            (tensor, _) => Ok(tensor.clone()),
        })
        .collect::<Result<Vec<_>>>()?;
    let outs = run(&separated)?;
    let tracked: Vec<usize> = (0..outs.len()).filter(|&index| outs[index].requires_grad()).collect();
    let mut found = Tangents::from_elem(None, outs.len());
    if !tracked.is_empty() {
        let seed = |&index: &usize| {
            let seed = rules::zeros_like(&outs[index])?;
            seed.set_requires_grad(true)?;
            Ok(seed)
        };
        let seeds = tracked.iter().map(seed).collect::<Result<Vec<Tensor>>>()?;
        let roots: Vec<&Tensor> = tracked.iter().map(|&index| &outs[index]).collect();
        let inputs: Vec<&Tensor> = sources.iter().map(|(own, _)| own).collect();
        let starts: Vec<Option<&Tensor>> = seeds.iter().map(Some).collect();
        let options = Options { create_graph: true, ..Options::default() };
        let gradients = grad(&roots, &inputs, &starts, options)?;
        let (mut flowing, mut along) = (Vec::new(), Vec::new());
        for (gradient, (_, tangent)) in gradients.iter().zip(&sources) {
            if let Some(gradient) = gradient.as_ref().filter(|gradient| gradient.requires_grad()) {
                flowing.push(gradient);
                along.push(Some(tangent));
            }
        }
        if !flowing.is_empty() {
            let seeds: Vec<&Tensor> = seeds.iter().collect();
            let options = Options { create_graph: outer, ..Options::default() };
            let results = grad(&flowing, &seeds, &along, options).map_err(|error| {
                error.with_note("in forward mode, which transposes the backward formulas")
            })?;
            for (index, result) in tracked.into_iter().zip(results) {
                found[index] = result;
            }
        }
    }
    drop(forced);
    let outs = if outer { outs } else { outs.iter().map(untracked).collect::<Result<_>>()? };
    Ok((outs, found))
}

/// A custom function with tangents at a level, which is the innermost.
pub(in super::super) fn custom(
    inputs: &[&Tensor],
    level: LevelId,
    run: impl FnOnce(&[&Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    let tensors: Vec<Option<Tensor>> = inputs.iter().map(|input| Some((*input).clone())).collect();
    let tangents = inputs.iter().map(|input| tangent::tangent(input, level)).collect::<Result<Vec<_>>>()?;
    let _hidden = Hidden::new(level);
    let (outs, tangents) = transposed(&tensors, &tangents, |tensors| {
        let tensors: Vec<&Tensor> = tensors.iter().flatten().collect();
        Ok(run(&tensors)?.into_iter().collect())
    })?;
    for (out, tangent) in outs.iter().zip(tangents) {
        tangent::own_tangent(out, level, tangent);
    }
    Ok(outs.into_vec())
}

/// A tensor with the same elements and a graph node of its own, whose edge leads to the original's node if it has one.
pub(super) fn separate(tensor: &Tensor) -> Result<Tensor> {
    let mut own = tensor.detach();
    tangent::share_tangents(tensor, &own)?;
    match edge_of(tensor)? {
        Some(edge) => {
            let layout = tensor.layout().clone();
            let step = Strided { step: Step::Take, base: layout.clone(), view: layout };
            let node = step.into_node(smallvec![Some(edge)], &own);
            attach(&mut own, Edge { node, output: 0 });
        }
        None => own.set_requires_grad(true)?,
    }
    Ok(own)
}

/// The same elements outside any graph, with their tangents.
pub(in super::super) fn untracked(tensor: &Tensor) -> Result<Tensor> {
    let own = tensor.detach();
    tangent::share_tangents(tensor, &own)?;
    Ok(own)
}
