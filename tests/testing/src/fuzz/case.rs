//! One fuzzed call: its operator, form and arguments, and its outcome.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use opsmith::autograd::{self, Options};
use opsmith::{DType, Result, Tensor, Value};
use opsmith_graph::{Graph, InputSpec};
use opsmith_runtime::boxed;
use opsmith_runtime::library::Library;
use opsmith_runtime::op::OpDef;

use super::{Random, tensors, values};
use crate::calls;
use crate::samples::samples;

/// The form of a call.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Form {
    Functional,
    Keywords,
    InPlace,
    Out,
    Backward,
    Forward,
    Traced,
}

/// A call.
pub struct Case {
    library: &'static Library,
    op: &'static OpDef,
    form: Form,
    args: Vec<Value>,
    outs: Vec<Tensor>,
    /// The seed of the rest of the call.
    seed: u64,
}

/// The outcome of a call; both are acceptable.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Outcome {
    /// With results.
    Done,
    /// With an error.
    Refused,
}

impl Case {
    /// The call of a seed, of any operator of a library or of the given one.
    pub fn new(seed: u64, library: &'static Library, op: Option<&'static OpDef>) -> Case {
        let mut random = Random::new(seed);
        let op = op.unwrap_or_else(|| library.ops[random.below(library.ops.len())]);
        let form = random.one_of(&[
            Form::Functional,
            Form::Functional,
            Form::Functional,
            Form::Keywords,
            Form::InPlace,
            Form::Out,
            Form::Backward,
            Form::Backward,
            Form::Forward,
            Form::Traced,
        ]);
        let form = match form {
            Form::InPlace if op.forms.inplace.is_none() => Form::Functional,
            Form::Out if op.forms.out.is_none() => Form::Backward,
            form => form,
        };
        let args = arguments(&mut random, op);
        let outs = if form == Form::Out { targets(&mut random, op, &args) } else { Vec::new() };
        Case { library, op, form, args, outs, seed: random.draw() }
    }

