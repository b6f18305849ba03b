//! Gradients must not depend on the way of calling: strides, forms, other requested gradients.

use opsmith::{DType, Result, Tensor};
use opsmith_runtime::generated::call;
use opsmith_runtime::{Arg, Value};

use super::call::{Call, elements, leaf, numbers_like, pull};
use super::text;
use crate::samples::repeatable;
use crate::special::scattered;

pub(super) type Outcome = std::result::Result<(), String>;

pub(super) fn starts(outs: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    outs.iter().enumerate().map(|(index, out)| numbers_like(out, 1 + index).map(Some)).collect()
}

fn same(what: &str, found: &[Option<Tensor>], wanted: &[Option<Tensor>]) -> Outcome {
    for (position, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let (Some(found), Some(wanted)) = (found, wanted) else {
            let nothing = |tensor: &Option<Tensor>| {
                tensor.as_ref().is_none_or(|tensor| elements(tensor).iter().all(|x| x.norm() == 0.0))
            };
            if nothing(found) && nothing(wanted) {
                continue;
            }
            return Err(format!("{what}: the gradient of input {position} is there in one way only"));
        };
        if found.shape() != wanted.shape() {
            return Err(format!(
                "{what}: the gradient of input {position} has the shape {:?}",
                found.shape()
            ));
        }
        // The order of sums may differ.
        let tolerance = if wanted.dtype().to_real() == DType::F64 { 1e-12 } else { 1e-5 };
        let (found, wanted) = (elements(found), elements(wanted));
        let scale = wanted.iter().map(|x| x.norm()).filter(|norm| norm.is_finite()).fold(1e-3, f64::max);
        // Outside of its domain a gradient is no number, in both ways alike.
        let alike = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
        for (element, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            let difference = (found - wanted).norm();
            let is_same = alike(found.re, wanted.re) && alike(found.im, wanted.im);
            if !is_same && (difference.is_nan() || difference > tolerance * scale) {
                return Err(format!(
                    "{what}: the gradient of input {position} at element {element} is {found}, not {wanted}"
                ));
            }
        }
    }
    Ok(())
}

/// One element expanded along the first dimension, and a row-major copy of that.
fn expanded(tensor: &Tensor) -> Result<Tensor> {
    if tensor.dim() == 0 || tensor.numel() == 0 {
        return Ok(tensor.clone());
    }
    Ok(opsmith::expand(&opsmith::narrow(tensor, 0, 0, 1)?, tensor.shape())?.detach())
}

/// Inputs and cotangents that are not row-major, or have overlapping indices.
pub fn strided(call: &Call) -> Outcome {
    let outs = text(call.run())?;
    let cotangents = text(starts(&outs))?;
    let plain = text(call.gradients(&cotangents, false))?;
    if !plain.is_tracked() {
        return Ok(());
    }
    // If layouts are the operator's subject, its result depends on them.
    let turned = call.mapped(&mut |tensor| scattered(tensor).expect("a copy in another order"));
    let same_result = |other: &Call| -> std::result::Result<bool, String> {
        let others = match other.run() {
            Ok(others) => others,
            // A view may be impossible where elements are not in order.
            Err(_) if call.op.view.is_some() => return Ok(false),
            Err(error) => return Err(error.to_string()),
        };
        Ok(outs.iter().zip(&others).all(|(a, b)| elements(a) == elements(b)) || call.op.view.is_none())
    };
    if same_result(&turned)? {
        let run = text(turned.gradients(&cotangents, false))?;
        same("inputs with gaps", &run.found, &plain.found)?;
    }
    let cotangents_apart: Vec<Option<Tensor>> =
        text(cotangents.iter().map(|start| start.as_ref().map(scattered).transpose()).collect())?;
    let run = text(call.gradients(&cotangents_apart, false))?;
    same("cotangents with gaps", &run.found, &plain.found)?;
    let repeated: Vec<Option<Tensor>> =
        text(cotangents.iter().map(|start| start.as_ref().map(expanded).transpose()).collect())?;
    let copied: Vec<Option<Tensor>> =
        text(repeated.iter().map(|start| start.as_ref().map(opsmith::deep_clone).transpose()).collect())?;
    let (run, wanted) = (text(call.gradients(&repeated, false))?, text(call.gradients(&copied, false))?);
    same("expanded cotangents", &run.found, &wanted.found)?;
    if call.op.view.is_some() {
        return Ok(());
    }
    let shown = call.mapped(&mut |tensor| {
        if tensor.dtype().is_differentiable() { expanded(tensor).expect("a view") } else { tensor.clone() }
    });
    let flat = shown.mapped(&mut |tensor| opsmith::deep_clone(tensor).expect("a copy"));
    let (run, wanted) = (shown.gradients(&cotangents, false), flat.gradients(&cotangents, false));
    match (run, wanted) {
        (Ok(run), Ok(wanted)) if run.outs.iter().zip(&outs).all(|(a, b)| a.shape() == b.shape()) => {
            same("expanded inputs", &run.found, &wanted.found)
        }
        // Equal elements may be outside the domain, in both variants alike.
        (Ok(_), Ok(_)) | (Err(_), Err(_)) => Ok(()),
        (run, _) => {
            Err(format!("expanded inputs: {}", run.err().map_or_else(String::new, |e| e.to_string())))
        }
    }
}

