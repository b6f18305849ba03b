//! Sources of programs: an archive of PyTorch, or an ONNX model.
//!
//! In: the result of either reader. Out: the same queries for both: weights, missing operators, a replay.

mod replacement;

use std::cell::RefCell;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use opsmith_onnx::OnnxModel;
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use crate::checkpoint::Checkpoint;
use crate::errors::{ProgramErrors, unsupported};
use crate::inputs;
use crate::model::{InputKind, Model, Output, WeightKind};
use crate::operators;
use crate::outputs::{OutputRole, ProgramOutput};
use crate::replay::Replay;

/// The program of a file.
pub(crate) enum Source {
    /// A program that `torch.export.save` wrote, with the tensors of inputs that are weights, all on one device.
    Exported {
        model: Model,
        weights: Vec<Option<Tensor>>,
        device: Device,
    },
    Onnx(OnnxModel),
}

/// A tensor of the file.
pub(crate) struct Weight<'a> {
    pub name: &'a str,
    /// Other names of it, which its program does not have.
    pub aliases: &'a [String],
    pub tensor: &'a Tensor,
    /// Whether training changes it.
    pub is_parameter: bool,
    /// Whether every state dict has it.
    pub is_saved: bool,
}

/// Whether a file is an ONNX model. One that cannot be read is none: the reader of archives reports it.
pub(crate) fn is_model(path: &Path) -> bool {
    let mut start = [0u8; 8];
    File::open(path)
        .and_then(|mut file| file.read(&mut start))
        .is_ok_and(|read| OnnxModel::is_model(&start[..read]))
}

impl Source {
    pub fn weights(&self) -> Vec<Weight<'_>> {
        match self {
            Source::Exported { model, weights, .. } => {
                let mut found = Vec::new();
                for (input, tensor) in model.inputs.iter().zip(weights) {
                    let InputKind::Weight { name, aliases, kind, .. } = &input.kind else { continue };
                    if let Some(tensor) = tensor {
                        let is_parameter = *kind == WeightKind::Parameter;
                        let is_saved = *kind != WeightKind::Constant;
                        found.push(Weight { name, aliases, tensor, is_parameter, is_saved });
                    }
                }
                found
            }
            Source::Onnx(model) => model
                .weights()
                .map(|(name, tensor)| Weight {
                    name,
                    aliases: &[],
                    tensor,
                    is_parameter: tensor.dtype().is_float(),
                    // Tensors of a model are parameters and values that its exporter computed from them.
                    is_saved: false,
                })
                .collect(),
        }
    }

    /// Gives weights other elements, all of them or, after a mistake, none. A function gets the numbers of tensors that are done
    /// and of all.
    ///
    /// # Errors
    /// Every mistake.
    pub fn replace_weights(
        &mut self,
        checkpoint: &mut Checkpoint,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(), ProgramErrors> {
        let new = replacement::tensors(&self.weights(), checkpoint, progress)?;
        let only = |error: Error| ProgramErrors::of(vec![error]).expect_err("there is a mistake");
        match self {
            Source::Exported { model, weights, device } => {
                for (input, weight) in model.inputs.iter().zip(weights.iter_mut()) {
                    if let InputKind::Weight { name, .. } = &input.kind
                        && let Some(tensor) = new.get(name)
                    {
                        *weight = Some(tensor.clone());
                    }
                }
                *weights = moved(weights, *device).map_err(only)?;
            }
            Source::Onnx(model) => {
                model.replace_weights(|name, _| new.get(name).cloned()).map_err(only)?;
            }
        }
        Ok(())
    }

    /// The results of each run, in order.
    pub fn outputs(&self) -> Vec<ProgramOutput> {
        let found: Vec<(&OutputRole, Option<&str>)> = match self {
            Source::Exported { model, .. } => model.outputs.iter().filter_map(Output::of_caller).collect(),
            Source::Onnx(model) => {
                model.output_names().iter().map(|name| (&OutputRole::Result, Some(name.as_str()))).collect()
            }
        };
        let output = |(number, (role, name)): (usize, (&OutputRole, Option<&str>))| {
            let name = name.map_or_else(|| format!("out{number}"), str::to_owned);
            ProgramOutput { name, role: role.clone() }
        };
        found.into_iter().enumerate().map(output).collect()
    }

    /// Conditions on inputs, in Python.
    pub fn guards(&self) -> &[String] {
        match self {
            Source::Exported { model, .. } => &model.guards,
            Source::Onnx(_) => &[],
        }
    }

    /// The values of symbols at which the program was exported, as far as they are known.
    pub fn example(&self, symbol: &str) -> Option<i64> {
        match self {
            Source::Exported { model, .. } => model.examples.get(symbol).copied(),
            Source::Onnx(_) => None,
        }
    }

    /// An error for each operator that no library has.
    pub fn missing(&self) -> Vec<Error> {
        match self {
            Source::Exported { model, .. } => operators::missing(&model.block),
            Source::Onnx(model) => model.missing(),
        }
    }

    /// Whether all inputs have sizes at which the program can be traced.
    pub fn has_sizes(&self) -> bool {
        match self {
            Source::Exported { model, .. } => inputs::of(model).1.is_empty(),
            Source::Onnx(_) => true,
        }
    }

    /// The device of weights, inputs and results.
    pub fn device(&self) -> Device {
        match self {
            Source::Exported { device, .. } => *device,
            Source::Onnx(_) => Device::CPU,
        }
    }

    /// Moves the weights to a device, on which each run computes; after an error none.
    ///
    /// # Errors
    /// If the device does not exist, its memory is exhausted, or the program is an ONNX model.
    pub fn move_to(&mut self, target: Device) -> Result<()> {
        match self {
            Source::Exported { weights, device, .. } => {
                *weights = moved(weights, target)?;
                *device = target;
                Ok(())
            }
            Source::Onnx(_) if target == Device::CPU => Ok(()),
            Source::Onnx(_) => Err(unsupported(format!("an ONNX model on {target}"))
                .with_help("run it on the CPU, or export the module by `torch.export`")),
        }
    }
}

