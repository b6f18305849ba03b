//! Models: read, and called on tensors.
//!
//! In: a file. Out: a function over tensors, which `Graph::trace` records.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use memmap2::Mmap;
use opsmith_graph::{Dim, Graph, InputSpec};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;
use prost::Message;

use crate::errors::damaged;
use crate::lower::{self, VERSIONS};
use crate::model::{Attribute, Block, Called, Model, Node};
use crate::operators;
use crate::proto::ModelProto;
use crate::replay::{self, Folded, Limits};
use crate::tensors::Reader;

/// Bytes that a protocol's message may have.
const LARGEST: u64 = 1 << 31;

/// A model in ONNX's format.
pub struct OnnxModel {
    model: Model,
    folded: Folded,
    limits: Limits,
}

/// Sizes at which a model shows the bounds of its symbols; different ones, which no table has.
const PROBED: i64 = 5003;
/// A bound may hide another one.
const PROBES: usize = 8;

impl OnnxModel {
    /// Whether bytes begin as a model does: with the version of the format, or another field of a model.
    pub fn is_model(start: &[u8]) -> bool {
        // The version is field 1, a number, and is written first; ZIP archives begin with "PK".
        matches!(start, [0x08, 1..=127, ..]) || matches!(start, [0x12 | 0x3a | 0x42, _, ..]) && start[1] > 0
    }

    /// Reads a model and the files of weights beside it, which are mapped into memory.
    ///
    /// # Errors
    /// If a file cannot be read, is damaged or lies outside the model's folder, or if the model needs another version of
    /// ONNX's operators than 18 to 23.
    pub fn load(path: impl AsRef<Path>) -> Result<OnnxModel> {
        let path = path.as_ref();
        let failed = |error: std::io::Error| Error::io(format!("{} cannot be read: {error}", path.display()));
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        if size > LARGEST {
            return Err(Error::io(format!(
                "{} has {size} bytes, more than a model can have",
                path.display()
            ))
            .with_help("large weights are in files of their own beside the model"));
        }
        // SAFETY: the bytes are read as bytes only; a file that another program shortens meanwhile ends this one, as with
        // any mapped file.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        OnnxModel::of(Bytes::from_owner(map), Reader::new(Some(folder.to_owned())))
    }

    /// Reads a model in memory, which has no files beside it.
    ///
    /// # Errors
    /// As [`OnnxModel::load`].
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<OnnxModel> {
        OnnxModel::of(Bytes::from(bytes.into()), Reader::new(None))
    }

    fn of(bytes: Bytes, reader: Reader) -> Result<OnnxModel> {
        let message = ModelProto::decode(bytes).map_err(|error| damaged("the file", error))?;
        if message.ir_version.is_none() && message.graph.is_none() {
            return Err(Error::io("the file is no model of ONNX: it has no graph")
                .with_help("a model is the file that `torch.onnx.export` or `onnx.save` writes"));
        }
        let model = lower::model(&message, &reader)?;
        let mut model = OnnxModel { model, folded: Mutex::default(), limits: Mutex::default() };
        model.bound_symbols();
        Ok(model)
    }

    /// Gives symbols the bounds that the model has and the format cannot say: a table of 16 places ends at 16. The model is
    /// traced at large sizes, until no value that is declared with a symbol is smaller. Errors are those of a later trace.
    fn bound_symbols(&mut self) {
        for _ in 0..PROBES {
            let mut sizes: BTreeMap<String, i64> = BTreeMap::new();
            let mut specs = self.model.inputs.clone();
            for dim in specs.iter_mut().flat_map(|spec| &mut spec.dims) {
                if let Dim::Symbol { name, most, .. } = dim {
                    let next = PROBED + 6 * sizes.len() as i64;
                    *dim = Dim::Fixed(*sizes.entry(name.clone()).or_insert(most.unwrap_or(next)));
                }
            }
            if sizes.is_empty() {
                return;
            }
            // Only sizes above that of its table are of interest.
            _ = Graph::trace(
                |inputs: &[Tensor]| {
                    self.replay(inputs, &sizes).map_err(|_| Error::graph("a node of the model failed"))
                },
                specs,
            );
            let limits = std::mem::take(self.limits.get_mut().unwrap_or_else(PoisonError::into_inner));
            let news =
                limits.into_iter().filter(|(name, limit)| sizes.get(name).is_some_and(|size| limit < size));
            let news: BTreeMap<String, i64> = news.collect();
            if news.is_empty() {
                return;
            }
            for dim in self.model.inputs.iter_mut().flat_map(|spec| &mut spec.dims) {
                if let Dim::Symbol { name, most, .. } = dim
                    && let Some(limit) = news.get(name)
                {
                    *most = Some(*limit);
                }
            }
        }
    }