    /// The operator's name.
    pub fn name(&self) -> &'static str {
        self.op.name
    }

    /// A text that describes the call.
    pub fn describe(&self) -> String {
        let mut text = format!("{} {:?}", self.op.name, self.form);
        for (def, value) in self.op.schema.args.iter().zip(&self.args) {
            let _ = write!(text, "\n  {}: {}", def.name, describe(value));
        }
        for (index, out) in self.outs.iter().enumerate() {
            let _ = write!(text, "\n  out[{index}]: {}", describe_tensor(out));
        }
        text
    }

    /// Calls the operator and reads all of its results.
    pub fn run(&self) -> Outcome {
        let mut random = Random::new(self.seed);
        let result = match self.form {
            Form::Functional => self.call(self.op.name, &self.args, &[]).map(|values| look(&values)),
            Form::Keywords => self.by_keywords(&mut random),
            Form::InPlace => self
                .call(self.op.forms.inplace.unwrap_or(self.op.name), &self.args, &[])
                .map(|values| look(&values)),
            Form::Out => self.with_outs(),
            Form::Backward => self.backward(&mut random),
            Form::Forward => self.forward(&mut random),
            Form::Traced => self.traced(),
        };
        match result {
            Ok(()) => Outcome::Done,
            Err(error) => {
                let text = error.to_string();
                // Checks of the entry have to refuse such a call before a kernel sees it.
                assert!(!error.is_of_inference(), "{text}");
                Outcome::Refused
            }
        }
    }

    fn call(&self, name: &str, args: &[Value], kwargs: &[(&str, Value)]) -> Result<Vec<Value>> {
        boxed::call(self.library, name, args, kwargs)
    }

    fn by_keywords(&self, random: &mut Random) -> Result<()> {
        let split = random.below(self.args.len() + 1);
        let defs = self.op.schema.args;
        let mut named: Vec<(&str, Value)> =
            defs.iter().zip(&self.args).skip(split).map(|(def, value)| (def.name, value.clone())).collect();
        match random.below(8) {
            0 => drop(named.pop()),
            1 => named.push(("nothing", Value::Int(0))),
            2 if !named.is_empty() => named.push(named[0].clone()),
            _ => {}
        }
        look(&self.call(self.op.name, &self.args[..split], &named)?);
        Ok(())
    }

    fn with_outs(&self) -> Result<()> {
        let given = match &self.outs[..] {
            [only] => Value::Tensor(only.clone()),
            several => Value::Tensors(several.to_vec()),
        };
        look(&self.call(self.op.name, &self.args, &[("out", given)])?);
        Ok(())
    }

    fn backward(&self, random: &mut Random) -> Result<()> {
        let leaves = calls::tensors(&self.args);
        for leaf in &leaves {
            if leaf.dtype().is_differentiable() && !random.once_in(4) {
                let _ = leaf.set_requires_grad(true);
                if random.once_in(10) {
                    let other = tensors::tensor(random);
                    let _ = leaf.register_hook(move |_| Ok(Some(other.clone())));
                }
            }
        }
        let values = self.call(self.op.name, &self.args, &[])?;
        look(&values);
        let outs: Vec<Tensor> =
            calls::tensors(&values).into_iter().filter(|out| out.requires_grad()).collect();
        let gradients: Vec<Option<Tensor>> = outs.iter().map(|out| gradient(random, out)).collect();
        let outs: Vec<&Tensor> = outs.iter().collect();
        let gradients: Vec<Option<&Tensor>> = gradients.iter().map(Option::as_ref).collect();
        let options = Options { retain_graph: random.once_in(2), create_graph: random.once_in(3) };
        let leaves: Vec<&Tensor> = leaves.iter().filter(|leaf| leaf.requires_grad()).collect();
        if options.create_graph {
            let first = autograd::grad(&outs, &leaves, &gradients, options)?;
            let first: Vec<Tensor> = first.into_iter().flatten().filter(|g| g.requires_grad()).collect();
            let ones: Vec<Option<Tensor>> = first.iter().map(|first| gradient(random, first)).collect();
            let ones: Vec<Option<&Tensor>> = ones.iter().map(Option::as_ref).collect();
            look_at(&first);
            return autograd::backward(&first.iter().collect::<Vec<_>>(), &ones, Options::default());
        }
        autograd::backward(&outs, &gradients, options)?;
        let _ = autograd::backward(&outs, &gradients, Options::default());
        leaves.iter().filter_map(|leaf| leaf.grad()).for_each(|found| look_at(&[found]));
        Ok(())
    }

    fn forward(&self, random: &mut Random) -> Result<()> {
        let differentiable = |tensor: &Tensor| tensor.dtype().is_differentiable();
        let all = calls::tensors(&self.args);
        let inputs: Vec<&Tensor> = all.iter().filter(|tensor| differentiable(tensor)).collect();
        let tangents: Vec<Tensor> =
            inputs.iter().map(|input| gradient(random, input).unwrap_or_else(|| (*input).clone())).collect();
        let function = |duals: &[Tensor]| {
            let mut duals = duals.iter().cloned();
            let pick = |tensor: &Tensor| {
                if differentiable(tensor) {
                    duals.next().unwrap_or_else(|| tensor.clone())
                } else {
                    tensor.clone()
                }
            };
            let tensors: Vec<Tensor> = all.iter().map(pick).collect();
            let values = self.call(self.op.name, &calls::with_tensors(&self.args, &tensors), &[])?;
            Ok(calls::tensors(&values))
        };
        let (outs, along) = autograd::jvp(function, &inputs, &tangents.iter().collect::<Vec<_>>())?;
        look_at(&outs);
        look_at(&along.into_iter().flatten().collect::<Vec<_>>());
        Ok(())
    }

    fn traced(&self) -> Result<()> {
        let all = calls::tensors(&self.args);
        let spec =
            |tensor: &Tensor| InputSpec::new(tensor.dtype(), tensor.shape().iter().map(|&size| size.into()));
        let function = |tensors: &[Tensor]| {
            let values = self.call(self.op.name, &calls::with_tensors(&self.args, tensors), &[])?;
            Ok::<_, opsmith::Error>(calls::tensors(&values))
        };
        let graph = Graph::trace(function, all.iter().map(spec))?;
        look_at(&graph.run(&all)?);
        Ok(())
    }
}

/// Accepted arguments with mutations, or arbitrary ones.
fn arguments(random: &mut Random, op: &'static OpDef) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    let sample = if random.once_in(4) { None } else { sample(random, op) };
    let changes = random.one_of(&[0, 1, 1, 1, 2, 2, 3, 5]);
    let count = op.schema.args.len();
    let changed: Vec<usize> = (0..changes).map(|_| random.below(count)).collect();
    for (index, def) in op.schema.args.iter().enumerate() {
        let others = calls::tensors(&found);
        let own = sample.as_ref().map(|values| fresh(random, &values[index]));
        found.push(match own {
            Some(value) if changed.contains(&index) => values::mutated(random, def, &value, &others),
            Some(value) => value,
            None => values::any(random, def, &others),
        });
    }
    found
}

