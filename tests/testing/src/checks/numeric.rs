//! Derivatives against differences of the function itself.

use opsmith::autograd::jvp;
use opsmith::{DType, Result, Tensor};
use opsmith_runtime::Complex64;
use opsmith_runtime::sample::{Check, ToleranceOf};

use super::call::{Call, elements, inner, leaf, numbers_like, pull};
use super::{allowed, text};

/// The accuracy of differences and gradients.
pub(super) struct Exactness {
    /// The step of an element.
    step: f64,
    /// The relative error of a slope.
    slope: f64,
    /// The relative error of two computations of one number.
    rounding: f64,
}

impl Exactness {
    /// The accuracy of the narrowest dtype among some tensors.
    fn of(tensors: &[Tensor]) -> Exactness {
        match tensors.iter().map(|tensor| tensor.dtype().to_real()).min_by_key(|dtype| dtype.size()) {
            Some(DType::F32) => Exactness { step: 4e-3, slope: 2e-3, rounding: 1e-4 },
            Some(DType::F16 | DType::BF16) => Exactness { step: 0.1, slope: 0.1, rounding: 0.05 },
            _ => Exactness { step: 1e-5, slope: 1e-5, rounding: 1e-9 },
        }
    }
}

/// A tensor with one element moved.
fn moved(tensor: &Tensor, element: usize, by: Complex64) -> Result<Tensor> {
    let mut values = elements(tensor);
    values[element] += by;
    opsmith::to_dtype(&Tensor::from_slice(&values, tensor.shape())?, tensor.dtype())
}

fn cotangents(outs: &[Tensor], seed: usize) -> Result<Vec<Option<Tensor>>> {
    outs.iter().enumerate().map(|(index, out)| numbers_like(out, seed + index).map(Some)).collect()
}

/// The slopes of a number along every element of every tensor, in the form of gradients.
fn slopes(
    tensors: &[Tensor],
    number: &mut dyn FnMut(&[Tensor]) -> Result<f64>,
) -> Result<Vec<Vec<Complex64>>> {
    let step = Exactness::of(tensors).step;
    let mut all = Vec::new();
    for (position, tensor) in tensors.iter().enumerate() {
        let mut of_tensor = Vec::new();
        for element in 0..tensor.numel() as usize {
            let mut along = |direction: Complex64| -> Result<f64> {
                let mut at = |by: f64| {
                    let mut changed = tensors.to_vec();
                    changed[position] = moved(tensor, element, direction * by)?;
                    number(&changed)
                };
                Ok((at(step)? - at(-step)?) / (2.0 * step))
            };
            let re = along(Complex64::new(1.0, 0.0))?;
            let im = if tensor.dtype().is_complex() { along(Complex64::new(0.0, 1.0))? } else { 0.0 };
            of_tensor.push(Complex64::new(re, im));
        }
        all.push(of_tensor);
    }
    Ok(all)
}

fn compare(
    what: &str,
    found: &[Option<Tensor>],
    slopes: &[Vec<Complex64>],
    tolerance: f64,
) -> std::result::Result<(), String> {
    for (position, (found, slopes)) in found.iter().zip(slopes).enumerate() {
        let found = found.as_ref().map_or_else(|| vec![Complex64::default(); slopes.len()], elements);
        let scale = slopes.iter().map(|slope| slope.norm()).fold(1e-2, f64::max);
        for (element, (found, slope)) in found.iter().zip(slopes).enumerate() {
            let difference = (found - slope).norm();
            if difference.is_nan() || difference > tolerance * (scale + slope.norm()) {
                return Err(format!(
                    "{what} by input {position} at element {element} is {found}, the slope {slope}"
                ));
            }
        }
    }
    Ok(())
}

/// Gradients against differences.
pub fn gradient(call: &Call) -> std::result::Result<(), String> {
    let outs = text(call.run())?;
    let cotangents = text(cotangents(&outs, 1))?;
    let run = text(call.gradients(&cotangents, false))?;
    let number = &mut |inputs: &[Tensor]| -> Result<f64> {
        let outs = call.with_inputs(inputs).run()?;
        Ok(outs.iter().zip(&cotangents).map(|(out, w)| w.as_ref().map_or(0.0, |w| inner(w, out))).sum())
    };
    let slopes = text(slopes(&call.inputs(), number))?;
    // Tensors declared without a gradient are not compared: their slope is arbitrary.
    let tolerance =
        allowed(call.op, ToleranceOf::Check(Check::Gradient), Exactness::of(&call.inputs()).slope);
    compare("the gradient", &run.found, &keep_differentiable(call, slopes), tolerance)
}

/// The slopes without those of arguments declared as non-differentiable.
fn keep_differentiable(call: &Call, slopes: Vec<Vec<Complex64>>) -> Vec<Vec<Complex64>> {
    let stopped = call.op.grad.map_or(0, |grad| grad.non_differentiable);
    let mut stops = Vec::new();
    for (index, value) in call.args.iter().enumerate() {
        value.as_arg().for_each_tensor(|tensor| {
            if tensor.dtype().is_differentiable() {
                stops.push(stopped & (1 << index) != 0);
            }
        });
    }
    let keep = |(index, slopes): (usize, Vec<Complex64>)| match stops.get(index) {
        Some(true) => vec![Complex64::default(); slopes.len()],
        _ => slopes,
    };
    slopes.into_iter().enumerate().map(keep).collect()
}