    fn replay(&self, inputs: &[Tensor], sizes: &BTreeMap<String, i64>) -> Result<Vec<Tensor>, Vec<Error>> {
        replay::call(&self.model, &self.folded, &self.limits, inputs, sizes)
    }

    /// The inputs of each run, in order. Sizes that the file leaves open are symbols, by the file's names for them.
    pub fn inputs(&self) -> &[InputSpec] {
        &self.model.inputs
    }

    /// The names of the outputs, in order.
    pub fn output_names(&self) -> &[String] {
        &self.model.output_names
    }

    /// The tensors of the file by their names.
    pub fn weights(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.model.weights.iter().map(|weight| (weight.name.as_str(), &weight.tensor))
    }

    /// Gives tensors of the file, by their names, other elements: a function returns the new tensor, or `None` to keep one.
    ///
    /// # Errors
    /// If a new tensor has another dtype or shape than the file's; then those before it are replaced.
    pub fn replace_weights(&mut self, mut new: impl FnMut(&str, &Tensor) -> Option<Tensor>) -> Result<()> {
        self.folded.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        for weight in &mut self.model.weights {
            let Some(tensor) = new(&weight.name, &weight.tensor) else { continue };
            let of = |tensor: &Tensor| format!("{} {:?}", tensor.dtype(), tensor.shape());
            if of(&tensor) != of(&weight.tensor) {
                return Err(Error::shape(format!(
                    "the new `{}` is {}, and the model's is {}",
                    weight.name,
                    of(&tensor),
                    of(&weight.tensor)
                )));
            }
            weight.tensor = tensor;
        }
        Ok(())
    }

    /// The number of nodes, with those of blocks inside and of functions at each of their calls.
    pub fn node_count(&self) -> usize {
        self.model.nodes
    }

    /// The program that wrote the file, with its version; empty if the file does not say it.
    pub fn producer(&self) -> &str {
        &self.model.producer
    }

    /// An error for each operator that neither this reader nor a linked library has, in order of appearance.
    pub fn missing(&self) -> Vec<Error> {
        let (mut missing, mut seen) = (Vec::new(), BTreeSet::new());
        unknown(&self.model.block, &mut |node| {
            if seen.insert(node.operator.text()) {
                missing.push(missing_operator(node));
            }
        });
        missing
    }

    /// Calls the operators of the model one by one on tensors that fit its inputs. A call in a function that is traced
    /// becomes a part of its graph.
    ///
    /// # Errors
    /// Every mistake, each with its node; nodes that need the result of a failed one are not reported, nor are those of
    /// [`OnnxModel::missing`].
    pub fn call(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Vec<Error>> {
        let mut sizes = BTreeMap::new();
        for (spec, input) in self.model.inputs.iter().zip(inputs) {
            for (dim, size) in spec.dims.iter().zip(input.shape()) {
                if let Dim::Symbol { name, .. } = dim {
                    sizes.insert(name.clone(), *size);
                }
            }
        }
        self.replay(inputs, &sizes)
    }
}

/// Calls a function with each node of unknown operators, of a block and those inside.
fn unknown(block: &Block, found: &mut dyn FnMut(&Node)) {
    for node in &block.nodes {
        if matches!(node.operator, Called::Unknown { .. }) {
            found(node);
        }
        for (_, attribute) in &node.attributes {
            if let Attribute::Block(inner) = attribute {
                unknown(inner, found);
            }
        }
    }
}

fn missing_operator(node: &Node) -> Error {
    let name = node.operator.text();
    let error = match &node.operator {
        Called::Unknown { domain, .. } if !domain.is_empty() => {
            Error::not_found(format!("no library in this program has the operator `{name}`")).with_help(format!(
                "link a library of operators whose crate is called `{}`, or export the model without this operator",
                domain.replace('.', "_")
            ))
        }
        _ => {
            let (first, last) = (VERSIONS.start(), VERSIONS.end());
            let near = operators::similar(&name);
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "export the model without this operator, or decompose it".to_owned(),
            };
            Error::not_found(format!("the operator `{name}` of ONNX {first} to {last} is not supported"))
                .with_help(help)
        }
    };
    error.with_note(format!("called by the node `{}`", node.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<OnnxModel>();
    }
}