/// Tensors on a device; tied ones stay tied.
fn moved(tensors: &[Option<Tensor>], device: Device) -> Result<Vec<Option<Tensor>>> {
    let mut known: Vec<(&Tensor, Tensor)> = Vec::new();
    let mut moved = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let Some(tensor) = tensor else {
            moved.push(None);
            continue;
        };
        let copy = match known.iter().find(|(old, _)| old.same(tensor)) {
            Some((_, copy)) => copy.clone(),
            None if tensor.device() == device => tensor.clone(),
            // A tensor that requires a gradient stays the leaf of it.
            None => tensor.detach().to_device(device)?,
        };
        known.push((tensor, copy.clone()));
        moved.push(Some(copy));
    }
    Ok(moved)
}

/// A program that can be called, with the mistakes of its last call.
pub(crate) enum Replaying<'a> {
    Exported(Replay<'a>),
    Onnx { model: &'a OnnxModel, errors: RefCell<Vec<Error>> },
}

impl<'a> Replaying<'a> {
    pub fn new(source: &'a Source) -> Replaying<'a> {
        match source {
            Source::Exported { model, weights, device } => {
                Replaying::Exported(Replay::new(model, weights, *device))
            }
            Source::Onnx(model) => Replaying::Onnx { model, errors: RefCell::default() },
        }
    }

    /// Calls the program.
    ///
    /// # Errors
    /// If a node failed; the mistakes are those of [`Replaying::errors`].
    pub fn call(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        match self {
            Replaying::Exported(replay) => replay.call(inputs),
            Replaying::Onnx { model, errors } => {
                errors.borrow_mut().clear();
                model.call(inputs).map_err(|found| {
                    *errors.borrow_mut() = found;
                    Error::graph("a node of the model failed")
                })
            }
        }
    }

    pub fn errors(&self) -> Vec<Error> {
        match self {
            Replaying::Exported(replay) => replay.errors.borrow().clone(),
            Replaying::Onnx { errors, .. } => errors.borrow().clone(),
        }
    }

    /// The first node or input of the last call that needs elements which a traced function does not have.
    pub fn lacking(&self) -> Option<String> {
        match self {
            Replaying::Exported(replay) => replay.lacking.borrow().clone(),
            Replaying::Onnx { .. } => None,
        }
    }

    /// Whether a check depends on sizes alone, so that it must be repeated for others.
    pub fn checks_sizes(&self) -> bool {
        match self {
            Replaying::Exported(replay) => replay.checks_sizes.get(),
            Replaying::Onnx { .. } => false,
        }
    }
}
