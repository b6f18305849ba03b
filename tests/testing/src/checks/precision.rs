//! Gradients in narrower dtypes against those of the same numbers in `float64`.
//!
//! A well-conditioned call has a fixed error bound. An ill-conditioned one may have more, but no more than its
//! conditioning explains: the change of `float64` gradients if the inputs change by a unit of rounding of the dtype, or
//! the error of the *other* dtypes, in units of theirs. A formula that loses digits in one dtype (a constant of few
//! digits, a sum in the wrong type) has an error there that neither explains.

use opsmith::{DType, Result, Tensor};
use opsmith_runtime::Complex64;
use opsmith_runtime::sample::ToleranceOf;

use super::call::{Call, elements};
use super::forms::{Outcome, starts};
use super::{allowed, is_unsupported, text};

/// The dtypes, the error of a well-conditioned gradient in each, and the unit of rounding.
const NARROW: [(DType, f64, f64); 3] = [
    (DType::F32, 2e-5, f64::EPSILON * (1u64 << 29) as f64 / 2.0),
    (DType::BF16, 0.06, 1.0 / 256.0),
    (DType::F16, 0.01, 1.0 / 2048.0),
];

/// Number of perturbations of inputs that measure a gradient's sensitivity.
const CHANGES: usize = 6;

/// Allowed ratio to another dtype's error, in units of rounding: errors are sums of few terms with random signs.
const CHANCE: f64 = 8.0;

/// A gradient in one dtype and the one in `float64`.
struct Compared {
    found: Vec<Vec<Complex64>>,
    wanted: Vec<Vec<Complex64>>,
}

impl Compared {
    /// The largest error of each input's gradient; infinite if only one of the two is NaN.
    fn errors(&self) -> Vec<f64> {
        self.found.iter().zip(&self.wanted).map(|(found, wanted)| distance(found, wanted)).collect()
    }

    fn scales(&self) -> Vec<f64> {
        let scale = |wanted: &Vec<Complex64>| wanted.iter().map(|x| x.norm()).fold(1e-3, f64::max);
        self.wanted.iter().map(scale).collect()
    }
}

fn distance(a: &[Complex64], b: &[Complex64]) -> f64 {
    // NaN in both is equal: the function is undefined there.
    let both = |a: &Complex64, b: &Complex64| a == b || a.is_nan() && b.is_nan();
    let differences = a.iter().zip(b).map(|(a, b)| if both(a, b) { 0.0 } else { (a - b).norm() });
    differences.fold(0.0, |largest, next| if next.is_nan() { f64::INFINITY } else { next.max(largest) })
}

/// Gradients in narrower dtypes; see the head of the file.
///
/// # Errors
/// For a gradient whose error exceeds its bound; names the dtype and the input.
pub fn precision(call: &Call) -> Outcome {
    let mut results = Vec::new();
    for (dtype, usual, unit) in NARROW {
        let narrow = call.mapped(&mut converted(DType::F64, dtype)).with_dtype(DType::F64, dtype);
        let compared = match compare(&narrow, dtype) {
            Ok(Some(compared)) => compared,
            Ok(None) => continue,
            Err(why) => return Err(format!("{dtype}: {why}")),
        };
        let tolerance = allowed(call.op, ToleranceOf::DType(dtype), usual);
        results.push((dtype, tolerance, unit, narrow, compared));
    }
    for (dtype, tolerance, unit, narrow, compared) in &results {
        for (input, (error, scale)) in compared.errors().iter().zip(compared.scales()).enumerate() {
            if *error <= tolerance * scale {
                continue;
            }
            // The largest finite number of `float16` is small: a composition that overflows in between loses range
            // only, not precision.
            if call.op.composite.is_some() && *dtype == DType::F16 && error.is_infinite() {
                continue;
            }
            let others = results.iter().filter(|(other, ..)| other != dtype);
            let elsewhere = others
                .map(|(other, _, unit, narrow, _)| worst(narrow, *other, input).map(|worst| worst / unit))
                .try_fold(0.0, |largest: f64, next| next.map(|next| next.max(largest)))?;
            let explained = (CHANCE * elsewhere * unit).max(3.0 * sensitivity(narrow, *dtype, *unit, input)?);
            if error.is_infinite() || *error > explained.max(tolerance * scale) {
                return Err(differs(dtype.name(), compared, input, explained.max(tolerance * scale)));
            }
        }
    }
    Ok(())
}

fn differs(dtype: &str, compared: &Compared, input: usize, allowed: f64) -> String {
    let pairs = compared.found[input].iter().zip(&compared.wanted[input]);
    let off = |(found, wanted): (&Complex64, &Complex64)| {
        let error = distance(&[*found], &[*wanted]);
        error.is_infinite() || error > allowed
    };
    match pairs.enumerate().find(|(_, pair)| off(*pair)) {
        Some((element, (found, wanted))) => {
            format!("{dtype}: the gradient of input {input} at element {element} is {found}, not {wanted}")
        }
        None => format!("{dtype}: the gradient of input {input} is there in one way only"),
    }
}

