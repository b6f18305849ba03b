//! Programs: loaded, checked, run.
//!
//! In: an archive. Out: every mistake before a run, and results. The graph is made at the first check or run.

mod loading;

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use opsmith_graph::Graph;
use opsmith_runtime::autograd::no_grad;
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::infer::symbolic::Guard;
use opsmith_runtime::scalar::Scalar;
use opsmith_runtime::tensor::Tensor;

use crate::checked::CheckedProgram;
use crate::conditions;
use crate::errors::ProgramErrors;
use crate::form::{self, Built, Form, Others, Shapes, Way, shapes};
use crate::inputs::{self, ProgramInput};
use crate::outputs::ProgramOutput;
use crate::sizes::ProgramSize;
use crate::source::{Replaying, Source};

/// A program that `torch.export.save` wrote, or a model in ONNX's format.
///
/// It runs on the host, whatever device it was exported for, or on the device that it was moved to ([`Program::move_to`]).
/// Buffers that it writes keep their values from run to run.
pub struct Program {
    source: Source,
    inputs: Vec<ProgramInput>,
    /// The inputs with the bounds of the file alone, which conditions make narrower.
    wide: Vec<ProgramInput>,
    /// Mistakes of the file.
    mistakes: Vec<Error>,
    /// Made at the first check or run, and again after weights that it holds as constants were written.
    built: Mutex<Option<Result<Arc<Built>, ProgramErrors>>>,
    /// Shapes at which the checks of sizes were made.
    checked: Mutex<BTreeSet<Shapes>>,
}

impl Program {
    /// The inputs of each run, in order.
    pub fn inputs(&self) -> &[ProgramInput] {
        &self.inputs
    }

    /// The results of each run, in order.
    pub fn outputs(&self) -> Vec<ProgramOutput> {
        self.source.outputs()
    }

    /// The parameters, buffers and constants by their names in the module or model.
    pub fn weights(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.source.weights().into_iter().map(|weight| (weight.name, weight.tensor))
    }

