//! Weights: parameters, buffers and constants of a program as tensors.
//!
//! In: an archive, and the weights that the program names. Out: a tensor for each, and a mistake for each that is
//! missing, damaged or of another dtype or shape. Weights of one file share their memory, as tied parameters do.

use std::collections::BTreeMap;

use opsmith_core::DType;
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::tensor::Tensor;

use crate::archive::Archive;
use crate::errors::{damaged, unsupported};
use crate::expression::Formula;
use crate::lower::{TensorLayout, layout};
use crate::model::{InputKind, Model, TensorSpec};
use crate::schema::{self, PayloadConfig, PayloadMeta};

/// Folders of weights and of constants, with the suffix of their tables.
const FOLDERS: [(&str, &str); 2] =
    [("data/weights/", "_weights_config.json"), ("data/constants/", "_constants_config.json")];

/// The tensors of a program's inputs, `None` for those that each run gets.
pub(crate) struct Weights {
    pub of_inputs: Vec<Option<Tensor>>,
    /// The mistakes, in the order of inputs.
    pub mistakes: Vec<Error>,
}

/// Reads the weights of a model with this name in the archive.
pub(crate) fn read(archive: &mut Archive, model_name: &str, model: &Model) -> Weights {
    let mut mistakes = Vec::new();
    let mut tables = Vec::new();
    for (folder, suffix) in FOLDERS {
        let member = format!("{folder}{model_name}{suffix}");
        if !archive.has(&member) {
            continue;
        }
        match archive.text(&member).and_then(|text| schema::json::<PayloadConfig>(&member, &text)) {
            Ok(table) => tables.push((folder, table.config)),
            Err(error) => mistakes.push(error),
        }
    }
    let mut reader = Reader { archive, tables, files: BTreeMap::new(), tied: Vec::new() };
    let mut of_inputs = Vec::with_capacity(model.inputs.len());
    for input in &model.inputs {
        of_inputs.push(match &input.kind {
            InputKind::Weight { name, spec, .. } => match reader.weight(name, spec.as_ref()) {
                Ok(tensor) => Some(tensor),
                Err(error) => {
                    mistakes.push(error.with_note(format!("for the weight `{name}`")));
                    None
                }
            },
            _ => None,
        });
    }
    Weights { of_inputs, mistakes }
}

struct Reader<'a> {
    archive: &'a mut Archive,
    /// Folders with their weights by name.
    tables: Vec<(&'static str, BTreeMap<String, PayloadMeta>)>,
    /// The elements of files that were read, by member and dtype, in one dimension.
    files: BTreeMap<(String, &'static str), Tensor>,
    /// The weights that were read, by member: two names of one are one tensor, with one gradient.
    tied: Vec<(String, Tensor)>,
}

impl Reader<'_> {
    fn weight(&mut self, name: &str, spec: Option<&TensorSpec>) -> Result<Tensor> {
        let found = self.tables.iter().find_map(|(folder, table)| Some((*folder, table.get(name)?)));
        let Some((folder, meta)) = found else {
            return Err(Error::not_found(format!("the archive has no weight `{name}`"))
                .with_help("save the program again with `torch.export.save`, which includes its weights"));
        };
        let member = format!("{folder}{}", meta.path_name);
        if meta.use_pickle {
            return Err(unsupported(format!("`{member}`, a pickled object,"))
                .with_help("export the program with this weight as a plain tensor"));
        }
        let Some(tensor_meta) = &meta.tensor_meta else {
            return Err(damaged(&member, "its dtype and shape are missing"));
        };
        let TensorLayout { dtype, layout } =
            layout(tensor_meta).map_err(|problem| damaged(&member, problem))?;
        if let Some(spec) = spec {
            let known: Option<Vec<i64>> = spec.sizes.iter().map(|size| size.evaluate(&|_| None)).collect();
            if spec.dtype != dtype || known.is_some_and(|known| known != layout.sizes.as_slice()) {
                let sizes: Vec<String> = spec.sizes.iter().map(Formula::to_string).collect();
                return Err(Error::shape(format!(
                    "`{member}` is {dtype} of shape {}, and the program takes {} of shape ({})",
                    ShapeText(&layout.sizes),
                    spec.dtype,
                    sizes.join(", ")
                ))
                .with_help("weights and program are of different exports: save them together"));
            }
        }
        let is_it = |(known, tensor): &&(String, Tensor)| {
            *known == member && tensor.dtype() == dtype && *tensor.layout() == layout
        };
        if let Some((_, tensor)) = self.tied.iter().find(is_it) {
            return Ok(tensor.clone());
        }
        let elements = self.file(&member, dtype)?;
        let tensor = elements.with_layout(layout).map_err(|error| damaged(&member, error.message()))?;
        self.tied.push((member, tensor.clone()));
        Ok(tensor)
    }

    /// All elements of a file in one dimension.
    fn file(&mut self, member: &str, dtype: DType) -> Result<Tensor> {
        let key = (member.to_owned(), dtype.name());
        if let Some(known) = self.files.get(&key) {
            return Ok(known.clone());
        }
        let bytes = self.archive.read(member)?;
        let tensor = elements(&bytes, dtype).map_err(|problem| damaged(member, problem))?;
        self.files.insert(key, tensor.clone());
        Ok(tensor)
    }
}

/// A tensor of little-endian elements.
fn elements(bytes: &[u8], dtype: DType) -> Result<Tensor, String> {
    if !bytes.len().is_multiple_of(dtype.size()) {
        return Err(format!("{} bytes are no whole number of elements of {dtype}", bytes.len()));
    }
    if cfg!(target_endian = "big") {
        return Err("weights are little-endian, and this processor is not".to_owned());
    }
    if dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1) {
        return Err("a truth value is neither 0 nor 1".to_owned());
    }
    let count = (bytes.len() / dtype.size()) as i64;
    // SAFETY: every element is written on the next lines, before any is read.
    let tensor =
        unsafe { Tensor::with_memory(&[count], dtype, Device::CPU) }.map_err(|error| error.to_string())?;
    // SAFETY: the new memory holds as many bytes, no other code has it, and every pattern of bytes is an element of the
    // dtype: those of truth values were checked.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr(), bytes.len()) };
    Ok(tensor)
}
