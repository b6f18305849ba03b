//! A line of a record: a call, or one call at several sizes, with the results of another library.
//!
//! In: JSON. Out: [`Line`], which runs its calls and reports differences from the recorded results.

use opsmith::{DType, Result, Tensor, Value};
use opsmith_runtime::Arg;
use opsmith_runtime::generated::call;
use opsmith_runtime::op::OpDef;
use serde_json::{Map, Value as Json, json};

use super::digest::Digest;
use super::given::{Given, integers, values};
use crate::checks::{leaf, numbers_like, pull};

/// A recorded call.
#[derive(Clone, Debug)]
pub struct Line {
    /// The operator's full name.
    pub op: String,
    /// The dtype of its tensors.
    pub dtype: DType,
    /// Arguments by name; the others have their defaults.
    pub args: Vec<(String, Given)>,
    /// Other sizes of the call.
    pub grow: Option<Grow>,
    /// Whether results, too, are compared only where inputs are ordinary numbers; `record.py` has the reason.
    pub calm: bool,
    /// The other library's results of each call; `None` if it rejected the call.
    pub outcomes: Vec<Option<Outcome>>,
}

/// Substitutes for a size.
#[derive(Clone, PartialEq, Debug)]
pub struct Grow {
    /// The size that is replaced wherever it occurs; 0 for every size above 1.
    pub size: i64,
    /// Whether integers among the attributes are sizes, too.
    pub attributes: bool,
    /// The substitutes, in one call each.
    pub to: Vec<i64>,
}

/// The results of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    outs: Vec<Option<Digest>>,
    /// The results that gradients are computed from.
    of: Vec<usize>,
    gradients: Vec<Option<Digest>>,
}

impl Line {
    /// The arguments of each call, with a label that distinguishes it.
    pub fn calls(&self) -> Vec<(String, Vec<(String, Given)>)> {
        let Some(grow) = &self.grow else { return vec![(String::new(), self.args.clone())] };
        let call = |&to: &i64| (format!(" with {to} for {}", grow.size), grown(&self.args, grow, to));
        grow.to.iter().map(call).collect()
    }

    /// The JSON of the line, without the other library's results.
    pub fn to_json(&self) -> Json {
        let args: Map<String, Json> =
            self.args.iter().map(|(name, given)| (name.clone(), given.to_json())).collect();
        let mut line = json!({"op": self.op, "dtype": self.dtype.name(), "args": args});
        if let Some(Grow { size, attributes, to }) = &self.grow {
            line["grow"] = json!({"size": size, "attributes": attributes, "to": to});
        }
        line
    }

    /// Reads a line of a record.
    pub fn read(json: &Json) -> Option<Line> {
        let args = json.get("args")?.as_object()?;
        let grow = match json.get("grow") {
            Some(grow) => Some(Grow {
                size: grow.get("size")?.as_i64()?,
                attributes: grow.get("attributes")?.as_bool()?,
                to: integers(grow.get("to")?)?,
            }),
            None => None,
        };
        let outcomes = match json.get("outcomes") {
            Some(outcomes) => outcomes.as_array()?.iter().map(Outcome::read).collect::<Option<_>>()?,
            None => Vec::new(),
        };
        Some(Line {
            op: json.get("op")?.as_str()?.to_owned(),
            dtype: DType::from_name(json.get("dtype")?.as_str()?)?,
            args: args
                .iter()
                .map(|(name, given)| Some((name.clone(), Given::read(given)?)))
                .collect::<Option<_>>()?,
            grow,
            calm: json.get("calm").is_some(),
            outcomes,
        })
    }

    /// The line with the operator's own results for each call, for comparisons with itself.
    #[must_use]
    pub fn recorded(mut self, op: &'static OpDef) -> Line {
        let outcome = |(_, args): (String, Vec<(String, Given)>)| Outcome::of(op, &args, self.dtype).ok();
        self.outcomes = self.calls().into_iter().map(outcome).collect();
        self
    }

    /// Runs every call and compares; `change` may change the layout of a tensor. Returns the differences.
    pub fn differences(&self, op: &'static OpDef, change: &mut dyn FnMut(&Tensor) -> Tensor) -> Vec<String> {
        let mut found = Vec::new();
        for ((label, args), outcome) in self.calls().iter().zip(&self.outcomes) {
            let Some(outcome) = outcome else { continue };
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                outcome.check(op, args, self, change)
            }));
            let why = match run {
                Ok(Ok(why)) => why,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("panicked".to_owned()),
            };
            let text = |why: String| {
                format!("{} {}{label}: {why}\n    {}", self.op, self.dtype, self.to_json()["args"])
            };
            found.extend(why.map(text));
        }
        found
    }
}

/// The part of a result that is compared: of operators that only gradients call, and in calm lines, that of gradients.
fn compared(op: &OpDef, calm: bool, out: &Tensor, tensors: &[Tensor]) -> Tensor {
    let is_slope = (calm || op.name.ends_with("_backward")) && out.dtype().is_differentiable();
    if is_slope { Digest::calm(out, tensors) } else { out.detach() }
}

/// The arguments with one size replaced by another.
pub(super) fn grown(args: &[(String, Given)], grow: &Grow, to: i64) -> Vec<(String, Given)> {
    let replace = |size: &mut i64| {
        if *size == grow.size || grow.size == 0 && *size > 1 {
            *size = to;
        }
    };
    let mut args = args.to_vec();
    for (_, given) in &mut args {
        given.for_each_tensor(&mut |tensor| tensor.shape.iter_mut().for_each(replace));
        if grow.attributes {
            given.for_each_integer(&mut |value| replace(value));
        }
    }
    args
}