/// A conversion of tensors of one dtype to another.
fn converted(from: DType, to: DType) -> impl FnMut(&Tensor) -> Tensor {
    move |tensor| match tensor.dtype() == from {
        true => opsmith::to_dtype(tensor, to).expect("a conversion"),
        false => tensor.clone(),
    }
}

/// The gradients of a narrow call and of the same numbers in `float64`; `None` if one of the dtypes is not supported.
fn compare(narrow: &Call, dtype: DType) -> std::result::Result<Option<Compared>, String> {
    let outs = match narrow.run() {
        Err(error) if is_unsupported(&error) => return Ok(None),
        other => text(other)?,
    };
    let cotangents = text(starts(&outs))?;
    let found = text(narrow.gradients(&cotangents, false))?.found;
    let wanted = match exact(narrow, dtype, &cotangents) {
        Err(error) if is_unsupported(&error) => return Ok(None),
        other => text(other)?,
    };
    for (input, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        if let (Some(found), Some(wanted)) = (found, wanted)
            && found.shape() != wanted.shape()
        {
            return Err(format!("the gradient of input {input} has the shape {:?}", found.shape()));
        }
    }
    Ok(Some(numbers(narrow, &found, &wanted)))
}

fn numbers(call: &Call, found: &[Option<Tensor>], wanted: &[Option<Tensor>]) -> Compared {
    let inputs = call.inputs();
    // No gradient counts as zeros.
    let all = |gradients: &[Option<Tensor>]| {
        let zeros = |input: &Tensor| vec![Complex64::default(); input.numel() as usize];
        inputs
            .iter()
            .zip(gradients)
            .map(|(input, g)| g.as_ref().map_or_else(|| zeros(input), elements))
            .collect()
    };
    Compared { found: all(found), wanted: all(wanted) }
}

/// The gradients in `float64` of a narrow call's own numbers.
fn exact(narrow: &Call, dtype: DType, cotangents: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let wide = narrow.mapped(&mut converted(dtype, DType::F64)).with_dtype(dtype, DType::F64);
    let widened = |start: &Tensor| {
        let to = if start.dtype().is_complex() { DType::C128 } else { DType::F64 };
        opsmith::to_dtype(start, to)
    };
    let starts: Vec<Option<Tensor>> =
        cotangents.iter().map(|start| start.as_ref().map(widened).transpose()).collect::<Result<_>>()?;
    Ok(wide.gradients(&starts, false)?.found)
}

/// The call with every number of a dtype changed by some units of rounding; each `change` perturbs differently.
fn changed(call: &Call, dtype: DType, unit: f64, change: usize) -> Call {
    let mut seed = 0;
    call.mapped(&mut |tensor| {
        seed += 1;
        if tensor.dtype() != dtype {
            return tensor.clone();
        }
        let by =
            |index: usize| (((index * 31 + seed * 57 + change * 83) % 41) as f64 / 20.0 - 1.0) * 2.0 * unit;
        let values = elements(tensor);
        let values: Vec<Complex64> = values.iter().enumerate().map(|(at, x)| x * (1.0 + by(at))).collect();
        let changed = Tensor::from_slice(&values, tensor.shape()).expect("its own shape");
        opsmith::to_dtype(&changed, dtype).expect("a conversion")
    })
}

/// The largest error of an input's gradient over a few calls near one.
fn worst(narrow: &Call, dtype: DType, input: usize) -> std::result::Result<f64, String> {
    let mut worst = 0.0f64;
    for change in 0..CHANGES {
        // Close enough for the same conditioning, far enough for other errors.
        let near = changed(narrow, dtype, 1.0 / 256.0, change);
        let error = compare(&near, dtype)?.and_then(|compared| compared.errors().get(input).copied());
        worst = worst.max(error.filter(|error| error.is_finite()).unwrap_or(0.0));
    }
    Ok(worst)
}

/// The change of an input's gradient in `float64` if the inputs change by about a unit of rounding.
fn sensitivity(narrow: &Call, dtype: DType, unit: f64, input: usize) -> std::result::Result<f64, String> {
    let outs = text(narrow.run())?;
    let cotangents = text(starts(&outs))?;
    let wide = narrow.mapped(&mut converted(dtype, DType::F64)).with_dtype(dtype, DType::F64);
    let gradients = |call: &Call| -> std::result::Result<Vec<Vec<Complex64>>, String> {
        let found = text(exact(call, DType::F64, &cotangents))?;
        Ok(numbers(call, &found, &found).found)
    };
    let here = gradients(&wide)?;
    let mut largest = 0.0f64;
    for change in 0..CHANGES {
        let there = gradients(&changed(&wide, DType::F64, unit, change))?;
        let by = distance(&there[input], &here[input]);
        largest = largest.max(if by.is_finite() { by } else { 0.0 });
    }
    Ok(largest)
}