/// Samples are shared by many calls, so each gets its own tensors: hooks and gradients of one call would stay for all others.
fn fresh(random: &mut Random, value: &Value) -> Value {
    let copy = |tensor: &Tensor| match random.below(3) {
        0 => tensors::laid_out(&mut Random::new(random.draw()), tensor.dtype(), tensor.shape()),
        _ => opsmith::to_dtype_with(tensor, tensor.dtype(), opsmith::ToDtypeOptions::new().copy(true))
            .unwrap_or_else(|_| tensor.clone()),
    };
    let copies: Vec<Tensor> = calls::tensors(std::slice::from_ref(value)).iter().map(copy).collect();
    calls::with_tensors(std::slice::from_ref(value), &copies).remove(0)
}

/// One of an operator's samples, which are computed once per process.
fn sample(random: &mut Random, op: &'static OpDef) -> Option<Vec<Value>> {
    type Samples = HashMap<(&'static str, DType), Vec<Vec<Value>>>;
    static KNOWN: Mutex<Option<Samples>> = Mutex::new(None);
    let dtype = random.one_of(&[DType::F32, DType::F32, DType::F64, DType::C128, DType::BF16, DType::I64]);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_with(HashMap::new);
    let found = known.entry((op.name, dtype)).or_insert_with(|| samples(op, dtype));
    (!found.is_empty()).then(|| found[random.below(found.len())].clone())
}

/// Output tensors: empty, of the result's shape, of another, of a wrong dtype, an input, expanded.
fn targets(random: &mut Random, op: &'static OpDef, args: &[Value]) -> Vec<Tensor> {
    let inputs = calls::tensors(args);
    let mut count = op.schema.returns.len() - op.hidden;
    if random.once_in(20) {
        count = random.below(3);
    }
    let like = |random: &mut Random| -> Tensor {
        let dtype = random.one_of(&[DType::F32, DType::F64, DType::I64, DType::Bool, DType::C128]);
        let dtype = if random.once_in(2) { inputs.first().map_or(dtype, Tensor::dtype) } else { dtype };
        match random.below(8) {
            0..3 => opsmith::to_dtype(&Tensor::of::<f32>(&[]), dtype).unwrap_or_else(|_| Tensor::of(&[0f32])),
            3 if !inputs.is_empty() => tensors::shared(random, &inputs),
            4..7 if !inputs.is_empty() => {
                let shape = inputs[random.below(inputs.len())].shape().to_vec();
                tensors::laid_out(random, dtype, &shape)
            }
            _ => tensors::tensor(random),
        }
    };
    (0..count).map(|_| like(random)).collect()
}

/// A gradient of a tensor, occasionally one that does not fit it.
fn gradient(random: &mut Random, of: &Tensor) -> Option<Tensor> {
    match random.below(12) {
        0 => None,
        1 => Some(tensors::tensor(random)),
        2 => Some(tensors::laid_out(random, DType::I64, of.shape())),
        _ => Some(tensors::laid_out(random, of.dtype(), of.shape())),
    }
}

/// Reads and prints results.
fn look(values: &[Value]) {
    look_at(&calls::tensors(values));
}

fn look_at(tensors: &[Tensor]) {
    for tensor in tensors.iter().take(50) {
        let _ = (format!("{tensor}"), format!("{tensor:?}"));
        opsmith_runtime::with_dtype!(tensor.dtype(), T => drop(tensor.to_vec::<T>()));
        let _ = tensor.item();
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Tensor(tensor) => describe_tensor(tensor),
        Value::Tensors(list) => {
            format!("[{}]", list.iter().map(describe_tensor).collect::<Vec<_>>().join(", "))
        }
        Value::OptionalTensors(list) => {
            let item = |item: &Option<Tensor>| item.as_ref().map_or("none".to_owned(), describe_tensor);
            format!("[{}]", list.iter().map(item).collect::<Vec<_>>().join(", "))
        }
        other => {
            let text = format!("{other:?}");
            text.chars().take(300).collect()
        }
    }
}

fn describe_tensor(tensor: &Tensor) -> String {
    let layout = tensor.layout();
    let mut text = format!(
        "{} {:?} strides {:?} offset {}",
        tensor.dtype(),
        &layout.sizes[..],
        &layout.strides[..],
        layout.offset
    );
    if tensor.numel() <= 16 {
        let _ = write!(text, " {}", format!("{tensor}").replace('\n', " "));
    }
    text
}
