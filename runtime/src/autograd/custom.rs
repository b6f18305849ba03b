//! User functions with a backward of their own.

use super::capture::Wanted;
use super::context::TensorMeta;
use super::engine::Passed;
use super::mode::no_grad;
use super::node::{Edge, Edges, Kind, Node, OutputMetas};
use super::saved::{SavedName, SavedTensor, SavedTensors, Slot, tracked_at};
use super::{attach, edge_of, forward_mode, recording};
use crate::arg::Arg;
use crate::error::{Error, Result};
use crate::shared::Shared;
use crate::tensor::Tensor;

/// The backward of a custom function: the gradient of each input, in order.
type Backward = dyn Fn(&CustomContext<'_>) -> Result<Vec<Option<Tensor>>> + Send + Sync;

/// A recorded call of a custom function.
pub(crate) struct Custom {
    pub name: String,
    pub inputs: Vec<TensorMeta>,
    pub saved: SavedTensors,
    /// Metadata of the saved tensors, by position.
    kept: Vec<(Slot, TensorMeta)>,
    backward: Box<Backward>,
}

/// Collects the tensors that the backward of a custom function will read.
#[derive(Default)]
pub struct Saver(Vec<Tensor>);

impl Saver {
    /// Saves an input, an output or any other tensor for backward, which reads it by its position
    /// among the saved ones.
    pub fn save(&mut self, tensor: &Tensor) {
        self.0.push(tensor.clone());
    }
}

/// The input of the backward of a custom function.
pub struct CustomContext<'a> {
    node: &'a Shared<Node>,
    custom: &'a Custom,
    gradients: &'a [Option<Tensor>],
    wanted: Option<&'a Wanted>,
}

impl CustomContext<'_> {
    /// The gradient of an output; `None` if none flows.
    pub fn grad(&self, output: usize) -> Option<&Tensor> {
        self.gradients.get(output).and_then(Option::as_ref)
    }

    /// A saved tensor, by its position among those that forward saved.
    ///
    /// # Errors
    /// If it was changed since, or freed by an earlier backward pass; or if the backward is itself recorded and the
    /// tensor was neither an input nor an output, so that its dependencies are unknown.
    pub fn saved(&self, position: usize) -> Result<Tensor> {
        let Some((slot, meta)) = self.custom.kept.get(position) else {
            return Err(Error::autograd(format!(
                "`{}` reads saved tensor {position}, but forward saved {}",
                self.custom.name,
                self.custom.kept.len()
            )));
        };
        let name = || SavedName { op: self.custom.name.clone(), what: format!("saved tensor {position}") };
        let tensor = self.custom.saved.restore(*slot, meta, &name)?;
        if !recording() {
            return Ok(tensor);
        }
        let edge = match *slot {
            Slot::Input(input) => self.node.edges[input as usize].clone(),
            Slot::Output(output) => {
                meta.dtype.is_differentiable().then(|| Edge { node: self.node.clone(), output })
            }
            Slot::Other(_) => {
                return Err(Error::autograd(format!(
                    "the backward of `{}` cannot be differentiated: saved tensor {position} is neither an input nor an output",
                    self.custom.name
                ))
                .with_help("save inputs and outputs only, and compute the rest from them in backward"));
            }
        };
        Ok(tracked_at(tensor, edge.as_ref()))
    }

    /// Metadata of the input without its elements.
    pub fn input_meta(&self, input: usize) -> &TensorMeta {
        &self.custom.inputs[input]
    }

    /// Metadata of the output without its elements.
    pub fn output_meta(&self, output: usize) -> &TensorMeta {
        &self.node.outputs[output]
    }

    /// Whether the gradient of an input is wanted.
    pub fn needs(&self, input: usize) -> bool {
        self.node.edges[input]
            .as_ref()
            .is_some_and(|edge| self.wanted.is_none_or(|wanted| wanted.contains(&edge.node)))
    }
}