/// Gradients of gradients, with respect to inputs and cotangents, against differences.
pub fn second_order(call: &Call) -> std::result::Result<(), String> {
    let outs = text(call.run())?;
    let starts: Vec<Tensor> =
        text(outs.iter().enumerate().map(|(index, out)| numbers_like(out, 1 + index)).collect())?;
    let inputs = call.inputs();
    let count = inputs.len();
    // The gradients depend on inputs and cotangents together.
    let first = |tensors: &[Tensor], create: bool| -> Result<Vec<Option<Tensor>>> {
        let outs = call.with_inputs(&tensors[..count]).run()?;
        let starts: Vec<Option<Tensor>> = tensors[count..].iter().cloned().map(Some).collect();
        pull(&outs, &tensors[..count], &starts, create)
    };
    let all: Vec<Tensor> = inputs.into_iter().chain(starts).collect();
    let leaves: Vec<Tensor> = text(all.iter().map(leaf).collect())?;
    let gradients = text(first(&leaves, true))?;
    let defined: Vec<usize> = (0..gradients.len()).filter(|&index| gradients[index].is_some()).collect();
    let flowing: Vec<Tensor> = defined.iter().filter_map(|&index| gradients[index].clone()).collect();
    let weights = text(cotangents(&flowing, 31))?;
    let found = text(pull(&flowing, &leaves, &weights, false))?;
    let number = &mut |tensors: &[Tensor]| -> Result<f64> {
        let leaves = tensors.iter().map(leaf).collect::<Result<Vec<_>>>()?;
        let gradients = first(&leaves, false)?;
        let values = defined.iter().zip(&weights).map(|(&index, weight)| match (&gradients[index], weight) {
            (Some(gradient), Some(weight)) => inner(weight, gradient),
            _ => 0.0,
        });
        Ok(values.sum())
    };
    let slopes = keep_differentiable(call, text(slopes(&all, number))?);
    let tolerance = allowed(call.op, ToleranceOf::Check(Check::SecondOrder), Exactness::of(&all).slope);
    compare("the second gradient", &found, &slopes, tolerance)
}

/// Whether gradients depend on a result that formulas read: their own gradient then reaches it.
pub(super) fn reads_value(call: &Call, output: usize) -> Result<bool> {
    let leaves = call.inputs().iter().map(leaf).collect::<Result<Vec<_>>>()?;
    let outs = call.with_inputs(&leaves).run()?;
    let gradients = pull(&outs, &leaves, &cotangents(&outs, 1)?, true)?;
    let flowing: Vec<Tensor> = gradients.into_iter().flatten().collect();
    let back = pull(&flowing, &outs[output..=output], &cotangents(&flowing, 31)?, false)?;
    Ok(back[0].is_some())
}

/// Tangents against differences along one direction, and against the gradients of reverse mode.
pub fn forward_mode(call: &Call) -> std::result::Result<(), String> {
    let inputs = call.inputs();
    let outs = text(call.run())?;
    let weights = text(cotangents(&outs, 1))?;
    let run = text(call.gradients(&weights, false))?;
    if inputs.is_empty() || !run.is_tracked() {
        return Ok(());
    }
    let directions: Vec<Tensor> =
        text(inputs.iter().enumerate().map(|(index, input)| numbers_like(input, 51 + index)).collect())?;
    let rounding = Exactness::of(&inputs).rounding;
    let weighted = |tangents: &[Option<Tensor>]| -> f64 {
        let pairs = tangents.iter().zip(&weights).filter_map(|(t, w)| t.as_ref().zip(w.as_ref()));
        pairs.map(|(t, w)| inner(w, t)).sum()
    };
    let tangents = text(along(call, &inputs, &directions))?;
    let by_reverse: f64 =
        run.found.iter().zip(&directions).map(|(g, v)| g.as_ref().map_or(0.0, |g| inner(g, v))).sum();
    let by_forward = weighted(&tangents);
    if (by_reverse - by_forward).abs() > rounding * (1.0 + by_reverse.abs()) {
        return Err(format!("forward mode gives {by_forward}, reverse mode {by_reverse}"));
    }
    // One input at a time, so that each part of a formula is tested alone.
    for (index, direction) in directions.iter().enumerate().filter(|_| inputs.len() > 1) {
        let only = [direction];
        let one = |tensors: &[Tensor]| {
            let mut all = inputs.clone();
            all[index] = tensors[0].clone();
            call.with_inputs(&all).run()
        };
        let (_, tangents) = text(jvp(one, &[&inputs[index]], &only))?;
        let by_reverse = run.found[index].as_ref().map_or(0.0, |gradient| inner(gradient, direction));
        let by_forward = weighted(&tangents);
        if (by_reverse - by_forward).abs() > rounding * (1.0 + by_reverse.abs()) {
            return Err(format!(
                "along input {index} alone forward mode gives {by_forward}, reverse mode {by_reverse}"
            ));
        }
    }
    for (out, tangent) in outs.iter().zip(&tangents) {
        if let Some(tangent) = tangent
            && (tangent.shape() != out.shape() || tangent.dtype() != out.dtype())
        {
            return Err(format!(
                "the tangent has the shape {:?}, the result {:?}",
                tangent.shape(),
                out.shape()
            ));
        }
    }
    Ok(())
}

fn along(call: &Call, inputs: &[Tensor], directions: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
    let function = |tensors: &[Tensor]| call.with_inputs(tensors).run();
    let refs = |tensors: &[Tensor]| tensors.to_vec();
    let (inputs, directions) = (refs(inputs), refs(directions));
    let (_, tangents) =
        jvp(function, &inputs.iter().collect::<Vec<_>>(), &directions.iter().collect::<Vec<_>>())?;
    Ok(tangents)
}