/// Every result of a call.
pub(super) fn invoke(op: &'static OpDef, args: &[Value]) -> Result<Vec<Tensor>> {
    let args: Vec<Arg<'_>> = args.iter().map(Value::as_arg).collect();
    Ok(call::invoke(op, &args)?.into_vec())
}

impl Outcome {
    fn read(json: &Json) -> Option<Option<Outcome>> {
        if json.is_null() {
            return Some(None);
        }
        let digests = |json: &Json| -> Option<Vec<Option<Digest>>> {
            let one = |json: &Json| if json.is_null() { Some(None) } else { Digest::read(json).map(Some) };
            json.as_array()?.iter().map(one).collect()
        };
        let of = integers(json.get("of")?)?;
        Some(Some(Outcome {
            outs: digests(json.get("outs")?)?,
            of: of.into_iter().map(|position| position as usize).collect(),
            gradients: digests(json.get("grads")?)?,
        }))
    }

    /// The results of a call, with every element.
    fn of(op: &'static OpDef, args: &[(String, Given)], dtype: DType) -> Result<Outcome> {
        let args = values(op, args, dtype)?;
        let is_leaf = |tensor: &Tensor| tensor.dtype().is_differentiable();
        let track = |tensor: &Tensor| if is_leaf(tensor) { leaf(tensor) } else { Ok(tensor.clone()) };
        let tensors = crate::calls::tensors(&args).iter().map(track).collect::<Result<Vec<Tensor>>>()?;
        let outs = invoke(op, &crate::calls::with_tensors(&args, &tensors))?;
        let of: Vec<usize> = (0..outs.len()).filter(|&index| outs[index].requires_grad()).collect();
        let starts: Vec<Option<Tensor>> = outs
            .iter()
            .enumerate()
            .map(|(index, out)| of.contains(&index).then(|| numbers_like(out, 1 + index)).transpose())
            .collect::<Result<_>>()?;
        let recorded = outs.iter().map(|out| Some(Digest::of(&compared(op, false, out, &tensors)))).collect();
        let leaves: Vec<Tensor> = tensors.into_iter().filter(is_leaf).collect();
        // If the operator has no gradient, its results are compared nevertheless.
        let Ok(found) = pull(&outs, &leaves, &starts, false) else {
            return Ok(Outcome { outs: recorded, of: Vec::new(), gradients: Vec::new() });
        };
        let gradient = |found: Option<Tensor>| found.map(|found| Digest::of(&Digest::calm(&found, &leaves)));
        Ok(Outcome { outs: recorded, of, gradients: found.into_iter().map(gradient).collect() })
    }

    /// The difference of a call from the recorded results.
    fn check(
        &self,
        op: &'static OpDef,
        args: &[(String, Given)],
        line: &Line,
        change: &mut dyn FnMut(&Tensor) -> Tensor,
    ) -> Result<Option<String>> {
        let args = values(op, args, line.dtype)?;
        let given = crate::calls::tensors(&args);
        let mut leaves = Vec::new();
        let mut tensors = Vec::new();
        for tensor in &given {
            let tensor = change(tensor);
            let tracked = tensor.dtype().is_differentiable() && !self.of.is_empty();
            let tensor = if tracked { leaf(&tensor)? } else { tensor };
            if tensor.dtype().is_differentiable() {
                leaves.push(tensor.clone());
            }
            tensors.push(tensor);
        }
        let outs = invoke(op, &crate::calls::with_tensors(&args, &tensors))?;
        for (index, wanted) in self.outs.iter().enumerate() {
            let Some(wanted) = wanted else { continue };
            let Some(out) = outs.get(index) else { return Ok(Some(format!("there is no result {index}"))) };
            let out = compared(op, line.calm, out, &tensors);
            if let Some(why) = wanted.difference(&Digest::like(&out, wanted)) {
                return Ok(Some(format!("result {index}: {why}")));
            }
        }
        self.check_gradients(&outs, &leaves)
    }

    fn check_gradients(&self, outs: &[Tensor], leaves: &[Tensor]) -> Result<Option<String>> {
        let start = |(index, out): (usize, &Tensor)| match self.of.contains(&index) {
            true => numbers_like(out, 1 + index).map(Some),
            false => Ok(None),
        };
        let starts: Vec<Option<Tensor>> = outs.iter().enumerate().map(start).collect::<Result<_>>()?;
        let found = pull(outs, leaves, &starts, false)?;
        for (index, (found, wanted)) in found.iter().zip(&self.gradients).enumerate() {
            let Some(wanted) = wanted else { continue };
            let found = match found {
                Some(found) => Digest::like(&Digest::calm(found, leaves), wanted),
                None => Digest::like(&opsmith::zeros_like(&leaves[index].detach())?, wanted),
            };
            if let Some(why) = wanted.difference(&found) {
                return Ok(Some(format!("gradient of input {index}: {why}")));
            }
        }
        Ok(None)
    }
}

/// Parses a record, a line of JSON each.
///
/// # Errors
/// If a line is malformed.
pub fn read(text: &str) -> std::result::Result<Vec<Line>, String> {
    let line = |(number, text): (usize, &str)| {
        let json = serde_json::from_str(text).map_err(|error| format!("line {}: {error}", number + 1))?;
        Line::read(&json).ok_or_else(|| format!("line {}: not a recorded call", number + 1))
    };
    text.lines().enumerate().map(line).collect()
}