    /// The parameters, which training changes, by their names in the module; tied ones once, by their first name. Those of
    /// an ONNX model are its tensors of floats.
    ///
    /// ```no_run
    /// # use opsmith_programs::Program;
    /// # fn main() -> opsmith_runtime::Result<()> {
    /// let program = Program::load("model.pt2")?;
    /// for (_, parameter) in program.parameters() {
    ///     parameter.set_requires_grad(true)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let mut first: Vec<(&str, &Tensor)> = Vec::new();
        for weight in self.source.weights().into_iter().filter(|weight| weight.is_parameter) {
            if !first.iter().any(|(_, known)| known.same(weight.tensor)) {
                first.push((weight.name, weight.tensor));
            }
        }
        first.into_iter()
    }

    /// Moves the weights to a device: each run computes there, takes inputs there and leaves its results there. Devices that the
    /// program names itself count as this one. The moved weights require no gradients.
    ///
    /// ```no_run
    /// # use opsmith_programs::Program;
    /// # fn main() -> opsmith_runtime::Result<()> {
    /// # let x = opsmith_runtime::Tensor::of(&[1.0f32]);
    /// let mut program = Program::load("model.pt2")?;
    /// let device = opsmith_runtime::Device::cuda(0);
    /// program.move_to(device)?;
    /// let outputs = program.run(&[&x.to_device(device)?])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the device does not exist, its memory is exhausted, or the program is an ONNX model, which runs on the host. Then the
    /// weights stay.
    pub fn move_to(&mut self, device: Device) -> Result<()> {
        self.source.move_to(device)?;
        self.forget();
        Ok(())
    }

    /// The device of weights, inputs and results.
    pub fn device(&self) -> Device {
        self.source.device()
    }

    /// Discards the facts about former weights.
    fn forget(&mut self) {
        *self.built.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        self.checked.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The version of PyTorch that wrote the program, if the file says it.
    pub fn torch_version(&self) -> Option<&str> {
        match &self.source {
            Source::Exported { model, .. } => {
                Some(model.torch_version.as_str()).filter(|version| !version.is_empty())
            }
            Source::Onnx(_) => None,
        }
    }

    /// Finds all mistakes: missing or misshapen weights, symbols without bounds, operators that no linked library has,
    /// and calls that inference rejects.
    ///
    /// # Errors
    /// Every mistake, each with its node, the line of Python that made it, and advice.
    pub fn check(&self) -> Result<CheckedProgram, ProgramErrors> {
        let built = self.built()?;
        let mut requirements: Vec<String> = built.equal.iter().map(|(a, b)| format!("{a} == {b}")).collect();
        let mut special = Vec::new();
        let called = match &built.form {
            Form::Calls(place) => Some(place.clone()),
            Form::Graph { graph, only, .. } => {
                special.extend(
                    only.iter().map(|(shapes, error)| format!("inputs are {}: {error}", texts(shapes))),
                );
                let text =
                    |guard: &Guard| format!("{}: {}", guard.condition.named(graph.symbols()), guard.reason);
                special.extend(graph.guards().iter().map(text));
                let checked = graph.check().map_err(|errors| {
                    ProgramErrors::of(errors.errors().to_vec()).expect_err("a graph with mistakes has some")
                })?;
                requirements.extend(checked.requirements.iter().map(ToString::to_string));
                None
            }
        };
        // A condition that divides by sizes has no value at some.
        let is_read = |guard: &str| {
            [1, 720].into_iter().any(|size| {
                let example = |name: &str, _: Option<usize>| {
                    self.inputs.iter().any(|input| input.name == name).then_some(size)
                };
                conditions::holds(guard, &example).is_some()
            })
        };
        let unread = self.source.guards().iter().filter(|guard| !is_read(guard));
        Ok(CheckedProgram {
            inputs: self.inputs.clone(),
            requirements,
            unread: unread.cloned().collect(),
            special,
            called,
        })
    }

    /// Whether the program has a graph: none whose elements decide about its nodes has one.
    ///
    /// # Errors
    /// Every mistake, but for those that only [`Program::check`] finds, which compares the calls at all sizes.
    pub fn has_graph(&self) -> Result<bool, ProgramErrors> {
        Ok(matches!(self.built()?.form, Form::Graph { .. }))
    }

    /// The graph of the program, whose inputs are those of each run. It holds the weights as they are now.
    ///
    /// # Errors
    /// As [`Program::check`], and if the program has no graph because elements decide about its nodes.
    pub fn graph(&self) -> Result<Arc<Graph>, ProgramErrors> {
        match &self.built()?.form {
            Form::Graph { graph, .. } => Ok(graph.clone()),
            Form::Calls(place) => {
                let error = Error::graph("the program has no graph: elements decide about its nodes")
                    .with_note(format!("by {place}"))
                    .with_help("run the program: its operators are called one by one");
                Err(ProgramErrors::of(vec![error]).expect_err("there is a mistake"))
            }
        }
    }

    /// Calls the operators of the program one by one, in their order, without a graph: gradients flow to the inputs
    /// and [parameters](Program::parameters) that require them. A call in a function that is traced becomes a part of
    /// its graph. Outputs and errors are those of [`Program::run`].
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn call<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Vec<Tensor>> {
        ProgramErrors::of(self.mistakes.clone()).map_err(ProgramErrors::into_error)?;
        let checked = self.check_inputs(&self.inputs, inputs);
        checked.or_else(|error| self.check_inputs(&self.wide, inputs).map_err(|_| error))?;
        self.replay(inputs)
    }

    fn replay<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Vec<Tensor>> {
        let replay = Replaying::new(&self.source);
        let inputs: Vec<Tensor> = inputs.iter().map(|input| input.borrow().clone()).collect();
        replay.call(&inputs).map_err(|error| {
            let mut errors = self.source.missing();
            errors.append(&mut replay.errors());
            ProgramErrors::of(errors).map_or_else(ProgramErrors::into_error, |()| error)
        })
    }

    /// Runs the program. The outputs are in the order of the flattened results in Python, without those that are
    /// `None` or a text.
    ///
    /// # Errors
    /// If the program has mistakes, an input has another dtype or shape than the program takes, a condition of the
    /// program does not hold, and errors of kernels.
    pub fn run<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Vec<Tensor>> {
        let built = self.built().map_err(ProgramErrors::into_error)?;
        let checked = self.check_inputs(&built.inputs, inputs);
        match &built.form {
            Form::Calls(_) => checked.and_then(|()| no_grad(|| self.replay(inputs))),
            Form::Graph { graph, checks_sizes, only, others, general, agreed, .. } => {
                if let Err(error) = checked {
                    // Conditions may accept sizes beyond those around the example, such as every third one.
                    let accepts = built.equal.is_empty() && self.check_inputs(&self.wide, inputs).is_ok();
                    return if accepts { self.run_other(graph, others, inputs, error) } else { Err(error) };
                }
                if *checks_sizes {
                    self.check_sizes(inputs)?;
                }
                if let Some((only, error)) = only
                    && *only != shapes(inputs)
                {
                    return self.run_other(graph, others, inputs, error.clone());
                }
                if let Some(general) = general {
                    match form::way(&self.source, &self.inputs, general, (agreed, others), inputs) {
                        Way::General => {}
                        Way::Other(error) => return self.run_other(graph, others, inputs, error),
                        // The graph may say which condition on sizes does not hold; one that writes weights must not run.
                        Way::Mistakes(errors) if form::written(graph).is_empty() => {
                            return graph.run(inputs).and(Err(errors.into_error()));
                        }
                        Way::Mistakes(errors) => return Err(errors.into_error()),
                    }
                }
                graph.run(inputs).or_else(|error| match error.is_of_other_sizes() {
                    true => self.run_other(graph, others, inputs, error),
                    false => Err(error),
                })
            }
        }
    }

    /// Runs the program at sizes at which its graph does not hold: by a graph for these alone, or one call after the other.
    fn run_other<T: Borrow<Tensor>>(
        &self,
        graph: &Graph,
        others: &Others,
        inputs: &[T],
        error: Error,
    ) -> Result<Vec<Tensor>> {
        let other = others.graph(&self.source, &self.inputs, &shapes(inputs));
        let error = match other.map_err(ProgramErrors::into_error)? {
            Some(other) => match other.run(inputs) {
                Err(again) if again.is_of_other_sizes() => again,
                results => return results,
            },
            None => error,
        };
        // A size that elements determine was found in the middle of a run, which may have written weights.
        match form::written(graph).is_empty() {
            true => no_grad(|| self.replay(inputs)),
            false => Err(error),
        }
    }

    fn check_inputs<T: Borrow<Tensor>>(&self, inputs: &[ProgramInput], given: &[T]) -> Result<()> {
        inputs::check(inputs, given, self.device())?;
        let size = |name: &str, dim: Option<usize>| {
            let input = self.inputs.iter().position(|input| input.name == name)?;
            let given = given[input].borrow();
            match dim {
                Some(dim) => given.shape().get(dim).copied(),
                None => match given.item() {
                    Ok(Scalar::Int(number)) => Some(number),
                    _ => None,
                },
            }
        };
        for guard in self.source.guards() {
            let problem = match conditions::holds(guard, &size) {
                Some(true) => continue,
                Some(false) => format!("the inputs do not meet a condition of the program: {guard}"),
                // It holds where the program was exported.
                None if self.has_example_sizes(given) => continue,
                None => format!(
                    "a condition of the program cannot be read, and sizes differ from its example: {guard}"
                ),
            };
            return Err(Error::shape(problem).with_help("use sizes that the program was exported for"));
        }
        Ok(())
    }

    /// Whether the sizes of inputs are those at which the program was exported, as far as the file tells them.
    fn has_example_sizes<T: Borrow<Tensor>>(&self, given: &[T]) -> bool {
        self.inputs.iter().zip(given).all(|(input, given)| {
            input.sizes.iter().zip(given.borrow().shape()).all(|(size, given)| match size {
                ProgramSize::Symbol { name, .. } => {
                    self.source.example(name).is_none_or(|example| example == *given)
                }
                _ => true,
            })
        })
    }

    /// Replays the program at sizes that are new, for its checks of sizes.
    fn check_sizes<T: Borrow<Tensor>>(&self, given: &[T]) -> Result<()> {
        let shapes = shapes(given);
        if self.checked.lock().unwrap_or_else(PoisonError::into_inner).contains(&shapes) {
            return Ok(());
        }
        let replay = Replaying::new(&self.source);
        let traced = form::trace_at(&replay, &self.inputs, &shapes, self.device());
        traced.map_err(ProgramErrors::into_error)?;
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).insert(shapes);
        Ok(())
    }

    fn built(&self) -> Result<Arc<Built>, ProgramErrors> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        match &*built {
            Some(Ok(graph)) if graph.is_current() => Ok(graph.clone()),
            Some(Err(errors)) => Err(errors.clone()),
            _ => {
                let made = Built::of(&self.source, &self.inputs, self.mistakes.clone());
                built.insert(made.map(Arc::new)).clone()
            }
        }
    }
}

/// Shapes in words.
fn texts(shapes: &Shapes) -> String {
    shapes.iter().map(|shape| ShapeText(shape).to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Program>();
    }
}