impl Saver {
    /// The saved tensors, each with its position among inputs and outputs.
    fn keep(self, inputs: &[&Tensor], outs: &[Tensor]) -> (SavedTensors, Vec<(Slot, TensorMeta)>) {
        let mut saved = SavedTensors::default();
        let mut kept = Vec::new();
        for (position, tensor) in self.0.iter().enumerate() {
            let slot = match (
                inputs.iter().position(|input| input.same(tensor)),
                outs.iter().position(|out| out.same(tensor)),
            ) {
                (Some(input), _) => Slot::Input(input as u32),
                (_, Some(output)) => Slot::Output(output as u32),
                _ => Slot::Other(position as u32),
            };
            kept.push((slot, TensorMeta::of(tensor)));
            saved.push(SavedTensor::new(slot, tensor));
        }
        (saved, kept)
    }
}

/// Calls a user function that joins the graph with a backward of its own.
///
/// `forward` runs unrecorded and saves the tensors that `backward` reads. `backward` returns the gradient of each
/// input, in order; the engine converts shapes and dtypes as it does for operators' formulas. Recorded operators in
/// `backward` can be differentiated again.
///
/// # Errors
/// Errors of `forward`, or if it changed a tracked input in place.
pub fn custom(
    name: impl Into<String>,
    inputs: &[&Tensor],
    forward: impl FnOnce(&[&Tensor], &mut Saver) -> Result<Vec<Tensor>>,
    backward: impl Fn(&CustomContext<'_>) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
) -> Result<Vec<Tensor>> {
    let name = name.into();
    let args: Vec<Arg<'_>> = inputs.iter().map(|input| Arg::Tensor(input)).collect();
    if forward_mode::is_active()
        && let Some(level) = forward_mode::top_level(&args)
    {
        return forward_mode::custom(inputs, level, |inputs| custom(name, inputs, forward, backward));
    }
    let tracked = recording() && inputs.iter().any(|input| input.requires_grad());
    let edges = if tracked {
        inputs.iter().map(|input| edge_of(input)).collect::<Result<Edges>>()?
    } else {
        Edges::new()
    };
    let versions: Vec<u64> = inputs.iter().map(|input| input.version()).collect();
    let mut saver = Saver::default();
    let mut outs = no_grad(|| forward(inputs, &mut saver))?;
    if !tracked {
        return Ok(outs);
    }
    if let Some(index) = inputs.iter().zip(&versions).position(|(input, version)| input.version() != *version)
    {
        return Err(Error::autograd(format!(
            "`{name}` changed its input {index} in place, which is not recorded"
        ))
        .with_help("compute into a new tensor"));
    }
    let (saved, kept) = saver.keep(inputs, &outs);
    let custom = Custom {
        name,
        inputs: inputs.iter().map(|input| TensorMeta::of(input)).collect(),
        saved,
        kept,
        backward: Box::new(backward),
    };
    let metas: OutputMetas = outs.iter().map(TensorMeta::of).collect();
    let node = Node::new(edges, metas, Kind::Custom(Box::new(custom)));
    for (index, out) in outs.iter_mut().enumerate() {
        if out.dtype().is_differentiable() {
            attach(out, Edge { node: node.clone(), output: index as u32 });
        }
    }
    Ok(outs)
}

impl Custom {
    /// Runs the user's backward.
    ///
    /// # Errors
    /// Errors of that function, or if it gives the wrong number of gradients.
    pub fn run(
        &self,
        node: &Shared<Node>,
        gradients: &[Option<Tensor>],
        wanted: Option<&Wanted>,
    ) -> Result<Passed> {
        let context = CustomContext { node, custom: self, gradients, wanted };
        let results = (self.backward)(&context)?;
        if results.len() != self.inputs.len() {
            return Err(Error::autograd(format!(
                "the backward of `{}` gave {} gradients for {} inputs",
                self.name,
                results.len(),
                self.inputs.len()
            )));
        }
        Ok(results.into_iter().enumerate().filter_map(|(index, result)| Some((index, result?))).collect())
    }
}