/// Inputs without elements: a successful forward has a successful backward, with gradients of the inputs' shapes.
pub fn empty(call: &Call) -> Outcome {
    let mut sizes: Vec<i64> = Vec::new();
    call.args.iter().for_each(|arg| arg.as_arg().for_each_tensor(|tensor| sizes.extend(tensor.shape())));
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let without = call.mapped(&mut |tensor| {
            let shape: Vec<i64> = tensor.shape().iter().map(|&s| if s == size { 0 } else { s }).collect();
            if shape == tensor.shape() {
                return tensor.clone();
            }
            let zeros = opsmith::zeros(&shape).expect("memory for nothing");
            opsmith::to_dtype(&zeros, tensor.dtype()).expect("nothing to convert")
        });
        let Ok(outs) = without.run() else { continue };
        let cotangents = text(starts(&outs))?;
        let run = without
            .gradients(&cotangents, false)
            .map_err(|error| format!("with 0 in place of {size}: {error}"))?;
        for (position, (gradient, input)) in run.found.iter().zip(&run.inputs).enumerate() {
            if let Some(gradient) = gradient
                && gradient.shape() != input.shape()
            {
                return Err(format!(
                    "with 0 in place of {size} the gradient of input {position} has the shape {:?}",
                    gradient.shape()
                ));
            }
        }
    }
    Ok(())
}

/// One output at a time, and one input at a time.
pub fn undefined(call: &Call) -> Outcome {
    let outs = text(call.run())?;
    let cotangents = text(starts(&outs))?;
    for index in 0..outs.len() {
        if outs.len() < 2 {
            break;
        }
        let mut only = vec![None; outs.len()];
        only[index].clone_from(&cotangents[index]);
        let zeros = cotangents.iter().enumerate().map(|(other, start)| match start {
            Some(start) if other != index => opsmith::zeros_like(start).map(Some),
            start => Ok(start.clone()),
        });
        let zeros: Vec<Option<Tensor>> = text(zeros.collect())?;
        let (run, wanted) = (text(call.gradients(&only, false))?, text(call.gradients(&zeros, false))?);
        same(&format!("from result {index} alone"), &run.found, &wanted.found)?;
    }
    let all = text(call.gradients(&cotangents, false))?;
    let inputs = call.inputs();
    for index in 0..inputs.len() {
        if inputs.len() < 2 {
            break;
        }
        let mut tensors: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
        tensors[index] = text(leaf(&inputs[index]))?;
        let outs = text(call.with_inputs(&tensors).run())?;
        let found = text(pull(&outs, &tensors[index..=index], &cotangents, false));
        let found = match found {
            Ok(found) => found,
            Err(error) => return Err(format!("to input {index} alone: {error}")),
        };
        same(&format!("to input {index} alone"), &found, &all.found[index..=index])?;
    }
    Ok(())
}

/// The in-place form: on a copy, and on a view of one.
pub fn inplace(call: &Call) -> Outcome {
    if call.op.forms.inplace.is_none() {
        return Ok(());
    }
    let outs = text(call.run())?;
    let target = call.inputs().first().cloned();
    let Some(target) = target.filter(|target| {
        matches!(&call.args[0], Value::Tensor(first) if first.same(target))
            && outs.len() == 1
            && outs[0].shape() == target.shape()
            && outs[0].dtype() == target.dtype()
    }) else {
        return Ok(());
    };
    drop(target);
    let cotangents = text(starts(&outs))?;
    let wanted = text(call.gradients(&cotangents, false))?;
    for through_view in [false, true] {
        let leaves: Vec<Tensor> = text(call.inputs().iter().map(leaf).collect())?;
        let mut tensors = leaves.clone();
        let copy = text(opsmith::deep_clone(&leaves[0]))?;
        tensors[0] = if through_view { text(opsmith::alias(&copy))? } else { copy.clone() };
        let changed = call.with_inputs(&tensors);
        let args: Vec<Arg<'_>> = changed.args.iter().map(Value::as_arg).collect();
        text(repeatable(call.op, || call::invoke_inplace(call.op, &args)))?;
        let what = if through_view { "in place, through a view" } else { "in place" };
        if elements(&copy) != elements(&outs[0]) {
            return Err(format!("{what}: the result differs from that of the functional form"));
        }
        let found = text(pull(std::slice::from_ref(&copy), &leaves, &cotangents, false))?;
        same(what, &found, &wanted.found)?;
    }
    Ok(())
}
